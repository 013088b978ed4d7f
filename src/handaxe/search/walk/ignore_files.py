"""Ignore files as ripgrep reads them: `.rgignore` before `.ignore` before `.gitignore`.

Within one kind the file nearest to an entry speaks first. A `.gitignore` holds in a repository
and outside of one, and in the repositories inside it too.
"""

import os
import re
from collections.abc import Container
from functools import lru_cache
from pathlib import Path

from handaxe.contract.ports.search import BadQuery, TextQuery
from handaxe.search.rg_arguments import make_glob_relative
from handaxe.text.gitignore import BadGlobPattern, IgnoreFile, IgnorePattern
from handaxe.text.globs import expand_braces

NAMES = (".rgignore", ".ignore", ".gitignore")
MAX_FILE_BYTES = 1 << 20
_ANY_NAME = "\x01"


class Ignores:
    """The ignore files that apply to the entries of one directory."""

    def __init__(self, layers: tuple[tuple[str, dict[str, IgnoreFile]], ...] = ()) -> None:
        self._layers = layers
        """For each directory with ignore files, the nearest first, these files by name."""

    def enter(self, directory: str, names: Container[str]) -> "Ignores":
        """The ignore files of a directory with these names; `directory` ends with a slash."""
        found = ((name, _read(directory + name)) for name in NAMES if name in names)
        files = {name: file for name, file in found if file is not None}
        return Ignores(((directory, files), *self._layers)) if files else self

    def is_ignored(self, path: str, *, is_dir: bool) -> bool:
        """Whether this entry is ignored, whatever applies to the directories above it."""
        for kind in NAMES:
            for base, files in self._layers:
                file = files.get(kind)
                if file is not None:
                    verdict = file.verdict(path[len(base) :], is_dir=is_dir)
                    if verdict is not None:
                        return verdict
        return False

    def is_root_ignored(self, root: str) -> bool:
        """Whether they hide a directory below, a directory on the way, or all that it holds."""
        path = root
        while path not in {"/", ""}:
            if self.is_ignored(path, is_dir=True):
                return True
            path = path.rpartition("/")[0]
        return self.is_ignored(f"{root}/{_ANY_NAME}", is_dir=False)


def read_ignores_above(root: str) -> Ignores:
    """The ignore files of every directory above `root`."""
    ignores, base = Ignores(), ""
    for part in root.rstrip("/").split("/")[:-1]:
        base += f"{part}/"
        ignores = ignores.enter(base, NAMES)
    return ignores


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
    """The filter of a query by glob and type."""

    def __init__(self, query: TextQuery) -> None:
        glob = None if query.glob is None else make_glob_relative(query.glob, query.root)
        self._is_negated = glob is not None and glob.startswith("!")
        self._globs = [] if glob is None else _parse_glob(glob)
        self._types = None if query.file_type is None else _build_type_patterns(query.file_type)

    def is_wanted_file(self, path: str, *, is_ignored: bool) -> bool:
        """Whether to search a file, relative to the search directory."""
        if self._types is not None:
            name = path.rpartition("/")[2]
            if not any(glob.matches(name) for glob in self._types):
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
