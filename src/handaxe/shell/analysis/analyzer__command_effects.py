"""The effects of a command, from the facts of its text."""

from handaxe.contract.effects import Effects, Resource
from handaxe.shell.analysis.analyzer import analyze
from handaxe.shell.analysis.effects.destructive_commands import is_irreversible

_MOVES = Effects(reads_everything=True, writes=(Resource("state", "cwd"),))


def read_effects(
    command: str,
    cwd: str = "/project",
    home: str = "/home/user",
    roots: tuple[str, ...] = (),
    *,
    bounded: bool = False,
) -> Effects:
    """What a command reads and writes; `bounded`: with everything it writes at most, for undo."""
    facts = analyze(command, cwd, home, roots)
    if facts.only_reads:
        return _MOVES if facts.changes_directory else Effects.none()
    return Effects(
        reads_everything=True,
        writes_everything=True,
        irreversible=is_irreversible(facts, roots),
        extent=facts.extent if bounded else None,
    )
