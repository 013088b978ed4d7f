"""A sync that is begun early and waited for late, so that its caller works while the disk does.

The C library waits for the disk in a thread of its own (POSIX aio). A thread of the interpreter
would cost more than it hides, since it has to ask for the interpreter before and after.
"""

import ctypes
import errno
import functools
import os
import sys

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


_is_forked = False
"""The library's threads stay behind in the parent: a child waits for the disk itself."""
_on_their_way: "set[EarlySync]" = set()
"""The library writes into a request until it is done, so none may go before."""


class EarlySync:
    """A sync of one open file or directory that has begun."""

    def __init__(self, library: ctypes.CDLL, fd: int, how: int) -> None:
        self._library = library
        self._how = how
        self._request = _Request(fd=fd, notify=_NO_SIGNAL)
        if library.aio_fsync(how, ctypes.byref(self._request)):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        _on_their_way.add(self)

    def wait(self) -> None:
        """Return when it is done, once; raises OSError if it failed."""
        if _is_forked:
            self._sync()
            return
        request = ctypes.byref(self._request)
        code = self._library.aio_error(request)
        if code == errno.EINPROGRESS:
            # What no thread has taken up yet, on a busy machine, is done here and now.
            self._library.aio_cancel(self._request.fd, request)
            code = self._wait(request)
        self._library.aio_return(request)
        _on_their_way.discard(self)
        if code == errno.ECANCELED:
            self._sync()
        elif code:
            raise OSError(code, os.strerror(code))

    def _wait(self, request: object) -> int:
        waiting = (ctypes.c_void_p * 1)(ctypes.addressof(self._request))
        while (code := self._library.aio_error(request)) == errno.EINPROGRESS:
            self._library.aio_suspend(waiting, 1, None)
        return code

    def _sync(self) -> None:
        if self._how == os.O_DSYNC:
            os.fdatasync(self._request.fd)
        else:
            os.fsync(self._request.fd)


def begin_sync(fd: int, *, content_only: bool = False) -> EarlySync | None:
    """Begin to make an open file or directory durable; None where that is not possible.

    The descriptor has to stay open until the sync was waited for.
    """
    library = _library()
    if library is None or _is_forked:
        return None
    try:
        return EarlySync(library, fd, os.O_DSYNC if content_only else os.O_SYNC)
    except OSError:
        # Nothing has begun; whoever syncs in the ordinary way learns what is wrong.
        return None


@functools.cache
def _library() -> ctypes.CDLL | None:
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "aio_fsync"):
        return None
    os.register_at_fork(after_in_child=_leave_to_parent)
    return library


def _leave_to_parent() -> None:
    global _is_forked  # noqa: PLW0603 - a fact about the process
    _is_forked = True
