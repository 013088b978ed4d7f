"""Ignore files as ripgrep reads them: `.rgignore` before `.ignore` before `.gitignore`.

Within one kind the file nearest to an entry speaks first. A `.gitignore` holds in a repository
and outside of one, and in the repositories inside it too.
"""

import os
import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path

from handaxe.contract.ports.search import BadQuery, TextQuery
from handaxe.search.rg_arguments import make_glob_relative
from handaxe.text.gitignore import BadGlobPattern, IgnoreFile, IgnorePattern
from handaxe.text.globs import expand_braces

NAMES = (".rgignore", ".ignore", ".gitignore")
MAX_FILE_BYTES = 1 << 20
NOBODY: AbstractSet[str] = frozenset()
_ANY_NAME = "\x01"


class IgnoreLayer:
    """The ignore files of one directory."""

    __slots__ = ("base", "files")

    def __init__(self, base: str, files: dict[str, IgnoreFile]) -> None:
        self.base = base
        """The directory, absolute and with a slash at its end."""
        self.files = files


class Ignores:
    """All ignore files that can speak about the entries of one directory."""

    __slots__ = ("_endings", "_layers", "_names", "_others", "_unbounded", "is_silent")

    def __init__(self, layers: tuple[IgnoreLayer, ...]) -> None:
        self._layers = layers
        """The nearest directory first."""
        self._names: set[str] = set()
        self._endings: tuple[str, ...] = ()
        self._others: re.Pattern[str] | None = None
        self._unbounded: list[tuple[str, IgnorePattern]] = []
        others: list[str] = []
        for layer in layers:
            for file in layer.files.values():
                others += self._index(layer.base, file.patterns)
        if others:
            self._others = re.compile(rf"(?:{'|'.join(dict.fromkeys(others))})\Z")
        self.is_silent = not any(layer.files for layer in layers)

    @property
    def sources(self) -> tuple[tuple[str, str, IgnoreFile], ...]:
        """What they were read from; equal if nothing was changed."""
        return tuple(
            (layer.base, kind, file) for layer in self._layers for kind, file in layer.files.items()
        )

    def below(self, layer: IgnoreLayer | None) -> "Ignores":
        """The ignore files of a directory inside, which may have some of its own."""
        return self if layer is None else Ignores((layer, *self._layers))

    def can_ignore(self, directory: str, names: list[str]) -> bool:
        """Whether one of a directory's entries may be ignored; `directory` ends with a slash."""
        if self.is_silent:
            return False
        if not self._names.isdisjoint(names):
            return True
        if endings := self._endings:
            for name in names:
                if name.endswith(endings):
                    return True
        if self._others is not None and any(map(self._others.match, names)):
            return True
        return bool(self._unbounded) and self._can_match_all(directory)

    def left_out(self, directory: str, names: list[str], *, is_dir: bool) -> AbstractSet[str]:
        """Those of a directory's entries that are ignored; `directory` ends with a slash."""
        suspects: Iterable[str] = names
        if not self._can_match_all(directory):
            suspects = self._names.intersection(names)
            suspects.update([name for name in names if name.endswith(self._endings)])
            if self._others is not None:
                suspects.update(filter(self._others.match, names))
        return {name for name in suspects if self.verdict(directory + name, is_dir=is_dir)}

    def _can_match_all(self, directory: str) -> bool:
        """Whether a pattern may speak of a directory's entries whatever their names are."""
        return any(
            pattern.matches(directory[len(base) :] + _ANY_NAME, is_dir=True)
            for base, pattern in self._unbounded
        )

    def verdict(self, path: str, *, is_dir: bool) -> bool:
        """Whether this very entry is ignored; the directories above it are not asked."""
        for kind in NAMES:
            for layer in self._layers:
                file = layer.files.get(kind)
                word = (
                    None if file is None else file.verdict(path[len(layer.base) :], is_dir=is_dir)
                )
                if word is not None:
                    return word
        return False

    def _index(self, base: str, patterns: Iterable[IgnorePattern]) -> Iterable[str]:
        """Note what a name must have for a pattern to speak of it, so that most need no asking."""
        for pattern in patterns:
            last = pattern.segments[-1]
            if last is None:
                self._unbounded.append((base, pattern))
            elif last.literal is not None:
                self._names.add(last.literal)
            elif last.suffix:
                self._endings += (last.suffix,)
            else:
                yield last.source


