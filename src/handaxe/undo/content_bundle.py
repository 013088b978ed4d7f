"""The contents of one record: small ones in the record, all others in one file next to it.

One file per call, because a command can delete thousands of files, and syncing thousands of copies
would take longer than the command.
"""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from handaxe.disk.durability import close, sync_file, sync_names
from handaxe.storage.home import make_durable_directory
from handaxe.undo.journal_files.records import PathState

INLINE_BYTES = 64 * 1024
"""Files up to this size are stored in the journal ..."""
RECORD_BYTES = 1 << 20
"""... until one record reaches this size."""
BUNDLE = "bundle:"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Bundle:
    """Collects the contents of one record."""

    def __init__(self, blobs: Path, count: Callable[[int], None]) -> None:
        """`count` receives the final size of the file."""
        self._blobs = blobs
        self._count = count
        self._room = RECORD_BYTES
        self._path: Path | None = None
        self._fd = -1
        self._end = 0

    def put(self, state: PathState, content: bytes | memoryview) -> PathState:
        """The state with its content, in the record or in the file."""
        size_bytes = len(content)
        if size_bytes <= INLINE_BYTES and size_bytes <= self._room:
            self._room -= size_bytes
            return msgspec.structs.replace(state, content=bytes(content))
        return msgspec.structs.replace(state, kept=self._append(content))

    def has_room(self, size_bytes: int) -> bool:
        """Reserve space in the record, if it is left."""
        if size_bytes > min(self._room, INLINE_BYTES):
            return False
        self._room -= size_bytes
        return True

    def seal(self) -> None:
        """Make the file durable; afterwards the record may refer to it."""
        if self._path is not None:
            try:
                sync_file(self._fd)
                sync_names(self._path.parent)
                self._count(self._end)
            finally:
                self._close()

    def discard(self) -> None:
        """Discard the file, because no record will refer to it."""
        if self._path is not None:
            self._close()
            self._path.unlink(missing_ok=True)

    def _close(self) -> None:
        """Close the file only once, because its number may be reused."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            close(fd)

    def _append(self, content: bytes | memoryview) -> str:
        if self._path is None:
            name = f"{os.urandom(12).hex()}.bundle"
            folder = self._blobs / name[:2]
            make_durable_directory(folder)
            self._path = folder / name
            self._fd = os.open(self._path, _CREATE, 0o600)
        kept = f"{BUNDLE}{self._path.name}@{self._end}"
        rest = memoryview(content)
        while rest:
            written = os.write(self._fd, rest)
            self._end += written
            rest = rest[written:]
        return kept


def parse_bundle_offset(kept: str) -> tuple[str, int]:
    """The file and the offset that a state refers to."""
    name, _, offset = kept.removeprefix(BUNDLE).partition("@")
    return name, int(offset)


def parse_content_name(kept: str) -> str:
    """The name of the file that stores a content."""
    return kept.partition(":")[2].partition("@")[0]
