"""Files and directories for their owner alone, whatever the umask is, and whether others are."""

import contextlib
import os
import stat
from pathlib import Path

from handaxe.disk.safe_open import find_links


def make_private(directory: Path) -> list[Path]:
    """Create a directory and its missing parents for their owner only. Return those created."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    for place in reversed(missing):
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=0o700)
            # The umask may have taken the owner's own bits.
            place.chmod(0o700)
    return missing[::-1]


def write_private(path: Path, data: bytes) -> None:
    """Write a whole file that its owner alone may read; neither atomic nor durable."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(data)


def find_shared_access(path: str | os.PathLike[str]) -> str | None:
    """Why other users could have changed the content; None if they could not, or it is missing.

    Links in the path count as well: the owner of a link chooses its target.
    """
    return _find_foreign_link(os.path.abspath(path)) or _find_foreign(os.fspath(path))


def _find_foreign(path: str) -> str | None:
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return None
    if info.st_uid != os.geteuid():
        return f"{path} belongs to another user (uid {info.st_uid})"
    mode = stat.S_IMODE(info.st_mode)
    if mode & 0o022:
        return f"{path} can be written by other users (mode {mode:04o})"
    return None


def _find_foreign_link(path: str) -> str | None:
    for place, _ in find_links(path):
        with contextlib.suppress(FileNotFoundError):
            owner = os.lstat(place).st_uid
            if owner not in {0, os.geteuid()}:
                return f"the link {place} belongs to another user (uid {owner})"
    return None
