"""The requested page of lines, selected while the whole answer streams past."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from handaxe.contract.ports.search import TextFound, TextQuery
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.match_lines import Block, LineReader
from handaxe.search.rg_arguments import MatchMarks
from handaxe.search.rg_output import make_path_key

MAX_PAGE_BYTES = 64 << 20

_MESSAGE = re.compile(
    rb"(?m)^(?!\d+[:-])[^\n]*(?:binary file matches|stopped searching binary)[^\n]*\n"
)


class LinePage:
    """Lines `offset` to `offset + limit` of files that come in path order."""

    def __init__(self, query: TextQuery, screen: ExclusionFilter | None) -> None:
        self._offset = query.offset
        self._end = query.end
        self._has_context = query.has_context
        self._has_columns = query.only_matching
        self._screen = screen
        self._path: bytes | None = None
        self._is_path_hidden = False
        self._bytes = 0
        self.blocks: list[Block] = []
        self.lines_of: dict[bytes, int] = {}
        """The number of lines of each file so far, including files before the page."""
        self.seen = 0
        self.files = 0
        self.binary_files = 0
        self.has_more = False

    def take(self, path: bytes, body: bytes) -> bool:
        """Take lines of one file; True when the page is full and more is known to follow."""
        if path != self._path:
            body = self._begin(path, body)
        if self._is_path_hidden:
            return False
        body, found = _strip_messages(body)
        self.binary_files += found
        before, lines = self.seen, body.count(b"\n")
        self.seen += lines
        self.lines_of[path] += lines
        if self.seen <= self._offset:
            return False
        if before < self._offset:
            body = body[_find_line_start(body, self._offset - before) :]
            before = self._offset
        if self._end is not None and self.seen > self._end:
            body = body[: _find_line_start(body, self._end - before)]
            self.has_more = True
        return self._keep(path, body)

    def find_differing(self, bodies: Mapping[bytes, bytes]) -> set[bytes]:
        """The files that a second search of the same files does not confirm.

        Args:
            bodies: what that search found, by path.
        """
        shown: dict[bytes, list[bytes]] = {}
        for path, body in self.blocks:
            if path in bodies:
                shown.setdefault(path, []).append(body)
        return {path for path, body in bodies.items() if not self._is_like(path, body, shown)}

    def _is_like(self, path: bytes, body: bytes, shown: Mapping[bytes, list[bytes]]) -> bool:
        pieces = shown.get(path, [])
        if not all(_is_part(piece, body) for piece in pieces):
            return False
        lines, is_last = self.lines_of[path], path == self._path
        if is_last or lines == sum(piece.count(b"\n") for piece in pieces):
            return bool(body)
        # It begins before the page, so the number of its lines shifts the page.
        return lines - body.count(b"\n") in {0, int(self._has_context)}

    def drop(self, paths: AbstractSet[bytes]) -> None:
        """Remove files from the page."""
        self.blocks = [block for block in self.blocks if block[0] not in paths]
        self.files -= len(paths)
        self.seen -= sum(self.lines_of.pop(path) for path in paths)

    def found(self, prefix: str, marks: MatchMarks) -> TextFound:
        """The page as an answer; `prefix` makes its paths absolute."""
        lines, rest = LineReader(prefix, marks, has_columns=self._has_columns).read(self.blocks)
        is_whole = not self.has_more
        return TextFound(
            lines=lines,
            more_lines=rest,
            shown_lines=sum(body.count(b"\n") for _, body in self.blocks),
            total_lines=self.seen if is_whole else None,
            total_files=self.files if is_whole else None,
            has_more=self.has_more,
        )

    def _begin(self, path: bytes, body: bytes) -> bytes:
        self._path = path
        self._is_path_hidden = self._screen is not None and self._screen.is_held_back(path)
        if self._is_path_hidden:
            return body
        self.files += 1
        self.lines_of[path] = 0
        return b"--\n" + body if self._has_context and self.files > 1 else body

    def _keep(self, path: bytes, body: bytes) -> bool:
        if body:
            self.blocks.append((path, body))
            self._bytes += len(body)
        self.has_more = self.has_more or self._bytes > MAX_PAGE_BYTES
        return self.has_more


class UnorderedLines:
    """The lines of an unordered answer that can be on the page; without an end all of them."""

    def __init__(self, end: int | None, screen: ExclusionFilter) -> None:
        self._end = end
        self._screen = screen
        self._pieces: dict[bytes, list[bytes]] = {}
        self._lines = 0
        self._bytes = 0
        self._binary_files = 0
        self._last: bytes | None = None
        """No file after this one in path order can be on the page."""
        self.is_overfull = False

    def take(self, path: bytes, body: bytes) -> bool:
        """Take lines of one file; True when there are too many to keep."""
        pieces = self._pieces.get(path)
        if pieces is None:
            if self._last is not None and make_path_key(path) > self._last:
                return False
            if self._screen.is_held_back(path):
                return False
            pieces = self._pieces[path] = []
        body, found = _strip_messages(body)
        self._binary_files += found
        pieces.append(body)
        self._bytes += len(body)
        if self._end is not None:
            self._lines += body.count(b"\n")
            if self._lines > 2 * self._end + 1:
                self._drop(self._end + 1)
            self.is_overfull = self._last is not None or self._lines > self._end
        return self._bytes > MAX_PAGE_BYTES

    def flush_to(self, page: LinePage) -> None:
        """Give all lines to a page in path order."""
        page.binary_files += self._binary_files
        for path in sorted(self._pieces, key=make_path_key):
            if page.take(path, b"".join(self._pieces[path])):
                return

    def _drop(self, wanted: int) -> None:
        """Keep only the first files that together hold `wanted` lines."""
        kept: dict[bytes, list[bytes]] = {}
        lines = size = 0
        for path in sorted(self._pieces, key=make_path_key):
            if lines >= wanted:
                break
            kept[path] = self._pieces[path]
            lines += sum(piece.count(b"\n") for piece in kept[path])
            size += sum(map(len, kept[path]))
            self._last = make_path_key(path)
        self._pieces, self._lines, self._bytes = kept, lines, size


def _strip_messages(body: bytes) -> tuple[bytes, int]:
    """Lines without messages about binary files, and how many there were."""
    return _MESSAGE.subn(b"", body) if b" binary file" in body else (body, 0)


def _is_part(piece: bytes, body: bytes) -> bool:
    """Whether lines are part of others; a separator may come before them."""
    lines = b"\n" + piece
    return lines in b"\n" + body or lines.removeprefix(b"\n--") in b"\n" + body


def _find_line_start(body: bytes, count: int) -> int:
    """Where the line after the first `count` lines begins."""
    at = 0
    for _ in range(count):
        at = body.index(b"\n", at) + 1
    return at
