"""One replacement, step by step, in a directory whose lock is held.

Up to the rename nothing the user owns is touched; after it the new content is in place, and a
failure says so.
"""

import errno
import hashlib
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, NoReturn, Self, TypeVar

import msgspec

from handaxe.disk import attributes, locks, temp_files
from handaxe.disk.content_writer import Content
from handaxe.disk.directories import Directory
from handaxe.disk.durability import begin_sync, close, sync_file
from handaxe.disk.errors import (
    DiskFault,
    DiskWriteFailed,
    NeedsJournal,
    NotRegularFile,
    UnexpectedSymlink,
    describe_os_error,
    wrap_os_errors,
)
from handaxe.disk.expected_version import CurrentFile
from handaxe.disk.overwrite import Intent, Journal, overwrite
from handaxe.disk.safe_open import open_regular
from handaxe.disk.temp_files import Temporary, remove_hard_links
from handaxe.disk.versions import Absent, Version, VersionChanged, build_version, read_open_file

# Below this a thread costs more than the hashing it would hide.
_BIG_BYTES = 1 << 19
_NOT_RENAMABLE = {errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES}
_NOT_CREATABLE = {errno.EACCES, errno.EPERM, errno.EROFS}

T = TypeVar("T")

OwnLinks = Callable[[int, int], int]
"""How many names of an inode (device, number) handaxe made to keep its content."""


Ahead = Callable[[], None]
"""Waits for what has to be durable before anything of the user's changes; raising stops it."""


def count_no_links(_dev: int, _ino: int) -> int:
    """The count for callers without second names."""
    return 0


def skip_preparation() -> None:
    """For callers without a record: nothing to wait for."""


