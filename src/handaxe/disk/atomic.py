"""Replace a file or leave it alone.

A change is a compare-and-swap on content, atomic against crashes and other handaxe writers, and
durable when it returns. Paths are real paths: links are resolved by the caller and refused here.
"""

import errno
import os
from collections.abc import Sequence

from handaxe.disk import attributes
from handaxe.disk.content import Content
from handaxe.disk.current import Current
from handaxe.disk.directories import locked_directory
from handaxe.disk.durability import close, sync_file
from handaxe.disk.faults import (
    DiskFault,
    LinkInTheWay,
    Locked,
    NeedsJournal,
    NotRegular,
    TooLarge,
    WriteFailed,
    explained,
    in_plain_words,
)
from handaxe.disk.overwrite import Intent, Journal
from handaxe.disk.places import open_regular, split
from handaxe.disk.replacement import Ahead, OwnLinks, Replacement, no_links, nothing_ahead
from handaxe.disk.temporary import sweep
from handaxe.disk.versions import ABSENT, Absent, Changed, Version, read_regular, version_at

__all__ = [
    "ABSENT",
    "Absent",
    "Ahead",
    "Changed",
    "DiskFault",
    "Intent",
    "Journal",
    "LinkInTheWay",
    "Locked",
    "NeedsJournal",
    "NotRegular",
    "OwnLinks",
    "TooLarge",
    "Version",
    "WriteFailed",
    "delete",
    "no_links",
    "nothing_ahead",
    "read_regular",
    "replace",
    "set_mode",
    "sweep",
    "version_at",
]


def replace(
    path: str | os.PathLike[str],
    pieces: Sequence[bytes | memoryview],
    *,
    expect: Version | Absent | None,
    mode: int | None = None,
    make_parents: bool = False,
    journal: Journal | None = None,
    own_links: OwnLinks = no_links,
    ahead: Ahead = nothing_ahead,
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
        NotRegular, LinkInTheWay: something else than a plain file is there.
        NeedsJournal: only writing in place would do, and there is no journal.
        WriteFailed: the system refused; unless `applied` is set everything is as before.
    """
    parent, name = split(path)
    content = Content(pieces)
    for attempts_left in (2, 1, 0):
        try:
            with locked_directory(parent, make=make_parents, ahead=ahead) as directory:
                change = Replacement(directory, name, content, expect, mode, own_links, ahead)
                return change.run(os.fsdecode(path), journal)
        except WriteFailed as failure:
            # Another writer may have failed and taken the directories away that it had made.
            if not (make_parents and attempts_left and failure.errno == errno.ENOENT):
                raise
    raise AssertionError("the last attempt returns or raises")


def delete(
    path: str | os.PathLike[str], *, expect: Version | None, ahead: Ahead = nothing_ahead
) -> None:
    """Remove the file at a real path, durably, if it still is what is expected.

    Raises:
        Changed: it is not, or it is gone.
        WriteFailed: the system refused.
    """
    parent, name = split(path)
    with locked_directory(parent) as directory, _find(directory.fd, name) as current:
        if not current.exists:
            raise Changed(ABSENT)
        with explained("read the file to compare it"):
            current.check_presence(expect)
            current.check_content(expect)
            ahead()
            current.check_again(expect)
        try:
            os.unlink(name, dir_fd=directory.fd)
        except OSError as error:
            why = attributes.protection_of(current.fd) or in_plain_words(error)
            raise WriteFailed(f"could not delete the file: {why}", error.errno) from error
        with explained("sync the directory after deleting the file", applied=True):
            directory.sync()


def set_mode(path: str | os.PathLike[str], mode: int) -> None:
    """Give the file at a real path other permission bits, durably.

    Raises:
        WriteFailed: the system refused.
    """
    parent, name = split(path)
    with locked_directory(parent) as directory, explained("change the mode of the file"):
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


def _find(directory_fd: int, name: str) -> Current:
    with explained("open the file to compare it"):
        return Current(directory_fd, name)
