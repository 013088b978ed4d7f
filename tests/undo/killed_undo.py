"""Projects whose undo is killed at one system call or another."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

from tests.undo import commanding
from tests.undo.commanding import whole_tree
from tests.undo.undoable import KILLING_CALLS, in_a_process, open_session

# A kill loses nothing that was written, so the tree may as well be in memory.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
UNDO, REDO = ("Undo", {}), ("Undo", {"redo": True})
SESSION = "undoable"


class Place:
    """A project with its data directory, which can be put back to an earlier moment."""

    def __init__(self, directory: Path) -> None:
        self._now, self._kept = directory / "now", directory / "kept"
        self.root, self.home = self._now / "project", self._now / "home"
        self.root.mkdir(parents=True)

    def keep(self) -> None:
        """Remember everything as it is now."""
        subprocess.run(["cp", "-a", self._now, self._kept], check=True)

    def start_again(self) -> None:
        """Go back to the moment that was kept."""
        clear(self._now)
        subprocess.run(["cp", "-a", self._kept, self._now], check=True)

    def command(self, command: str) -> None:
        """Have a shell change the project, as a call of the session."""

        async def run() -> None:
            async with commanding.open_session(self.root, self.home, SESSION) as session:
                await commanding.run(session, self.root, command)

        asyncio.run(run())

    def run(
        self,
        call: tuple[str, dict],
        kill_at: int,
        killing: Sequence[str] = KILLING_CALLS,
        *,
        from_start: bool = False,
    ) -> bool:
        """Make a call in a process that is killed at its n-th change of the disk; if it lived."""
        return in_a_process(self.root, self.home, [call], kill_at, killing, from_start=from_start)

    def finish(self, call: tuple[str, dict]) -> str:
        """Make a call that has to come to its end; what it answers."""

        async def run() -> str:
            async with open_session(self.root, self.home) as session:
                result = await session.call(*call)
                assert result.ok, result.text
                return result.text

        return asyncio.run(run())

    def finish_if_left(self, call: tuple[str, dict]) -> str:
        """Make a call that may find that nothing is left to do; what it answers."""

        async def run() -> str:
            async with open_session(self.root, self.home) as session:
                return (await session.call(*call)).text

        return asyncio.run(run())

    def find(self) -> dict[bytes, tuple]:
        """All that is in the project."""
        return whole_tree(self.root)


@contextlib.contextmanager
def separate_home() -> Generator[None]:
    """Settings and keys of their own, for what runs outside of pytest."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ["HANDAXE_HOME"] = f"{directory}/data"
        os.environ["HANDAXE_CONFIG_HOME"] = f"{directory}/own"
        os.environ["CLAUDE_CONFIG_DIR"] = f"{directory}/shared"
        yield


@contextlib.contextmanager
def make_place() -> Generator[Place]:
    """A project that goes when it is no longer used."""
    directory = Path(tempfile.mkdtemp(prefix="killed-undo-", dir=IN_MEMORY))
    try:
        yield Place(directory)
    finally:
        clear(directory)


def clear(directory: Path) -> None:
    """Remove a tree, closed directories and all."""
    subprocess.run(["chmod", "-R", "u+rwx", directory], check=True)
    shutil.rmtree(directory)


def find_temporary(root: Path) -> list[Path]:
    """Unfinished files of ours."""
    return list(root.rglob(".handaxe-*"))


def remove(place: Place, *, files: int) -> dict[bytes, tuple]:
    """Fill a project and have a command remove it all; the tree before that."""
    top = place.root / "top"
    (top / "closed/inner").mkdir(parents=True)
    (top / "closed/inner/f.txt").write_text("behind a closed door\n")
    (top / "link").symlink_to("closed")
    os.mkfifo(top / "pipe", 0o622)
    (top / "one").write_text("two names\n")
    os.link(top / "one", top / "two")
    (top / "big").write_bytes(b"0123456789abcdef" * 10_000)
    (top / "tool").write_text("#!/bin/sh\n")
    (top / "tool").chmod(0o751)
    for number in range(files):
        (top / f"many{number % 50}").mkdir(exist_ok=True)
        (top / f"many{number % 50}/{number}.txt").write_text(f"{number}\n")
    (top / "closed/inner").chmod(0o555)
    (top / "closed").chmod(0o510)
    before = place.find()
    place.command("chmod -R u+rwx top && rm -rf top")
    return before


def change_kinds(place: Place) -> dict[bytes, tuple]:
    """Have a command leave something of another kind, or mode, at every path; the tree before."""
    top = place.root / "top"
    (top / "d").mkdir(parents=True)
    (top / "d/in.txt").write_text("in\n")
    (top / "f").write_text("file\n")
    (top / "l").symlink_to("f")
    (top / "m").mkdir(mode=0o750)
    os.mkfifo(top / "p", 0o622)
    before = place.find()
    place.command(
        "cd top; rm -r d f l p; ln -s m d; mkdir f l; echo x > l/x; echo p > p; echo n > new; "
        "chmod 000 m"
    )
    return before
