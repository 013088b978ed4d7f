"""Tell the user which values of a project's files do not count, and what would change that."""

from collections.abc import Sequence
from shlex import quote

from handaxe.settings.fragment import Entry
from handaxe.settings.layers import Ignored


def sentences(ignored: Sequence[Ignored], root: str, *, is_trusted: bool) -> list[str]:
    """One sentence for what waits for trust, and one for each value that can never count."""
    waiting = [one.entry for one in ignored if one.why == "untrusted"]
    told: list[str] = []
    if waiting:
        told.append(_waiting(waiting, root, is_trusted=is_trusted))
    never = [one.entry for one in ignored if one.why == "never"]
    return told + [f"{entry.origin}: {_never(entry)}" for entry in never]


def _waiting(entries: list[Entry], root: str, *, is_trusted: bool) -> str:
    files = ", ".join(dict.fromkeys(str(entry.origin.file) for entry in entries))
    counts: dict[str, int] = {}
    for entry in entries:
        name = ".".join(entry.path[:1] if entry.path[0] in {"hooks", "env"} else entry.path)
        counts[name] = counts.get(name, 0) + 1
    names = ", ".join(f"`{name}` ({n})" if n > 1 else f"`{name}`" for name, n in counts.items())
    if is_trusted:
        why = "its hooks are not those that were there when this workspace was trusted"
    else:
        why = "this workspace has not been trusted"
    return (
        f"{files}: {why}, so {names} {'does' if len(counts) == 1 else 'do'} not count. "
        f"If you trust these files, run `handaxe trust {quote(root)}`."
    )


def _never(entry: Entry) -> str:
    source = entry.origin.source
    if source in {"project", "local"}:
        return f"`{entry.name}` does not count: a project's own files may not set it so."
    return f"`{entry.name}` does not count here: only managed settings may say that."
