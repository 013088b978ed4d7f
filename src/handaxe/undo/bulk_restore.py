"""Apply the steps of an undo; thousands of paths are synced together.

New files are first written completely under temporary names and synced, then renamed. After a crash
each of them is complete or missing.
"""

import contextlib
import os
from collections import defaultdict
from collections.abc import Generator, Sequence

import msgspec

from handaxe.contract.faults.undo import UndoFailed
from handaxe.contract.ports.files import FileVersion
from handaxe.contract.ports.undo import PutBack, RestoredPath
from handaxe.disk import atomic, attributes
from handaxe.disk.directories import Directory, lock_directory
from handaxe.disk.durability import close, sync_file_systems
from handaxe.disk.errors import wrap_os_errors
from handaxe.disk.temp_files import make_late_name, rename_new
from handaxe.text.paths import quote_path
from handaxe.undo.journal_files.records import PathState
from handaxe.undo.path_state import is_shared_otherwise, read_state
from handaxe.undo.plan import UndoStep
from handaxe.undo.restore import CannotMake, InUse, Restorer, remove_directory

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MANY = 50
"""Above this number of paths, they are synced together."""


class _Waiting(msgspec.Struct):
    """A file that still needs its name."""

    target: PathState
    content: bytes | memoryview
    unnamed: str = ""

    @property
    def name(self) -> str:
        """The last component of the path."""
        return os.path.split(self.target.place)[1]


class BulkRestorer(Restorer):
    """Changes many paths of this machine for one undo."""

    def __init__(self, *, journal: atomic.Journal | None, own_links: atomic.OwnLinks) -> None:
        super().__init__(journal=journal, own_links=own_links)
        self._waiting: defaultdict[str, list[_Waiting]] = defaultdict(list)
        self._touched: set[str] = set()

    def put(
        self, target: PathState, now: PathState, content: bytes | memoryview, mode: int | None
    ) -> atomic.Version | None:
        """Make the path what `target` says, now or in `complete`."""
        parent = os.path.split(target.place)[0]
        if target.kind == "absent" and not target.missing_parents and now.kind != "absent":
            self._modes.pop(target.place, None)
            with lock_directory(parent) as directory, wrap_os_errors(f"remove the {now.kind}"):
                _remove(target.place, now, directory)
        elif target.kind == "directory" and now.kind == "absent":
            self._make_directory(target, parent)
        elif target.kind == now.kind == "directory":
            self._modes[target.place] = target.mode
        elif target.kind == "file" and now.kind == "absent" and not target.shared_with:
            self._waiting[parent].append(_Waiting(target, content))
        else:
            return super().put(target, now, content, mode)
        self._touched.add(parent)
        return None

    def complete(self) -> None:
        """Write the files and make everything durable."""
        try:
            for parent, files in self._waiting.items():
                with (
                    self._in(parent) as directory,
                    wrap_os_errors("write the files of the directory"),
                ):
                    for file in files:
                        _write(file, directory)
            self._sync()
            for parent, files in self._waiting.items():
                with (
                    self._in(parent) as directory,
                    wrap_os_errors("name the files of the directory"),
                ):
                    for file in files:
                        rename_new(directory.fd, file.unnamed, file.name)
                        file.unnamed = ""
            self._sync()
        finally:
            self._sweep()

    def finish(self) -> None:
        """Set the permission bits of all directories, innermost first."""
        super().finish()
        self._sync()

    def sync(self, directory: Directory) -> None:
        """Sync the directory later, together with all others."""

    def _make_directory(self, target: PathState, parent: str) -> None:
        with self._in(parent) as directory, wrap_os_errors("make the directory again"):
            os.mkdir(os.path.split(target.place)[1], 0o700, dir_fd=directory.fd)
        self._modes[target.place] = target.mode

    @contextlib.contextmanager
    def _in(self, parent: str) -> Generator[Directory]:
        with lock_directory(parent, make=True) as directory:
            yield directory

    def _sync(self) -> None:
        if self._touched:
            with wrap_os_errors("make the files durable", applied=True):
                sync_file_systems(self._touched)

    def _sweep(self) -> None:
        """Remove files that got no name."""
        for parent, files in self._waiting.items():
            for file in files:
                if file.unnamed:
                    with contextlib.suppress(OSError):
                        os.unlink(f"{parent}/{file.unnamed}")
        self._waiting.clear()


def _write(file: _Waiting, directory: Directory) -> None:
    target = file.target
    unnamed = make_late_name()
    fd = os.open(unnamed, _CREATE, 0o600, dir_fd=directory.fd)
    file.unnamed = unnamed
    try:
        rest = memoryview(file.content)
        while rest:
            rest = rest[os.write(fd, rest) :]
        wanted = attributes.Attributes(target.mode, target.uid, target.gid, target.extended)
        try:
            attributes.apply_attributes(fd, wanted)
        except attributes.CannotKeep:
            os.fchmod(fd, target.mode)
    finally:
        close(fd)


