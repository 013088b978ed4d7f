"""Tell the user which values of a project's files do not count, and what would change that."""

from collections.abc import Sequence
from shlex import quote

from handaxe.config.layers import IgnoredSetting
from handaxe.config.source import SettingEntry
from handaxe.config.trust import Trust, build_trust_request

_SHOWN_CHARS = 200


def describe_ignored(ignored: Sequence[IgnoredSetting], trust: Trust) -> list[str]:
    """One sentence for what waits for trust, and one for each value that can never count."""
    waiting = [one.entry for one in ignored if one.why == "untrusted"]
    changed = [one.entry for one in ignored if one.why == "changed"]
    told: list[str] = []
    if waiting:
        told.append(_describe_untrusted(waiting, trust.root))
    if changed:
        told.append(_describe_changed(changed, trust))
    never = [one.entry for one in ignored if one.why == "never"]
    told += [f"{entry.origin}: {_describe_forbidden(entry)}" for entry in never]
    weakening = [one.entry for one in ignored if one.why == "managed"]
    return told + [
        f"{entry.origin}: `{entry.name}` does not count: managed settings turn the sandbox on, "
        "and only they may weaken it."
        for entry in weakening
    ]


def _describe_untrusted(entries: list[SettingEntry], root: str) -> str:
    counts: dict[str, int] = {}
    for entry in entries:
        name = ".".join(entry.path[:1] if entry.path[0] in {"hooks", "env"} else entry.path)
        counts[name] = counts.get(name, 0) + 1
    names = ", ".join(f"`{name}` ({n})" if n > 1 else f"`{name}`" for name, n in counts.items())
    return (
        f"{_format_files(entries)}: this workspace has not been trusted, so {names} "
        f"{'does' if len(counts) == 1 else 'do'} not count. "
        f"If you trust these files, run `handaxe trust {quote(root)}`."
    )


def _describe_changed(entries: list[SettingEntry], trust: Trust) -> str:
    """What is new or different since trust was given."""
    told: list[str] = []
    for entry in entries:
        wish = build_trust_request(entry, trust.root)
        earlier = trust.approved.get(wish.key)
        was = "new" if earlier is None else f"was {_truncate(earlier)}"
        told.append(f"`{entry.name}` = {_truncate(wish.note)} ({was})")
    return (
        f"{_format_files(entries)}: what changed since this workspace was trusted does not count: "
        f"{', '.join(told)}. If you trust the change, run `handaxe trust {quote(trust.root)}`."
    )


def _format_files(entries: list[SettingEntry]) -> str:
    return ", ".join(dict.fromkeys(str(entry.origin.file) for entry in entries))


def _truncate(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _describe_forbidden(entry: SettingEntry) -> str:
    source = entry.origin.source
    if source in {"project", "local"}:
        return f"`{entry.name}` does not count: a project's own files may not set it so."
    return f"`{entry.name}` does not count here: only managed settings may say that."
