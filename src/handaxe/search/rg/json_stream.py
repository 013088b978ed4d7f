"""Parser for `rg --json`, for matches that cross lines or need columns."""

import re
from binascii import a2b_base64
from typing import Any

import msgspec

from handaxe.contract.ports.search import TextQuery
from handaxe.search.rg_arguments import MatchMarks, is_json_needed
from handaxe.search.rg_output import (
    MAX_LINE_BYTES,
    HeadingStream,
    Take,
    crop_lines,
    strip_dot_slash,
)

MAX_RECORD_BYTES = 4 << 20
"""A file with a longer match is searched in pieces."""
_PATH = re.compile(
    rb'\{"type":"(?:match|context)","data":\{"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\})'
)


class _Text(msgspec.Struct):
    text: str | None = None
    encoded: str | None = msgspec.field(default=None, name="bytes")

    def raw(self) -> bytes:
        return self.text.encode() if self.text is not None else a2b_base64(self.encoded or "")


class _Submatch(msgspec.Struct):
    start: int
    end: int


class _Data(msgspec.Struct):
    path: _Text | None = None
    lines: _Text | None = None
    line_number: int = 0
    submatches: list[_Submatch] = []


class _Record(msgspec.Struct):
    type: str
    data: _Data


class JsonStream:
    """Cuts `--json` output into files and lines, each match between marks."""

    def __init__(self, take: Take, marks: MatchMarks, query: TextQuery) -> None:
        self._take = take
        self._marks = marks
        self._query = query
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._next_line = 0
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Record)
        self.binary_files: list[bytes] = []
        self.too_large: bytes | None = None
        """The file with a match that is too long, which ends the output."""

    def feed(self, piece: bytes) -> bool:
        """Take a piece of output."""
        first, line_break, others = piece.partition(b"\n")
        if self._rest_bytes + len(first) > MAX_RECORD_BYTES:
            found = _PATH.match(b"".join(self._rest)[: 1 << 16])
            if found is not None:
                self.too_large = strip_dot_slash(msgspec.json.decode(found[1], type=_Text).raw())
                return True
        self._rest.append(first)
        self._rest_bytes += len(first)
        if not line_break:
            return False
        *records, last = others.split(b"\n")
        records.insert(0, b"".join(self._rest))
        self._rest, self._rest_bytes = [last], len(last)
        return any(raw and self._take_record(self._decoder.decode(raw)) for raw in records)

    def finish(self) -> bool:
        """Nothing is left to take."""
        return False

    def _take_record(self, record: _Record) -> bool:
        data = record.data
        if record.type == "begin":
            self._next_line = 0
        if record.type not in {"match", "context"} or data.lines is None or data.path is None:
            return False
        lines = data.lines.raw()
        is_match = record.type == "match"
        body = (
            self._format_matches(lines, data)
            if self._query.only_matching and is_match
            else self._format_lines(lines, data, ":" if is_match else "-")
        )
        if self._query.has_context and self._next_line and data.line_number > self._next_line:
            body = b"--\n" + body
        self._next_line = data.line_number + lines.rstrip(b"\n").count(b"\n") + 1
        if len(body) > MAX_LINE_BYTES:
            body = crop_lines(body, self._marks)
        return self._take(strip_dot_slash(data.path.raw()), body)

    def _format_lines(self, lines: bytes, data: _Data, sign: str) -> bytes:
        parts: list[bytes] = []
        at = 0
        for match in data.submatches:
            parts += [lines[at : match.start], self._marked(lines[match.start : match.end])]
            at = match.end
        text = b"".join([*parts, lines[at:]])
        text = text.removesuffix(b"\n")
        return b"".join(
            b"%d%s%s\n" % (number, sign.encode(), line)
            for number, line in enumerate(text.split(b"\n"), data.line_number)
        )

    def _format_matches(self, lines: bytes, data: _Data) -> bytes:
        body: list[bytes] = []
        number, column, at = data.line_number, 1, 0
        for match in data.submatches:
            between = lines[at : match.start]
            if breaks := between.count(b"\n"):
                number, column = number + breaks, 1
                between = between[between.rfind(b"\n") + 1 :]
            column += len(between.decode("utf-8", "replace"))
            at = match.start
            shown = lines[match.start : match.end].removesuffix(b"\n").split(b"\n")
            for below, line in enumerate(shown):
                first = column if not below else 1
                body.append(b"%d:%d:%s\n" % (number + below, first, self._marked(line)))
        return b"".join(body)

    def _marked(self, match: bytes) -> bytes:
        """The match between marks, on each of its lines."""
        start, end = self._marks.start, self._marks.end
        return b"\n".join(start + line + end if line else line for line in match.split(b"\n"))


def create_line_stream(
    take: Take, marks: MatchMarks, query: TextQuery
) -> HeadingStream | JsonStream:
    """The parser for the output of a run for lines."""
    if is_json_needed(query):
        return JsonStream(take, marks, query)
    return HeadingStream(take, marks)