class Replacement(msgspec.Struct):
    """New content for one name, and what has to be there before."""

    directory: Directory
    name: str
    content: Content
    expect: Version | Absent | None
    mode: int | None
    own_links: OwnLinks = count_no_links
    ahead: Ahead = skip_preparation

    def run(self, path: str, journal: Journal | None) -> Version:
        """Replace the file, or write it in place where that is the only way."""
        with wrap_os_errors("open the file to compare it"):
            current = CurrentFile(self.directory.fd, self.name)
        with current:
            current.check_presence(self.expect)
            try:
                self._refuse_unreplaceable(current)
                return self._replace_file(current)
            except _InPlaceOnly as only:
                return self._overwrite(path, str(only), journal, current)

    def _refuse_unreplaceable(self, current: CurrentFile) -> None:
        if not self.directory.can_sync:
            _refuse(current, "its directory may not be read", errno.EACCES)
        if current.exists and current.info.st_nlink > 1:
            # A crash in the middle of a link-and-unlink leaves a second name that is ours.
            with wrap_os_errors("look for leftovers of an earlier write"):
                if remove_hard_links(self.directory.fd, current.info.st_ino):
                    current.refresh_status()
            info = current.info
            if info.st_nlink - self.own_links(info.st_dev, info.st_ino) > 1:
                raise _InPlaceOnly("it has other hard links")

    def _replace_file(self, current: CurrentFile) -> Version:
        with self._create(current) as temporary:
            digest = self._make_durable(temporary, current)
            self._move(temporary, current)
            with wrap_os_errors("sync the directory after replacing the file", applied=True):
                self.directory.sync()
            return self._verify(temporary.fd, digest)

    def _make_durable(self, temporary: Temporary, current: CurrentFile) -> str:
        """Write and sync the new content, compare it with the old one, and return its digest."""
        is_big = max(self.content.size_bytes, current.size_bytes) > _BIG_BYTES
        with _Beside(lambda: self._compare(current), in_thread=is_big) as compared:
            self._write(temporary)
            with _Beside(lambda: self._read_back(temporary), in_thread=is_big) as checked:
                self._copy_attributes(temporary, current)
                if not is_big:
                    # The device has begun; what there is to compute costs no time now.
                    compared.result()
                    checked.result()
                self.ahead()
                with wrap_os_errors("sync the new content to disk"):
                    sync_file(temporary.fd)
            checked.result()
        return compared.result()

    def _compare(self, current: CurrentFile) -> str:
        """Check the old content and give the digest of the new."""
        with wrap_os_errors("read the file to compare it"):
            current.check_content(self.expect)
        return self.content.digest()

    def _create(self, current: CurrentFile) -> Temporary:
        is_private = current.exists or self.mode is not None
        try:
            return Temporary(self.directory.fd, private=is_private)
        except OSError as error:
            if error.errno in _NOT_CREATABLE:
                _refuse(
                    current, f"a file cannot be made beside it: {describe_os_error(error)}", error
                )
            reason = f"could not create a temporary file: {describe_os_error(error)}"
            raise DiskWriteFailed(reason, error.errno) from error

    def _write(self, temporary: Temporary) -> None:
        with wrap_os_errors("write the temporary file"):
            self.content.write_to(temporary.fd)
        if self.content.size_bytes <= _BIG_BYTES:
            begin_sync(temporary.fd)

    def _read_back(self, temporary: Temporary) -> None:
        """Check what was written, while the old file is still there."""
        with wrap_os_errors("read the temporary file back"):
            self.content.check(temporary.fd)

    def _copy_attributes(self, temporary: Temporary, current: CurrentFile) -> None:
        with wrap_os_errors("give the temporary file its attributes"):
            if not current.exists:
                os.fchmod(temporary.fd, temporary.mode if self.mode is None else self.mode)
                return
            wanted = attributes.read_attributes(current.fd)
            if self.mode is not None:
                wanted = msgspec.structs.replace(wanted, mode=self.mode)
            try:
                attributes.apply_attributes(temporary.fd, wanted)
            except attributes.CannotKeep as error:
                raise _InPlaceOnly(str(error)) from error

    def _move(self, temporary: Temporary, current: CurrentFile) -> None:
        try:
            if not current.exists and self.expect is not None:
                temp_files.rename_new(self.directory.fd, temporary.name, self.name)
            else:
                current.check_again(self.expect)
                temp_files.rename_over(self.directory.fd, temporary.name, self.name)
        except FileExistsError:
            with CurrentFile(self.directory.fd, self.name) as appeared:
                raise VersionChanged(appeared.version()) from None
        except OSError as error:
            if error.errno in _NOT_RENAMABLE:
                _refuse(current, f"it cannot be renamed over: {describe_os_error(error)}", error)
            reason = f"could not give the new content its name: {describe_os_error(error)}"
            raise DiskWriteFailed(reason, error.errno) from error
        temporary.is_moved = True

    def _verify(self, temporary_fd: int, digest: str) -> Version:
        """The version that is now at the name, which must be the written one."""
        try:
            with wrap_os_errors("read the new file back", applied=True):
                info = os.stat(self.name, dir_fd=self.directory.fd, follow_symlinks=False)
                # The content was compared before it got its name; the same file needs no more.
                if not _is_same_file(info, os.fstat(temporary_fd)):
                    fd, info = self._open_result(temporary_fd)
                    try:
                        self.content.check(fd)
                    finally:
                        close(fd)
        except (UnexpectedSymlink, NotRegularFile) as fault:
            reason = f"the file was written, but something else took its place: {fault}"
            raise DiskWriteFailed(reason, None, applied=True) from fault
        return build_version(info, digest, self.content.size_bytes)

    def _open_result(self, temporary_fd: int) -> tuple[int, os.stat_result]:
        try:
            return open_regular(self.name, dir_fd=self.directory.fd)
        except PermissionError:
            # The caller asked for a mode that forbids reading even to its owner.
            return os.dup(temporary_fd), os.fstat(temporary_fd)

    def _overwrite(
        self, path: str, reason: str, journal: Journal | None, current: CurrentFile
    ) -> Version:
        try:
            fd, info = open_regular(self.name, dir_fd=self.directory.fd, access=os.O_RDWR)
        except OSError as error:
            why = attributes.describe_protection(current.fd) or describe_os_error(error)
            raise DiskWriteFailed(f"could not write the file: {why}", error.errno) from error
        try:
            if journal is None:
                raise NeedsJournal(reason)
            with wrap_os_errors("write the file in place"):
                # Another name of the same file may be written under another directory's lock.
                locks.hold(fd)
                intent = self._build_intent(path, fd, info)
                self.ahead()
                overwrite(fd, self.content, intent, journal, mode=self.mode)
            with wrap_os_errors("look at the file after writing it", applied=True):
                return build_version(os.fstat(fd), intent.new_digest, self.content.size_bytes)
        finally:
            close(fd)

    def _build_intent(self, path: str, fd: int, info: os.stat_result) -> Intent:
        old = read_open_file(fd, info.st_size)
        found = build_version(info, hashlib.sha256(old).hexdigest(), len(old))
        if isinstance(self.expect, Version) and not self.expect.has_same_content(found):
            raise VersionChanged(found)
        return Intent(path, old, found.digest, self.content.digest(), info.st_ino)


class _InPlaceOnly(Exception):
    """The file has to be written in place; nothing has changed so far."""


def _refuse(current: CurrentFile, reason: str, cause: OSError | int) -> NoReturn:
    """Leave it to an overwrite, which needs a file to write into."""
    if current.exists:
        raise _InPlaceOnly(reason)
    code = cause if isinstance(cause, int) else cause.errno
    raise DiskWriteFailed(f"could not create the file: {reason}", code)


def _is_same_file(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) == (
        other.st_dev,
        other.st_ino,
        other.st_size,
        other.st_mtime_ns,
    )


class _Beside(Generic[T]):
    """A function that runs in a thread while its caller continues, or when its value is needed.

    Leaving it waits for the thread, so that the files that the thread reads stay open.
    """

    def __init__(self, function: Callable[[], T], *, in_thread: bool) -> None:
        self._function = function
        self._given: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True) if in_thread else None

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._thread.join()

    def result(self) -> T:
        """The result of a thread's work, or the fault it raised, after the wait for it ended."""
        if self._thread is None and not self._given:
            self._given.append(self._function())
        if self._error is not None:
            raise self._error
        if not self._given:
            raise RuntimeError("the comparison in the other thread broke off")
        return self._given[0]

    def _run(self) -> None:
        try:
            self._given.append(self._function())
        except (DiskFault, OSError) as error:
            self._error = error
