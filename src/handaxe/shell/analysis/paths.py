"""Paths as text: lexical resolution, containment, and critical paths.

The disk is not read; `..` is resolved on the text.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from handaxe.shell.analysis.parser.expansion import PROCESS, Field
from handaxe.shell.analysis.program_tables import split_names

Access = Literal["read", "write"]

_FREE = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", PROCESS})
_PROCESS_PLACE = re.compile(
    r"/+(?:proc/+[^/]+/+(?:task/+[^/]+/+)?(?:cwd|root|map_files|fd(?!/+\d+$))|dev/+fd(?!/+\d+$))(?:/|$)"
)
_SYSTEM = split_names(
    "bin boot dev etc home lib lib32 lib64 media mnt opt proc root run sbin srv sys tmp usr "
    "var Applications Library System Users Volumes private nix snap"
)


class PathUse(Struct, frozen=True):
    """A file operand: its path, its access, and its text."""

    path: str | None
    """The absolute path, `..` resolved on the text; None if unknown."""
    access: Access
    text: str
    joined: str | None = None
    """The path before `..` was resolved, for a caller that follows links."""
    glob: bool = False
    is_sure: bool = True
    """Whether the program certainly opens it; else the word only may be a path."""
    word: str | None = None
    """A literal relative path whose directory is unknown."""
    sweeps: bool = False
    """Whether a directory here means every file below it, with links followed."""


@lru_cache(maxsize=4096)
def resolve(path: str, cwd: str) -> str:
    """`path` relative to `cwd`, absolute and without `.`, `..` and doubled slashes."""
    resolved = posixpath.normpath(posixpath.join(cwd, path or "."))
    # POSIX keeps exactly two leading slashes; Linux reads them as one.
    return resolved[1:] if resolved.startswith("//") else resolved


def is_inside(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or below it, by whole components."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def make_path_uses(field: Field, access: Access, cwds: frozenset[str]) -> list[PathUse]:
    """The paths that `field` can name as a file operand, one per possible current directory."""
    if field.kind == "unknown":
        return [PathUse(None, access, field.text)]
    value = field.value
    if value == "-" or (value in _FREE and field.kind == "known" and access == "read"):
        return []
    if field.kind == "glob":
        return _make_glob_uses(field, access, cwds)
    if not cwds and not value.startswith("/"):
        return [PathUse(None, access, field.text, word=value)]
    bases = ["/"] if value.startswith("/") else sorted(cwds)
    uses = [
        PathUse(resolve(value, base), access, field.text, posixpath.join(base, value))
        for base in bases
    ]
    return _add_doubt(uses)


def _make_glob_uses(field: Field, access: Access, cwds: frozenset[str]) -> list[PathUse]:
    parts = field.value.split("/")
    at = next((i for i, part in enumerate(parts) if _is_glob(part)), len(parts))
    # A component such as `.*` can match `..`, and `..` after a glob can lead anywhere.
    climbs = any(_can_climb(part) for part in parts[at:])
    if climbs or (not cwds and not field.value.startswith("/")):
        return [PathUse(None, access, field.text)]
    bases = ["/"] if field.value.startswith("/") else sorted(cwds)
    uses: list[PathUse] = []
    for base in bases:
        path = resolve(field.value, base)
        uses.append(PathUse(path, access, field.text, posixpath.join(base, field.value), glob=True))
        directory = "/".join(parts[:at]) or ("/" if field.value.startswith("/") else ".")
        uses.append(PathUse(resolve(directory, base), "read", field.text))
    return _add_doubt(uses)


def _add_doubt(uses: list[PathUse]) -> list[PathUse]:
    """Add an unknown file if a path goes through a process's directories."""
    for use in uses:
        if is_process_path(use.path or "") or is_process_path(use.joined or ""):
            return [*uses, PathUse(None, use.access, use.text)]
    return uses


def is_process_path(path: str) -> bool:
    """Whether a path leads to a process's directory or open files: `/proc/self/cwd/a`."""
    return path.startswith(("/proc", "/dev/")) and _PROCESS_PLACE.match(path) is not None


def _is_glob(part: str) -> bool:
    return any(char in part for char in "*?[")


def _can_climb(part: str) -> bool:
    if part.startswith((".[^.]", ".[!.]")):
        return False
    return part == ".." or (part.startswith(".") and len(part) > 1 and part[1] in "*?[.")


def is_critical(path: str, cwd: str, home: str, working_dirs: tuple[str, ...]) -> bool:
    """Whether removing `path` would remove the system, the home, the project or a repository."""
    stripped = path.removesuffix("/*")
    stripped = stripped.rstrip("/") or "/"
    last = stripped.rpartition("/")[2]
    is_git = last == ".git" or (last[:1] == "." and fnmatchcase(".git", last))
    if stripped == "/" or stripped.count("/") == 1 or is_git:
        return True
    first = stripped.split("/")[1]
    if first in _SYSTEM and first not in ("home", "tmp", "Users", "mnt", "media", "private", "var"):
        return True
    anchors = [home, cwd, *working_dirs]
    if any(is_inside(anchor.rstrip("/") or "/", stripped) for anchor in anchors):
        return True
    return first in ("home", "Users", "var") and stripped.count("/") == 2


def is_dynamic_device(path: str) -> bool:
    """Whether bash itself opens a network connection for this name."""
    return path.startswith(("/dev/tcp/", "/dev/udp/"))
