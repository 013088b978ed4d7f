"""The key of the undo record: only its owner can write records that undo trusts.

There is one key per user, next to the user's settings, outside every project and data directory.
Records have a seal made with it. A record without a seal is old or foreign: it can be read, but
restoring paths outside the project needs approval.
"""

import contextlib
import hmac
import os
from functools import lru_cache
from pathlib import Path

from handaxe.disk.durability import close, sync_file, sync_names
from handaxe.disk.errors import DiskFault
from handaxe.disk.private import find_shared_access
from handaxe.disk.safe_open import open_regular
from handaxe.storage.home import get_user_directories, make_private_directory, sync_directory_names

KEY_NAME = "undo-key"
KEY_BYTES = 32
_FIELD = b',"seal":"'
_SEAL_BYTES = len(_FIELD) + 64 + len(b'"}')
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Sealer:
    """Creates and checks the seals of one journal."""

    def __init__(self, home: Path, purpose: str) -> None:
        """`purpose` separates journals: a seal of one is not valid for another."""
        self._home = home
        self._purpose = purpose.encode("utf-8", "surrogatepass")
        self._derived: bytes | None = None

    def seal(self, payload: bytes) -> bytes:
        """A JSON object with its seal as one more field; unchanged if there is no key."""
        key = self._key
        if not key:
            return payload
        return payload[:-1] + _FIELD + _digest(key, payload) + b'"}'

    def is_sealed(self, payload: bytes) -> bool:
        """Whether a JSON object has a valid seal."""
        end = len(payload) - _SEAL_BYTES
        if end < 1 or payload[end : end + len(_FIELD)] != _FIELD or not self._key:
            return False
        seal = payload[end + len(_FIELD) : -2]
        return hmac.compare_digest(_digest(self._key, payload[:end] + b"}"), seal)

    def prepare(self) -> None:
        """Create the key now, so that its file is not taken for a call's change."""
        _ = self._key

    @property
    def _key(self) -> bytes:
        if self._derived is None:
            key = _read_or_make(os.path.realpath(get_user_directories()[1]), str(self._home))
            self._derived = hmac.digest(key, self._purpose, "sha256") if key else b""
        return self._derived


def _digest(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, payload, "sha256").hex().encode()


@lru_cache(maxsize=16)
def _read_or_make(settings: str, home: str) -> bytes:
    """The user's key; in the data directory if the settings directory is not writable."""
    for directory in (settings, home):
        with contextlib.suppress(OSError, DiskFault):
            return _read(directory) or _make(directory)
    return b""


def _read(directory: str) -> bytes:
    """The key in a directory; empty if it is missing or not trustworthy."""
    path = f"{directory}/{KEY_NAME}"
    try:
        fd, info = open_regular(path)
    except FileNotFoundError:
        return b""
    try:
        key = os.read(fd, KEY_BYTES + 1)
    finally:
        close(fd)
    problem = find_shared_access(directory) or find_shared_access(path)
    if problem or info.st_mode & 0o077 or len(key) != KEY_BYTES:
        raise DiskFault(
            f"{path} is not a valid key: {problem or 'it is damaged, or other users may read it'}"
        )
    return key


def _make(directory: str) -> bytes:
    """A new key, made durable before its first use."""
    make_private_directory(Path(directory))
    if problem := find_shared_access(directory):
        raise DiskFault(problem)
    unnamed = f"{directory}/.{KEY_NAME}-{os.urandom(6).hex()}"
    fd = os.open(unnamed, _CREATE, 0o600)
    try:
        os.fchmod(fd, 0o600)
        os.write(fd, os.urandom(KEY_BYTES))
        sync_file(fd)
        with contextlib.suppress(FileExistsError):
            # Where another process was first, its key counts.
            os.link(unnamed, f"{directory}/{KEY_NAME}")
        sync_names(Path(directory))
        sync_directory_names(Path(directory))
    finally:
        close(fd)
        os.unlink(unnamed)
    return _read(directory)
