"""Which text of a skill's file counts: the one on disk, or an earlier one until somebody agrees.

Nothing is held back unless somebody watches; then a changed file is news, and what it said before
counts until the change is settled.
"""

import time
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

MAX_BYTES = 4 << 20

Stamp = tuple[int, int]


class _Version(msgspec.Struct, frozen=True):
    stamp: Stamp
    text: str | None
    """None: it could not be read, and is tried again by whoever wants it."""


class SkillVersions:
    """The versions that count for all who read skills in a session."""

    def __init__(self) -> None:
        self._since_ns: int | None = None
        self._settled: dict[str, _Version] = {}
        self._refused: dict[str, Stamp] = {}
        self._pending: dict[str, Stamp | None] = {}

    def counts(self, path: Path) -> bool:
        """Whether a file counts at all: one that has just come waits."""
        return self._since_ns is None or str(path) in self._settled

    def stamp(self, path: Path) -> Stamp:
        """What a version is known by."""
        version = self._settled.get(str(path))
        return _read_stamp(path) if version is None else version.stamp

    def text(self, path: Path) -> str:
        """The text that counts; `OSError` or `ValueError` if it cannot be read."""
        version = self._settled.get(str(path))
        held = None if version is None else version.text
        return read_text(path) if held is None else held

    def news(self, files: Iterable[Path]) -> tuple[str, ...]:
        """The files that came, changed or went since the last look; the first look finds none."""
        is_first = self._since_ns is None
        if is_first:
            self._since_ns = time.time_ns()
        for path in files:
            self._look_at(path, is_first=is_first)
        gone = [name for name in self._settled if not Path(name).exists()]
        self._pending |= dict.fromkeys(gone)
        return tuple(self._pending)

    def settle(self, refused: Collection[str]) -> None:
        """Let the news count from now on, but for what was refused; what is gone is gone."""
        for name, stamp in self._pending.items():
            if stamp is None:
                self._settled.pop(name, None)
            elif name in refused:
                self._refused[name] = stamp
            else:
                self._take(Path(name), stamp)
        self._pending = {}

    def _look_at(self, path: Path, *, is_first: bool) -> None:
        name = str(path)
        try:
            stamp, changed_ns = _read_stamp(path), path.stat().st_ctime_ns
        except OSError:
            return
        known = self._settled.get(name)
        if known is not None and known.stamp == stamp:
            self._refused.pop(name, None)
        elif is_first or (known is None and changed_ns < (self._since_ns or 0)):
            # It was there before, and comes in sight only now.
            self._take(path, stamp)
        elif self._refused.get(name) != stamp:
            self._pending[name] = stamp

    def _take(self, path: Path, stamp: Stamp) -> None:
        try:
            text = read_text(path)
        except (OSError, ValueError):
            text = None
        self._settled[str(path)] = _Version(stamp, text)


def read_text(path: Path) -> str:
    """The text of a skill's file."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES:,} bytes")
    return content.decode()


def _read_stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size
