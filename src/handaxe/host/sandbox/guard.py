"""Put protected files back after a command that could not be kept from them.

Used where a mount cannot hold: links, names that must not appear, and everything under Landlock,
which knows no exceptions inside an allowed directory. What a command made is moved aside, never
deleted: somebody else may have made it at the same time. Nothing here follows a link, since a
command may have put one there.
"""

import os
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from handaxe.disk.private import make_private

MOST_FILES = 300
MOST_BYTES = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _State(msgspec.Struct, frozen=True):
    kind: str
    mode: int = 0
    content: bytes = b""
    """Of a file; the target of a link."""
    inside: tuple[tuple[str, "_State"], ...] = ()


_ABSENT = _State("absent")


class Guard:
    """What protected places held before a command."""

    def __init__(
        self, paths: Sequence[str], aside: str, *, directories: Sequence[str] = ()
    ) -> None:
        """`directories` hold protected places, and have to stay directories."""
        self._aside = aside
        self._directories = directories
        self._before = _states(paths)

    def restore(self) -> tuple[str, ...]:
        """Put back what changed; a sentence for each place."""
        told: list[str] = []
        for path in self._directories:
            if Path(path).is_symlink():
                told += self._put_back(path, _ABSENT)
        after = _states(list(self._before))
        for path, before in self._before.items():
            if after[path] != before:
                told += self._put_back(path, before)
        self._before, self._directories = {}, ()
        return tuple(told)

    def _put_back(self, path: str, before: _State) -> Iterator[str]:
        start = f"{path} is protected from sandboxed commands"
        try:
            with _parent(path) as parent:
                kept = self._move_aside(path, parent)
                _build(_name(path), before, parent)
            where = f" What stood there is now {kept}." if kept else ""
            yield f"{start} and is as it was before.{where}"
        except OSError as error:
            yield f"{start}, was changed by one, and could not be put back: {error}."

    def _move_aside(self, path: str, parent: int) -> str | None:
        name = _name(path)
        token = os.urandom(6).hex()
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=parent, follow_symlinks=False)
            try:
                make_private(Path(self._aside))
                kept = f"{self._aside}/{token}-{name}"
                os.rename(name, kept, src_dir_fd=parent)
            except OSError:
                # Another file system: it keeps its place under another name.
                kept = f"{path}.refused-{token}"
                os.rename(name, _name(kept), src_dir_fd=parent, dst_dir_fd=parent)
            return kept
        return None


@contextmanager
def _parent(path: str) -> Generator[int]:
    """The directory of a path, opened so that no link on the way counts."""
    place = path.rpartition("/")[0] or "/"
    descriptor = os.open(place, _DIRECTORY)
    try:
        if os.path.realpath(f"/proc/self/fd/{descriptor}") != place:
            raise NotADirectoryError(f"{place} leads elsewhere now")
        yield descriptor
    finally:
        os.close(descriptor)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _states(paths: Sequence[str]) -> dict[str, _State]:
    """What is at each path; most are missing, which one look at their directory tells."""
    listed: dict[str, frozenset[str]] = {}
    found: dict[str, _State] = {}
    for path in paths:
        place, _, name = path.rpartition("/")
        if place not in listed:
            try:
                listed[place] = frozenset(os.listdir(place or "/"))
            except OSError:
                listed[place] = frozenset()
        found[path] = _state(path) if name in listed[place] else _ABSENT
    return found


def _state(path: str) -> _State:
    """What is there. An empty directory or a socket is nothing: a placeholder comes and goes."""
    try:
        with _parent(path) as parent:
            found = _look(_name(path), parent, [MOST_FILES])
    except OSError:
        return _ABSENT
    return _ABSENT if found.kind == "directory" and not found.inside else found


def _look(name: str, parent: int, left: list[int]) -> _State:
    left[0] -= 1
    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return _State("link", content=os.fsencode(os.readlink(name, dir_fd=parent)))
    if stat.S_ISDIR(found.st_mode):
        place = os.open(name, _DIRECTORY, dir_fd=parent)
        try:
            names = sorted(os.listdir(place)) if left[0] > 0 else []
            return _State(
                "directory", mode, inside=tuple((n, _look(n, place, left)) for n in names)
            )
        finally:
            os.close(place)
    if stat.S_ISSOCK(found.st_mode):
        return _ABSENT
    if not stat.S_ISREG(found.st_mode):
        return _State("other", mode)
    reading = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, reading, dir_fd=parent), "rb") as file:
        return _State("file", mode, file.read(MOST_BYTES))


def _build(name: str, state: _State, parent: int) -> None:
    if state.kind == "link":
        os.symlink(os.fsdecode(state.content), name, dir_fd=parent)
    elif state.kind == "directory":
        os.mkdir(name, state.mode | 0o700, dir_fd=parent)
        place = os.open(name, _DIRECTORY, dir_fd=parent)
        try:
            for inner, inside in state.inside:
                _build(inner, inside, place)
        finally:
            os.close(place)
    elif state.kind == "file":
        making = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, making, state.mode, dir_fd=parent), "wb") as file:
            file.write(state.content)
            os.fchmod(file.fileno(), state.mode)
