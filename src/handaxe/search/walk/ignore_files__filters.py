"""Which files a search is about: the `glob` and `type` of a query, read as ripgrep reads them.

A glob that names files also names those an ignore file leaves out; a type never does.
"""

import re

from handaxe.contract.ports.search import BadQuery, TextQuery
from handaxe.search.rg_arguments import make_glob_relative
from handaxe.search.walk.ignore_files__file_types import load_file_types
from handaxe.text.gitignore import BadGlobPattern, IgnorePattern
from handaxe.text.globs import expand_braces


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
