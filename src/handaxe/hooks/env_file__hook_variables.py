"""The file in which a hook's program leaves variables for later commands, read by a shell.

People write there what a shell understands: `export`, quotes, other variables, `unset`, or the
output of `direnv export bash`. So a shell reads it, with no more rights than the hook itself had.
"""

import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import msgspec

from handaxe.contract.ports.hooks import HookCommand, HookCommandResult, HookUnreachable

ENV_FILE = "CLAUDE_ENV_FILE"
MAX_BYTES = 256 << 10
READING_S = 10.0

# The end is reported however the file ends, also by `exit`; what it prints is nobody's business.
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
    """Run a hook's program with such a file; what it left comes with its end."""
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
        raise HookUnreachable(f"it left more than {MAX_BYTES:,} bytes of variables")
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
