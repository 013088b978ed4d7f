"""What stands at a path now: looked at, or remembered with its content."""

import hashlib
import os
import stat
from collections.abc import Callable

import msgspec

from handaxe.contract.ports.files import FileVersion
from handaxe.disk.attributes import attributes_of
from handaxe.disk.durability import close
from handaxe.disk.faults import LinkInTheWay, NotRegular
from handaxe.disk.places import open_regular_at
from handaxe.disk.versions import hash_file, read_open
from handaxe.storage.undo.contents import ContentStore
from handaxe.storage.undo.records import Splice, State, spelled

INLINE_BYTES = 64 * 1024
"""Files up to this size are kept in the journal itself."""

Known = Callable[[str], FileVersion | None]
"""A version of the file at a real path that somebody has hashed already."""


def nothing_known(_path: str) -> FileVersion | None:
    """The knowledge of somebody who has read nothing."""
    return None


class Keeper:
    """Remembers states, with their contents, so that they can be put back."""

    def __init__(self, store: ContentStore, known: Known = nothing_known) -> None:
        self._store = store
        self._known = known

    def remember(self, path: str, *, may_pin: bool) -> State:
        """What is at a path, with its content kept; `may_pin` if it changes only by a rename."""
        state, content = look(path, known=self._known, hash_large=False)
        if content is not None:
            return msgspec.structs.replace(state, content=content)
        return state if state.kind != "file" else self._keep(path, state, may_pin=may_pin)

    def looked_at(self, path: str, before: State | None) -> State:
        """What a call left at a path, with small content as the difference from before."""
        state, now = look(path, known=self._known, hash_large=False)
        old = b"" if before is None or before.kind != "file" else before.content
        if now is None or old is None or (before is not None and state.digest == before.digest):
            return state
        return msgspec.structs.replace(state, splice=splice_of(old, now))

    def _keep(self, path: str, state: State, *, may_pin: bool) -> State:
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


def look(
    path: str, *, known: Known = nothing_known, hash_large: bool = True
) -> tuple[State, bytes | None]:
    """What is at a path, and the content of a small file; nothing is kept."""
    text, raw = spelled(path)
    try:
        fd, info = open_regular_at(path)
    except (FileNotFoundError, NotADirectoryError):
        return State(text, "absent", raw, missing_parents=_missing_parents(path)), None
    except LinkInTheWay:
        return _link_state(path, text, raw), None
    except NotRegular as special:
        kind = "directory" if special.kind == "directory" else "special"
        return State(text, kind, raw, mode=stat.S_IMODE(os.lstat(path).st_mode)), None
    try:
        content, digest, size_bytes = None, "", info.st_size
        if size_bytes <= INLINE_BYTES:
            content = read_open(fd, size_bytes)
            digest, size_bytes = hashlib.sha256(content).hexdigest(), len(content)
        elif digest := _known_digest(known(path), info):
            pass
        elif hash_large:
            digest, size_bytes = hash_file(fd, size_bytes)
        attributes = attributes_of(fd)
    finally:
        close(fd)
    state = State(
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
        extended=attributes.extended,
    )
    return state, content


def splice_of(old: bytes, new: bytes) -> Splice:
    """What has to be put between the common ends of two contents."""
    head = _common(old, new, min(len(old), len(new)), lambda data, n: data[:n])
    rest = min(len(old), len(new)) - head
    tail = _common(old, new, rest, lambda data, n: data[len(data) - n :])
    return Splice(head, tail, new[head : len(new) - tail])


def spliced(old: bytes, splice: Splice) -> bytes:
    """The new content of a splice."""
    return old[: splice.same_head] + splice.middle + old[len(old) - splice.same_tail :]


def _common(old: bytes, new: bytes, limit: int, part: Callable[[bytes, int], bytes]) -> int:
    """The largest length up to `limit` at which the parts are equal."""
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


def _known_digest(version: FileVersion | None, info: os.stat_result) -> str:
    if version is None:
        return ""
    is_this = (version.size_bytes, version.mtime_ns) == (info.st_size, info.st_mtime_ns)
    return version.digest if is_this else ""


def _link_state(path: str, text: str, raw: bytes) -> State:
    if stat.S_ISLNK(os.lstat(path).st_mode):
        return State(text, "link", raw, target=os.fsencode(os.readlink(path)))
    # A directory above became a link: what is behind it is not the file that was meant.
    return State(text, "special", raw)


def _missing_parents(path: str) -> int:
    missing = 0
    parent = os.path.dirname(path)
    while parent != "/" and not os.path.lexists(parent):
        missing += 1
        parent = os.path.dirname(parent)
    return missing
