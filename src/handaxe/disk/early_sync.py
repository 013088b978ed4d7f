"""A sync that is begun early and waited for late, so that its caller works while the disk does.

The C library waits for the disk in a thread of its own (POSIX aio). A thread of the interpreter
would cost more than it hides, since it has to ask for the interpreter before and after.
"""

import ctypes
import errno
import functools
import os
import sys
from typing import Protocol

_NO_SIGNAL = 1


class _Request(ctypes.Structure):
    """The public head of `struct aiocb`; what the library keeps for itself fits behind it."""

    _fields_ = (
        ("fd", ctypes.c_int),
        ("operation", ctypes.c_int),
        ("priority", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("size_bytes", ctypes.c_size_t),
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_char * 512),
    )


class EarlySync:
    """A sync of one file's content that has begun."""

    def __init__(self, library: "_Library", fd: int) -> None:
        self._library = library
        self._request = _Request(fd=fd, notify=_NO_SIGNAL)
        if library.aio_fsync(os.O_DSYNC, ctypes.byref(self._request)):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def wait(self) -> None:
        """Return when it is done, once; raises OSError if it failed."""
        request = ctypes.byref(self._request)
        waiting = (ctypes.c_void_p * 1)(ctypes.addressof(self._request))
        while (code := self._library.aio_error(request)) == errno.EINPROGRESS:
            self._library.aio_suspend(waiting, 1, None)
        self._library.aio_return(request)
        if code:
            raise OSError(code, os.strerror(code))


def begin_sync(fd: int) -> EarlySync | None:
    """Begin to make the content of an open file durable; None where that is not possible.

    The descriptor has to stay open until the sync was waited for.
    """
    library = _library()
    try:
        return None if library is None else EarlySync(library, fd)
    except OSError:
        # Nothing has begun; whoever syncs in the ordinary way learns what is wrong.
        return None


class _Library(Protocol):
    def aio_fsync(self, operation: int, request: object, /) -> int: ...
    def aio_error(self, request: object, /) -> int: ...
    def aio_suspend(self, requests: object, count: int, timeout: None, /) -> int: ...
    def aio_return(self, request: object, /) -> int: ...


@functools.cache
def _library() -> _Library | None:
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "aio_fsync") else None
