"""How standard output ends when somebody interrupts, or when it takes no more.

Loaded only then; how the streams begin stands where every command begins, in `main`.
"""

import errno
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

_NO_ROOM = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""How a stream fails; a file would be named by the error."""


@contextmanager
def allow_interrupt() -> Generator[None]:
    """Writing that Ctrl-C ends at once; a running loop would only note it, and go on waiting."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def detach_stdout() -> None:
    """Write what is still taken at once, so that the end does not wait for somebody to read."""
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
    """Whether standard output takes no more; the interpreter then ends without trying again."""
    if not isinstance(error, OSError) or error.filename or error.errno not in _NO_ROOM:
        return False
    if not isinstance(error, BrokenPipeError):
        # Else whoever read it has gone, and nobody is left to tell.
        from handaxe.frontends.cli.render import print_notice

        print_notice(f"standard output could not be written ({error.strerror}).")
    _redirect_to_null(sys.stdout.fileno())
    return True


def _redirect_to_null(fd: int) -> None:
    """Whatever is still written there is lost, and the interpreter ends without trying again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