def _remove(place: str, now: PathState, directory: Directory) -> None:
    """Remove the path if it is unchanged since it was read."""
    name = os.path.split(place)[1]
    if now.kind == "directory":
        remove_directory(name, directory)
        return
    info = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
    is_it = now.kind != "file" or (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns) == (
        now.dev,
        now.ino,
        now.size_bytes,
        now.mtime_ns,
    )
    if now.kind == "link":
        is_it = os.readlink(os.fsencode(name), dir_fd=directory.fd) == now.target
    if not is_it:
        raise atomic.DiskFault("it was changed a moment ago")
    os.unlink(name, dir_fd=directory.fd)


class PendingStep(msgspec.Struct):
    """A step with the current and the future state of its path."""

    step: UndoStep
    now: PathState
    found: bytes | None
    content: bytes | memoryview

    @property
    def is_shared(self) -> bool:
        """Whether the file has other names, before or after."""
        step = self.step
        return bool(step.target.shared_with or step.expected.shared_with or self.now.born_ns)

    @property
    def is_rejoining(self) -> bool:
        """Whether the path must become a hard link of a file and is not one now."""
        target, now = self.step.target, self.now
        return bool(target.shared_with) and (now.dev, now.ino) != (target.dev, target.ino)

    @property
    def is_apart(self) -> bool:
        """Whether it has the right content but not the right hard links."""
        return is_shared_otherwise(self.step.target, self.now)

    def restored(self, version: atomic.Version | None) -> RestoredPath:
        """The step after it was done."""
        place = self.step.place
        small = self.content if isinstance(self.content, bytes) else None
        return RestoredPath(
            path=place,
            action=_name_action(self.step.target, self.now),
            before=self.found,
            after=small if self.step.target.kind == "file" else None,
            replaced_digest=self.now.digest,
            version=version
            and FileVersion(place, version.digest, version.size_bytes, version.mtime_ns),
        )


def apply_steps(
    pending: Sequence[PendingStep], *, journal: atomic.Journal | None, own_links: atomic.OwnLinks
) -> tuple[list[RestoredPath], list[str], bool]:
    """Do every step; return the restored paths, notes, and whether all steps succeeded."""
    kind = BulkRestorer if len(pending) > _MANY else Restorer
    restorer = kind(journal=journal, own_links=own_links)
    restored: list[RestoredPath] = []
    notes: list[str] = []
    is_whole = True
    for item in pending:
        if item.now.kind == "directory":
            restorer.open_up(item.step.place, item.now.mode)
    try:
        for item in pending:
            step = item.step
            if item.is_shared:
                # Another name of the same file may have been put back a moment ago.
                item.now, _ = read_state(step.place)
            is_done = step.is_done(item.now) and not item.is_apart
            try:
                if is_done:
                    if step.is_continued and not step.is_finished(item.now):
                        restorer.finish_path(step.target)
                    restored.append(RestoredPath(step.place, "already as before"))
                    continue
                version = restorer.put(step.target, item.now, item.content, step.mode)
            except (CannotMake, InUse) as fault:
                is_open = isinstance(fault, InUse) and step.target.kind != "absent"
                is_whole = is_whole and not is_open
                later = " Move that away, then undo again." if is_open else ""
                notes.append(f"{step.target.shown} was not changed: {fault}.{later}")
                continue
            except (atomic.DiskFault, OSError) as fault:
                raise _give_up(step, fault, restored) from fault
            restored.append(item.restored(version))
        _complete(restorer, restored)
    finally:
        restorer.finish()
    return restored, notes, is_whole


def _complete(restorer: Restorer, restored: Sequence[RestoredPath]) -> None:
    try:
        restorer.complete()
    except (atomic.DiskFault, OSError) as fault:
        done = [quote_path(one.path) for one in restored if os.path.lexists(one.path)]
        raise UndoFailed("The rest of it", str(fault), done) from fault


def _give_up(step: UndoStep, fault: Exception, restored: Sequence[RestoredPath]) -> UndoFailed:
    """The fault of an undo that failed at a step."""
    done = [quote_path(one.path) for one in restored if one.action != "already as before"]
    applied = getattr(fault, "applied", False)
    return UndoFailed(step.target.shown, str(fault), done, applied=applied)


def _name_action(target: PathState, now: PathState) -> PutBack:
    if target.kind == "absent":
        return "removed"
    if now.kind == "absent":
        return "recreated"
    return "mode restored" if now.is_same(target) else "restored"