def read_ignore_layer(directory: str, names: Iterable[str]) -> IgnoreLayer | None:
    """The layer of a directory that holds these names; None if no ignore file is among them."""
    files: dict[str, IgnoreFile] = {}
    for name in set(NAMES).intersection(names):
        file = _read(directory + name)
        if file is not None:
            files[name] = file
    return IgnoreLayer(directory, files) if files else None


def read_ignores_above(root: str) -> Ignores:
    """The ignore files of every directory above `root`, the nearest first."""
    layers: list[IgnoreLayer] = []
    here = root
    while here not in {"/", ""}:
        here = here.rpartition("/")[0]
        base = here + "/"
        layer = read_ignore_layer(base, NAMES)
        if layer is not None:
            layers.append(layer)
    return Ignores(tuple(layers))


def is_root_ignored(root: str) -> bool:
    """Whether ignore files above a directory hide it, a directory on the way, or all it holds."""
    ignores = read_ignores_above(root)
    if ignores.is_silent:
        return False
    path = root
    while path not in {"/", ""}:
        if ignores.verdict(path, is_dir=True):
            return True
        path = path.rpartition("/")[0]
    return ignores.verdict(f"{root}/{_ANY_NAME}", is_dir=False)


def _read(path: str) -> IgnoreFile | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(fd, MAX_FILE_BYTES)
    except OSError:
        return None
    finally:
        os.close(fd)
    return _compile_ignore_file(data)


@lru_cache(maxsize=256)
def _compile_ignore_file(data: bytes) -> IgnoreFile | None:
    file = IgnoreFile(data.decode("utf-8", "surrogateescape"))
    return file if file.patterns else None


FileTypes = dict[str, tuple[str, ...]]


@lru_cache(maxsize=1)
def load_file_types() -> FileTypes:
    """The patterns of every type, by its name."""
    text = Path(__file__).with_name("file_types.txt").read_text(encoding="utf-8")
    types: FileTypes = {}
    for line in text.splitlines():
        name, _, globs = line.partition(": ")
        types[name] = tuple(globs.split(", "))
    return types


class FileFilter:
    """Says of single paths whether they are wanted."""

    def __init__(self, query: TextQuery) -> None:
        glob = None if query.glob is None else make_glob_relative(query.glob, query.root)
        self._is_negated = glob is not None and glob.startswith("!")
        self._globs = [] if glob is None else _parse_glob(glob)
        self._types = None if query.file_type is None else _build_type_patterns(query.file_type)

    @property
    def wants_all(self) -> bool:
        """Whether every file is wanted that is not ignored."""
        return self._types is None and not self._globs

    def is_wanted_file(self, path: str, name: str, *, is_ignored: bool) -> bool:
        """Whether a file, relative to the search directory, is to be searched."""
        if self._types is not None and not any(glob.matches(name) for glob in self._types):
            return False
        if not self._globs:
            return not is_ignored
        is_named = any(glob.matches(path) for glob in self._globs)
        if self._is_negated:
            return not is_named and not is_ignored
        return is_named

    def enters(self, path: str) -> bool:
        """Whether a directory may hold wanted files."""
        return not self._is_negated or not self._is_named_directory(path)

    def rescues(self, path: str) -> bool:
        """Whether a directory is wanted although it is ignored."""
        return not self._is_negated and self._is_named_directory(path)

    def _is_named_directory(self, path: str) -> bool:
        return any(glob.matches(path, is_dir=True) for glob in self._globs)


def _parse_glob(glob: str) -> list[IgnorePattern]:
    body = glob.removeprefix("!")
    try:
        return [IgnorePattern(spelling) for spelling in expand_braces(body) if spelling.strip("/")]
    except BadGlobPattern as bad:
        raise BadQuery("glob", f"error parsing glob {glob!r}: {bad.sentence}") from None


def _build_type_patterns(name: str) -> list[IgnorePattern]:
    types = load_file_types()
    if name == "all":
        globs = [glob for kind in types.values() for glob in kind]
    elif name in types:
        globs = list(types[name])
    else:
        raise BadQuery("type", f"unrecognized file type: {name}")
    spellings = [spelling for glob in globs for spelling in expand_braces(glob)]
    return [IgnorePattern(re.sub(r"^!", r"\\!", spelling)) for spelling in spellings]
