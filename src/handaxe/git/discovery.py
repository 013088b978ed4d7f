"""Find the repository of a directory by git's own rules.

Where git could come to another result, this reports it instead of guessing: a damaged or unreadable
`.git`, or a bare repository next to another `.git`.
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
"""If one of these is set, git does not search for a repository, or uses parts of another one."""
_POINTER = "gitdir: "
_REPOSITORY_NAMES = ("HEAD", "objects", "refs", "commondir")
_OBJECT_ID = rb"[0-9a-fA-F]{40}"
_BRANCH = rb"ref:\s*refs/"
_CHECKED_OUT = r"ref: *refs/heads/([^ ~^:?*\[\\]+)|([0-9a-f]{40,64})"
_MAX_HEAD_BYTES, _MAX_POINTER_BYTES = 255, 4096


class UnclearRepository(Exception):
    """The repository that git would use is unclear; the sentence says where."""


class GitRepository(NamedTuple):
    """A git repository; all paths with links resolved."""

    top: str
    """Where it was found: the work tree, or the repository itself if it is bare."""
    git: str
    common: str
    """The part that all worktrees share: configuration, hooks, branches."""


def find_repository(directory: str) -> GitRepository | None:
    """The repository around a directory; None outside of repositories.

    Raises:
        UnclearRepository: git might find another one.
    """
    start = PurePosixPath(resolve_links(directory))
    for place in (start, *start.parents):
        try:
            found = read_repository(str(place))
        except (OSError, ValueError) as error:
            raise UnclearRepository(f"git's result for {place} is unclear: {error}") from None
        if found is not None:
            return found
    return None


def find_top(directory: str) -> str | None:
    """The nearest directory, from here up, that is certainly a repository; None if there is none.

    For file searches up to there: an invalid `.git` does not end them.
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
    """The repository in this exact directory; None if git searches further up."""
    git = os.path.join(place, ".git")  # noqa: PTH118
    is_there = os.path.lexists(git)
    if is_there:
        directory = _follow_git_file(git)
        if is_git_directory(directory):
            return _make_repository(place, directory)
        if directory != git or not Path(git).is_dir() or _can_be_repository(git):
            raise UnclearRepository(f"{git} exists but is not a valid repository")
    if not _can_be_repository(place):
        return None
    if is_there or not is_git_directory(place):
        raise UnclearRepository(f"{place} is a repository only for some versions of git")
    return _make_repository(place, place)


def is_git_directory(directory: str) -> bool:
    """Whether git treats a directory as a repository, by its own rules."""
    try:
        common = find_common_directory(directory)
        return _is_head(Path(directory) / "HEAD") and all(
            os.access(f"{common}/{name}", os.X_OK) for name in ("objects", "refs")
        )
    except OSError:
        return False


def find_common_directory(git: str) -> str:
    """The shared git directory of a worktree; for the main one, its own."""
    pointer = Path(git) / "commondir"
    if not os.path.lexists(pointer):
        return resolve_links(git)
    named = os.fsdecode(_read(pointer, _MAX_POINTER_BYTES)).rstrip("\r\n")
    return resolve_links(Path(git) / named)


def has_repository_names(names: AbstractSet[str]) -> bool:
    """Whether a directory with these names may be a repository, whatever its name."""
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)


def describe_head(repository: GitRepository) -> str:
    """The checked-out branch or commit in words; empty if HEAD has neither."""
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
    """The directory of a `.git`: itself, or the one that a file names."""
    try:
        if not stat.S_ISREG(Path(git).stat().st_mode):
            return git
        text = os.fsdecode(_read(Path(git), _MAX_POINTER_BYTES))
    except OSError as error:
        raise UnclearRepository(f"{git} cannot be read ({error.strerror})") from None
    named = text.removeprefix(_POINTER).rstrip("\r\n")
    if not text.startswith(_POINTER) or not named:
        raise UnclearRepository(f"{git} does not name the repository")
    return str(Path(git).parent / named)


def _can_be_repository(place: str) -> bool:
    """Whether any git could treat it as a repository: these names are required."""
    return has_repository_names(
        {name for name in _REPOSITORY_NAMES if os.path.lexists(f"{place}/{name}")}
    )


def _is_head(head: Path) -> bool:
    if head.is_symlink():
        return os.fspath(head.readlink()).startswith("refs/")
    content = _read(head, _MAX_HEAD_BYTES)
    return any(re.match(pattern, content) for pattern in (_BRANCH, _OBJECT_ID))


def _read(path: Path, most_bytes: int) -> bytes:
    """The start of a regular file; other files are not opened, so nothing can hang."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "not a regular file")
        return os.read(fd, most_bytes)
    finally:
        os.close(fd)
