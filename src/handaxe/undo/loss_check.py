"""Find what undo could not restore, before a call that would destroy it.

If the roots are saved, that record has the answer. Otherwise their names are listed up to undo's
limit. Only above that limit the roots are saved as for the call, which then has less to do.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice

from handaxe.disk.errors import DiskFault
from handaxe.text.paths import is_within, quote_path
from handaxe.undo.command_changes import TreeTracker
from handaxe.undo.directory_trees import MAX_BYTES, MAX_FILES, TooBig, list_descendants
from handaxe.undo.snapshot.snapshot import SnapshotLimits
from handaxe.undo.snapshot.tree import OTHER_DEVICE, TOO_MUCH, UNREADABLE
from handaxe.undo.write_extent import CANNOT_READ, OWN_DATA, TOO_LARGE, WriteTargets

_MAX_LOOKED_AT = 10_000
"""Entry limit for roots that are already saved, because their record answers sooner."""
_MAX_NAMES = 20_000
"""Name limit for the search for files that undo cannot recreate."""
_CANNOT_MAKE = "a socket or a device"
_UNKNOWN = "outside"
_UNITS = ("bytes", "KB", "MB", "GB", "TB")

Reasons = dict[str, str]
"""By path, why undo does not save it."""


class LossFinder:
    """Compares paths with what would be saved for a call."""

    def __init__(
        self,
        roots: Sequence[str],
        own: str,
        tree: Callable[[], TreeTracker] | None,
        *,
        is_prepared: bool = False,
    ) -> None:
        """`tree` gives the record of the whole roots, if those are compared.

        `is_prepared` tells whether they are already saved in the background.
        """
        self._roots = [os.path.realpath(root) for root in roots]
        self._own = os.path.realpath(own)
        self._tree = tree
        self._is_prepared = is_prepared

    def find_in_command(self, paths: Sequence[str], written: WriteTargets) -> str:
        """Why a command would lose these real paths or anything below; empty if undo saves them."""
        lost = {
            place: reason for place, reason in written.lost.items() if _is_touched(place, paths)
        }
        inside = [path for path in paths if is_within(path, self._roots)]
        if written.doubt:
            outside = [path for path in paths if path not in inside and path not in lost]
            lost |= {path: _UNKNOWN for path in outside if not _is_kept(path, written)}
        if not lost and written.doubt and inside:
            return self._find_in_roots(inside)
        return self._explain(lost)

    def find_in_places(self, paths: Sequence[str]) -> str:
        """Check the losses of a call that changes exactly these paths."""
        inside: list[str] = []
        lost: Reasons = {}
        for path in paths:
            try:
                if _is_directory(path):
                    list_descendants(path)
            except TooBig:
                if is_within(path, self._roots) and self._tree is not None:
                    inside.append(path)
                else:
                    lost[path] = TOO_LARGE
            except OSError:
                lost[path] = CANNOT_READ
        return self._find_in_roots(inside) if inside and not lost else self._explain(lost)

    def _find_in_roots(self, paths: Sequence[str]) -> str:
        assert self._tree is not None
        tree = self._tree()
        most = _MAX_LOOKED_AT if self._is_prepared else tree.limits.max_files
        try:
            lost = None if tree.has_begun else self._survey(paths, tree.limits, most)
            if lost is None:
                lost = tree.find_left_out(paths) | self._find_special(paths)
        except (OSError, DiskFault) as error:
            return f"Undo could not save the working directories: {error}."
        if _is_touched(self._own, paths) and os.path.lexists(self._own):
            lost[self._own] = OWN_DATA
        return self._explain(lost, tree.limits)

    def _survey(self, paths: Sequence[str], limits: SnapshotLimits, most: int) -> Reasons | None:
        """The paths of the roots that would be left out, or None if that needs a larger search."""
        lost: Reasons = {}
        tops = [path for path in paths if _is_directory(path)]
        entries = size_bytes = 0
        for entry, device in chain(self._walk(tops, lost), self._walk(self._roots, lost, tops)):
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            entries += 1
            size_bytes += info.st_size if stat.S_ISREG(info.st_mode) else 0
            if entries > limits.max_files and is_within(entry.path, tops):
                # However much of it is kept, some is not.
                return {next(top for top in tops if is_within(entry.path, (top,))): TOO_MUCH}
            if entries > min(most, limits.max_files) or size_bytes > limits.max_bytes:
                return None
            if reason := _find_obstacle(entry.path, info, device):
                lost[entry.path] = reason
        return {path: reason for path, reason in lost.items() if _is_touched(path, paths)}

    def _find_special(self, paths: Sequence[str]) -> Reasons:
        """Special files among the first entries below the paths."""
        entries = (entry for entry, _ in islice(self._walk(paths, {}), _MAX_NAMES))
        return {
            entry.path: _CANNOT_MAKE
            for entry in entries
            if not (entry.is_symlink() or entry.is_file() or entry.is_dir())
            and _is_special(entry.stat(follow_symlinks=False).st_mode)
        }

    def _walk(
        self, tops: Sequence[str], unreadable: Reasons, skipped: Sequence[str] = ()
    ) -> Iterator[tuple["os.DirEntry[str]", int]]:
        """Everything below some directories, with the device of its directory."""
        apart = {self._own, *skipped}
        waiting = [top for top in tops if _is_directory(top) and top not in apart]
        while waiting:
            directory = waiting.pop()
            try:
                device = os.lstat(directory).st_dev
                with os.scandir(directory) as entries:
                    for entry in entries:
                        yield entry, device
                        if entry.is_dir(follow_symlinks=False) and entry.path not in apart:
                            waiting.append(entry.path)
            except FileNotFoundError:
                continue
            except OSError:
                unreadable[directory] = UNREADABLE

    def _explain(self, lost: Mapping[str, str], limits: SnapshotLimits | None = None) -> str:
        """The first of the reasons as a sentence; empty if there is none."""
        for path in sorted(lost):
            return self._describe(self._name(path), lost[path], limits)
        return ""

    def _describe(self, name: str, reason: str, limits: SnapshotLimits | None) -> str:
        if reason in (TOO_MUCH, TOO_LARGE):
            files, size_bytes = (
                (MAX_FILES, MAX_BYTES) if limits is None else (limits.max_files, limits.max_bytes)
            )
            most = f"{files:,} files and {format_size(size_bytes)}"
            where = "there" if limits is None else "of the working directories"
            return f"{name} is too large; undo saves at most {most} {where}."
        if reason == _UNKNOWN:
            return (
                f"{name} is outside the working directories. Undo saves it only for "
                "commands with known writes."
            )
        if reason in (UNREADABLE, CANNOT_READ):
            return f"{name} cannot be read, so undo does not save it."
        if reason == _CANNOT_MAKE:
            return f"{name} is a socket or a device; undo cannot recreate it."
        return f"Undo does not save {name} ({reason})."

    def _name(self, path: str) -> str:
        """A path relative to its working directory, or absolute."""
        for root in self._roots:
            if path != root and is_within(path, (root,)):
                return quote_path(path[len(root.rstrip("/")) + 1 :])
        return quote_path(path)


def find_existing(paths: Sequence[str]) -> list[str]:
    """The real paths of existing ones; a link at the end is not followed."""
    return [real for path in paths if os.path.lexists(real := resolve_parents(path))]


def format_size(size_bytes: int) -> str:
    """`512 bytes`, `1 MB`, `2.3 GB`."""
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}".removesuffix(".0") + f" {_UNITS[unit]}"


def resolve_parents(path: str) -> str:
    """The real path of a name; a link at the end is not followed."""
    above, _, name = path.rpartition("/")
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    return f"{os.path.realpath(above or '/').rstrip('/')}/{name}"


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_touched(place: str, paths: Sequence[str]) -> bool:
    """Whether a path is at, below or above one of the paths."""
    return is_within(place, paths) or any(is_within(path, (place,)) for path in paths)


def _is_kept(path: str, written: WriteTargets) -> bool:
    """Whether a path outside the roots is saved."""
    deep = [place for place, names in written.outside.items() if names is None]
    return path in written.outside or is_within(path, deep)


def _find_obstacle(path: str, info: os.stat_result, device: int) -> str:
    if stat.S_ISDIR(info.st_mode):
        return OTHER_DEVICE if info.st_dev != device else ""
    if stat.S_ISREG(info.st_mode):
        is_open = info.st_mode & 0o444 == 0o444
        return "" if is_open or os.access(path, os.R_OK) else UNREADABLE
    return _CANNOT_MAKE if _is_special(info.st_mode) else ""


def _is_special(mode: int) -> bool:
    return stat.S_ISSOCK(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
