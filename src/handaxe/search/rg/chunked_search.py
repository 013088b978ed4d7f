"""Search of files with very long lines in pieces, with the result of a search of the whole file.

A long line is shown around its first match. Context lines are shown if they are in the same piece.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from handaxe.contract.ports.search import TextQuery
from handaxe.search.deadline import SearchDeadline
from handaxe.search.long_lines import HoldsNul, LongLine, LongLineWindow, Pieces, WholeLines
from handaxe.search.rg.json_stream import create_line_stream
from handaxe.search.rg.open_files import OpenFiles, open_texts
from handaxe.search.rg.rg_outcome import RipgrepOutcome
from handaxe.search.rg.rg_process import Feed, RipgrepProcess
from handaxe.search.rg_arguments import MatchMarks, RipgrepOptions
from handaxe.search.rg_output import KEPT_BEFORE, CountStream, crop_line
from handaxe.search.walk.root import open_beneath

MULTILINE_BYTES = 48 << 10
"""The size of a piece if a match may cross lines."""
MAX_PARTS = 1_000
"""The maximum number of matching parts shown of one long line."""
_NUMBER = re.compile(rb"(?m)^(\d+)([:-])")
_PART = re.compile(rb"\d+:(\d+):(.*)")


OpenPieces = Callable[
    [TextQuery, Feed, RipgrepOptions, Callable[[RipgrepOutcome], None], OpenFiles[int]],
    RipgrepProcess,
]
"""Begins a run over files in memory."""


class PieceSearch:
    """Searches texts with runs of ripgrep."""

    whole_bytes = 2 << 20
    """The maximum size of whole lines together."""

    def __init__(self, query: TextQuery, marks: MatchMarks, open_run: OpenPieces) -> None:
        self._query = msgspec.structs.replace(query, mode="content")
        self._marks = marks
        self._open = open_run

    def bodies(self, texts: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        """The number of a text and some lines of it, as ripgrep writes them."""
        ready: list[tuple[int, bytes]] = []
        with open_texts(texts) as files:

            def take(target: bytes, body: bytes) -> bool:
                ready.append((files.get_key(target), body))
                return False

            stream = create_line_stream(take, self._marks, self._query)

            def at_end(outcome: RipgrepOutcome) -> None:
                if outcome.ending == "finished":
                    stream.finish()

            end = self._query.end
            manner = RipgrepOptions(one_thread=True, max_per_file=None if end is None else end + 1)
            run = self._open(self._query, stream.feed, manner, at_end, files)
            try:
                while run.go(has_enough=lambda: bool(ready)) == "enough":
                    yield from ready
                    ready.clear()
            finally:
                run.end()
            yield from ready

    def count(self, text: bytes) -> int:
        """How many lines match."""
        total = 0

        def take(pairs: list[tuple[bytes, int]]) -> bool:
            nonlocal total
            total += sum(count for _, count in pairs)
            return False

        with open_texts([text]) as files:
            manner = RipgrepOptions(counts_only=True, one_thread=True)
            run = self._open(self._query, CountStream(take).feed, manner, lambda _: None, files)
            try:
                run.go()
            finally:
                run.end()
        return total


class ChunkedSearch:
    """Searches files in pieces."""

    def __init__(
        self,
        query: TextQuery,
        marks: MatchMarks,
        pieces: PieceSearch,
        directory: int,
        watch: SearchDeadline,
        encoding: str | None = None,
    ) -> None:
        """Plan searches; `encoding` is that of the files if it is not UTF-8."""
        self._encoding = encoding
        self._query = query
        self._marks = marks
        self._pieces = pieces
        self._directory = directory
        self._watch = watch
        self._skip_line: Callable[[], None] = lambda: None
        self.capped_lines = 0
        """Long lines of which not all matching parts are shown."""
        self.is_complete = True
        """False if time ran out in one of the files."""

    def count(self, path: str) -> int:
        """How many lines match; 1 if the query only asks for files."""
        total = 0
        for part in self._parts(path):
            if isinstance(part, WholeLines):
                total += self._pieces.count(part.data)
            elif next(self._matches(part), None) is not None:
                total += 1
                self._skip_line()
            if total and self._query.mode == "files":
                return 1
        return total

    def lines(self, path: str) -> Iterator[bytes]:
        """The lines to show, in order."""
        line = shown = 0
        for part in self._parts(path):
            if isinstance(part, WholeLines):
                for _, body in self._pieces.bodies([part.data]):
                    yield _shift_line_numbers(body, part.first_line - 1)
                continue
            line, shown = part.line, shown if part.line == line else 0
            for body in self._matches(part):
                yield self._fitted(line, body)
                shown += 1 if self._query.only_matching else MAX_PARTS
                if shown >= MAX_PARTS:
                    self.capped_lines += self._query.only_matching
                    self._skip_line()
                    break

    def _parts(self, path: str) -> Iterator[WholeLines | LongLine]:
        most_bytes = self._pieces.whole_bytes
        if self._query.multiline:
            most_bytes = min(most_bytes, MULTILINE_BYTES)
        try:
            fd = open_beneath(self._directory, path)
        except OSError:
            return
        try:
            pieces = Pieces(fd, encoding=self._encoding, most_bytes=most_bytes)
            self._skip_line = pieces.skip_line
            for part in pieces:
                if self._watch.is_over():
                    self.is_complete = False
                    return
                yield part
        except (HoldsNul, OSError):
            return
        finally:
            os.close(fd)

    def _matches(self, part: LongLine) -> Iterator[bytes]:
        """The text around each match, without the line number."""
        windows = part.windows
        for number, body in self._pieces.bodies([window.data for window in windows]):
            window = windows[number]
            for row in body.split(b"\n")[:-1]:
                yield from self._find_in_window(row.removesuffix(b"\r"), window)

    def _find_in_window(self, row: bytes, window: LongLineWindow) -> Iterator[bytes]:
        if self._query.only_matching:
            if (found := _PART.match(row)) is not None:
                before = len(window.data[: window.begin].decode("utf-8", "replace"))
                own = len(window.data[: window.end].decode("utf-8", "replace"))
                column = int(found[1])
                if before < column <= own:
                    yield b"%d:%s" % (window.column + column, found[2])
            return
        found = _NUMBER.match(row)
        if found is None or found[2] != b":":
            return
        text = row[found.end() :]
        at = self._find_first_own(text, window)
        if at is not None:
            yield self._add_context(text, at, window)

    def _find_first_own(self, text: bytes, window: LongLineWindow) -> int | None:
        """The position of the first match that begins in the own part of a window."""
        start, end = self._marks.start, self._marks.end
        marked, at = 0, text.find(start)
        while at >= 0:
            place = at - marked
            if place >= window.end and window.end > window.begin:
                return None
            if place >= window.begin:
                return at
            marked += len(start) + len(end)
            at = text.find(start, at + len(start))
        # An empty match has no marks.
        return 0 if not marked and start not in text and window.begin == 0 else None

    def _add_context(self, text: bytes, at: int, window: LongLineWindow) -> bytes:
        start, end, gap = self._marks.start, self._marks.end, self._marks.gap
        before = text[:at].replace(start, b"").replace(end, b"")[-KEPT_BEFORE:]
        is_begun = window.column > 0 or at > len(before)
        return (gap if is_begun else b"") + before + text[at:]

    def _fitted(self, line: int, body: bytes) -> bytes:
        row = crop_line(b"%d:%s" % (line, body), self._marks)
        if self._query.only_matching or row.endswith(self._marks.gap):
            return row + b"\n"
        return row + self._marks.gap + b"\n"


def _shift_line_numbers(body: bytes, more: int) -> bytes:
    """The lines with their numbers raised by `more`."""
    if not more:
        return body
    return _NUMBER.sub(lambda found: b"%d%s" % (int(found[1]) + more, found[2]), body)
