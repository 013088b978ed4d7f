"""Worktrees for agents: `git worktree` below the repository's `.claude/worktrees`.

A worktree is locked while an agent works in it, so that `git worktree prune` does not remove it;
after a crash it still exists and is locked. Checking out runs filters: programs that the repository
names need approval. Links in the path are refused.
"""

import asyncio
import errno
import filecmp
import os
import re
import stat
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from handaxe.config.settings import WorktreeOptions
from handaxe.config.settings_paths import WORKTREES
from handaxe.disk.safe_open import resolve_links
from handaxe.git.command import (
    GitFailed,
    await_despite_cancel,
    await_git,
    find_obstacles,
    make_command,
)
from handaxe.git.discovery import GitRepository, UnclearRepository, find_repository, read_repository
from handaxe.process.process_tags import tag_environment
from handaxe.process.worker_pool import WORKERS

INCLUDE_FILE = ".worktreeinclude"
TIMEOUT_S = 300.0
_ORIGINS = ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master")
_LEAVINGS = (".pyc", ".pyo", "/.DS_Store")
_IGNORE_ALL = b"# Checkouts of agents; git need not see them.\n*\n"
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN_LIST = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Approve = Callable[[tuple[str, ...]], Awaitable[str]]
"""Gets the programs that a repository makes git run; returns why not, or nothing to approve."""


class NoWorktree(Exception):
    """No worktree is possible; the sentence says why."""


class Worktree(msgspec.Struct, frozen=True):
    """A worktree."""

    path: str
    branch: str
    base: str
    """The commit it started from."""


async def refuse_programs(obstacles: tuple[str, ...]) -> str:
    """The answer if no approval is possible."""
    return obstacles[0]


class _Git:
    """Git in one checked repository."""

    def __init__(self, repository: GitRepository, *, runs_programs: bool = False) -> None:
        self.repository = repository
        self.top = Path(repository.top)
        self.runs_programs = runs_programs

    async def run(self, *arguments: str) -> str:
        """The output of git; raises `NoWorktree`."""
        WORKERS.keep_watch()
        try:
            command = make_command(
                self.repository,
                *arguments,
                runs_programs=self.runs_programs,
                mark=tag_environment({}),
            )
            said = await await_git(command, timeout_s=TIMEOUT_S)
        except GitFailed as error:
            raise NoWorktree(str(error)) from None
        return said.decode(errors="surrogateescape").strip("\n")


async def open_worktree(
    directory: str,
    name: str,
    *,
    base: str = "",
    options: WorktreeOptions = WorktreeOptions(),  # noqa: B008 - a frozen value
    approve: Approve = refuse_programs,
) -> Worktree:
    """A locked worktree of the commit around `directory`; an existing one of that name is reused.

    Raises:
        NoWorktree: no repository, no commit, invalid options, a link in the path, programs without
            approval, or git failed.
    """
    git = await _open_git(directory, approve)
    path, branch = git.top / WORKTREES / name, f"worktree-{name}"
    _refuse_links(git.top, path)
    if os.path.lexists(path):  # noqa: ASYNC240
        own = await _request_approval(_enter(path, git.repository.common), approve)
        base = base or await own.run("rev-parse", "HEAD")
        await _lock(git, path)
        return Worktree(str(path), branch, base)
    _refuse_outside("sparsePaths", options.sparse_paths)
    _refuse_outside("symlinkDirectories", options.symlink_directories)
    base = await _find_base(git, fresh=options.base_ref == "fresh")
    _make_folder(git.top)
    await git.run("worktree", "prune")
    is_known = await _has_branch(git, branch)
    where = (str(path), branch) if is_known else ("-b", branch, str(path), base)
    try:
        await _check_out(git, path, where, options.sparse_paths)
        await _include(git, path)
        await _link(git, path, options.symlink_directories)
        await _lock(git, path)
    except BaseException:
        # It was never used, and no agent would return to it.
        await await_despite_cancel(_discard(git, path, None if is_known else branch))
        raise
    return Worktree(str(path), branch, base)


async def close_worktree(
    path: str, branch: str, base: str, *, approve: Approve = refuse_programs
) -> bool:
    """Unlock a worktree, and remove it if it is unchanged; returns whether it still exists.

    In doubt it stays.
    """
    top = path.rpartition(f"/{WORKTREES}/")[0]
    try:
        _refuse_links(Path(top), Path(path))
        found = _look(top)
        with suppress(NoWorktree):
            # This reads and writes nothing that was checked out.
            await _Git(found).run("worktree", "unlock", path)
        git = await _open_git(top, approve)
        own = await _request_approval(_enter(Path(path), git.repository.common), approve)
        if await _is_changed(own, branch, base):
            return True
        await git.run("worktree", "remove", path)
        await git.run("branch", "--quiet", "-D", branch)
    except NoWorktree:
        return True
    return False


