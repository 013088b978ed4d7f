"""Standard output after an interrupt or a failed write.

Loaded only then; `main` prepares the streams at the start.
"""

import errno
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

_NO_ROOM = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Errors of a full or closed stream; an error of a file has a file name."""


@contextmanager
def allow_interrupt() -> Generator[None]:
    """Let Ctrl-C interrupt a write at once; an event loop would only record it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def detach_stdout() -> None:
    """Flush without waiting for a reader."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            fd = stream.fileno()
            os.set_blocking(fd, False)
            try:
                stream.flush()
            except OSError:
                os.set_blocking(fd, True)
                _redirect_to_null(fd)
            else:
                os.set_blocking(fd, True)


def is_output_lost(error: Exception) -> bool:
    """Whether standard output cannot be written any more; later writes are dropped."""
    if not isinstance(error, OSError) or error.filename or error.errno not in _NO_ROOM:
        return False
    if not isinstance(error, BrokenPipeError):
        # After a broken pipe no reader is left for a notice.
        from handaxe.frontends.cli.render import print_notice

        print_notice(f"Cannot write standard output ({error.strerror}).")
    _redirect_to_null(sys.stdout.fileno())
    return True


def _redirect_to_null(fd: int) -> None:
    """Drop everything that is written to the descriptor from now on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
