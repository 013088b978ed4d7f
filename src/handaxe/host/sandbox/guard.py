"""Put protected files back after a command that could not be kept from them.

Used where a mount cannot hold: links, names that must not appear, and everything under Landlock,
which knows no exceptions inside an allowed directory. What a command made is moved aside, never
deleted: somebody else may have made it at the same time.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress

import msgspec

MOST_FILES = 300
MOST_BYTES = 1 << 20


class _State(msgspec.Struct, frozen=True):
    kind: str
    mode: int = 0
    content: bytes = b""
    """Of a file; the target of a link."""
    inside: tuple[tuple[str, "_State"], ...] = ()


class Guard:
    """What protected places held before a command."""

    def __init__(self, paths: Sequence[str], aside: str) -> None:
        self._aside = aside
        self._before = {path: _state(path) for path in dict.fromkeys(paths)}

    def restore(self) -> tuple[str, ...]:
        """Put back what changed; a sentence for each place."""
        told: list[str] = []
        for path, before in self._before.items():
            if _state(path) == before:
                continue
            kept = self._move_aside(path)
            where = f" What stood there is now in {kept}." if kept else ""
            try:
                _build(path, before)
                told.append(
                    f"{path} is protected from sandboxed commands and is as it was before.{where}"
                )
            except OSError as error:
                told.append(
                    f"{path} is protected from sandboxed commands, was removed by one, and could "
                    f"not be put back: {error}.{where}"
                )
        self._before = {}
        return tuple(told)

    def _move_aside(self, path: str) -> str | None:
        if not os.path.lexists(path):
            return None
        with suppress(OSError):
            place = tempfile.mkdtemp(prefix="refused-", dir=self._aside)
            return shutil.move(path, f"{place}/{os.path.basename(path)}")
        return None


def _state(path: str) -> _State:
    """What is there. An empty directory is nothing: it may be a placeholder that comes and goes."""
    found = _look(path, [MOST_FILES])
    return _State("absent") if found.kind == "directory" and not found.inside else found


def _look(path: str, left: list[int]) -> _State:
    left[0] -= 1
    try:
        found = os.lstat(path)
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISLNK(found.st_mode):
            return _State("link", content=os.fsencode(os.readlink(path)))
        if stat.S_ISDIR(found.st_mode):
            names = sorted(os.listdir(path)) if left[0] > 0 else []
            return _State(
                "directory", mode, inside=tuple((n, _look(f"{path}/{n}", left)) for n in names)
            )
        if not stat.S_ISREG(found.st_mode):
            return _State("other", mode)
        with open(path, "rb") as file:
            return _State("file", mode, file.read(MOST_BYTES))
    except OSError:
        return _State("absent")


def _build(path: str, state: _State) -> None:
    if state.kind == "link":
        os.symlink(os.fsdecode(state.content), path)
    elif state.kind == "directory":
        os.mkdir(path)
        for name, inside in state.inside:
            _build(f"{path}/{name}", inside)
        os.chmod(path, state.mode)
    elif state.kind == "file":
        with open(path, "xb") as file:
            file.write(state.content)
        os.chmod(path, state.mode)