async def _open_git(directory: str, approve: Approve) -> _Git:
    return await _request_approval(_look(directory), approve)


def _enter(path: Path, common: str) -> GitRepository:
    """A worktree that the repository lists as its own."""
    try:
        found = read_repository(str(path))
        is_own = found is not None and found.common == common and _is_registered(found, path)
    except (UnclearRepository, OSError, ValueError):
        found, is_own = None, False
    if found is None or not is_own:
        raise NoWorktree(f"{path} already exists, and is not a worktree of this repository")
    return found


def _is_registered(found: GitRepository, path: Path) -> bool:
    """Whether the repository also lists this worktree at its place."""
    back = os.fsdecode(Path(found.git, "gitdir").read_bytes().rstrip(b"\n"))
    is_below = found.git.startswith(f"{found.common}/worktrees/")
    return is_below and resolve_links(Path(found.git, back)) == str(path / ".git")


def _look(directory: str) -> GitRepository:
    try:
        found = find_repository(directory)
    except UnclearRepository as unclear:
        raise NoWorktree(str(unclear)) from None
    if found is None:
        raise NoWorktree(f"{directory} is not a git repository")
    if found.git == found.top:
        raise NoWorktree(f"{found.top} is a bare repository")
    return found


async def _request_approval(found: GitRepository, approve: Approve) -> _Git:
    obstacles = await asyncio.to_thread(find_obstacles, found)
    refusal = await approve(obstacles) if obstacles else ""
    if refusal:
        raise NoWorktree(refusal)
    return _Git(found, runs_programs=bool(obstacles))


def _refuse_links(top: Path, path: Path) -> None:
    """Refuse a link below the repository's top, which would redirect git."""
    for place in (path, *path.parents):
        if place == top:
            return
        if place.is_symlink():
            raise NoWorktree(f"{place} is a link, and worktrees are not created through links")


def _refuse_outside(setting: str, names: Sequence[str]) -> None:
    for name in names:
        parts = name.split("/")
        if not name.isprintable() or not {"", ".", "..", ".git"}.isdisjoint(parts):
            raise NoWorktree(
                f"worktree.{setting} names {name!r}, which is not a directory inside the repository"
            )


async def _check_out(
    git: _Git, path: Path, where: Sequence[str], sparse_paths: Sequence[str]
) -> None:
    """Write the files: all, or only those at the top and in some directories."""
    if not sparse_paths:
        await git.run("worktree", "add", "--quiet", *where)
        return
    await git.run("worktree", "add", "--quiet", "--no-checkout", *where)
    own = _Git(_enter(path, git.repository.common), runs_programs=git.runs_programs)
    await own.run("sparse-checkout", "set", "--cone", "--", *sparse_paths)
    await own.run("checkout", "--quiet")


