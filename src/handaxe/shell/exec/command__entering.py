"""Whether a command can stand in a directory, before it is started there."""

import os
import stat


def find_cwd_problem(path: str, *, is_confined: bool) -> str | None:
    """Why a program cannot be started in a directory; None if it can, as far as can be told."""
    if not os.access(path, os.X_OK):
        return os.strerror(_get_errno(path))
    if is_confined and os.geteuid() == 0 and not _is_open_to_owner(path):
        return "Permission denied"
    return None


def _get_errno(path: str) -> int:
    try:
        # Says what `access` does not.
        os.stat(f"{path}/.")
    except OSError as error:
        return error.errno or 0
    return 0


def _is_open_to_owner(path: str) -> bool:
    """Whether root gets there by modes alone: in the sandbox it has no other rights."""
    place = path
    while True:
        try:
            info = os.stat(place)
        except OSError:
            return False
        if info.st_uid == 0:
            bit = stat.S_IXUSR
        else:
            bit = stat.S_IXGRP if info.st_gid in {0, *os.getgroups()} else stat.S_IXOTH
        if not info.st_mode & bit:
            return False
        if place == "/":
            return True
        place = place.rpartition("/")[0] or "/"
