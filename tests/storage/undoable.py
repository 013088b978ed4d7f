"""A project whose changes are made by calls, each in a process of its own that may be killed."""

import asyncio
import atexit
import json
import os
import signal
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Annotated

from handaxe import Effects, Session, tool

KILLING_CALLS = (
    "chmod", "close", "fchmod", "fdatasync", "fsync", "link", "mkdir", "open", "rename", "replace",
    "rmdir", "symlink", "unlink", "write", "writev",
)  # fmt: skip
TEMPORARY = (".handaxe-",)


@tool(effects=lambda args: Effects.on(args.path))
async def set_mode(path: Annotated[str, "Where."], mode: Annotated[int, "Bits."]) -> str:
    """Change permission bits."""
    os.chmod(path, mode)
    return "done"


@tool(effects=lambda args: Effects.on(args.path))
async def remove(path: Annotated[str, "Where."]) -> str:
    """Delete a file."""
    os.unlink(path)
    return "done"


@tool(effects=lambda args: Effects.on(args.path))
async def overwrite(path: Annotated[str, "Where."], content: Annotated[str, "What."]) -> str:
    """Write into a file where it stands, as careless programs do."""
    Path(path).write_text(content)
    return "done"


@tool(effects=lambda args: Effects.on(args.path))
async def make_link(path: Annotated[str, "Where."], target: Annotated[str, "To what."]) -> str:
    """Put a symbolic link in the place of whatever is there."""
    Path(path).unlink(missing_ok=True)
    os.symlink(target, path)
    return "done"


@tool(effects=lambda args: Effects.on(args.path, args.to))
async def move(path: Annotated[str, "From."], to: Annotated[str, "To."]) -> str:
    """Rename a file."""
    os.rename(path, to)
    return "done"


@tool(effects=lambda args: Effects.on(args.path))
async def shake(path: Annotated[str, "A directory."]) -> str:
    """Change a whole tree: one file goes, one comes, one changes."""
    files = sorted(p for p in Path(path).rglob("*") if p.is_file() and not p.is_symlink())
    if files:
        files[0].unlink()
    if len(files) > 1:
        files[1].write_text("shaken\n")
    (Path(path) / "fresh" / "deep").mkdir(parents=True, exist_ok=True)
    (Path(path) / "fresh" / "deep" / "new.txt").write_text("new\n")
    return "done"


OWN_TOOLS = [set_mode, remove, overwrite, make_link, move, shake]


def open_session(root: Path, home: Path, session_id: str = "undoable") -> Session:
    return Session(
        root,
        permission_mode="bypassPermissions",
        tools=["Read", "Write", "Edit", "NotebookEdit", "Undo", *OWN_TOOLS],
        home=home,
        session_id=session_id,
    )


def tree(root: Path) -> dict[str, tuple]:
    """All that is below a directory: bytes, modes, links, directories."""
    found: dict[str, tuple] = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        name = str(path.relative_to(root))
        if path.name.startswith(TEMPORARY):
            continue
        if stat.S_ISLNK(info.st_mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISDIR(info.st_mode):
            found[name] = ("directory",)
        else:
            found[name] = ("file", stat.S_IMODE(info.st_mode), path.read_bytes())
    return found


def in_a_process(
    root: Path, home: Path, calls: list[tuple[str, dict]], kill_at: int | None
) -> bool:
    """Make calls in a process that is killed at its n-th change of the disk; whether it lived."""
    request = {"root": str(root), "home": str(home), "calls": calls, "kill_at": kill_at}
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline().strip()
    assert answer in {"lived", "killed"}, answer
    return answer == "lived"


@cache
def _server() -> subprocess.Popen[str]:
    """A process without threads, so that it can fork, which has imported everything already."""
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def stop() -> None:
        for pipe in (server.stdin, server.stdout):
            if pipe is not None:
                pipe.close()
        server.wait()

    atexit.register(stop)
    return server


def serve() -> None:
    """Answer one request per line, each in a fork."""
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                calls = [(name, call_input) for name, call_input in request["calls"]]
                root, home = Path(request["root"]), Path(request["home"])
                asyncio.run(_make(root, home, calls, request["kill_at"]))
                code = 0
            except BaseException:  # noqa: BLE001 - a child that returns would serve as well
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        lived = "lived" if os.WIFEXITED(status) and not os.WEXITSTATUS(status) else "failed"
        sys.stdout.write(("killed" if os.WIFSIGNALED(status) else lived) + "\n")
        sys.stdout.flush()


async def _make(root: Path, home: Path, calls: list[tuple[str, dict]], kill_at: int | None) -> None:
    async with open_session(root, home) as session:
        for name, call_input in calls[:-1]:
            await session.call(name, call_input)
        if kill_at is not None:
            _die_at(kill_at)
        await session.call(*calls[-1])


def _die_at(number: int) -> None:
    left = number

    def watched(real):
        def call(*args, **kwargs):
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call

    for name in KILLING_CALLS:
        setattr(os, name, watched(getattr(os, name)))


if __name__ == "__main__":
    serve()
