"""Checkouts of their own for agents: `git worktree` below the repository's `.claude/worktrees`.

A checkout is locked while somebody works in it, so that no `git worktree prune` takes it away;
after a crash it is still there and still locked. Programs that the repository names for git to
run are not run.
"""

import asyncio
import filecmp
import os
import re
import signal
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from handaxe.host.clean_environment import clean_environment
from handaxe.host.marked_processes import marked
from handaxe.host.shell.wardens import WARDENS
from handaxe.settings.model import WorktreeOptions
from handaxe.settings.places import WORKTREES

INCLUDE_FILE = ".worktreeinclude"
TIMEOUT_S = 300.0
PATIENCE_S = 5.0
"""How long git may take to tidy up once it is told to end."""
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_FOUND_BY_DOT_GIT = ("-c", "safe.bareRepository=explicit")
"""A directory that a command made look like a repository is none."""
_ORIGINS = ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master")
_LEAVINGS = (".pyc", ".pyo", "/.DS_Store")
_IGNORE_ALL = "# Checkouts of agents; git need not see them.\n*\n"


class NoWorktree(Exception):
    """There can be no checkout; the sentence says why."""


class Worktree(msgspec.Struct, frozen=True):
    """A checkout of its own."""

    path: str
    branch: str
    base: str
    """The commit it began with."""


async def open_worktree(
    directory: str,
    name: str,
    *,
    base: str = "",
    options: WorktreeOptions = WorktreeOptions(),  # noqa: B008 - a frozen value
) -> Worktree:
    """A locked checkout of what is committed around `directory`; one of that name is used again.

    Raises:
        NoWorktree: no repository, no commit, options that make no sense here, or git refuses.
    """
    top = Path(await _git(directory, *_FOUND_BY_DOT_GIT, "rev-parse", "--show-toplevel"))
    path, branch = top / WORKTREES / name, f"worktree-{name}"
    if path.is_dir():
        base = base or await _git(str(path), "rev-parse", "HEAD")
        await _lock(top, path)
        return Worktree(str(path), branch, base)
    _refuse_outside("sparsePaths", options.sparse_paths)
    _refuse_outside("symlinkDirectories", options.symlink_directories)
    base = await _base(directory, fresh=options.base_ref == "fresh")
    _make_folder(path.parent)
    await _git(str(top), "worktree", "prune")
    is_known = await _has_branch(top, branch)
    where = (str(path), branch) if is_known else ("-b", branch, str(path), base)
    try:
        await _check_out(top, path, where, options.sparse_paths)
        await _include(top, path)
        await _link(top, path, options.symlink_directories)
        await _lock(top, path)
    except BaseException:
        # Nobody has worked in it yet, and nobody would ever come back to it.
        await _to_its_end(_discard(top, path, None if is_known else branch))
        raise
    return Worktree(str(path), branch, base)


async def close_worktree(path: str, branch: str, base: str) -> bool:
    """Unlock a checkout, and remove it if nothing in it was changed; whether it is still there.

    When in doubt it stays.
    """
    with suppress(NoWorktree):
        await _git(path, "worktree", "unlock", path)
    try:
        if await _is_changed(path, branch, base):
            return True
        top = await _git(path, "rev-parse", "--path-format=absolute", "--git-common-dir")
        await _git(top, "worktree", "remove", path)
        await _git(top, "branch", "--quiet", "-D", branch)
    except NoWorktree:
        return True
    return False


def _refuse_outside(setting: str, names: Sequence[str]) -> None:
    for name in names:
        parts = name.split("/")
        if not name.isprintable() or not {"", ".", "..", ".git"}.isdisjoint(parts):
            raise NoWorktree(
                f"worktree.{setting} names {name!r}, which is no directory inside the repository"
            )


async def _check_out(
    top: Path, path: Path, where: Sequence[str], sparse_paths: Sequence[str]
) -> None:
    """Write the files: all, or only those at the top and in some directories."""
    if not sparse_paths:
        await _git(str(top), "worktree", "add", "--quiet", *where)
        return
    await _git(str(top), "worktree", "add", "--quiet", "--no-checkout", *where)
    await _git(str(path), "sparse-checkout", "set", "--cone", "--", *sparse_paths)
    await _git(str(path), "checkout", "--quiet")


