"""Limited reads of the disk before a command runs: trees, archives, files with secrets, git.

Every function returns None above its limit: an incomplete result is unknown.
"""

import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

from handaxe.process.child_environment import clean_environment
from handaxe.process.process_tags import tag_environment

MAX_NAMES = 50_000
"""Maximum number of names in a tree or archive."""
MAX_MATCHES = 2_000
MAX_SECONDS = 2.0
_MAX_ARCHIVE_BYTES = 256 * 1024 * 1024
_MAX_LISTED_BYTES = 64 * 1024 * 1024
_ENV_PATHS = (":(top,glob,icase)**/.env", ":(top,glob,icase)**/.env.*")


def list_tree(path: str) -> list[str] | None:
    """Every name below a directory, relative to it, without following links; empty for a file."""
    found: list[str] = []
    for name, _ in _walk(path):
        found.append(name)
        if len(found) > MAX_NAMES:
            return None
    return found


def _walk(path: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(f"{path}/{inside}" if inside else path) as entries:
                listed = list(entries)
        except OSError:
            continue
        for entry in listed:
            name = f"{inside}/{entry.name}" if inside else entry.name
            yield name, entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name)


def list_names(argv: Sequence[str], cwd: str, *, null: bool) -> list[str] | None:
    """The names that a listing command prints."""
    is_git = argv[0].rpartition("/")[2] == "git"
    printed = _ask_git(cwd, *argv[1:]) if is_git else _run(list(argv), cwd)
    if printed is None:
        return None
    names = [name for name in printed.split("\0" if null else "\n") if name]
    return names if len(names) <= MAX_NAMES else None


def expand_glob(pattern: str) -> list[str] | None:
    """The paths that an absolute glob matches now."""
    import glob

    found = list(itertools.islice(glob.iglob(pattern), MAX_MATCHES + 1))  # noqa: PTH207
    return found if len(found) <= MAX_MATCHES else None


def has_link(path: str, *, is_archive: bool) -> bool:
    """Whether a tree or archive contains a link, or cannot be read completely."""
    if is_archive:
        import tarfile

        try:
            with tarfile.open(path) as packed:
                members = itertools.islice(packed, MAX_NAMES + 1)
                return any(member.issym() or member.islnk() for member in members)
        except (OSError, ValueError, EOFError, tarfile.TarError):
            return True
    if os.path.realpath(path) != path and os.path.lexists(path):
        return True
    for count, (_, entry) in enumerate(_walk(path)):
        if entry.is_symlink() or count > MAX_NAMES:
            return True
    return False


def is_directory(path: str) -> bool:
    """Whether the path is a directory, with links resolved."""
    return os.path.isdir(path)


def is_link(path: str) -> bool:
    """Whether the path is a link or goes through one."""
    return os.path.realpath(path) != path


def resolve_links(path: str) -> str:
    """The path with links resolved."""
    return os.path.realpath(path)


def list_archive(path: str) -> list[str] | None:
    """Every name in a tar or zip archive; None if it exceeds the limit or is unreadable."""
    import tarfile
    import zipfile

    end = time.monotonic() + MAX_SECONDS
    try:
        if os.stat(path).st_size > _MAX_ARCHIVE_BYTES:
            return None
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
            return names if len(names) <= MAX_NAMES else None
        found: list[str] = []
        with tarfile.open(path) as packed:
            for member in packed:
                found.append(member.name)
                if member.issym() or member.islnk():
                    # What follows may be written through it.
                    found.append(f"{member.name}/{member.linkname}")
                if len(found) > MAX_NAMES or time.monotonic() > end:
                    return None
    except (OSError, ValueError, EOFError, tarfile.TarError, zipfile.BadZipFile):
        return None
    return found


def find_named(
    path: str,
    is_named: Callable[[str], bool],
    *,
    shown_only: bool = False,
    without: Sequence[str] = (),
) -> str | None:
    """The first file below a directory with a matching name; empty: none, None: above the limit."""
    seen = 0
    waiting = [path]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                listed = list(entries)
        except OSError:
            continue
        seen += len(listed)
        if seen > MAX_NAMES:
            return None
        for entry in listed:
            if shown_only and entry.name.startswith("."):
                continue
            if any(fnmatchcase(entry.name, pattern) for pattern in without):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif is_named(entry.name):
                return entry.path
    return ""


def find_tracked_env_file(
    directory: str, is_named: Callable[[str], bool], *, past: bool, paths: Sequence[str] = ()
) -> str | None:
    """A file with secrets in git's index or history; empty for none, None above the limit."""
    listed = _ask_git(directory, "ls-files", "-z", "--", *(paths or _ENV_PATHS))
    if listed is None:
        return None
    for name in listed.split("\0"):
        if name and is_named(name.rpartition("/")[2]):
            return name
    if not past:
        return ""
    limits = ["--", *(paths or _ENV_PATHS)]
    named = _ask_git(
        directory, "log", "--all", "--reflog", "-m", "--root", "--format=", "--name-only", "-z",
        "--no-ext-diff", "--no-textconv", *limits,
    )  # fmt: skip
    if named is None:
        return None
    return next((n for n in named.split("\0") if is_named(n.strip().rpartition("/")[2])), "")


def _ask_git(directory: str, *arguments: str) -> str | None:
    """The output of git; empty outside a repository, None if git may not run."""
    from handaxe.git.command import GitFailed, find_obstacles, make_command, run_git
    from handaxe.git.discovery import UnclearRepository, find_repository

    try:
        found = find_repository(directory)
        if found is None:
            return ""
        if find_obstacles(found):
            return None
        command = make_command(found, *arguments, directory=directory, mark=tag_environment({}))
    except (UnclearRepository, GitFailed):
        return None
    try:
        said = run_git(command, timeout_s=MAX_SECONDS, max_bytes=_MAX_LISTED_BYTES)
    except GitFailed as failed:
        return None if failed.is_unfinished else ""
    return said.decode("utf-8", "surrogateescape")


def _run(argv: list[str], directory: str) -> str | None:
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 - a proved listing
            argv,
            cwd=directory,
            env=tag_environment(
                clean_environment(os.environ, {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"})
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=MAX_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Where a listing fails, there is nothing to print.
    return done.stdout.decode("utf-8", "surrogateescape")
