"""Start every git process of handaxe.

A foreign repository can name programs for git to run. These git processes get settings that
override what can be overridden; `find_obstacles` lists the rest, which needs approval. Git finds
only the checked repository.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from shutil import which
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from handaxe.git.discovery import GitRepository

if TYPE_CHECKING:
    import asyncio

MAX_BYTES = 256 * 1024 * 1024
"""The maximum output of git."""
PATIENCE_S = 5.0
"""How long git may take to clean up after SIGTERM."""
_WAKE_S, _NAP_S = 0.1, 0.001

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=:",
    "safe.bareRepository=explicit",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "log.showSignature=false",
    "maintenance.auto=false",
    "gc.auto=0",
)
_VARIABLES = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
}
_OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""A partial clone would fetch missing objects with a program of the repository's choice."""
_KEPT = (
    "HOME", "LOGNAME", "TMPDIR", "TZ", "USER", "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
)  # fmt: skip
_OVERRULED_CORE = frozenset({"hookspath", "fsmonitor", "pager", "editor"})
_UNUSED_SECTIONS = frozenset(
    {
        "alias", "browser", "commit", "diff", "difftool", "format", "gpg", "gui", "guitool", "help",
        "instaweb", "interactive", "log", "man", "merge", "mergetool", "pager", "pretty", "rebase",
        "sendemail", "sequence", "trailer", "web",
    }
)  # fmt: skip
"""Sections that git does not read for our commands, which show no changes and merge nothing."""

_WRITTEN = (
    "config", "info", "logs", "logs/refs", "logs/refs/heads", "packed-refs", "refs", "refs/heads",
    "worktrees",
)  # fmt: skip
"""Where git writes in a repository for our commands."""


class GitFailed(Exception):
    """Git failed; the sentence says why."""

    def __init__(self, why: str, *, is_unfinished: bool = False) -> None:
        super().__init__(why)
        self.is_unfinished = is_unfinished
        """Whether it was ended before it could answer."""


