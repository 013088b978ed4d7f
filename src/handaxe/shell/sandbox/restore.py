"""Restore protected paths to their recorded state.

Links are never followed, because a command may have put them there. Files that a command created
are moved aside, never deleted. The result is compared with the record before it is reported as
restored; an unreadable path counts as changed.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress

from handaxe.shell.sandbox.mount_points import is_held
from handaxe.shell.sandbox.new_repositories import find_refused_parts
from handaxe.shell.sandbox.path_walk import (
    Obstructed,
    OpenUp,
    allow_directory_access,
    find_directory,
    open_parent,
    restore_access,
)
from handaxe.shell.sandbox.readonly_paths import ProtectedNames
from handaxe.shell.sandbox.saved_states import (
    SavedState,
    is_same,
    is_whole,
    list_changeable_parts,
    restore_state,
)
from handaxe.shell.sandbox.state_store import RestoreRecord, SavedStateStore
from handaxe.text.escape import to_visible_text

MOST_TOLD = 30


def restore(
    record: RestoreRecord,
    store: SavedStateStore,
    *,
    before: dict[str, SavedState],
    known: set[str],
    look_again: Callable[[], ProtectedNames] | None,
    was_cut: bool = False,
    correct: Callable[[str], object] = lambda _path: None,
) -> tuple[str, ...]:
    """Restore everything in a record."""
    told: list[str] = []
    with allow_directory_access() as open_up:
        for directory in (store.copies.directory, record.aside):
            restore_access(directory, open_up)
        work = _Restoring(record, store, open_up, correct)
        for path, identity in record.directories.items():
            told += work.return_directory(path, identity)
        for path, state in sorted(before.items()):
            told += work.return_place(path, state)
        if look_again is not None:
            names = look_again()
            told += work.take_away(names, known, before)
            if names.is_cut and not was_cut:
                told.append("There are too many directories to check all for protected names.")
    if len(told) > MOST_TOLD:
        told[MOST_TOLD:] = [f"And {len(told) - MOST_TOLD} more protected places."]
    # Commands choose names: none may begin a line of its own, as if we had said it.
    return tuple(map(to_visible_text, told))


class _Restoring:
    def __init__(
        self,
        record: RestoreRecord,
        store: SavedStateStore,
        open_up: OpenUp,
        correct: Callable[[str], object],
    ) -> None:
        self._record = record
        self._store = store
        self._open_up = open_up
        self._correct = correct

    def _parent(self, path: str) -> AbstractContextManager[int]:
        return open_parent(path, self._record.roots, self._open_up)

    def return_directory(self, path: str, identity: tuple[int, int]) -> Iterator[str]:
        """Move a renamed directory back; report a missing one."""
        with suppress(Obstructed, FileNotFoundError), self._parent(path) as parent:
            found = os.stat(_name(path), dir_fd=parent, follow_symlinks=False)
            if (found.st_dev, found.st_ino) == identity and stat.S_ISDIR(found.st_mode):
                return
        moved = find_directory(self._record.roots, identity, self._open_up)
        try:
            kept = None
            with self._rebuild_parent(path) as parent:
                if moved is not None or not _is_directory(parent, _name(path)):
                    kept = self._move_aside(path, parent)
                if moved is not None:
                    with self._parent(moved) as there:
                        os.rename(_name(moved), _name(path), src_dir_fd=there, dst_dir_fd=parent)
        except OSError as error:
            yield f"{_start(path)}, was replaced by one, and could not be restored: {error}."
            return
        aside = f" The replacement is now {kept}." if kept else ""
        if moved is not None:
            yield f"{_start(path)}: it had been moved to {moved} and was moved back.{aside}"
        else:
            yield (
                f"{_start(path)} and was removed by one: its protected parts were "
                f"restored, the rest was not.{aside}"
            )

    def return_place(self, path: str, before: SavedState) -> Iterator[str]:
        """Restore a protected path if it changed."""
        if before.kind == "absent" and is_free(path):
            return
        try:
            with self._parent(path) as parent:
                if _is_as_before(before, parent, _name(path), self._store):
                    return
        except Obstructed as error:
            if before.kind == "absent" and error.is_missing:
                return
        except OSError:
            # It counts as changed; that it cannot be put back is found below.
            pass
        if not is_whole(before):
            yield (
                f"{_start(path)}, may have been changed by one, and was not restored: it "
                "could not be read before."
            )
            return
        try:
            with self._rebuild_parent(path) as parent:
                kept = self._move_aside(path, parent)
                self._build(path, before, parent, kept)
        except OSError as error:
            yield (
                f"{_start(path)}, was changed by one, and could not be restored: "
                f"{error}.{self._keep_copy(path, before)}"
            )
            return
        self._correct(path)
        where = f" The changed version is now {kept}." if kept else ""
        if before.kind == "absent":
            yield f"{_start(path)} and did not exist before, so it was removed.{where}"
        else:
            yield f"{_start(path)} and was restored.{where}"

    def _build(self, path: str, before: SavedState, parent: int, kept: str | None) -> None:
        name = _name(path)
        restore_state(before, parent, name, self._store.copies)
        for part in list_changeable_parts(before) if kept is not None else ():
            with suppress(FileNotFoundError):
                os.rename(f"{kept}/{part}", f"{name}/{part}", dst_dir_fd=parent)
        if not is_same(before, parent, name, self._store.copies, trusts=False):
            raise OSError("the restored content differs from the saved one")

    def _keep_copy(self, path: str, before: SavedState) -> str:
        """Save a copy of the earlier content, if it may be needed."""
        name = f"{os.urandom(6).hex()}-before-{_name(path)}"
        try:
            os.makedirs(self._record.aside, 0o700, exist_ok=True)  # noqa: PTH103
            place = os.open(self._record.aside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                restore_state(before, place, name, self._store.copies)
            finally:
                os.close(place)
        except OSError:
            return ""
        return "" if before.kind == "absent" else f" A copy is {self._record.aside}/{name}."

    def _rebuild_parent(self, path: str) -> AbstractContextManager[int]:
        """The parent directory of a path, recreated if missing or replaced."""
        for _ in range(path.count("/")):
            try:
                with self._parent(path):
                    break
            except Obstructed as error:
                with self._parent(error.place) as above:
                    if not error.is_missing:
                        self._move_aside(error.place, above)
                    os.mkdir(_name(error.place), 0o755, dir_fd=above)
        return self._parent(path)

    def take_away(
        self, names: ProtectedNames, known: set[str], before: dict[str, SavedState]
    ) -> Iterator[str]:
        """Move protected names that a command created aside; remove programs from repositories."""
        new = {*names.found, *names.repositories} - known
        for path in sorted(new):
            if is_held(path) or any(path == one or path.startswith(f"{one}/") for one in before):
                continue
            is_repository = path in names.repositories or _name(path).lower() == ".git"
            parts = find_refused_parts(path, self._record.roots) if is_repository else [path]
            for part in parts:
                yield from self._take_away(part)

    def _take_away(self, path: str) -> Iterator[str]:
        try:
            with self._parent(path) as parent:
                if is_nothing(parent, _name(path)):
                    return
                kept = self._move_aside(path, parent)
        except OSError as error:
            yield f"{_start(path)}, was created by one, and could not be removed: {error}."
            return
        if kept:
            self._correct(path)
            yield f"{_start(path)} and was created by one, so it was moved to {kept}."

    def _move_aside(self, path: str, parent: int) -> str | None:
        name = _name(path)
        token = os.urandom(6).hex()
        aside = self._record.aside
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISDIR(found.st_mode) and not found.st_mode & stat.S_IWUSR:
            # Only who may write to a directory may move it.
            self._open_up(f"/proc/self/fd/{parent}/{name}")
        try:
            os.makedirs(aside, 0o700, exist_ok=True)  # noqa: PTH103
            kept = f"{aside}/{token}-{name}"
            os.rename(name, kept, src_dir_fd=parent)
        except OSError:
            # Another file system: it keeps its place under another name.
            kept = f"{path}.refused-{token}"
            os.rename(name, _name(kept), src_dir_fd=parent, dst_dir_fd=parent)
        return kept


def _is_as_before(before: SavedState, parent: int, name: str, store: SavedStateStore) -> bool:
    if before.kind == "absent":
        return is_nothing(parent, name)
    return is_same(before, parent, name, store.copies)


def is_free(path: str) -> bool:
    """Whether a path is free."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def is_nothing(parent: int, name: str) -> bool:
    """Whether a name is free, or only has a placeholder: an empty directory or a socket."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return True
    if stat.S_ISSOCK(found.st_mode):
        return True
    if not stat.S_ISDIR(found.st_mode):
        return False
    try:
        place = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        return False
    try:
        return not os.listdir(place)
    finally:
        os.close(place)


def _is_directory(parent: int, name: str) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    return False


def _start(path: str) -> str:
    return f"{path} is protected from sandboxed commands"


def _name(path: str) -> str:
    return path.rpartition("/")[2]
