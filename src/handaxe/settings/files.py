"""The settings files of a project: read once, then read again only when something was touched.

A file that breaks while it is in use keeps what it forbade and loses what it allowed, until it is
mended. A missing file says nothing and is no mistake.
"""

import os
import time
from collections.abc import Iterable, Sequence

from handaxe.contract.faults import SetupError
from handaxe.disk.faults import DiskFault
from handaxe.disk.versions import read_regular
from handaxe.settings.fragment import RULES, Fragment, Origin, Problem, Source, read_text
from handaxe.settings.keys import KeyPath
from handaxe.settings.located_json import BadJson
from handaxe.settings.places import Place

MAX_BYTES = 2 << 20
_TICK_NS = 50_000_000
"""Two changes within one tick of a file's clock can look like one."""
_WIDENING: frozenset[KeyPath] = frozenset({RULES[2], ("permissions", "additionalDirectories")})

Stamp = tuple[int, ...]


class SettingsFile:
    """One file as it was last read."""

    def __init__(self, path: str, source: Source) -> None:
        self.path = path
        self.source: Source = source
        self.fragment = Fragment(source, path)
        self.exists = False
        self.is_broken = False
        self._data: bytes | None = None
        self._reason: str | None = None

    def read(self) -> bool:
        """Take in what the file says now; whether that differs from before."""
        try:
            data = _content(self.path)
            reason = None
        except (DiskFault, OSError) as error:
            data = None
            reason = getattr(error, "strerror", None) or str(error)
        if (data, reason) == (self._data, self._reason):
            return False
        self._data, self._reason = data, reason
        self.exists = data is not None or reason is not None
        if reason is not None:
            self._break(None, f"it cannot be read ({reason})")
        else:
            self._take(data)
        return True

    def _take(self, data: bytes | None) -> None:
        self.is_broken = False
        if data is None:
            if self.source != "policy":
                self.fragment = Fragment(self.source, self.path)
            elif self.fragment.entries:
                self._break(None, "the managed file is gone")
            return
        try:
            text = data.decode("utf-8")
            self.fragment = read_text(text, source=self.source, file=self.path)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            self._break(line, "it is not UTF-8 text")
        except BadJson as bad:
            self._break(bad.line, f"it is not JSON: {bad.reason}")

    def _break(self, line: int | None, reason: str) -> None:
        self.is_broken = True
        kept = tuple(
            entry
            for entry in self.fragment.entries
            if self.source == "policy" or entry.path not in _WIDENING
        )
        if kept:
            told = "what it forbade still holds, what it allowed does not, until it is mended"
        else:
            told = "nothing of it counts until it is mended"
        problem = Problem(Origin(self.source, self.path, line), f"{reason}; {told}", is_value=True)
        self.fragment = Fragment(self.source, self.path, kept, (problem,))


class SettingsFiles:
    """All files of one project, lowest layer first."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._also: tuple[str, ...] = ()
        self._files: dict[str, SettingsFile] = {}
        self._stamps: dict[str, Stamp | None] = {}
        self._is_unsure = False
        self._read()
        refuse_broken_policy(self.files)

    @property
    def files(self) -> tuple[SettingsFile, ...]:
        """Every file there is or could be."""
        return tuple(self._files.values())

    def fragments(self) -> list[Fragment]:
        """What they say, lowest layer first."""
        return [file.fragment for file in self._files.values() if file.fragment.entries]

    def problems(self) -> list[Problem]:
        """What is wrong in them."""
        return [problem for file in self._files.values() for problem in file.fragment.problems]

    def watch_also(self, path: str) -> None:
        """Count a change of this file as well; what it says is the caller's business."""
        if path not in self._also:
            self._also = (*self._also, path)
            self._note(path, time.time_ns() - _TICK_NS)

    def refresh(self) -> tuple[str, ...]:
        """Read again what was touched; the files that now say something else."""
        stamps = self._stamps
        if not self._is_unsure and all(_stamp(path) == stamps[path] for path in stamps):
            return ()
        return self._read()

    def _read(self) -> tuple[str, ...]:
        # Stamps are taken first: a change while we read shows at the next look.
        expanded = list(self._expanded())
        before = self._stamps
        self._watch([*(place.path for place in (*self._places, *expanded)), *self._also])
        changed = [path for path in self._also if self._stamps.get(path) != before.get(path)]
        files: dict[str, SettingsFile] = {}
        for place in expanded:
            file = self._files.get(place.path) or SettingsFile(place.path, place.source)
            files[place.path] = file
            if file.read():
                changed.append(place.path)
        for path, file in self._files.items():
            # A managed file does not end by being taken out of its directory.
            if path not in files and file.read():
                changed.append(path)
            files.setdefault(path, file)
        self._files = files
        return tuple(changed)

    def _expanded(self) -> Iterable[Place]:
        for place in self._places:
            if not place.is_directory:
                yield place
                continue
            try:
                names = sorted(os.listdir(place.path))
            except OSError:
                continue
            for name in names:
                if name.endswith(".json") and not name.startswith("."):
                    yield Place(f"{place.path}/{name}", place.source)

    def _watch(self, paths: Iterable[str]) -> None:
        """Remember how every file looks, or else the nearest directory that is there."""
        self._stamps = {}
        self._is_unsure = False
        recent_ns = time.time_ns() - _TICK_NS
        for path in paths:
            self._note(path, recent_ns)

    def _note(self, path: str, recent_ns: int) -> None:
        while path not in self._stamps:
            stamp = _stamp(path)
            if stamp is not None or path == "/":
                self._stamps[path] = stamp
                # What was touched just now may be touched again without looking different.
                self._is_unsure |= stamp is not None and max(stamp[:2]) > recent_ns
                return
            path = path.rpartition("/")[0] or "/"


def refuse_broken_policy(files: Iterable[SettingsFile]) -> None:
    """Raise if managed settings cannot be kept: nobody may start without them by breaking them."""
    wrong = [
        str(problem)
        for file in files
        if file.source == "policy"
        for problem in file.fragment.problems
        if problem.is_value
    ]
    if wrong:
        listed = "\n".join(f"  {problem}" for problem in wrong)
        raise SetupError(f"The managed settings are wrong, so nothing starts:\n{listed}")


def _content(path: str) -> bytes | None:
    """All bytes of a file, reached through links or not; None if there is none."""
    try:
        return read_regular(os.path.realpath(path), max_bytes=MAX_BYTES)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stamp(path: str) -> Stamp | None:
    """What changes whenever the file or directory does; None if it is not there."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino, info.st_dev)
