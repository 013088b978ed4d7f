"""Which file versions this session has seen, whole or in part, and which edits it has made.

Edit and Write refuse a file whose content changed since it was last read here. A version is its
content (a hash), never its clock; it is kept under the real path, so that a link and its target
are one file.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from handaxe.contract.events import EditApplied, FileForgotten, FileSeen
from handaxe.contract.ports.files import FileVersion

if TYPE_CHECKING:
    from handaxe.session.line_numbering import LineCandidates, LineNumberHistory

KEPT_CONTENT_BYTES = 4 * 1024 * 1024
KEPT_FILE_BYTES = 256 * 1024
REMEMBERED_EDITS = 10_000

Announce = Callable[[FileSeen | FileForgotten], object]


class SeenFile(msgspec.Struct, frozen=True):
    """The session's knowledge of one file."""

    version: FileVersion
    total_lines: int | None
    lines: tuple[tuple[int, int], ...]
    """Seen ranges, first and last line inclusive, in order and apart; empty means all."""

    @property
    def is_whole(self) -> bool:
        """Whether every line was seen."""
        return not self.lines or self.lines == ((1, self.total_lines),)


class LineChange(msgspec.Struct, frozen=True):
    """Lines of a file that made way for others."""

    first: int
    old_count: int
    new_count: int
    gone: tuple[str, ...] = ()
    """The lines that went, where they are known."""


