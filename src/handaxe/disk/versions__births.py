"""When a file was made, where the file system knows that: a number of an inode is used again."""

import errno
import functools
import os
import sys
from collections.abc import Callable

_HERE = -100
_NO_FOLLOW = 0x100
_BIRTH = 0x800
# `struct statx`: the mask of what was answered, and the time of birth in seconds and the rest.
_SIZE_BYTES, _SECONDS_AT, _REST_AT = 256, 80, 88


def get_birth_ns(path: str) -> int | None:
    """When the file itself was made, in nanoseconds; None where nobody knows."""
    if sys.platform == "darwin":
        return int(os.lstat(path).st_birthtime * 1e9)
    ask = _load_statx()
    return None if ask is None else ask(path)


@functools.cache
def _load_statx() -> Callable[[str], int | None] | None:
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    if call is None:
        return None
    call.argtypes = [
        *(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint),
        ctypes.c_char_p,
    ]

    def ask(path: str) -> int | None:
        answer = ctypes.create_string_buffer(_SIZE_BYTES)
        if call(_HERE, os.fsencode(path), _NO_FOLLOW, _BIRTH, answer):
            code = ctypes.get_errno()
            if code in {errno.ENOSYS, errno.EPERM, errno.EINVAL}:
                return None
            raise OSError(code, os.strerror(code), path)
        data = answer.raw
        if not int.from_bytes(data[:4], sys.byteorder) & _BIRTH:
            return None
        seconds = int.from_bytes(data[_SECONDS_AT : _SECONDS_AT + 8], sys.byteorder, signed=True)
        return seconds * 10**9 + int.from_bytes(data[_REST_AT : _REST_AT + 4], sys.byteorder)

    return ask