class GitCommand(NamedTuple):
    """How to start git."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: str


def make_command(
    repository: GitRepository,
    *arguments: str,
    directory: str = "",
    runs_programs: bool = False,
    mark: Mapping[str, str] | None = None,
) -> GitCommand:
    """Git in a checked repository, started in it or in a directory below.

    With `runs_programs` the user has approved the results of `find_obstacles`.
    """
    top = repository.top
    above = str(PurePosixPath(top).parent)
    # The list is split at colons, so a place with one in its name is given directly.
    chosen = {"GIT_CEILING_DIRECTORIES": above}
    if ":" in above:
        chosen = {"GIT_DIR": repository.git, "GIT_WORK_TREE": top}
    offline = {} if runs_programs else _OFFLINE
    return GitCommand(
        (_require_git((top,)), *_build_options(), *arguments),
        {**_build_environment((top,)), **offline, **chosen, **(mark or {})},
        directory or top,
    )


def make_object_command(
    git_directory: str, *arguments: str, work_tree: str = "", outside: tuple[str, ...] = ()
) -> GitCommand:
    """Git that reads only the objects or the index of this git directory."""
    where = (f"--git-dir={git_directory}",)
    if work_tree:
        where = ("-C", work_tree, *where, f"--work-tree={work_tree}")
    return GitCommand(
        (_require_git(outside), *_build_options(), *where, *arguments),
        {**_build_environment(outside), **_OFFLINE},
        work_tree or git_directory,
    )


def find_obstacles(repository: GitRepository) -> tuple[str, ...]:
    """The programs that a repository may make git run, whatever the settings are.

    A repository that names no program needs no trust.
    """
    from handaxe.git.config_safety import find_config_risks

    linked = (
        f"{repository.common}/{name} is a link, so git would write elsewhere"
        for name in _WRITTEN
        if Path(repository.common, name).is_symlink()
    )
    return (*linked, *find_config_risks(repository, _is_overruled))


def _is_overruled(section: str, key: str) -> bool:
    return section in _UNUSED_SECTIONS or (section == "core" and key in _OVERRULED_CORE)


def find_git(outside: tuple[str, ...]) -> str | None:
    """The absolute path of git; one in a project does not count."""
    return _find_git(os.environ.get("PATH", os.defpath), outside)


@lru_cache(maxsize=16)
def _find_git(path: str, outside: tuple[str, ...]) -> str | None:
    return which("git", path=_filter_search_path(path, outside))


def _require_git(outside: tuple[str, ...]) -> str:
    found = find_git(outside)
    if found is None:
        raise GitFailed("git cannot be run (it is not on the search path)")
    return found


def _filter_search_path(path: str, outside: tuple[str, ...]) -> str:
    """The directories of a search path, without relative ones and those in a project."""
    kept = [
        entry
        for entry in path.split(":")
        if entry.startswith("/") and not _is_inside(os.path.realpath(entry), outside)
    ]
    return ":".join(kept)


def _is_inside(path: str, places: tuple[str, ...]) -> bool:
    return any(f"{path}/".startswith(place.rstrip("/") + "/") for place in places)


def _build_options() -> tuple[str, ...]:
    return tuple(word for setting in _SETTINGS for word in ("-c", setting))


def _build_environment(outside: tuple[str, ...]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = _filter_search_path(os.environ.get("PATH", os.defpath), outside)
    return {**kept, "PATH": path, **_VARIABLES}


def _format_subcommand(argv: tuple[str, ...]) -> str:
    words = iter(argv[1:])
    for word in words:
        if word in {"-c", "-C"}:
            next(words, None)
        elif not word.startswith("-"):
            return f"git {word}"
    return "git"


class GitProcess:
    """A running git with a deadline and an output limit."""

    def __init__(
        self, command: GitCommand, given: bytes = b"", *, timeout_s: float, max_bytes: int
    ) -> None:
        self._name = _format_subcommand(command.argv)
        self._max_bytes = max_bytes
        self._why = ""
        self._is_over = False
        self._process = start_git(command, given)
        self._deadline = time.monotonic() + timeout_s

    def stop(self, why: str = "was stopped") -> None:
        """Stop git and its children; SIGTERM first, so that it cleans up."""
        if not self._why:
            self._why, self._deadline = why, time.monotonic() + PATIENCE_S
        self._signal(signal.SIGTERM)

    def wait(self) -> bytes:
        """The output of git.

        Raises:
            GitFailed: it failed, took too long, printed too much or was stopped.
        """
        process = self._process
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout as stdout, process.stderr as stderr:
            said, complained = self._read(stdout, stderr)
            while not self._has_ended() and self._keep_waiting():
                time.sleep(_NAP_S)
            # Leftover programs of git belong to no command.
            self._signal(signal.SIGKILL)
            self._is_over = True
            process.wait()
            if self._why:
                self._await_children()
        if self._why:
            raise GitFailed(f"{self._name} {self._why}", is_unfinished=True)
        if process.returncode != 0:
            lines = complained.decode(errors="replace").strip().splitlines()
            raise GitFailed(lines[-1] if lines else f"{self._name} failed")
        return said

    def _await_children(self) -> None:
        """Wait until the children of a stopped git are gone too, because they may still write."""
        ends_at = time.monotonic() + PATIENCE_S
        with suppress(ProcessLookupError, PermissionError):
            while time.monotonic() < ends_at:
                os.killpg(self._process.pid, 0)
                time.sleep(_NAP_S)

    def _read(self, stdout: IO[bytes], stderr: IO[bytes]) -> tuple[bytes, bytes]:
        found = {stdout: bytearray(), stderr: bytearray()}
        with selectors.DefaultSelector() as selector:
            for pipe in found:
                selector.register(pipe, selectors.EVENT_READ, pipe)
            while selector.get_map() and self._keep_waiting():
                for key, _ in selector.select(_WAKE_S):
                    data = os.read(key.fd, 1 << 16)
                    found[key.data] += data
                    if not data:
                        selector.unregister(key.fileobj)
                    elif len(found[key.data]) > self._max_bytes:
                        self.stop("printed too much")
                        found[key.data].clear()
        return bytes(found[stdout]), bytes(found[stderr])

    def _keep_waiting(self) -> bool:
        has_ended = self._has_ended()
        if has_ended:
            # A pipe that is still open is held by what git has left behind.
            self._signal(signal.SIGKILL)
            self._deadline = min(self._deadline, time.monotonic() + PATIENCE_S)
        if time.monotonic() < self._deadline:
            return True
        if self._why or has_ended:
            return False
        self.stop("took too long")
        return True

    def _has_ended(self) -> bool:
        """Whether git has ended; its number is not reused yet, so it can be signalled."""
        if sys.platform == "darwin":
            return self._process.poll() is not None
        try:
            only_look = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._process.pid, only_look) is not None
        except ChildProcessError:
            return True

    def _signal(self, number: int) -> None:
        if not self._is_over:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


def start_git(command: GitCommand, given: bytes | None = b"") -> subprocess.Popen[bytes]:
    """Start git; with None it gets a pipe, and its errors are discarded."""
    if given is None:
        return _start(command, subprocess.PIPE, subprocess.DEVNULL)
    if not given:
        return _start(command, subprocess.DEVNULL, subprocess.PIPE)
    import tempfile

    with tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        return _start(command, stdin, subprocess.PIPE)


def _start(command: GitCommand, stdin: int | IO[bytes], stderr: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - an absolute path outside the project
            command.argv,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=command.directory,
            env=command.env,
            start_new_session=True,
        )
    except OSError as error:
        raise GitFailed(f"git cannot be run ({error.strerror})") from None


def run_git(
    command: GitCommand, given: bytes = b"", *, timeout_s: float, max_bytes: int = MAX_BYTES
) -> bytes:
    """The output of git; raises `GitFailed`."""
    return GitProcess(command, given, timeout_s=timeout_s, max_bytes=max_bytes).wait()


async def await_git(command: GitCommand, *, timeout_s: float, max_bytes: int = MAX_BYTES) -> bytes:
    """Run git without blocking. After a cancellation git has ended on return."""
    import asyncio

    process = GitProcess(command, timeout_s=timeout_s, max_bytes=max_bytes)
    waiting = asyncio.ensure_future(asyncio.to_thread(process.wait))
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        process.stop()
        await await_despite_cancel(_await_quietly(waiting))
        raise


async def _await_quietly(waiting: "asyncio.Future[bytes]") -> None:
    with suppress(GitFailed):
        await waiting


async def await_despite_cancel(work: Coroutine[Any, Any, None]) -> None:
    """Await it despite cancellations, because the caller is already exiting."""
    import asyncio

    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait((task,))
    task.result()