async def _find_base(git: _Git, *, fresh: bool) -> str:
    """The start commit; a `fresh` one is the origin's main branch as last fetched."""
    for name in _ORIGINS if fresh else ():
        with suppress(NoWorktree):
            return await git.run("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
    return await git.run("rev-parse", "--verify", "HEAD^{commit}")


async def _lock(git: _Git, path: Path) -> None:
    with suppress(NoWorktree):
        await git.run("worktree", "lock", "--reason", f"{path.name} works here", str(path))


async def _discard(git: _Git, path: Path, branch: str | None) -> None:
    """Remove a worktree in any state, and the branch that was made for it."""
    import shutil

    for arguments in (
        ("worktree", "unlock", str(path)),
        ("worktree", "remove", "--force", str(path)),
    ):
        with suppress(NoWorktree):
            await git.run(*arguments)
    await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
    _unlock_unfinished(Path(git.repository.common, "worktrees", path.name), path)
    with suppress(NoWorktree):
        await git.run("worktree", "prune")
    if branch is None:
        return
    with suppress(OSError):
        # What was killed while it made the branch leaves its lock behind.
        os.unlink(f"{git.repository.common}/refs/heads/{branch}.lock")
    with suppress(NoWorktree):
        if await _has_branch(git, branch):
            await git.run("update-ref", "-d", f"refs/heads/{branch}")


def _unlock_unfinished(noted: Path, path: Path) -> None:
    """Unlock what git began to create, because git neither unlocks nor prunes it."""
    with suppress(OSError):
        leads_to = noted / "gitdir"
        if not leads_to.exists() or leads_to.read_text().strip() == str(path / ".git"):
            (noted / "locked").unlink()


async def _is_changed(own: _Git, branch: str, base: str) -> bool:
    for name in ("HEAD", f"refs/heads/{branch}"):
        if await own.run("rev-parse", "--verify", f"{name}^{{commit}}") != base:
            return True
    if await own.run("status", "--porcelain", "--untracked-files=all"):
        return True
    if await _has_ignored_work(own):
        return True
    inner = own.top / WORKTREES
    return inner.is_dir() and any(place.is_dir() for place in inner.iterdir())


async def _has_ignored_work(own: _Git) -> bool:
    """Whether there are ignored files that cannot be recreated.

    Ignored directories contain build results, and files like those of the main checkout were copied
    from there.
    """
    listed = await own.run("status", "--porcelain", "-z", "--ignored=matching")
    names = [entry[3:] for entry in listed.split("\0") if entry.startswith("!! ")]
    kept = [name for name in names if not name.endswith(("/", *_LEAVINGS))]
    top = Path(str(own.top).rpartition(f"/{WORKTREES}/")[0])
    return bool(kept) and await asyncio.to_thread(_has_difference, own.top, top, kept)


def _has_difference(path: Path, top: Path, names: Sequence[str]) -> bool:
    for name in names:
        try:
            is_link = (path / name).is_symlink()
            if not is_link and not filecmp.cmp(path / name, top / name, shallow=False):
                return True
        except OSError:
            return True
    return False


async def _has_branch(git: _Git, branch: str) -> bool:
    try:
        await git.run("rev-parse", "--quiet", "--verify", f"refs/heads/{branch}")
    except NoWorktree:
        return False
    return True


async def _include(git: _Git, path: Path) -> None:
    """Copy ignored files that `.worktreeinclude` names, such as `.env`."""
    if not (git.top / INCLUDE_FILE).is_file():
        return
    listing = ("ls-files", "-z", "--others", "--ignored")
    wanted = await git.run(*listing, f"--exclude-from={INCLUDE_FILE}")
    ignored = set((await git.run(*listing, "--exclude-standard")).split("\0"))
    named = [name for name in wanted.split("\0") if name in ignored]
    await asyncio.to_thread(_copy, git.top, path, named)


def _copy(top: Path, path: Path, names: list[str]) -> None:
    import shutil

    for name in names:
        source, target = top / name, path / name
        if not name or name.startswith(f"{WORKTREES}/") or os.path.lexists(target):
            continue
        if not _is_direct(path, name):
            continue
        with suppress(OSError):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


async def _link(git: _Git, path: Path, names: Sequence[str]) -> None:
    """Link ignored directories, such as `node_modules`, to the main checkout."""
    if not names:
        return
    listing = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    said = await git.run("--literal-pathspecs", *listing, "--", *names)
    ignored = {name.removesuffix("/") for name in said.split("\0")}
    wanted = [n for n in names if n in ignored and not path.is_relative_to(git.top / n)]
    if wanted:
        exclude = Path(git.repository.common, "info/exclude")
        await asyncio.to_thread(_make_links, git.top, path, wanted, exclude)


def _make_links(top: Path, path: Path, names: Sequence[str], exclude: Path) -> None:
    for name in names:
        source, link = top / name, path / name
        if not _is_direct(path, name) or os.path.lexists(link) or not source.is_dir():
            continue
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            _ignore_link(exclude, name)
            link.symlink_to(source.resolve())
        except OSError as error:
            raise NoWorktree(f"{name} cannot be linked ({error.strerror})") from None


def _ignore_link(exclude: Path, name: str) -> None:
    """Make git ignore a link like the directory, because `name/` does not cover links."""
    line = os.fsencode("/" + re.sub(r"([\\*?\[\] !#])", r"\\\1", name))
    exclude.parent.mkdir(exist_ok=True)
    with os.fdopen(os.open(exclude, _OWN_LIST, 0o644), "r+b") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "git's list of ignored files is not a file")
        known = file.read()
        if line not in known.splitlines():
            gap = b"" if not known or known.endswith(b"\n") else b"\n"
            file.write(gap + line + b"\n")


def _is_direct(path: Path, name: str) -> bool:
    """Whether no link is on the way to a name in a worktree."""
    return not any((path / above).is_symlink() for above in Path(name).parents)


def _make_folder(top: Path) -> None:
    folder = top
    try:
        for name in WORKTREES.split("/"):
            folder /= name
            folder.mkdir(exist_ok=True)
        _refuse_links(top, folder)
        with (
            suppress(FileExistsError),
            os.fdopen(os.open(folder / ".gitignore", _NEW_FILE, 0o644), "wb") as ignore,
        ):
            ignore.write(_IGNORE_ALL)
    except OSError as error:
        raise NoWorktree(f"{folder} cannot be created ({error.strerror})") from None
