"""Write new content to disk: write, hash and compare it without a second whole copy."""

import errno
import hashlib
import os
from collections.abc import Sequence

from handaxe.disk.errors import ReadBackMismatch

_JOIN_BELOW_BYTES = 1 << 16
_PIECE_BYTES = 1 << 24
_COMPARE_BYTES = 1 << 18
# POSIX promises 16, Linux and macOS take 1,024.
_PIECES_PER_CALL = 512


class Content:
    """The bytes of a whole file, as pieces that stay where they are."""

    def __init__(self, pieces: Sequence[bytes | memoryview]) -> None:
        self.size_bytes = sum(memoryview(piece).nbytes for piece in pieces)
        if self.size_bytes <= _JOIN_BELOW_BYTES and len(pieces) > 1:
            pieces = [b"".join(pieces)]
        self._pieces = [
            view[start : start + _PIECE_BYTES]
            for view in (memoryview(piece).cast("B") for piece in pieces)
            for start in range(0, view.nbytes, _PIECE_BYTES)
        ]

    def digest(self) -> str:
        """SHA-256 in hex."""
        hasher = hashlib.sha256()
        for piece in self._pieces:
            hasher.update(piece)
        return hasher.hexdigest()

    def write_to(self, fd: int) -> None:
        """Write every byte at the descriptor's position, however short the single writes are."""
        waiting = self._pieces
        first = 0
        while first < len(waiting):
            batch = waiting[first : first + _PIECES_PER_CALL]
            written = os.write(fd, batch[0]) if len(batch) == 1 else os.writev(fd, batch)
            if written <= 0:
                raise OSError(errno.EIO, "nothing was written")
            rest: memoryview | None = None
            for piece in batch:
                if written < piece.nbytes:
                    rest = piece[written:]
                    break
                written -= piece.nbytes
                first += 1
            if rest is not None and written:
                # Pieces are shared with nobody, but a retry must not find this one shortened.
                waiting = [rest, *waiting[first + 1 :]]
                first = 0

    def check(self, fd: int) -> None:
        """Raise unless the open file has exactly these bytes."""
        if not self.is_in(fd):
            raise ReadBackMismatch

    def is_in(self, fd: int) -> bool:
        """Whether the open file has exactly these bytes."""
        if os.fstat(fd).st_size != self.size_bytes:
            return False
        done = 0
        for piece in self._pieces:
            for start in range(0, piece.nbytes, _COMPARE_BYTES):
                # Equal views are compared item by item, equal bytes all at once.
                wanted = bytes(piece[start : start + _COMPARE_BYTES])
                if os.pread(fd, len(wanted), done) != wanted:
                    return False
                done += len(wanted)
        return True
