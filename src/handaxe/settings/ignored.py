"""Tell the user which values of a project's files do not count, and what would change that."""

from collections.abc import Sequence
from shlex import quote

from handaxe.settings.fragment import Entry
from handaxe.settings.layers import Ignored
from handaxe.settings.narrowing import Trust, entry_wish

_SHOWN_CHARS = 200


def sentences(ignored: Sequence[Ignored], trust: Trust) -> list[str]:
    """One sentence for what waits for trust, and one for each value that can never count."""
    waiting = [one.entry for one in ignored if one.why == "untrusted"]
    changed = [one.entry for one in ignored if one.why == "changed"]
    told: list[str] = []
    if waiting:
        told.append(_waiting(waiting, trust.root))
    if changed:
        told.append(_changed(changed, trust))
    never = [one.entry for one in ignored if one.why == "never"]
    told += [f"{entry.origin}: {_never(entry)}" for entry in never]
    weakening = [one.entry for one in ignored if one.why == "managed"]
    return told + [
        f"{entry.origin}: `{entry.name}` does not count: managed settings turn the sandbox on, "
        "and only they may weaken it."
        for entry in weakening
    ]


def _waiting(entries: list[Entry], root: str) -> str:
    counts: dict[str, int] = {}
    for entry in entries:
        name = ".".join(entry.path[:1] if entry.path[0] in {"hooks", "env"} else entry.path)
        counts[name] = counts.get(name, 0) + 1
    names = ", ".join(f"`{name}` ({n})" if n > 1 else f"`{name}`" for name, n in counts.items())
    return (
        f"{_files(entries)}: this workspace has not been trusted, so {names} "
        f"{'does' if len(counts) == 1 else 'do'} not count. "
        f"If you trust these files, run `handaxe trust {quote(root)}`."
    )


def _changed(entries: list[Entry], trust: Trust) -> str:
    """What is new or different since trust was given."""
    told: list[str] = []
    for entry in entries:
        wish = entry_wish(entry, trust.root)
        earlier = trust.approved.get(wish.key)
        was = "new" if earlier is None else f"was {_cut(earlier)}"
        told.append(f"`{entry.name}` = {_cut(wish.note)} ({was})")
    return (
        f"{_files(entries)}: what changed since this workspace was trusted does not count: "
        f"{', '.join(told)}. If you trust the change, run `handaxe trust {quote(trust.root)}`."
    )


def _files(entries: list[Entry]) -> str:
    return ", ".join(dict.fromkeys(str(entry.origin.file) for entry in entries))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _never(entry: Entry) -> str:
    source = entry.origin.source
    if source in {"project", "local"}:
        return f"`{entry.name}` does not count: a project's own files may not set it so."
    return f"`{entry.name}` does not count here: only managed settings may say that."
