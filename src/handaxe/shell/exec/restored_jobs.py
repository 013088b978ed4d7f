"""Background jobs of an earlier run: the end is known, the output is in a file."""

import os
import stat

import msgspec

from handaxe.contract.job_state import JobState
from handaxe.contract.ports.jobs import Job
from handaxe.text.ansi import to_plain_text

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class RestoredJob(Job):
    """A job whose process no longer exists."""

    def __init__(self, state: JobState) -> None:
        self._state = state

    @property
    def state(self) -> JobState:
        """Its end; if it ended with handaxe, the output size is unknown."""
        kept = self._read(0)[1]
        most = max(kept, self._state.output_bytes)
        return msgspec.structs.replace(self._state, output_bytes=most)

    async def wait(self, timeout_s: float | None = None) -> bool:  # noqa: ARG002 - the port's
        """It has ended."""
        return True

    async def stop(self) -> None:
        """It has ended."""

    def tail(self, limit_chars: int) -> str:
        """The stored end of its output."""
        raw, size = self._read(limit_chars * 4)
        text = to_plain_text(raw, begins_whole=len(raw) == size, ends_whole=True)
        return text[-limit_chars:] if limit_chars > 0 else ""

    def _read(self, most_bytes: int) -> tuple[bytes, int]:
        """The last bytes of the file, and its size."""
        try:
            file = os.open(self._state.output_path, _FLAGS)
        except OSError:
            return b"", 0
        try:
            info = os.fstat(file)
            if not stat.S_ISREG(info.st_mode):
                return b"", 0
            return os.pread(file, most_bytes, max(0, info.st_size - most_bytes)), info.st_size
        except OSError:
            return b"", 0
        finally:
            os.close(file)
