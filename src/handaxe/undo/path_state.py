"""The state of a path: read it, save it with its content, or compare it."""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol

import msgspec

from handaxe.contract.ports.files import FileVersion
from handaxe.disk.attributes import read_attributes
from handaxe.disk.durability import close
from handaxe.disk.errors import NotRegularFile, UnexpectedSymlink
from handaxe.disk.safe_open import open_regular_at
from handaxe.disk.versions import find_shared_birth_ns, hash_file, read_open_file
from handaxe.undo.content_bundle import INLINE_BYTES, Bundle
from handaxe.undo.content_store import ContentStore
from handaxe.undo.directory_trees import list_countable, show_path
from handaxe.undo.journal_files.records import ContentSplice, PathState, encode_path

KnownFile = tuple[FileVersion, bytes | None]
"""A file whose content was already read or written and hashed; with content if stored."""
Known = Callable[[str], KnownFile | None]
"""The session's knowledge about the file at a real path."""

LookAt = Callable[[str, PathState | None], PathState]
"""The current state of a path, given its earlier state; None for unknown."""


def find_no_file(_path: str) -> KnownFile | None:
    """Knows no files."""
    return None


class StateRecorder:
    """Saves states with their contents, so that they can be restored."""

    def __init__(self, store: ContentStore, known: Known = find_no_file) -> None:
        self._store = store
        self._known = known

    def remember(self, path: str, bundle: Bundle, *, may_pin: bool, trusting: bool) -> PathState:
        """The state of a path with its content saved; `may_pin` if it changes only by renaming."""
        # A copy is hashed while it is made; a pin would stay without a hash.
        state, content = self._look(path, trusting=trusting, hash_large=may_pin)
        if content is not None:
            return bundle.put(state, content)
        return state if state.kind != "file" else self._keep(path, state, may_pin=may_pin)

    def read_left_state(self, path: str, before: PathState | None, *, trusting: bool) -> PathState:
        """The state that a call left, with small content as a difference."""
        state, now = self._look(path, trusting=trusting, hash_large=True)
        old = b"" if before is None or before.kind != "file" else before.content
        if now is None or old is None or (before is not None and state.digest == before.digest):
            return state
        return msgspec.structs.replace(state, splice=compute_splice(old, now))

    def _look(
        self, path: str, *, trusting: bool, hash_large: bool
    ) -> tuple[PathState, bytes | None]:
        """Read a state; `trusting`: the tool compares contents, so a known file is not read."""
        found = _reuse_known_state(path, self._known(path)) if trusting else None
        return found or read_state(path, hash_large=hash_large)

    def _keep(self, path: str, state: PathState, *, may_pin: bool) -> PathState:
        fd, info = open_regular_at(path)
        try:
            # A file with several names is written in place, and a pin would change with it.
            kept = self._store.pin(path, info) if may_pin and info.st_nlink == 1 else ""
            digest = state.digest
            if not kept:
                kept, digest = self._store.copy(fd, info.st_size, digest)
        finally:
            close(fd)
        return msgspec.structs.replace(state, kept=kept, digest=digest)


def read_state(path: str, *, hash_large: bool = True) -> tuple[PathState, bytes | None]:
    """The state of a path and the content of a small file; nothing is saved."""
    text, raw = encode_path(path)
    try:
        fd, info = open_regular_at(path)
    except (FileNotFoundError, NotADirectoryError):
        return PathState(text, "absent", raw, missing_parents=_count_missing_parents(path)), None
    except UnexpectedSymlink:
        return _read_link_state(path, text, raw), None
    except NotRegularFile as special:
        if _is_behind_link(path):
            return PathState(text, "absent", raw), None
        kind = "directory" if special.kind == "directory" else "special"
        mode = os.lstat(path).st_mode
        bits = stat.S_IFMT(mode) if kind == "special" else 0
        return PathState(text, kind, raw, mode=stat.S_IMODE(mode), type_bits=bits), None
    try:
        content, digest, size_bytes = None, "", info.st_size
        if size_bytes <= INLINE_BYTES:
            content = read_open_file(fd, size_bytes)
            digest, size_bytes = hashlib.sha256(content).hexdigest(), len(content)
        elif hash_large:
            digest, size_bytes = hash_file(fd, size_bytes)
        attributes = read_attributes(fd)
    finally:
        close(fd)
    state = PathState(
        text,
        "file",
        raw,
        digest=digest,
        size_bytes=size_bytes,
        mode=attributes.mode,
        uid=attributes.uid,
        gid=attributes.gid,
        mtime_ns=info.st_mtime_ns,
        dev=info.st_dev,
        ino=info.st_ino,
        born_ns=find_shared_birth_ns(path, info),
        extended=attributes.extended,
    )
    return state, content


def compute_splice(old: bytes, new: bytes) -> ContentSplice:
    """The new content between the common start and end of two contents."""
    head = _measure_common(old, new, min(len(old), len(new)), lambda data, n: data[:n])
    rest = min(len(old), len(new)) - head
    tail = _measure_common(old, new, rest, lambda data, n: data[len(data) - n :])
    return ContentSplice(head, tail, new[head : len(new) - tail])


