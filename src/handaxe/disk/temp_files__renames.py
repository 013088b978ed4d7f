"""Renaming in one directory: over an old file, or only where there is none."""

import contextlib
import errno
import functools
import os
import sys
from collections.abc import Callable

_NOT_SUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_LINUX_NO_REPLACE = 1
_MACOS_EXCLUSIVE = 4


def rename_over(directory_fd: int, source: str, target: str) -> None:
    """Give `source` the name `target`, whatever had it before."""
    os.rename(source, target, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)


def rename_new(directory_fd: int, source: str, target: str) -> None:
    """Give `source` the name `target`, unless something has it: then FileExistsError."""
    rename = _load_exclusive_rename()
    code = rename(directory_fd, source, target) if rename else errno.ENOSYS
    if not code:
        return
    if code not in _NOT_SUPPORTED:
        raise OSError(code, os.strerror(code), target)
    # A link refuses an existing name as well; a crash between the two calls leaves a second name
    # that the next writer recognises.
    os.link(source, target, src_dir_fd=directory_fd, dst_dir_fd=directory_fd, follow_symlinks=False)
    with contextlib.suppress(OSError):
        os.unlink(source, dir_fd=directory_fd)


@functools.cache
def _load_exclusive_rename() -> Callable[[int, str, str], int] | None:
    import ctypes

    symbol, flag = ("renameatx_np", _MACOS_EXCLUSIVE)
    if sys.platform != "darwin":
        symbol, flag = ("renameat2", _LINUX_NO_REPLACE)
    call = getattr(ctypes.CDLL(None, use_errno=True), symbol, None)
    if call is None:
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]

    def rename(directory_fd: int, source: str, target: str) -> int:
        failed = call(directory_fd, os.fsencode(source), directory_fd, os.fsencode(target), flag)
        return ctypes.get_errno() if failed else 0

    return rename
