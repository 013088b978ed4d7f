"""The repositories inside a repository: its submodules, checked out or not.

`git status` and `git diff` start another git in every directory that the index lists as a
repository. They are found here as git finds them; their configurations are not read.
"""

import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

MAX_REPOSITORIES = 200
_LINK = b"\x00\x00\xe0\x00"
"""The mode of a repository entry in the index."""
_MODE_AT, _FLAGS_AT, _NAME_AT = 24, 60, 62
_EXTENDED, _LENGTH_MASK = 0x4000, 0x0FFF


class TooManyRepositories(ValueError):
    """There are too many repositories to check before every command."""


def read_linked_paths(git: Path) -> tuple[bytes, ...]:
    """The repository paths in an index; raises if it is not valid."""
    found: list[bytes] = []
    for index in (git / "index", *git.glob("sharedindex.*")):
        try:
            facts = index.stat()
        except FileNotFoundError:
            continue
        found += _read_index_links(str(index), facts.st_mtime_ns, facts.st_size, facts.st_ino)
    return tuple(dict.fromkeys(found))


def find_module_directories(git: Path) -> Iterator[Path]:
    """The submodules inside a repository, checked out or not."""
    seen = 0
    waiting = [git / "modules"]
    while waiting:
        place = waiting.pop()
        if not place.is_dir():
            continue
        seen += 1
        if seen > 2 * MAX_REPOSITORIES:
            raise TooManyRepositories("too many submodules to look at")
        if (place / "HEAD").exists():
            yield place
            waiting.append(place / "modules")
        else:
            waiting += [inside for inside in place.iterdir() if not inside.is_symlink()]


@lru_cache(maxsize=64)
def _read_index_links(index: str, _changed: int, size: int, _inode: int) -> tuple[bytes, ...]:
    """Cached by the file's state, because an index can be large."""
    if size == 0:
        return ()
    with Path(index).open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with data:
        return tuple(_parse_index_links(data[:])) if data.find(_LINK) >= 0 else ()


def _parse_index_links(data: bytes) -> Iterator[bytes]:
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in {2, 3, 4}:
        raise ValueError("not a supported index")
    # SHA-1 is 20 bytes; with SHA-256 every entry is 12 bytes longer and the names do not fit.
    at, path = 12, b""
    for _ in range(count):
        mode = data[at + _MODE_AT : at + _MODE_AT + 4]
        (flags,) = struct.unpack_from(">H", data, at + _FLAGS_AT)
        begin = at + _NAME_AT + (2 if flags & _EXTENDED else 0)
        if version == 4:
            dropped, begin = _read_varint(data, begin)
            end = data.index(b"\0", begin)
            path = path[: len(path) - dropped] + data[begin:end]
            at = end + 1
        else:
            end = data.index(b"\0", begin)
            path = data[begin:end]
            at += ((end - at) + 8) & ~7
        if flags & _LENGTH_MASK not in {_LENGTH_MASK, len(path)}:
            raise ValueError("an index with another format")
        if mode == _LINK:
            yield path


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and its end."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


_LED_AWAY = ("modules", "worktrees", "info")
"""Directories of a repository whose contents can make git run programs."""


def find_inner_repositories(git: str) -> list[str]:
    """A git directory, and those of its submodules and linked worktrees."""
    places = [git]
    names = list_names(git)
    if "modules" in names:
        with suppress(OSError, TooManyRepositories):
            places += map(str, find_module_directories(Path(git)))
    if "worktrees" in names:
        worktrees = f"{git}/worktrees"
        places += [f"{worktrees}/{name}" for name in list_names(worktrees)]
    return [place for place in places if place == git or find_link(place, (git,)) is None]


def find_redirecting_links(git: str) -> Iterator[str]:
    """Links in a git directory that redirect parts which make git run programs."""
    for name in _LED_AWAY:
        path = f"{git}/{name}"
        if Path(path).is_symlink():
            yield path


def find_link(path: str, roots: Sequence[str], known: dict[str, bool] | None = None) -> str | None:
    """The first link on the way from a root to a path, inclusive; None if there is none."""
    known = {} if known is None else known
    inside = [len(root) for root in roots if path.startswith(f"{root.rstrip('/')}/")]
    if not inside:
        return None
    at = path.find("/", min(inside) + 1)
    while True:
        place = path if at < 0 else path[:at]
        if place not in known:
            known[place] = Path(place).is_symlink()
        if known[place]:
            return place
        if at < 0:
            return None
        at = path.find("/", at + 1)


def list_names(directory: str) -> list[str]:
    """The names in a directory; empty if it cannot be read."""
    try:
        return os.listdir(directory)
    except OSError:
        return []
