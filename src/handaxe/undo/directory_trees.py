"""Whole trees below a path that a call may change, and notes about them.

Used for tools that name a directory. A tree that exceeds the limit is left out completely and
reported, because a partial tree cannot be restored.
"""

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from handaxe.text.paths import quote_path
from handaxe.undo.journal_files.records import AmbiguousPath, PathState

MAX_FILES = 5_000
MAX_BYTES = 64 << 20
MAX_NAMES = 200_000
"""How many directory entries are checked for the other names of a file."""
_SHOWN_LEFT_OUT = 5
_UNSEEN = "no process of the call was seen writing it"
_UNTRACED = "the writer is unknown"
_AT_ONCE = "another command of the session wrote it at the same time"


class TooBig(Exception):
    """The tree below a directory exceeds the limit."""


def list_descendants(
    directory: str, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
) -> list[str]:
    """All paths below a directory, parents first; links are not followed."""
    found: list[str] = []
    size_bytes = 0
    waiting = [directory]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                found.append(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    size_bytes += entry.stat(follow_symlinks=False).st_size
                if len(found) > max_files or size_bytes > max_bytes:
                    raise TooBig
    return found


def list_names(inodes: Collection[tuple[int, int]], roots: Iterable[str]) -> list[str]:
    """The names below the roots of some files, by device and inode; those in the first entries."""
    numbers = {ino for _, ino in inodes}
    found: list[str] = []
    looked = 0
    waiting = list(roots)
    while waiting and looked < MAX_NAMES:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                looked += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.inode() in numbers:
                    info = entry.stat(follow_symlinks=False)
                    found += [entry.path] if (info.st_dev, info.st_ino) in inodes else []
    return found


def list_countable(directory: str, before: PathState) -> list[str]:
    """The current contents of a directory that would count as changes if they were new."""
    try:
        if before.kind == "directory" and before.names is not None:
            found = os.listdir(directory) if before.names else ()
            fitting = [n for n in found if any(fnmatchcase(n, name) for name in before.names)]
            return [f"{directory}/{name}" for name in fitting]
        return list_descendants(directory, max_files=20 * MAX_FILES, max_bytes=1 << 62)
    except (OSError, TooBig):
        return []


def describe_left_out(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """A note about paths that are not saved; empty if there are none."""
    if not reasons:
        return ()
    listed = [f"{quote_path(path)} ({reasons[path]})" for path in sorted(reasons)]
    more = len(listed) - _SHOWN_LEFT_OUT
    rest = f" and {more} more" if more > 0 else ""
    return (f"Changes there cannot be undone: {', '.join(listed[:_SHOWN_LEFT_OUT])}{rest}.",)


def explain_ambiguous(one: AmbiguousPath, *, is_traced: bool) -> str:
    """Why a changed path is not certainly the call's own."""
    if one.session_id:
        return f"session {one.session_id} changed it"
    if one.is_contested:
        return _AT_ONCE
    return _UNSEEN if is_traced else _UNTRACED


def describe_ambiguous(paths: Sequence[AmbiguousPath], *, is_traced: bool) -> tuple[str, ...]:
    """A note about changes that may come from others; empty if there are none."""
    if not paths:
        return ()
    listed = [
        f"{quote_path(os.fsdecode(one.path))} ({explain_ambiguous(one, is_traced=is_traced)})"
        for one in paths[:_SHOWN_LEFT_OUT]
    ]
    more = len(paths) - _SHOWN_LEFT_OUT
    rest = f" and {more:,} more" if more > 0 else ""
    who = f"perhaps by another program: {', '.join(listed)}{rest}"
    return (f"Ambiguous: changed meanwhile, {who}. Undo skips it unless you name it.",)


def show_path(path: str) -> str:
    """A path as text, even if it is not valid UTF-8."""
    return os.fsencode(path).decode(errors="replace")
