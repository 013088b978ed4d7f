"""Standard streams that take all they are given, however they were handed over."""

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

_NO_ROOM = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""How a stream fails; a file would be named by the error."""


def open_missing() -> None:
    """A stream that whoever started us has closed leads nowhere; no file may get its number."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, fd)
            if nowhere != fd:
                os.close(nowhere)
            setattr(sys, name, os.fdopen(fd, mode, encoding="utf-8"))


def write_all() -> None:
    """Let no write end early: without a buffer (PYTHONUNBUFFERED) nobody writes the rest."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if isinstance(getattr(stream, "buffer", None), io.FileIO):
            encoding, errors = stream.encoding, stream.errors
            whole: Any = io.BufferedWriter(stream.detach())
            setattr(sys, name, io.TextIOWrapper(whole, encoding, errors, line_buffering=True))


@contextmanager
def waiting() -> Generator[None]:
    """Output that waits for a slow reader also where whoever shares it has made it not wait."""
    changed: list[int] = []
    for fd in (1, 2):
        with suppress(OSError):
            if not os.get_blocking(fd):
                os.set_blocking(fd, True)
                changed.append(fd)
    try:
        yield
    finally:
        for fd in changed:
            with suppress(OSError):
                os.set_blocking(fd, False)


@contextmanager
def interruptible() -> Generator[None]:
    """Writing that Ctrl-C ends at once; a running loop would only note it, and go on waiting."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def let_go() -> None:
    """Write what is still taken at once, so that the end does not wait for somebody to read."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            fd = stream.fileno()
            os.set_blocking(fd, False)
            try:
                stream.flush()
            except OSError:
                os.set_blocking(fd, True)
                _lead_nowhere(fd)
            else:
                os.set_blocking(fd, True)


def is_output_lost(error: Exception) -> bool:
    """Whether standard output takes no more; the interpreter then ends without trying again."""
    if not isinstance(error, OSError) or error.filename or error.errno not in _NO_ROOM:
        return False
    if not isinstance(error, BrokenPipeError):
        # Else whoever read it has gone, and nobody is left to tell.
        why = error.strerror
        print(f"handaxe: standard output could not be written ({why}).", file=sys.stderr)
    _lead_nowhere(sys.stdout.fileno())
    return True


def _lead_nowhere(fd: int) -> None:
    """Whatever is still written there is lost, and the interpreter ends without trying again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