async def _base(directory: str, *, fresh: bool) -> str:
    """The commit to begin with; a `fresh` one is where the origin's main branch was last seen."""
    for name in _ORIGINS if fresh else ():
        with suppress(NoWorktree):
            return await _git(directory, "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
    return await _git(directory, "rev-parse", "--verify", "HEAD^{commit}")


async def _lock(top: Path, path: Path) -> None:
    with suppress(NoWorktree):
        await _git(str(top), "worktree", "lock", "--reason", f"{path.name} works here", str(path))


async def _discard(top: Path, path: Path, branch: str | None) -> None:
    """Remove a checkout, however far it had come, and the branch that was made for it."""
    import shutil

    for arguments in (
        ("worktree", "unlock", str(path)),
        ("worktree", "remove", "--force", str(path)),
    ):
        with suppress(NoWorktree):
            await _git(str(top), *arguments)
    await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
    with suppress(NoWorktree):
        await _git(str(top), "worktree", "prune")
        if branch is not None and await _has_branch(top, branch):
            await _git(str(top), "branch", "--quiet", "-D", branch)


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait for it however often one is cancelled; the caller is on its way out already."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait((task,))
    task.result()


async def _is_changed(path: str, branch: str, base: str) -> bool:
    for name in ("HEAD", f"refs/heads/{branch}"):
        if await _git(path, "rev-parse", "--verify", f"{name}^{{commit}}") != base:
            return True
    if await _git(path, "status", "--porcelain", "--untracked-files=all"):
        return True
    if await _has_ignored_work(path):
        return True
    inner = Path(path) / WORKTREES
    return inner.is_dir() and any(place.is_dir() for place in inner.iterdir())


async def _has_ignored_work(path: str) -> bool:
    """Whether there are ignored files that nobody can make again from what is elsewhere.

    Directories that are ignored as such hold what builds and tests leave, and files like those of
    the main checkout came along from there.
    """
    listed = await _git(path, "status", "--porcelain", "-z", "--ignored=matching")
    names = [entry[3:] for entry in listed.split("\0") if entry.startswith("!! ")]
    own = [name for name in names if not name.endswith(("/", *_LEAVINGS))]
    top = path.rpartition(f"/{WORKTREES}/")[0]
    return bool(own) and await asyncio.to_thread(_differ, Path(path), Path(top), own)


def _differ(path: Path, top: Path, names: Sequence[str]) -> bool:
    for name in names:
        try:
            is_link = (path / name).is_symlink()
            if not is_link and not filecmp.cmp(path / name, top / name, shallow=False):
                return True
        except OSError:
            return True
    return False


async def _has_branch(top: Path, branch: str) -> bool:
    try:
        await _git(str(top), "rev-parse", "--quiet", "--verify", f"refs/heads/{branch}")
    except NoWorktree:
        return False
    return True


async def _include(top: Path, path: Path) -> None:
    """Copy what the repository ignores and `.worktreeinclude` names, such as `.env`."""
    if not (top / INCLUDE_FILE).is_file():
        return
    listing = ("ls-files", "-z", "--others", "--ignored")
    wanted = await _git(str(top), *listing, f"--exclude-from={INCLUDE_FILE}")
    ignored = set((await _git(str(top), *listing, "--exclude-standard")).split("\0"))
    await asyncio.to_thread(_copy, top, path, [n for n in wanted.split("\0") if n in ignored])


def _copy(top: Path, path: Path, names: list[str]) -> None:
    import shutil

    for name in names:
        source, target = top / name, path / name
        if not name or name.startswith(f"{WORKTREES}/") or target.exists():
            continue
        with suppress(OSError):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


async def _link(top: Path, path: Path, names: Sequence[str]) -> None:
    """Link directories that the repository ignores, such as `node_modules`, to where they are."""
    if not names:
        return
    listing = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    said = await _git(str(top), "--literal-pathspecs", *listing, "--", *names)
    ignored = {name.removesuffix("/") for name in said.split("\0")}
    wanted = [name for name in names if name in ignored and not path.is_relative_to(top / name)]
    if wanted:
        exclude = await _git(
            str(top), "rev-parse", "--path-format=absolute", "--git-path", "info/exclude"
        )
        await asyncio.to_thread(_make_links, top, path, wanted, Path(exclude))


def _make_links(top: Path, path: Path, names: Sequence[str], exclude: Path) -> None:
    for name in names:
        source, link = top / name, path / name
        # A link that is checked out may lead anywhere.
        is_inside = link.parent.resolve() == path.resolve() / Path(name).parent
        if not is_inside or os.path.lexists(link) or not source.is_dir():
            continue
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            _ignore_link(exclude, name)
            link.symlink_to(source.resolve())
        except OSError as error:
            raise NoWorktree(f"{name} cannot be linked ({error.strerror})") from None


def _ignore_link(exclude: Path, name: str) -> None:
    """Let git ignore a link as it ignores the directory: `name/` is no rule for links."""
    line = "/" + re.sub(r"([\\*?\[\] !#])", r"\\\1", name)
    known = exclude.read_bytes() if exclude.exists() else b""
    if os.fsencode(line) not in known.splitlines():
        exclude.parent.mkdir(parents=True, exist_ok=True)
        gap = b"" if not known or known.endswith(b"\n") else b"\n"
        with exclude.open("ab") as file:
            file.write(gap + os.fsencode(line) + b"\n")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text(_IGNORE_ALL, encoding="utf-8")
    except OSError as error:
        raise NoWorktree(f"{folder} cannot be made ({error.strerror})") from None


async def _git(directory: str, *arguments: str) -> str:
    env = marked(clean_environment(os.environ, {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}))
    try:
        process = await asyncio.create_subprocess_exec(
            "git", *_QUIET, *arguments, cwd=directory, env=env,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise NoWorktree(f"git cannot be run ({error.strerror})") from None
    WARDENS.keep_watch()
    try:
        said, complained = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    except BaseException as error:
        await _to_its_end(_end(process))
        if isinstance(error, TimeoutError):
            raise NoWorktree(f"git {arguments[0]} took too long") from None
        raise
    if process.returncode != 0:
        lines = complained.decode(errors="replace").strip().splitlines()
        raise NoWorktree(lines[-1] if lines else f"git {arguments[0]} failed")
    return said.decode(errors="surrogateescape").strip("\n")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End git with the programs it started; asked first, it takes its own half-done work away."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.communicate(), PATIENCE_S)
            return
