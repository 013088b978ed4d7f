"""Read the upper layer of an overlay as changes of the tree below it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from handaxe.contract.display import Diff, DiffHunk

MAX_PATHS = 10_000
MAX_DIFFED_BYTES = 1 << 20
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


class LayerChanges(msgspec.Struct):
    """The changes that a command would make below one root."""

    diffs: list[Diff] = []
    others: list[str] = []
    left_out: list[str] = []
    count: int = 0


def read_layer(upper: str, root: str, into: LayerChanges) -> None:
    """Compare the writes in a layer with the tree below it."""
    for path, layered in _walk_changes(upper, root, into):
        _compare(path, layered, into)


def _walk_changes(upper: str, root: str, into: LayerChanges) -> Iterator[tuple[str, str | None]]:
    """Every path that differs, with its path in the layer; None if it would be deleted."""
    waiting = [(upper, root)]
    while waiting:
        layered, real = waiting.pop()
        if into.count > MAX_PATHS:
            into.left_out.append(real)
            continue
        names = sorted(os.listdir(layered))
        if _is_opaque(layered) and _look(real).kind == "directory":
            for name in sorted(set(os.listdir(real)) - set(names)):
                yield from _walk_deleted(f"{real}/{name}", into)
        for name in names:
            into.count += 1
            path, place = f"{real}/{name}", f"{layered}/{name}"
            info = os.lstat(place)
            if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
                if os.path.lexists(path):
                    yield from _walk_deleted(path, into)
                continue
            if stat.S_ISDIR(info.st_mode):
                waiting.append((place, path))
            elif _look(path).kind == "directory":
                yield from _walk_deleted(path, into)
            yield path, place


def _walk_deleted(path: str, into: LayerChanges) -> Iterator[tuple[str, None]]:
    """A path that would be deleted, with everything below it."""
    into.count += 1
    if into.count > MAX_PATHS:
        into.left_out.append(path)
        return
    if _look(path).kind == "directory":
        for name in sorted(os.listdir(path)):
            yield from _walk_deleted(f"{path}/{name}", into)
    yield path, None


def _is_opaque(directory: str) -> bool:
    for name in _OPAQUE:
        try:
            return os.getxattr(directory, name) == b"y"
        except OSError:
            continue
    return False


def _compare(path: str, layered: str | None, into: LayerChanges) -> None:
    shown = os.fsencode(path).decode(errors="replace")
    old, new = _look(path), _look(layered)
    if old.kind == new.kind == "file":
        _compare_files(shown, path, layered or "", into)
    elif {old.kind, new.kind} == {"file", "nothing"}:
        before = _read_small_file(path) if old.kind == "file" else b""
        after = _read_small_file(layered or "") if new.kind == "file" else b""
        verb = "created" if old.kind == "nothing" else "deleted"
        if not _add_diff(shown, before, after, into):
            into.others.append(f"{shown}: file would be {verb}")
    elif (old.kind, old.detail) != (new.kind, new.detail):
        into.others.append(f"{shown}: {_describe_change(old, new)}")
    if old.kind == new.kind and old.kind != "nothing" and old.mode != new.mode:
        into.others.append(f"{shown}: mode would change from {old.mode:o} to {new.mode:o}")


def _compare_files(shown: str, path: str, layered: str, into: LayerChanges) -> None:
    before, after = _read_small_file(path), _read_small_file(layered)
    if before is not None and before == after:
        return
    if (before is None or after is None) and _is_same_large(path, layered):
        return
    if not _add_diff(shown, before, after, into):
        into.others.append(f"{shown}: content would change")


def _is_same_large(path: str, layered: str) -> bool:
    try:
        if Path(path).stat().st_size != Path(layered).stat().st_size:
            return False
        with Path(path).open("rb") as one, Path(layered).open("rb") as other:
            while piece := one.read(MAX_DIFFED_BYTES):
                if piece != other.read(MAX_DIFFED_BYTES):
                    return False
    except OSError:
        return False
    return True


def _add_diff(shown: str, before: bytes | None, after: bytes | None, into: LayerChanges) -> bool:
    """Show changed lines; False if there are none to show."""
    from handaxe.text.diff import diff_texts
    from handaxe.text.encoding import NotText, decode

    if before is None or after is None:
        return False
    try:
        hunks = diff_texts(decode(before).text, decode(after).text)
    except NotText:
        return False
    if hunks:
        rows = (
            DiffHunk(h.old_start, h.old_lines, h.new_start, h.new_lines, tuple(h.lines))
            for h in hunks
        )
        into.diffs.append(Diff(shown, tuple(rows)))
    return bool(hunks)


def _read_small_file(path: str) -> bytes | None:
    """The bytes of a file that is small enough to show."""
    try:
        if Path(path).stat().st_size > MAX_DIFFED_BYTES:
            return None
        return Path(path).read_bytes()
    except OSError:
        return None


class _Look(msgspec.Struct, frozen=True):
    kind: str
    detail: str = ""
    mode: int = 0


def _look(path: str | None) -> _Look:
    try:
        info = os.lstat(path) if path is not None else None
    except OSError:
        info = None
    if info is None or path is None:
        return _Look("nothing")
    if stat.S_ISLNK(info.st_mode):
        target = os.fsencode(os.readlink(path)).decode(errors="replace")
        return _Look("link", target, 0)
    kind = "file" if stat.S_ISREG(info.st_mode) else "special file"
    if stat.S_ISDIR(info.st_mode):
        kind = "directory"
    return _Look(kind, "", stat.S_IMODE(info.st_mode))


def _describe_change(old: _Look, new: _Look) -> str:
    if new.kind == "nothing":
        return f"{old.kind} would be deleted"
    to = f" to {new.detail}" if new.detail else ""
    if old.kind == "nothing":
        return f"{new.kind}{to} would be created"
    return f"{old.kind} would become a {new.kind}{to}"
