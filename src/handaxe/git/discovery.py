"""Find the repository that git uses in a directory, by git's own rules.

If git could find another repository, the result says so instead of guessing. This happens with a
`.git` that is damaged or unreadable, or with a bare repository beside another `.git`.
"""

import os
import re
import stat
from collections.abc import Set as AbstractSet
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from handaxe.disk.safe_open import resolve_links

CHOOSING_VARIABLES = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
)  # fmt: skip
"""With one of these set git does not look for a repository, or takes parts of another one."""
_POINTER = "gitdir: "
_REPOSITORY_NAMES = ("HEAD", "objects", "refs", "commondir")
_OBJECT_ID = rb"[0-9a-fA-F]{40}"
_BRANCH = rb"ref:\s*refs/"
_CHECKED_OUT = r"ref: *refs/heads/([^ ~^:?*\[\\]+)|([0-9a-f]{40,64})"
_MAX_HEAD_BYTES, _MAX_POINTER_BYTES = 255, 4096


class UnclearRepository(Exception):
    """It is unclear which repository git would use; the sentence says where."""


class GitRepository(NamedTuple):
    """A repository that git takes for its own, all paths with their links followed."""

    top: str
    """The directory where it was found: the work tree, or the repository itself if it is bare."""
    git: str
    common: str
    """What all worktrees of the repository share: its configuration, its hooks, its branches."""


def find_repository(directory: str) -> GitRepository | None:
    """The repository around a directory; None outside of repositories.

    Raises:
        UnclearRepository: git might use another one.
    """
    start = PurePosixPath(resolve_links(directory))
    for place in (start, *start.parents):
        try:
            found = read_repository(str(place))
        except (OSError, ValueError) as error:
            raise UnclearRepository(f"what git finds in {place} is not clear: {error}") from None
        if found is not None:
            return found
    return None


def find_top(directory: str) -> str | None:
    """The nearest directory, from here up, that is surely a repository; None without one.

    For searches that end there: a `.git` that git would not use does not end them.
    """
    place = PurePosixPath(directory)
    for above in (place, *place.parents):
        try:
            if os.path.lexists(above / ".git") and read_repository(str(above)) is not None:
                return str(above)
        except (UnclearRepository, OSError, ValueError):
            continue
    return None


def read_repository(place: str) -> GitRepository | None:
    """The repository that git takes in this very directory; None if it looks further up."""
    git = os.path.join(place, ".git")  # noqa: PTH118
    is_there = os.path.lexists(git)
    if is_there:
        directory = _follow_git_file(git)
        if is_git_directory(directory):
            return _make_repository(place, directory)
        if directory != git or not Path(git).is_dir() or _can_be_repository(git):
            raise UnclearRepository(f"{git} is there, but no repository that git would take")
    if not _can_be_repository(place):
        return None
    if is_there or not is_git_directory(place):
        raise UnclearRepository(f"{place} looks like a repository, but not to every git")
    return _make_repository(place, place)


def is_git_directory(directory: str) -> bool:
    """Whether git takes a directory for a repository, as it decides that itself."""
    try:
        common = find_common_directory(directory)
        return _is_head(Path(directory) / "HEAD") and all(
            os.access(f"{common}/{name}", os.X_OK) for name in ("objects", "refs")
        )
    except OSError:
        return False


def find_common_directory(git: str) -> str:
    """What a worktree's git directory shares with the others; for the main one it is itself."""
    pointer = Path(git) / "commondir"
    if not os.path.lexists(pointer):
        return resolve_links(git)
    named = os.fsdecode(_read(pointer, _MAX_POINTER_BYTES)).rstrip("\r\n")
    return resolve_links(Path(git) / named)


def has_repository_names(names: AbstractSet[str]) -> bool:
    """Whether a directory with these names in it may be a repository, whatever it is called."""
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)


def describe_head(repository: GitRepository) -> str:
    """Which branch or commit is checked out, in words; empty if HEAD says neither."""
    head = Path(repository.git, "HEAD")
    try:
        if head.is_symlink():
            text = f"ref: {head.readlink()}"
        else:
            text = os.fsdecode(_read(head, _MAX_HEAD_BYTES)).strip()
    except OSError:
        return ""
    named = re.fullmatch(_CHECKED_OUT, text)
    if named is None or not text.isprintable():
        return ""
    return f"Branch: {named[1]}" if named[1] else f"Detached at {named[2][:12]}"


def _make_repository(place: str, git: str) -> GitRepository:
    return GitRepository(resolve_links(place), resolve_links(git), find_common_directory(git))


def _follow_git_file(git: str) -> str:
    """The directory that a `.git` stands for: itself, or the one that a file names."""
    try:
        if not stat.S_ISREG(Path(git).stat().st_mode):
            return git
        text = os.fsdecode(_read(Path(git), _MAX_POINTER_BYTES))
    except OSError as error:
        raise UnclearRepository(f"{git} cannot be read ({error.strerror})") from None
    named = text.removeprefix(_POINTER).rstrip("\r\n")
    if not text.startswith(_POINTER) or not named:
        raise UnclearRepository(f"{git} does not say where the repository is")
    return str(Path(git).parent / named)


def _can_be_repository(place: str) -> bool:
    """Whether any git could take it for one: without these names none does."""
    return has_repository_names(
        {name for name in _REPOSITORY_NAMES if os.path.lexists(f"{place}/{name}")}
    )


def _is_head(head: Path) -> bool:
    if head.is_symlink():
        return os.fspath(head.readlink()).startswith("refs/")
    content = _read(head, _MAX_HEAD_BYTES)
    return any(re.match(pattern, content) for pattern in (_BRANCH, _OBJECT_ID))


def _read(path: Path, most_bytes: int) -> bytes:
    """The start of a regular file; nothing else is opened, so nothing can hang."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "not a regular file")
        return os.read(fd, most_bytes)
    finally:
        os.close(fd)
