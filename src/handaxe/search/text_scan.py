"""The matching lines of one file, in the form ripgrep writes them."""

import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import accumulate, islice

from handaxe.contract.ports.search import TextQuery
from handaxe.search.deadline import SearchDeadline
from handaxe.search.long_lines import has_long_line, has_long_line_ahead
from handaxe.search.rg_arguments import TOO_LARGE_MIB, MatchMarks
from handaxe.search.rust_regex import translate
from handaxe.search.walk.root import open_beneath

CHUNK_BYTES = 4 << 20
HEAD_BYTES = 1 << 16
"""Binary files mostly show in their beginning what they are."""
MAX_BYTES = TOO_LARGE_MIB << 20
_MARK = b"\xef\xbb\xbf"
WIDE_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


class NotSearched(Exception):
    """The file was passed by; the reason is one of the counters of `Skipped`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HasLongLine(Exception):
    """The file has to be searched in pieces."""


class Scanner:
    """Looks for one pattern in many files."""

    def __init__(self, query: TextQuery, marks: MatchMarks, watch: SearchDeadline) -> None:
        known = translate(query.pattern, multiline=query.multiline)
        flags = re.MULTILINE | (re.IGNORECASE if query.ignore_case else 0)
        try:
            self._regex = re.compile(known.source, flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise _build_bad_query(query.pattern, error) from None
        self._literal = "" if query.ignore_case else known.literal
        self._raw_literal = self._literal.encode("utf-8", "surrogateescape")
        self._query = query
        self._watch = watch
        self._start, self._end = marks.start.decode(), marks.end.decode()

    def count(self, path: str, *, dir_fd: int, first_only: bool, in_binary: bool = False) -> int:
        """How many lines match; with `first_only` 1 as soon as one does."""
        total = 0
        for text, _ in self._texts(path, dir_fd, in_binary=in_binary):
            for _ in self._find_spans(text):
                total += 1
                if first_only:
                    return 1
        return total

    def lines(self, path: str, *, dir_fd: int) -> Iterator[bytes]:
        """The lines to show, each with its number, matches between marks."""
        for text, first_line in self._texts(path, dir_fd):
            spans = list(self._find_spans(text))
            if spans:
                yield self._shown(text, spans, first_line)

    def lines_of(self, data: bytes) -> bytes:
        """The lines to show of a text."""
        text = data.decode("utf-8", "surrogateescape")
        spans = list(self._find_spans(text))
        return self._shown(text, spans, 1) if spans else b""

    def count_in(self, data: bytes) -> int:
        """How many lines of a text match."""
        return sum(1 for _ in self._find_spans(data.decode("utf-8", "surrogateescape")))

    def can_match(self, data: bytes) -> bool:
        """Whether a file with these contents holds the text that every match holds."""
        return self._raw_literal in data

    def is_amid_ascii(self, data: bytes) -> bool:
        """Whether that text and whatever stands beside it is ASCII, wherever it stands."""
        literal = self._raw_literal
        if data.isascii() or not literal.isascii():
            return literal.isascii()
        at = data.find(literal)
        while at >= 0:
            if not data[max(0, at - 1) : at + len(literal) + 1].isascii():
                return False
            at = data.find(literal, at + 1)
        return True

    def search_data(self, data: bytes, at_most: int) -> bytes:
        r"""The lines to show of a file with these contents, for so many matching ones.

        The pattern is fixed text, perhaps between `\b`, so that no match crosses a line break.
        """
        text = data.removeprefix(_MARK).decode("utf-8", "surrogateescape")
        if not self._query.has_context:
            shown = islice(self._fixed(text), at_most)
            return "".join(shown).encode("utf-8", "surrogateescape")
        spans = list(islice(self._find_spans(text), at_most))
        return self._shown(text, spans, 1) if spans else b""

    def _fixed(self, text: str) -> Iterator[str]:
        """The lines that hold fixed text, found by its places and not line by line."""
        opening, closing, literal, fits = self._start, self._end, self._literal, self._regex.match
        number, begin, at, stop, line = 1, 0, 0, -1, ""
        end = 0
        while (start := text.find(literal, end)) >= 0:
            end = start + len(literal)
            if fits(text, start) is None:
                end = start + 1
                continue
            if start > stop:
                if line:
                    yield f"{line}{text[at:stop]}\n"
                number += text.count("\n", begin, start)
                begin = at = text.rfind("\n", begin, start) + 1 or begin
                stop = text.find("\n", end)
                stop = stop if stop >= 0 else len(text)
                line = f"{number}:"
            line += f"{text[at:start]}{opening}{text[start:end]}{closing}"
            at = end
        if line:
            yield f"{line}{text[at:stop]}\n"

    def _texts(
        self, path: str, dir_fd: int, *, in_binary: bool = False
    ) -> Iterable[tuple[str, int]]:
        """The decoded text in pieces of whole lines, with the number of their first line.

        Most files do not hold the text that every match holds; those are not even decoded.
        """
        fd = open_beneath(dir_fd, path)
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                return ()
            if info.st_size > CHUNK_BYTES:
                if not in_binary and has_long_line_ahead(partial(os.read, fd), self._watch):
                    raise HasLongLine
                os.lseek(fd, 0, os.SEEK_SET)
                return self._read_large_texts(os.dup(fd), info.st_size, in_binary=in_binary)
            # A buffer of just the right size: a large one would cost more than reading into it.
            data = os.read(fd, min(info.st_size + 1, HEAD_BYTES))
            if len(data) == HEAD_BYTES and (
                in_binary or b"\0" not in data or data[:2] in WIDE_MARKS
            ):
                data += os.read(fd, info.st_size + 1 - HEAD_BYTES)
        finally:
            os.close(fd)
        if data[:2] in WIDE_MARKS:
            if has_long_line(data):
                raise HasLongLine
            return ((data[2:].decode(WIDE_MARKS[data[:2]], "replace"), 1),)
        if not in_binary and b"\0" in data:
            raise NotSearched("binary")
        if self._raw_literal not in data:
            return ()
        if has_long_line(data):
            raise HasLongLine
        return ((data.removeprefix(_MARK).decode("utf-8", "surrogateescape"), 1),)

    def _read_large_texts(
        self, fd: int, size: int, *, in_binary: bool
    ) -> Iterator[tuple[str, int]]:
        with os.fdopen(fd, "rb", buffering=0) as file:
            if size > MAX_BYTES and (self._query.multiline or not self._query.is_file):
                raise NotSearched("too_large")
            data = file.read(CHUNK_BYTES).removeprefix(_MARK)
            line = 1
            while data and not self._watch.is_over():
                if not in_binary and b"\0" in data:
                    raise NotSearched("binary")
                more = file.read(CHUNK_BYTES)
                if more and self._query.multiline:
                    data += more
                    continue
                if more and b"\n" not in data:
                    # One line of such a length is not worth its weight in memory.
                    raise NotSearched("too_large")
                cut = data.rfind(b"\n") + 1 if more else len(data)
                if self._raw_literal in data:
                    yield data[:cut].decode("utf-8", "surrogateescape"), line
                line += data.count(b"\n")
                data = data[cut:] + more

    def _find_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """From where to where each matching line (or run of lines) goes, without its break."""
        if self._query.multiline:
            return self._find_run_spans(text)
        return self._find_line_spans(text)

    def _find_line_spans(self, text: str) -> Iterator[tuple[int, int]]:
        search, at, end = self._regex.search, 0, len(text)
        while 0 <= (place := self._find_candidate(text, at)) < end or (place == end and at < end):
            begin = max(at, text.rfind("\n", at, place) + 1)
            if begin >= end:
                return
            stop = text.find("\n", max(place, begin))
            stop = end if stop < 0 else stop
            if search(text, begin, _exclude_cr(text, begin, stop)) is not None:
                yield begin, stop
            at = stop + 1

    def _find_candidate(self, text: str, at: int) -> int:
        """Where a line may match; -1 if none does any more.

        A match in the whole text may cross a line break, so each candidate has to be proved on
        its own line; but every line that matches alone is a candidate.
        """
        if self._literal:
            return text.find(self._literal, at)
        found = self._regex.search(text, at)
        return -1 if found is None else found.start()

    def _find_run_spans(self, text: str) -> Iterator[tuple[int, int]]:
        begin = stop = -1
        for found in self._regex.finditer(text):
            first = text.rfind("\n", 0, found.start()) + 1
            if first >= len(text):
                break
            last = text.find("\n", max(found.start(), found.end() - 1))
            last = len(text) if last < 0 else last
            if first <= stop:
                stop = max(stop, last)
                continue
            if begin >= 0:
                yield begin, stop
            begin, stop = first, last
        if begin >= 0:
            yield begin, stop

    def _shown(self, text: str, spans: list[tuple[int, int]], first_line: int) -> bytes:
        query = self._query
        if not (query.multiline or query.only_matching or query.has_context):
            shown = self._alone(text, spans, first_line)
            return "".join(shown).encode("utf-8", "surrogateescape")
        starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        shown = self._with_context(text, spans, starts, first_line)
        return "".join(shown).encode("utf-8", "surrogateescape")

    def _alone(self, text: str, spans: list[tuple[int, int]], first_line: int) -> Iterator[str]:
        """Single lines, with nothing around them."""
        mark, number, at = self._regex.sub, first_line, 0
        for begin, stop in spans:
            number += text.count("\n", at, begin)
            at = begin
            end = _exclude_cr(text, begin, stop)
            yield f"{number}:{mark(self._mark, text[begin:end])}{text[end:stop]}\n"

    def _mark(self, found: re.Match[str]) -> str:
        return f"{self._start}{found[0]}{self._end}" if found[0] else ""

    def _with_context(
        self, text: str, spans: list[tuple[int, int]], starts: list[int], first_line: int
    ) -> Iterator[str]:
        before, after = self._query.before, self._query.after
        total = len(starts) - 1 - (text.endswith("\n"))
        shown = -1
        for index, (begin, stop) in enumerate(spans):
            top = bisect_right(starts, begin) - 1
            bottom = bisect_right(starts, max(begin, stop - 1)) - 1
            first = max(top - before, shown + 1)
            if shown >= 0 and first > shown + 1 and (before or after):
                yield "--\n"
            for line in range(first, top):
                yield f"{first_line + line}-{_get_line(text, starts, line)}\n"
            if self._query.only_matching:
                yield from self._format_matches(text, (begin, stop), starts, first_line)
            else:
                marked = self._marked(text, begin, stop)
                for line, part in enumerate(marked.split("\n"), first_line + top):
                    yield f"{line}:{part}\n"
            limit = bisect_right(starts, spans[index + 1][0]) - 1 if spans[index + 1 :] else total
            shown = min(bottom + after, limit - 1, total - 1)
            for line in range(bottom + 1, shown + 1):
                yield f"{first_line + line}-{_get_line(text, starts, line)}\n"
            shown = max(shown, bottom)

    def _format_matches(
        self, text: str, span: tuple[int, int], starts: list[int], first_line: int
    ) -> Iterator[str]:
        for start, end in self._find_ranges(text, *span, with_empty=True):
            top = bisect_right(starts, start) - 1
            column = start - starts[top] + 1
            for below, part in enumerate(text[start:end].removesuffix("\n").split("\n")):
                at = 1 if below else column
                yield f"{first_line + top + below}:{at}:{self._start}{part}{self._end}\n"

    def _marked(self, text: str, begin: int, stop: int) -> str:
        parts: list[str] = []
        at = begin
        for start, end in self._find_ranges(text, begin, stop):
            parts.append(text[at:start])
            lines = text[start:end].split("\n")
            parts.append("\n".join(self._start + x + self._end if x else x for x in lines))
            at = end
        return "".join([*parts, text[at:stop]]) if at < stop else "".join(parts).removesuffix("\n")

    def _find_ranges(
        self, text: str, begin: int, stop: int, *, with_empty: bool = False
    ) -> Iterator[tuple[int, int]]:
        end = stop + 1 if self._query.multiline else _exclude_cr(text, begin, stop)
        last = -1
        for found in self._regex.finditer(text, begin, min(end, len(text))):
            start, last_before = found.start(), last
            last = found.end()
            if last > start or (
                with_empty and start != last_before and _is_counted(text, start, stop)
            ):
                yield start, last


def _is_counted(text: str, at: int, stop: int) -> bool:
    """Whether an empty match is one for ripgrep too: not at the end of all, nor in a line's end."""
    return at <= stop and at < len(text) and text[at - 1 : at + 1] != "\r\n"


def _exclude_cr(text: str, begin: int, stop: int) -> int:
    return stop - 1 if stop > begin and text[stop - 1] == "\r" else stop


def _get_line(text: str, starts: list[int], line: int) -> str:
    return text[starts[line] : starts[line + 1] - 1]


def _build_bad_query(pattern: str, error: Exception) -> Exception:
    from handaxe.contract.ports.search import BadQuery

    return BadQuery("pattern", f"regex parse error:\n    {pattern[:200]}\nerror: {error}")
