"""Save a tree before the first command, in a separate process.

The process does the work of the first command: it lists everything and stores all bytes. Its
watches use a queue of this process, so the command only reads what was touched since. The process
runs `prewarm_child`; its results count only after they are taken over, otherwise they are deleted.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from handaxe.undo.snapshot.inotify import CannotWatch, InotifyWatcher, can_be_watched
from handaxe.undo.snapshot.manifest import Damaged, Manifest, read_manifest
from handaxe.undo.snapshot.project_store import ProjectStore

_START = (
    "import sys; sys.path[:0] = {paths!r}; "
    "from handaxe.undo.snapshot.prewarm_child import main; main()"
)
_VARIABLES = ("PATH", "HOME")
"""The environment variables that git needs."""
_MAX_UNUSED = 16
"""Number of trees that may wait unused, because each has a watch queue and a user has few."""


class PreparationRequest(msgspec.Struct, array_like=True, frozen=True):
    """The request to the process."""

    home: bytes
    root: bytes
    roots: tuple[bytes, ...]
    token: str
    max_files: int
    max_bytes: int
    watches_fd: int


class PreparationResult(msgspec.Struct, array_like=True, frozen=True):
    """The result of the process."""

    length: int
    count: int
    kept_bytes: int
    linked: list[tuple[bytes, bytes]]
    watched: dict[int, bytes] | None


class PreparedTree(msgspec.Struct, frozen=True):
    """A saved tree with the data to continue from it."""

    path: Path
    said: PreparationResult
    tree: Manifest
    watches: InotifyWatcher | None


class Preparation:
    """A process that saves the tree before the session runs its first command."""

    def __init__(
        self, store: ProjectStore, roots: Sequence[str], *, max_files: int, max_bytes: int
    ) -> None:
        """`store` is open and stays open until this is finished, kept or stopped."""
        self._store = store
        self._watches = _open_watcher(roots)
        self._order = PreparationRequest(
            os.fsencode(store.home),
            os.fsencode(store.root),
            tuple(map(os.fsencode, roots)),
            os.urandom(8).hex(),
            max_files,
            max_bytes,
            -1 if self._watches is None else self._watches.fd,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._said: PreparationResult | None = None
        self._is_given_up = False
        _unused.add(self)
        self._thread = threading.Thread(target=self._run, name="handaxe-preparing", daemon=True)
        self._thread.start()

    def finish(self, roots: Sequence[str]) -> PreparedTree | None:
        """Wait for the process. Return its result, unless it failed, had no turn or other roots."""
        _unused.discard(self)
        is_wanted = tuple(map(os.fsencode, roots)) == self._order.roots
        with _turns:
            if self._process is None and self._said is None:
                is_wanted = False
        if is_wanted:
            self._thread.join()
        said, watches = self._said, self._watches
        if not is_wanted or said is None:
            self.stop()
            return None
        path = self._store.get_prepared_path(self._order.token)
        try:
            tree = read_manifest(path, said.length)
        except Damaged:
            self.stop()
            return None
        if watches is not None and said.watched is not None:
            watches.begin({watch: os.fsdecode(path) for watch, path in said.watched.items()})
        elif watches is not None:
            watches.close()
            watches = None
        return PreparedTree(path, said, tree, watches)

    def stop(self) -> None:
        """Stop the process and delete its results."""
        _unused.discard(self)
        with _turns:
            self._is_given_up = True
            if self._process is not None:
                self._process.kill()
            _turns.notify_all()
        self._thread.join()
        if self._watches is not None:
            self._watches.close()
            self._watches = None
        self._store.drop_prepared(self._order.token)

    def keep(self) -> None:
        """Leave finished results for the next session; delete unfinished ones."""
        _unused.discard(self)
        if self._thread.is_alive() or self._said is None:
            self.stop()
            return
        if self._watches is not None:
            self._watches.close()
            self._watches = None
        try:
            self._store.adopt_prepared(self._order.token)
        except OSError:
            self.stop()

    def _run(self) -> None:
        """Run the process when it is its turn: one per machine."""
        with _turns:
            _turns.wait_for(lambda: self._is_given_up or not _at_work)
            if self._is_given_up:
                return
            _at_work.append(self)
        try:
            self._said = self._conversation()
        except (OSError, ValueError, subprocess.SubprocessError, msgspec.MsgspecError):
            # The first command then does the work itself, and says what is wrong.
            self._said = None
        finally:
            # Problems with leftovers must not block other waiting processes.
            with _turns:
                _at_work.remove(self)
                _turns.notify_all()
            if self._said is None:
                with contextlib.suppress(OSError):
                    self._store.drop_prepared(self._order.token)

    def _conversation(self) -> PreparationResult | None:
        order = msgspec.msgpack.encode(self._order)
        # A file, because its output is only read when a command comes.
        with tempfile.TemporaryFile(dir=self._store.directory) as said:
            with _turns:
                if self._is_given_up:
                    return None
                self._process = process = self._started(said.fileno())
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                # It ends with its input; so it does not outlive us.
                process.stdin.write(len(order).to_bytes(4, "big") + order)
                process.stdin.flush()
            code = process.wait()
            with contextlib.suppress(OSError):
                process.stdin.close()
            said.seek(0)
            return (
                msgspec.msgpack.decode(said.read(), type=PreparationResult) if code == 0 else None
            )

    def _started(self, said_fd: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603 - our own interpreter and program
            [sys.executable, "-I", "-S", "-c", _START.format(paths=_find_import_paths())],
            stdin=subprocess.PIPE,
            stdout=said_fd,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
            pass_fds=() if self._watches is None else (self._watches.fd,),
            # An interrupt typed at a terminal is not for it.
            start_new_session=True,
        )


_turns = threading.Condition()
_at_work: list[Preparation] = []
_unused: set[Preparation] = set()


def can_prepare() -> bool:
    """Whether a process can be started here, and not too many trees are waiting."""
    return bool(sys.executable) and len(_unused) < _MAX_UNUSED


def _open_watcher(roots: Sequence[str]) -> InotifyWatcher | None:
    if not all(map(can_be_watched, roots)):
        return None
    try:
        return InotifyWatcher()
    except CannotWatch:
        return None


def _find_import_paths() -> list[str]:
    """Import paths for the process, which starts without the environment's paths."""
    found: dict[str, None] = {}
    for name in ("handaxe", "msgspec"):
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found[str(Path(spec.submodule_search_locations[0]).parent)] = None
    return list(found)
