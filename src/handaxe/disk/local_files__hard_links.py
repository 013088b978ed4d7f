"""Which names a hard-linked file has: found by looking, since the system keeps no list."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handaxe.contract.ports.files import IsClosed

if TYPE_CHECKING:
    from handaxe.disk.atomic import OwnLinks

MAX_ENTRIES = 50_000
"""Where there are more, the missing names are assumed to be elsewhere."""


def has_name_outside(
    real: str, roots: Sequence[str], is_closed: IsClosed, own_links: "OwnLinks"
) -> bool:
    """Whether a file may have a name outside `roots` or a closed one, besides ours."""
    try:
        info = os.lstat(real)
    except OSError:
        return False
    names = info.st_nlink - own_links(info.st_dev, info.st_ino)
    return names > 1 and _count_names_inside(info, roots, is_closed, names) < names


def _count_names_inside(
    wanted: os.stat_result, roots: Sequence[str], is_closed: IsClosed, names: int
) -> int:
    """How many open names below `roots` the file has, as far as they were looked for."""
    found, left = 0, MAX_ENTRIES
    waiting = list(roots)
    while waiting and left > 0 and found < names:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.inode() == wanted.st_ino:
                        is_it = entry.stat(follow_symlinks=False).st_dev == wanted.st_dev
                        found += is_it and not is_closed(entry.path)
        except OSError:
            continue
    return found
