"""A session whose only changing tool runs real shell commands, as if nobody knew what they do."""

import asyncio
import os
import stat
import sys
import threading
from pathlib import Path
from typing import Annotated

import msgspec

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from typing import Any

from tests.waiting import HANG_S, until

from handaxe import Effects, Session, Tool, ToolContext, tool
from handaxe.app.session import get_parts
from handaxe.contract.ports.shell import Shell, ShellCommand
from handaxe.shell.analysis import analyze

AHEAD, BEGIN_AHEAD = "(keep the roots ahead)", "(begin to keep the roots ahead, and wait)"
BOUNDED = "(look at the words of commands)"


async def _bash(command: str, cwd: str, ctx: ToolContext) -> str:
    host = {"HOST_PID": str(os.getpid())}
    wanted = ShellCommand(call_id=ctx.call_id, command=command, cwd=cwd, env=host)
    running = await ctx[Shell].start(wanted)
    await running.wait()
    assert running.end is not None
    return f"exit {running.end.exit_code}\n{running.output(100_000).head}"


@tool(uses=(Shell,))
async def sh(
    command: Annotated[str, "What to run."], cwd: Annotated[str, "Where."], ctx: ToolContext
) -> str:
    """Run a command of unknown effect."""
    return await _bash(command, cwd, ctx)


def bounded(command: str, cwd: str) -> Effects:
    """What Bash says of a command: it may do anything, but was proved to write no more than this."""
    return msgspec.structs.replace(
        Effects.unknown(), extent=analyze(command, cwd, "/nowhere").extent
    )


@tool(name="sh", effects=lambda args: bounded(args.command, args.cwd), uses=(Shell,))
async def bounded_sh(
    command: Annotated[str, "What to run."], cwd: Annotated[str, "Where."], ctx: ToolContext
) -> str:
    """Run a command after its words were looked at."""
    return await _bash(command, cwd, ctx)


def open_session(
    root: Path,
    home: Path,
    session_id: str | None = None,
    *,
    shell: Tool[Any] = sh,
    **options,
) -> Session:
    return Session(
        root,
        permission_mode="bypassPermissions",
        tools=["Read", "Write", "Edit", "Undo", shell],
        home=home,
        session_id=session_id,
        **options,
    )


def whole_tree(root: Path, *, without: tuple[str, ...] = ()) -> dict[bytes, tuple]:
    """All there is below a directory: kinds, modes, bytes, targets, and which names share a file."""
    found: dict[bytes, tuple] = {}
    inodes: dict[int, list[bytes]] = {}
    top = os.fsencode(root)
    for directory, names, files in os.walk(top):
        for name in [*names, *files]:
            path = os.path.join(directory, name)
            shown = os.path.relpath(path, top)
            if any(shown.startswith(os.fsencode(prefix)) for prefix in without):
                continue
            info = os.lstat(path)
            mode = stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                found[shown] = ("link", os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                found[shown] = ("directory", mode)
            elif stat.S_ISREG(info.st_mode):
                with open(path, "rb") as file:
                    found[shown] = ("file", mode, file.read())
                inodes.setdefault(info.st_ino, []).append(shown)
            else:
                found[shown] = ("special", stat.S_IFMT(info.st_mode), mode)
    for names in inodes.values():
        if len(names) > 1:
            for name in names:
                found[name] += (tuple(sorted(names)),)
    return found


async def run(session: Session, root: Path, command: str) -> str:
    result = await session.call("sh", command=command, cwd=str(root))
    assert result.ok, result.text
    return result.text


def is_preparing() -> bool:
    """Whether somebody in this process has a tree kept ahead of the first command."""
    return any(thread.name == "handaxe-preparing" for thread in threading.enumerate())


async def prepare(session: Session) -> None:
    """Have the roots kept ahead, and wait until they are."""
    await get_parts(session).session_context.checkpoints.prepare()
    await until(lambda: not is_preparing())


async def _main(root: str, home: str, *commands: str) -> None:
    """Run commands one after the other; whoever starts this wants the last one to kill it."""
    shell = bounded_sh if commands[:1] == (BOUNDED,) else sh
    commands = commands[1:] if shell is bounded_sh else commands
    async with open_session(Path(root), Path(home), "crashed", shell=shell) as session:
        for command in commands:
            if command == AHEAD:
                await prepare(session)
            elif command == BEGIN_AHEAD:
                await get_parts(session).session_context.checkpoints.prepare()
                sys.stdout.write("begun\n")
                sys.stdout.flush()
                await asyncio.sleep(HANG_S)
            else:
                await run(session, Path(root), command)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
