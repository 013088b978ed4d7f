"""Replace a file or leave it alone.

A change is a compare-and-swap on content, atomic against crashes and other handaxe writers, and
durable when it returns. Paths are real paths: links are resolved by the caller and refused here.
"""

import errno
import os
from collections.abc import Sequence

from handaxe.disk import attributes
from handaxe.disk.content_writer import Content
from handaxe.disk.directories import lock_directory
from handaxe.disk.durability import close, sync_file
from handaxe.disk.errors import (
    DiskFault,
    DiskWriteFailed,
    LockTimeout,
    NeedsJournal,
    NotRegularFile,
    SizeLimitExceeded,
    UnexpectedSymlink,
    describe_os_error,
    wrap_os_errors,
)
from handaxe.disk.expected_version import CurrentFile
from handaxe.disk.overwrite import Intent, Journal
from handaxe.disk.replacement import Ahead, OwnLinks, Replacement, count_no_links, skip_preparation
from handaxe.disk.safe_open import open_regular, split_path
from handaxe.disk.temp_files import remove_leftovers
from handaxe.disk.versions import (
    ABSENT,
    Absent,
    Version,
    VersionChanged,
    read_regular,
    read_version,
)

__all__ = [
    "ABSENT",
    "Absent",
    "Ahead",
    "DiskFault",
    "DiskWriteFailed",
    "Intent",
    "Journal",
    "LockTimeout",
    "NeedsJournal",
    "NotRegularFile",
    "OwnLinks",
    "SizeLimitExceeded",
    "UnexpectedSymlink",
    "Version",
    "VersionChanged",
    "count_no_links",
    "delete",
    "read_regular",
    "read_version",
    "remove_leftovers",
    "replace",
    "set_mode",
    "skip_preparation",
]


def replace(
    path: str | os.PathLike[str],
    pieces: Sequence[bytes | memoryview],
    *,
    expect: Version | Absent | None,
    mode: int | None = None,
    make_parents: bool = False,
    journal: Journal | None = None,
    own_links: OwnLinks = count_no_links,
    ahead: Ahead = skip_preparation,
) -> Version:
    """Put new content at a real path, durably, all of it or nothing; gives the new version.

    Args:
        path: Where; no part of it may be a symbolic link.
        pieces: The new content in order; not copied as a whole.
        expect: What must be there now by content; None takes whatever is there.
        mode: Permission bits; by default those of the old file, or what the umask leaves.
        make_parents: Create missing directories, and remove them again if the write fails.
        journal: Makes writing in place safe, for files that cannot be replaced.
        own_links: Tells second names that keep the old content for us from the user's own.
        ahead: Called before anything of the user's changes, when the device has the content.

    Raises:
        Changed: the file is not what was expected.
        Locked: another handaxe process was writing in the directory all the time.
        NotRegularFile, UnexpectedSymlink: something else than a plain file is there.
        NeedsJournal: only writing in place would do, and there is no journal.
        WriteFailed: the system refused; unless `applied` is set everything is as before.
    """
    parent, name = split_path(path)
    content = Content(pieces)
    for attempts_left in (2, 1, 0):
        try:
            with lock_directory(parent, make=make_parents, ahead=ahead) as directory:
                change = Replacement(directory, name, content, expect, mode, own_links, ahead)
                return change.run(os.fsdecode(path), journal)
        except DiskWriteFailed as failure:
            # Another writer may have failed and taken the directories away that it had made.
            if not (make_parents and attempts_left and failure.errno == errno.ENOENT):
                raise
    raise AssertionError("the last attempt returns or raises")


def delete(
    path: str | os.PathLike[str], *, expect: Version | None, ahead: Ahead = skip_preparation
) -> None:
    """Remove the file at a real path, durably, if it still is what is expected.

    Raises:
        Changed: it is not, or it is gone.
        WriteFailed: the system refused.
    """
    parent, name = split_path(path)
    with lock_directory(parent) as directory, _find(directory.fd, name) as current:
        if not current.exists:
            raise VersionChanged(ABSENT)
        with wrap_os_errors("read the file to compare it"):
            current.check_presence(expect)
            current.check_content(expect)
            ahead()
            current.check_again(expect)
        try:
            os.unlink(name, dir_fd=directory.fd)
        except OSError as error:
            why = attributes.describe_protection(current.fd) or describe_os_error(error)
            raise DiskWriteFailed(f"could not delete the file: {why}", error.errno) from error
        with wrap_os_errors("sync the directory after deleting the file", applied=True):
            directory.sync()


def set_mode(path: str | os.PathLike[str], mode: int) -> None:
    """Give the file at a real path other permission bits, durably.

    Raises:
        WriteFailed: the system refused.
    """
    parent, name = split_path(path)
    with lock_directory(parent) as directory, wrap_os_errors("change the mode of the file"):
        try:
            fd, _ = open_regular(name, dir_fd=directory.fd)
        except PermissionError:
            # Its owner may change the mode of a file that nobody may read.
            fd, _ = open_regular(name, dir_fd=directory.fd, access=os.O_WRONLY)
        try:
            os.fchmod(fd, mode)
            sync_file(fd)
        finally:
            close(fd)


def _find(directory_fd: int, name: str) -> CurrentFile:
    with wrap_os_errors("open the file to compare it"):
        return CurrentFile(directory_fd, name)
