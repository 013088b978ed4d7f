"""Save protected files before a command that could change them, and restore them.

Used where a mount is not possible: links, names that must not appear, and everything under
Landlock, which has no exceptions inside an allowed directory. The saved data outlives this process.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from handaxe.shell.sandbox.path_walk import Obstructed, allow_directory_access, open_parent
from handaxe.shell.sandbox.readonly_paths import NO_NAMES, ProtectedNames, ProtectionFinder
from handaxe.shell.sandbox.restore import is_free, is_nothing, restore
from handaxe.shell.sandbox.sandbox_policy import SandboxPolicy
from handaxe.shell.sandbox.saved_states import (
    ABSENT,
    SavedState,
    StateSaver,
    StateTooLarge,
    is_whole,
)
from handaxe.shell.sandbox.state_store import (
    RestoreRecord,
    SavedStateStore,
    open_store,
    read_stale_records,
    release_store,
)

_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_lock = threading.Lock()
_active: set["ProtectedPathGuard"] = set()


class CannotSave(Exception):
    """A protected path could not be restored after a command."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} is protected and could not be restored after a command: {why}")
        self.path = path


class ProtectedPathGuard:
    """The state of protected paths before a command."""

    def __init__(
        self,
        paths: Sequence[str],
        policy: SandboxPolicy,
        *,
        ledger: str | None = None,
        directories: Sequence[str] = (),
        names: ProtectedNames = NO_NAMES,
        must_be_whole: bool = False,
        look_again: Callable[[], ProtectedNames] | None = None,
    ) -> None:
        """`directories` contain protected paths, and must stay the same directories.

        `names` are the protected ones that exist, and `look_again` lists them after a command.

        Raises:
            CannotSave: there is too much to save, or with `must_be_whole` something unreadable.
        """
        self._look_again = look_again
        self._held: list[int] = []
        self._written: str | None = None
        self._is_durable = ledger is not None
        self._store = _open(ledger, policy.aside_directory)
        try:
            self._open = frozenset(_find_inside(directories, paths))
            self._before = {
                path: _save(path, policy.roots, self._store, self._open) for path in paths
            }
            if must_be_whole:
                _check_whole(self._before)
            held = dict(self._hold([path for path in directories if path not in self._open]))
            self._record = _record(policy, self._before, held, names)
            if self._is_durable:
                self._written = self._store.begin(self._record)
        except OSError as error:
            self._let_go()
            raise CannotSave(self._store.copies.directory, str(error)) from None
        except BaseException:
            self._let_go()
            raise
        self._known = set(names.found | names.repositories)
        self._is_cut = names.is_cut
        with _lock:
            _active.add(self)

    def restore(self) -> tuple[str, ...]:
        """Restore what changed; one note per path."""
        with _lock:
            _active.discard(self)
            others = tuple(_active)
        told = restore(
            self._record,
            self._store,
            before=self._before,
            known=self._known,
            look_again=self._look_again,
            was_cut=self._is_cut,
            correct=lambda path: [other.correct(path) for other in others],
        )
        self._let_go()
        return told

    def _let_go(self) -> None:
        while self._held:
            os.close(self._held.pop())
        if self._written is not None:
            self._store.end(self._written)
        if self._is_durable:
            release_store(self._store)
        else:
            shutil.rmtree(self._store.copies.directory, ignore_errors=True)

    def _hold(self, directories: Sequence[str]) -> Iterator[tuple[str, tuple[int, int]]]:
        """Keep directories open, so that their inodes are not reused."""
        for path in directories:
            with suppress(OSError):
                self._held.append(os.open(path, _PLACE))
                found = os.fstat(self._held[-1])
                yield path, (found.st_dev, found.st_ino)

    def correct(self, path: str) -> None:
        """Update the saved state of a path that another command's cleanup restored."""
        if path in self._before:
            with suppress(CannotSave):
                self._before[path] = _save(path, self._record.roots, self._store, self._open)
        if not os.path.lexists(path):
            self._known.discard(path)


def recover(ledger: str) -> tuple[str, ...]:
    """Restore what commands of killed processes changed; one note per path."""
    told: list[str] = []
    for record, store in read_stale_records(ledger):
        policy = SandboxPolicy(
            roots=record.roots,
            temp_directory=record.aside,
            aside_directory=record.aside,
            protected_names=frozenset(record.protected_names),
            protected_endings=record.protected_endings,
            protected_pairs=frozenset(record.protected_pairs),
        )
        has_names = bool(record.protected_names)
        finder = ProtectionFinder()
        told += restore(
            record,
            store,
            before=record.before,
            known={*record.found, *record.repositories},
            look_again=(lambda: finder.names(policy)) if has_names else None,  # noqa: B023 - used at once
        )
    return tuple(told)


def _open(ledger: str | None, aside: str) -> SavedStateStore:
    if ledger is None:
        return SavedStateStore(f"{aside}/before-{os.urandom(4).hex()}")
    try:
        return open_store(ledger)
    except OSError as error:
        raise CannotSave(ledger, str(error)) from None


def _record(
    policy: SandboxPolicy,
    before: dict[str, SavedState],
    directories: dict[str, tuple[int, int]],
    names: ProtectedNames,
) -> RestoreRecord:
    return RestoreRecord(
        roots=policy.roots,
        aside=policy.aside_directory,
        before=dict(before),
        directories=directories,
        found=tuple(sorted(names.found)),
        repositories=tuple(sorted(names.repositories)),
        protected_names=tuple(sorted(policy.protected_names)),
        protected_endings=policy.protected_endings,
        protected_pairs=tuple(sorted(policy.protected_pairs)),
    )


def _find_inside(directories: Sequence[str], paths: Sequence[str]) -> Iterator[str]:
    """The directories inside a protected path: they may change, the rest of it not."""
    for directory in directories:
        if any(directory.startswith(f"{path}/") for path in paths):
            yield directory


def _check_whole(before: dict[str, SavedState]) -> None:
    for path, state in before.items():
        if not is_whole(state):
            raise CannotSave(path, "not all of it can be read")


def _save(
    path: str, roots: Sequence[str], store: SavedStateStore, leaves_open: frozenset[str]
) -> SavedState:
    if is_free(path):
        return ABSENT
    saver = StateSaver(store.copies, store.states, leaves_open)
    try:
        with allow_directory_access() as open_up, open_parent(path, roots, open_up) as parent:
            if is_nothing(parent, path.rpartition("/")[2]):
                return ABSENT
            state = saver.save(parent, path)
    except StateTooLarge:
        raise CannotSave(path, "it is too large") from None
    except Obstructed:
        return ABSENT
    except OSError:
        return SavedState("unknown")
    store.states[path] = state
    return state
