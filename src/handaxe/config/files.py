"""The settings files of a project: read once, then read again only when something was touched.

A broken file keeps its deny rules and loses its allow rules until it is fixed. A file with a
mistake that may have been a rule keeps its earlier deny rules beside the current ones. Deny rules
of earlier runs are remembered elsewhere; if they are unknown, no file may allow anything. A missing
file is fine, but a link to a missing file is an error.
"""

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence

import msgspec

from handaxe.config.file_watch import FileStamps, is_dangling
from handaxe.config.keys import BadSettingsJson, KeyPath
from handaxe.config.settings_paths import SettingsPath
from handaxe.config.source import (
    PROTECTING,
    RULES,
    Origin,
    SettingEntry,
    SettingsFragment,
    SettingsProblem,
    Source,
    read_data,
    read_text,
)
from handaxe.contract.faults import SetupError
from handaxe.disk.errors import DiskFault
from handaxe.disk.versions import read_regular

MAX_BYTES = 2 << 20
_WIDENING: frozenset[KeyPath] = frozenset({RULES[2], ("permissions", "additionalDirectories")})


class RestrictionStore(ABC):
    """Knows what files forbade in earlier runs."""

    @abstractmethod
    def entries(self, file: str, source: Source) -> tuple[SettingEntry, ...]:
        """The deny and ask rules of the last valid version of the file."""

    @abstractmethod
    def keep(self, fragment: SettingsFragment) -> None:
        """Remember what a file forbids now."""


class SettingsFile:
    """One file as it was last read."""

    def __init__(self, path: str, source: Source, memory: RestrictionStore | None = None) -> None:
        self._memory = memory
        self.path = path
        self.source: Source = source
        self.fragment = SettingsFragment(source, path)
        self.exists = False
        self.is_broken = False
        self.is_unknown = False
        """Whether it is broken and its earlier deny rules are unknown."""
        self._settled: tuple[SettingsFragment, bool, bool] | None = None
        self._forbade: tuple[SettingEntry, ...] = ()
        """The rules that forbade something when the file was last valid."""
        self._is_new = True
        self._data: bytes | None = None
        self._reason: str | None = None

    def read(self, *, is_there: bool) -> bool:
        """Read the file again and return whether its content differs from before."""
        try:
            data = _read_content(self.path) if is_there else None
            reason = None
        except (DiskFault, OSError) as error:
            data = None
            reason = getattr(error, "strerror", None) or str(error)
        if (data, reason) == (self._data, self._reason):
            return False
        if self._settled is None:
            self._settled = self.fragment, self.is_broken, self.is_unknown
        self._is_new = self._data is None and self._reason is None
        self._data, self._reason = data, reason
        self.exists = data is not None or reason is not None
        if reason is not None:
            self._break(None, f"it cannot be read ({reason})")
        else:
            self._take(data)
        return True

    def settle(self, *, refused: bool) -> None:
        """Accept the current content. If it was refused, use the previous one until a change."""
        if refused and self._settled is not None:
            self.fragment, self.is_broken, self.is_unknown = self._settled
        self._settled = None
        if self.is_broken:
            return
        # With a mistake in it, it holds what was known before as well.
        self._forbade = tuple(e for e in self.fragment.entries if e.path in PROTECTING)
        if self._memory is not None and self.exists:
            self._memory.keep(self.fragment)

    def _take(self, data: bytes | None) -> None:
        if data is None:
            self.is_broken = self.is_unknown = False
            if self.source != "policy":
                self.fragment = SettingsFragment(self.source, self.path)
            elif self.fragment.entries:
                self._break(None, "the managed file is gone")
            return
        text = data.decode("utf-8", "replace")
        try:
            text = data.decode("utf-8")
            self.fragment = self._keep_lost_rules(
                read_text(text, source=self.source, file=self.path)
            )
            self.is_broken = self.is_unknown = False
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            self._break(line, "it is not UTF-8 text", self._salvage(text))
        except BadSettingsJson as bad:
            self._break(bad.line, f"it is not JSON: {bad.reason}", self._salvage(text))

    def _salvage(self, text: str) -> tuple[SettingEntry, ...]:
        """The readable deny rules of a file."""
        from handaxe.config.located_json import salvage_json
        from handaxe.config.trust import is_restriction

        found = read_data(salvage_json(text), source=self.source).entries
        origin = Origin(self.source, self.path)
        return tuple(
            msgspec.structs.replace(entry, origin=origin)
            for entry in found
            if is_restriction(entry)
        )

    def _keep_lost_rules(self, fragment: SettingsFragment) -> SettingsFragment:
        """The current content. If rules may be lost in it, the previous deny rules are added."""
        if not fragment.is_doubtful:
            return fragment
        before = self._forbade
        if self._is_new and self._memory is not None:
            before = self._memory.entries(self.path, self.source)
        said = {(entry.path, entry.value) for entry in fragment.entries if entry.kind == "item"}
        kept = tuple(e for e in before if e.kind == "item" and (e.path, e.value) not in said)
        if not kept:
            return fragment
        told = "a mistake may hide a rule; its earlier deny and ask rules still apply"
        problem = SettingsProblem(Origin(self.source, self.path), f"{told}, until it is mended")
        return msgspec.structs.replace(
            fragment,
            entries=(*fragment.entries, *kept),
            problems=(*fragment.problems, problem),
        )

    def _break(self, line: int | None, reason: str, salvaged: Sequence[SettingEntry] = ()) -> None:
        if self._is_new and self._memory is not None:
            entries = self._memory.entries(self.path, self.source)
            self.fragment = SettingsFragment(self.source, self.path, entries)
        self.is_broken = True
        kept = [
            entry
            for entry in self.fragment.entries
            if self.source == "policy" or entry.path not in _WIDENING
        ]
        if self.source != "policy":
            # What was made out in it before is not all that it forbade.
            self.is_unknown = self.is_unknown or not any(_is_rule(entry) for entry in kept)
        known = {(entry.path, entry.kind, repr(entry.value)) for entry in kept}
        kept += [e for e in salvaged if (e.path, e.kind, repr(e.value)) not in known]
        if self.is_unknown:
            told = (
                "its earlier deny rules are unknown. So no allow rule of any file counts and no "
                "mode wider than `default`, until it is fixed"
            )
        else:
            told = (
                "until the file is fixed, its earlier deny rules still apply "
                "and its allow rules do not"
            )
        problem = SettingsProblem(
            Origin(self.source, self.path, line), f"{reason}; {told}", is_value=True
        )
        self.fragment = SettingsFragment(self.source, self.path, tuple(kept), (problem,))


