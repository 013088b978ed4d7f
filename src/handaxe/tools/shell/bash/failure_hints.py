"""A confined command that failed the way the sandbox makes commands fail; it knows no more.

The kernel refuses with the same words a disk or a missing right would, so this is a hint.
"""

import re
from collections.abc import Mapping, Sequence
from posixpath import join, normpath

from handaxe.config.sandbox_options import SandboxOptions
from handaxe.contract.ports.shell import ConfinementLevel
from handaxe.contract.readable_files import ReadableFiles

_FILES = re.compile(
    r"read-only file system|operation not permitted|permission denied|\b(?:EROFS|EPERM|EACCES)\b",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"could not resolve|couldn't connect|name or service not known|name resolution"
    r"|network is unreachable|connection refused"
    r"|\b(?:ECONNREFUSED|ENETUNREACH|ENOTFOUND|EAI_AGAIN)\b",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"no such file|not found|cannot (?:access|find|open)|can't open|does not exist|not a git repos"
    r"|permission denied|\b(?:ENOENT|EACCES)\b",
    re.IGNORECASE,
)
_PATH = re.compile(r"""(?<![\w.~/-])(?:\.\.|/)[^\s:;,'"`()\[\]<>]*""")
_MOST_CHARS = 20_000


def build_sandbox_hint(
    command: str,
    output: str,
    level: ConfinementLevel,
    options: SandboxOptions,
    files: ReadableFiles | None = None,
    cwd: str = "/",
) -> str | None:
    """What may have been refused, and what can be done; None where nothing points to it."""
    limits: list[str] = []
    if files is not None and (hidden := _find_hidden_path(output, files, cwd)) is not None:
        limits.append(f"it cannot read {hidden} unless sandbox.filesystem.allowRead names it")
    if level.files != "open" and _FILES.search(output):
        limits.append("it can write only in the working directories and in $TMPDIR")
    if level.network != "open" and _NETWORK.search(output):
        limits.append(f"it reaches {_describe_network(level, options)}")
    if not limits or _is_ignored(command, output, options.ignore_violations):
        return None
    way_out = " If so, it can ask to run outside (dangerouslyDisableSandbox)."
    hint = f"The sandbox may be the reason: {' and '.join(limits)}."
    return hint + (way_out if options.allow_unsandboxed_commands else "")


def _find_hidden_path(output: str, files: ReadableFiles, cwd: str) -> str | None:
    """A path that the output says is missing and that the sandbox hides."""
    for line in output[-_MOST_CHARS:].splitlines():
        if not _MISSING.search(line):
            continue
        for named in _PATH.findall(line):
            path = normpath(join(cwd, named))
            if not files.can_read(path):
                return path
    return None


def _describe_network(level: ConfinementLevel, options: SandboxOptions) -> str:
    listed = "sandbox.network.allowedDomains"
    if level.network != "off":
        return f"only hosts that {listed} names, local ones only by their own names"
    return "no host" if options.network.allowed_domains else f"no host, as {listed} names none"


def _is_ignored(command: str, output: str, ignored: Mapping[str, Sequence[str]]) -> bool:
    return any(
        part in output
        for place, parts in ignored.items()
        if place == "*" or place in command
        for part in parts
    )