def apply_splice(old: bytes, splice: ContentSplice) -> bytes:
    """The new content of a splice."""
    return old[: splice.same_head] + splice.middle + old[len(old) - splice.same_tail :]


def _measure_common(old: bytes, new: bytes, limit: int, part: Callable[[bytes, int], bytes]) -> int:
    """The largest length up to `limit` for which the parts are equal."""
    if part(old, limit) == part(new, limit):
        return limit
    same = 0
    while limit - same > 1:
        middle = (same + limit) // 2
        if part(old, middle) == part(new, middle):
            same = middle
        else:
            limit = middle
    return same


def _reuse_known_state(path: str, known: KnownFile | None) -> tuple[PathState, bytes | None] | None:
    """The state of a file that is unchanged since it was known; None if it may have changed."""
    if known is None:
        return None
    try:
        info = os.lstat(path)
    except OSError:
        return None
    version, content = known
    is_this = (version.size_bytes, version.mtime_ns) == (info.st_size, info.st_mtime_ns)
    is_small = info.st_size <= INLINE_BYTES
    if not is_this or not stat.S_ISREG(info.st_mode) or (is_small and content is None):
        return None
    text, raw = encode_path(path)
    state = PathState(
        text,
        "file",
        raw,
        digest=version.digest,
        size_bytes=info.st_size,
        mode=stat.S_IMODE(info.st_mode),
        uid=info.st_uid,
        gid=info.st_gid,
        mtime_ns=info.st_mtime_ns,
        dev=info.st_dev,
        ino=info.st_ino,
        born_ns=find_shared_birth_ns(path, info),
    )
    return state, content if is_small else None


def _read_link_state(path: str, text: str, raw: bytes) -> PathState:
    if stat.S_ISLNK(os.lstat(path).st_mode) and not _is_behind_link(path):
        return PathState(text, "link", raw, target=os.fsencode(os.readlink(path)))
    return PathState(text, "absent", raw)


def _is_behind_link(path: str) -> bool:
    """Whether a directory above became a link, so that the path means another file."""
    parent = os.path.split(path)[0]
    return os.path.realpath(parent) != parent


def _count_missing_parents(path: str) -> int:
    missing = 0
    parent = path.rpartition("/")[0]
    while parent and not os.path.lexists(parent):
        missing += 1
        parent = parent.rpartition("/")[0]
    return missing


def find_changes(
    found: Mapping[str, PathState],
    left_out: Iterable[str],
    look_at: LookAt,
    *,
    paths_only: bool = False,
) -> list[PathState]:
    """The differences from the found states, with new paths below directories."""
    changed: list[PathState] = []
    places = dict.fromkeys(found)
    skipped = frozenset(left_out)
    for place, before in found.items():
        now = look_at(place, before)
        is_same = now.is_same(before) and not is_shared_otherwise(before, now)
        if not is_same or now.mode != before.mode or now.has_more_parents(before):
            changed.append(now)
        if now.kind == "directory" and not paths_only and now.path not in skipped:
            places |= dict.fromkeys(list_countable(place, before))
    new = (look_at(place, None) for place in places if place not in found)
    # Children of a new directory must not count it as missing: it is listed itself.
    return changed + [msgspec.structs.replace(state, missing_parents=0) for state in new]


def ignore_closed_directories(look_at: LookAt) -> LookAt:
    """A reader that assumes unchanged states below unreadable directories."""

    def look(place: str, before: PathState | None) -> PathState:
        try:
            return look_at(place, before)
        except PermissionError:
            return before or PathState(show_path(place), "absent")

    return look


def is_shared_otherwise(one: PathState, now: PathState) -> bool:
    """Whether it is another file now, and one of the two is hard-linked."""
    if not (one.kind == now.kind == "file") or (one.dev, one.ino) == (now.dev, now.ino):
        return False
    try:
        return bool(one.shared_with) or os.lstat(now.place).st_nlink > 1
    except OSError:
        return False


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Timed(Protocol):
    """An event with its time of day and its time since boot."""

    @property
    def at(self) -> float:
        """Seconds of the time of day."""
        ...

    @property
    def clock(self) -> str:
        """The result of `read_clock`; empty if unknown."""
        ...


def read_clock() -> str:
    """The boot id and the time since boot; empty if unknown."""
    boot = _read_boot()
    return f"{boot}:{time.clock_gettime(time.CLOCK_BOOTTIME):.3f}" if boot else ""


def measure_elapsed_s(first: Timed, second: Timed) -> float:
    """The time between two events; by the time of day only if necessary."""
    boot, _, began = first.clock.partition(":")
    other, _, ended = second.clock.partition(":")
    return float(ended) - float(began) if boot and boot == other else second.at - first.at


@cache
def _read_boot() -> str:
    try:
        return _BOOT_ID.read_text("ascii").strip().partition("-")[0]
    except (OSError, ValueError):
        return ""
