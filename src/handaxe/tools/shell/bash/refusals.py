"""A confined command that failed the way the sandbox makes commands fail; it knows no more.

The kernel refuses with the same words a disk or a missing right would, so this is a hint.
"""

import re
from collections.abc import Mapping, Sequence

from handaxe.contract.ports.shell import ConfinementLevel
from handaxe.settings.sandbox_options import SandboxOptions

_FILES = re.compile(
    r"read-only file system|operation not permitted|permission denied|\b(?:EROFS|EPERM|EACCES)\b",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"could not resolve|couldn't connect|name or service not known|name resolution"
    r"|network is unreachable|connection refused|\b(?:ENETUNREACH|ENOTFOUND|EAI_AGAIN)\b",
    re.IGNORECASE,
)


def sandbox_hint(
    command: str, output: str, level: ConfinementLevel, options: SandboxOptions
) -> str | None:
    """What may have been refused, and what can be done; None where nothing points to it."""
    limits: list[str] = []
    if level.files != "open" and _FILES.search(output):
        limits.append("it can write only in the working directories and in $TMPDIR")
    if level.network != "open" and _NETWORK.search(output):
        reached = "no host" if level.network == "off" else "only hosts that settings list"
        limits.append(f"it reaches {reached}")
    if not limits or _is_ignored(command, output, options.ignore_violations):
        return None
    way_out = " If so, it can ask to run outside (dangerouslyDisableSandbox)."
    hint = f"The sandbox may be the reason: {' and '.join(limits)}."
    return hint + (way_out if options.allow_unsandboxed_commands else "")


def _is_ignored(command: str, output: str, ignored: Mapping[str, Sequence[str]]) -> bool:
    return any(
        part in output
        for place, parts in ignored.items()
        if place == "*" or place in command
        for part in parts
    )