class SettingsFiles:
    """All files of one project, lowest layer first."""

    def __init__(
        self, places: Sequence[SettingsPath], memory: RestrictionStore | None = None
    ) -> None:
        self._places = places
        self._memory = memory
        self._also: tuple[str, ...] = ()
        self._files: dict[str, SettingsFile] = {}
        self._watch = FileStamps()
        self._read()
        self.settle()
        refuse_broken_policy(self.files)

    @property
    def files(self) -> tuple[SettingsFile, ...]:
        """Every file there is or could be."""
        return tuple(self._files.values())

    def list_fragments(self) -> list[SettingsFragment]:
        """The content of the files, lowest layer first."""
        return [file.fragment for file in self._files.values() if file.fragment.entries]

    def unknown(self) -> tuple[str, ...]:
        """The files with unknown deny rules."""
        return tuple(path for path, file in self._files.items() if file.is_unknown)

    def problems(self) -> list[SettingsProblem]:
        """The problems of the files."""
        return [problem for file in self._files.values() for problem in file.fragment.problems]

    def add_watched_file(self, path: str) -> None:
        """Watch this file as well. The caller reads its content."""
        if path not in self._also:
            self._also = (*self._also, path)
            self._watch.add(path)

    def settle(self, refused: Collection[str] = ()) -> None:
        """Let what was read hold, but for the files whose change was refused."""
        for path, file in self._files.items():
            file.settle(refused=path in refused)

    def refresh(self) -> tuple[str, ...]:
        """Read the touched files again and return those whose content changed."""
        return () if self._watch.is_quiet() else self._read()

    def _read(self) -> tuple[str, ...]:
        # First how they look, then what they say: a change in between shows at the next look.
        before, watch = self._watch, FileStamps(place.path for place in self._places)
        expanded = list(self._expanded(watch))
        for path in (*(place.path for place in expanded), *self._also):
            watch.add(path)
        self._watch = watch
        changed = [path for path in self._also if watch.get_stamp(path) != before.get_stamp(path)]
        files: dict[str, SettingsFile] = {}
        for place in expanded:
            file = self._files.get(place.path) or self._make_file(place)
            files[place.path] = file
            if file.read(is_there=watch.get_stamp(place.path) is not None):
                changed.append(place.path)
        for path, file in self._files.items():
            # A managed file does not end by being taken out of its directory.
            if path not in files and file.read(is_there=False):
                changed.append(path)
            files.setdefault(path, file)
        self._files = files
        return tuple(changed)

    def _make_file(self, place: SettingsPath) -> SettingsFile:
        # Without readable managed settings nothing starts, so nothing of them need be remembered.
        memory = None if place.source == "policy" else self._memory
        return SettingsFile(place.path, place.source, memory)

    def _expanded(self, watch: FileStamps) -> Iterable[SettingsPath]:
        for place in self._places:
            if not place.is_directory:
                yield place
            if not place.is_directory or watch.get_stamp(place.path) is None:
                continue
            try:
                names = sorted(os.listdir(place.path))
            except OSError:
                continue
            for name in names:
                if name.endswith(".json") and not name.startswith("."):
                    yield SettingsPath(f"{place.path}/{name}", place.source)


def _is_rule(entry: SettingEntry) -> bool:
    return entry.path in PROTECTING and entry.kind == "item"


def refuse_broken_policy(files: Iterable[SettingsFile]) -> None:
    """Raise if managed settings are unreadable: breaking them must not disable them."""
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


def _read_content(path: str) -> bytes | None:
    """All bytes of a file, reached through links or not; None if there is none."""
    try:
        return read_regular(os.path.realpath(path), max_bytes=MAX_BYTES)[0]
    except (FileNotFoundError, NotADirectoryError):
        if is_dangling(path):
            raise OSError(errno.ENOENT, "a link on the way to it leads nowhere") from None
        return None