class ReadLedger:
    """The versions seen so far, by real path."""

    def __init__(self, announce: Announce = lambda _: None) -> None:
        self._seen: dict[str, SeenFile] = {}
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        # Only of files whose lines were shown with tags.
        self._numberings: dict[str, LineNumberHistory] = {}
        self._kept_bytes = 0
        self._announce = announce

    def find(self, path: str) -> SeenFile | None:
        """The version of the file at this real path that the session has read."""
        return self._seen.get(path)

    def paths(self) -> tuple[str, ...]:
        """Every file that was seen, in the order it was first seen."""
        return tuple(self._seen)

    def content(self, path: str) -> bytes | None:
        """The bytes as they were seen, if they are still kept, for showing what changed."""
        return self._contents.get(path)

    def record_read(
        self,
        version: FileVersion,
        *,
        content: bytes | None = None,
        total_lines: int | None = None,
        lines: tuple[int, int] | None = None,
        shown: tuple[int, int] | None = None,
        changes: Sequence[LineChange] | None = None,
    ) -> None:
        """Note that a version was seen: all of it, or the given range of lines.

        `shown` are the lines that the reader can name by number and tag from now on; `changes` is
        how the content changed, where that is known.
        """
        before = self._seen.get(version.path)
        same = before is not None and before.version.digest == version.digest
        ranges = (lines,) if lines is not None else ()
        if same and before is not None:
            ranges = () if before.is_whole or not ranges else merge(*before.lines, *ranges)
        seen = SeenFile(version, total_lines, ranges)
        if content is not None:
            self._keep(version.path, content)
        elif not same:
            self._drop(version.path)
        if seen == before and shown is None:
            return
        self._note(seen, shown=() if shown is None else (shown,), changes=changes)

    def record_edit(
        self,
        version: FileVersion,
        changes: Sequence[LineChange],
        *,
        content: bytes | None,
        shown: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """The session itself changed lines, so it knows the same part of the new version.

        `shown` are new lines whose numbers and tags it knows.
        """
        before = self._seen.get(version.path)
        ranges = before.lines if before else ()
        total = before.total_lines if before else None
        for change in sorted(changes, key=lambda c: (-c.first, -c.old_count)):
            ranges = shift(ranges, change)
            total = None if total is None else total + change.new_count - change.old_count
        if content is None or len(content) > KEPT_FILE_BYTES:
            self._drop(version.path)
        else:
            self._keep(version.path, content)
        self._note(SeenFile(version, total, ranges), shown=shown, changes=changes)

    def copy_entry(self, path: str, other: str) -> SeenFile:
        """Two paths are names of one file: the knowledge of `other` counts here, too."""
        known = self._seen[other]
        seen = msgspec.structs.replace(
            known, version=msgspec.structs.replace(known.version, path=path)
        )
        content = self._contents.get(other)
        if content is None:
            self._drop(path)
        else:
            self._keep(path, content)
        self._note(seen)
        return seen

    def find_candidates(self, path: str, number: int) -> "LineCandidates":
        """The current lines that the number of a tagged line may mean."""
        from handaxe.session.line_numbering import LineNumberHistory

        return self._numberings.get(path, LineNumberHistory()).find_candidates(number)

    def forget(self, path: str) -> None:
        """The file is gone: nothing of it counts as seen."""
        if self._seen.pop(path, None) is not None:
            self._numberings.pop(path, None)
            self._drop(path)
            self._announce(FileForgotten(path=path))

    def replay(self, event: FileSeen | FileForgotten) -> None:
        """Take over what an earlier run of the session had announced."""
        if isinstance(event, FileForgotten):
            self._seen.pop(event.path, None)
            self._numberings.pop(event.path, None)
            return
        self._update_numbering(event)
        version = FileVersion(event.path, event.digest, event.size_bytes, event.mtime_ns)
        self._seen[event.path] = SeenFile(version, event.total_lines, event.lines)

    def _note(
        self,
        seen: SeenFile,
        *,
        shown: tuple[tuple[int, int], ...] = (),
        changes: Sequence[LineChange] | None = None,
    ) -> None:
        version = seen.version
        moved = None
        if changes is not None and version.path in self._numberings:
            from handaxe.session.line_numbering import join_tags

            moved = tuple((c.first, c.old_count, c.new_count, join_tags(c.gone)) for c in changes)
        event = FileSeen(
            path=version.path,
            digest=version.digest,
            size_bytes=version.size_bytes,
            mtime_ns=version.mtime_ns,
            total_lines=seen.total_lines,
            lines=seen.lines,
            shown=shown,
            moved=moved,
        )
        self._update_numbering(event)
        self._seen[version.path] = seen
        self._announce(event)

    def _update_numbering(self, event: FileSeen) -> None:
        """Keep up with the numbers of lines that were shown with tags."""
        numbering, before = self._numberings.get(event.path), self._seen.get(event.path)
        if not event.shown and numbering is None:
            return
        is_other = before is not None and before.version.digest != event.digest
        if numbering is None or event.shown == ((1, event.total_lines),):
            from handaxe.session.line_numbering import LineNumberHistory

            numbering = self._numberings[event.path] = LineNumberHistory()
        elif event.moved is not None:
            numbering.move(event.moved)
        elif is_other:
            numbering.reset()
        for first, last in event.shown:
            numbering.show(first, last)

    def _keep(self, path: str, content: bytes) -> None:
        self._drop(path)
        if len(content) > KEPT_FILE_BYTES:
            return
        self._contents[path] = content
        self._kept_bytes += len(content)
        while self._kept_bytes > KEPT_CONTENT_BYTES:
            _, dropped = self._contents.popitem(last=False)
            self._kept_bytes -= len(dropped)

    def _drop(self, path: str) -> None:
        self._kept_bytes -= len(self._contents.pop(path, b""))


def merge(*ranges: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """The same lines as few ranges, in order; neighbours are joined."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def shift(ranges: tuple[tuple[int, int], ...], change: LineChange) -> tuple[tuple[int, int], ...]:
    """Seen ranges after a change: its new lines are known, later lines have moved."""
    if not ranges:
        return ()
    moved_by = change.new_count - change.old_count
    behind = change.first + change.old_count
    moved: list[tuple[int, int]] = []
    for first, last in ranges:
        if first < change.first:
            moved.append((first, min(last, change.first - 1)))
        if last >= behind:
            moved.append((max(first, behind) + moved_by, last + moved_by))
    if change.new_count:
        moved.append((change.first, change.first + change.new_count - 1))
    return merge(*moved)


class AppliedEdits:
    """Which old text was replaced by which new text, in which file, and which was not found."""

    def __init__(self, announce: Callable[[EditApplied], object] = lambda _: None) -> None:
        self._made: dict[tuple[str, str], None] = {}
        self._missed: dict[tuple[str, str], set[str]] = {}
        self._announce = announce

    def add(self, path: str, old: str, new: str) -> None:
        """Remember a replacement."""
        event = EditApplied(path=path, fingerprint=_hash_edit(old, new))
        self.replay(event)
        self._announce(event)

    def has(self, path: str, old: str, new: str) -> bool:
        """Whether this very replacement was made here."""
        return (path, _hash_edit(old, new)) in self._made

    def count_miss(self, path: str, old: str, call_id: str) -> int:
        """How many calls, with this one, have looked for this text here without finding it."""
        key = (path, _hash_edit(old, ""))
        calls = self._missed.setdefault(key, set())
        calls.add(call_id)
        if len(self._missed) > REMEMBERED_EDITS:
            del self._missed[next(iter(self._missed))]
        return len(calls)

    def replay(self, event: EditApplied) -> None:
        """Take over what an earlier run of the session had announced."""
        self._made[event.path, event.fingerprint] = None
        if len(self._made) > REMEMBERED_EDITS:
            del self._made[next(iter(self._made))]


def _hash_edit(old: str, new: str) -> str:
    return sha256(f"{len(old)}\0{old}{new}".encode(errors="surrogatepass")).hexdigest()[:32]
