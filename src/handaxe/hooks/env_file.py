"""Variables that hooks set for later commands."""

import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import msgspec

from handaxe.contract.ports.hooks import HookCommand, HookCommandResult, HookUnreachable
from handaxe.hooks.outcome import Outcome

MAX_VARIABLES = 1_000
MAX_CHARS = 100_000
"""Linux starts no program with a variable longer than 128 KiB."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A shell sets these itself, they decide what it does before the command, or the session owns them.
_NOT_THEIRS = re.compile(
    r"_|PWD|OLDPWD|SHLVL|BASH.*|ENV|SHELLOPTS|PS4|PROMPT_COMMAND|IFS|CDPATH|GLOBIGNORE"
    r"|POSIXLY_CORRECT|HANDAXE(_.*)?|CLAUDECODE|CLAUDE_(CODE_SESSION_ID|ENV_FILE|PROJECT_DIR)"
)


def add_env_variables(
    outcome: Outcome, left: Mapping[str, str | None], may_set: Callable[[str], bool]
) -> Outcome:
    """Add a program's variables to the outcome; a note lists forbidden names."""
    own = {name: value for name, value in left.items() if _NOT_THEIRS.fullmatch(name) is None}
    if not own:
        return outcome
    refused = sorted(
        name
        for name, value in own.items()
        if not (_is_valid_variable(name, value) and may_set(name))
    )
    told = (
        f"These variables may not be set by this hook and were ignored: {', '.join(refused)[:500]}."
    )
    return msgspec.structs.replace(
        outcome,
        variables={name: value for name, value in own.items() if name not in refused},
        told=(*outcome.told, told) if refused else outcome.told,
    )


def take_variables(into: dict[str, str], left: Mapping[str, str | None]) -> None:
    """Store them for later commands, up to the limit."""
    for name, value in left.items():
        if value is None:
            into.pop(name, None)
        elif name in into or len(into) < MAX_VARIABLES:
            into[name] = value


def _is_valid_variable(name: str, value: str | None) -> bool:
    return _NAME.fullmatch(name) is not None and len(value or "") <= MAX_CHARS


ENV_FILE = "CLAUDE_ENV_FILE"
MAX_BYTES = 256 << 10
READING_S = 10.0

# The variables are reported however the file ends, also by `exit`; its output is ignored.
_READ = """
exec 3>&1 >/dev/null 2>&1 </dev/null
command -p env -0 >&3
printf '\\0' >&3
trap 'command -p env -0 >&3' EXIT
set -a
. "$1"
"""

Run = Callable[[HookCommand, bytes], Awaitable[HookCommandResult]]


async def run_with_env_file(command: HookCommand, stdin: bytes, run: Run) -> HookCommandResult:
    """Run a hook program with such a file; the result has its variables."""
    handle, path = tempfile.mkstemp(prefix="handaxe-hook-", suffix=".sh")
    os.close(handle)
    try:
        env = {**command.env, ENV_FILE: path}
        end = await run(msgspec.structs.replace(command, env=env), stdin)
        left = await _read_left_variables(path, command, run)
        return msgspec.structs.replace(end, variables=left)
    finally:
        with suppress(OSError):
            os.unlink(path)


async def _read_left_variables(
    path: str, command: HookCommand, run: Run
) -> Mapping[str, str | None]:
    try:
        size = os.stat(path).st_size
    except OSError:
        return {}
    if size == 0:
        return {}
    if size > MAX_BYTES:
        raise HookUnreachable(f"it set more than {MAX_BYTES:,} bytes of variables")
    reading = msgspec.structs.replace(
        command,
        command="bash",
        args=("--noprofile", "--norc", "-c", _READ, "bash", path),
        env={**command.env, **(command.variables or {})},
        timeout_s=READING_S,
    )
    end = await run(reading, b"")
    before, _, after = end.stdout.partition(b"\0\0")
    old, new = _parse_pairs(before), _parse_pairs(after)
    gone: dict[str, str | None] = dict.fromkeys(old.keys() - new.keys())
    return gone | {name: value for name, value in new.items() if old.get(name) != value}


def _parse_pairs(listing: bytes) -> dict[str, str]:
    lines = os.fsdecode(listing).split("\0")
    return {name: value for name, sign, value in (line.partition("=") for line in lines) if sign}
