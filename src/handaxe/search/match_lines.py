"""Lines of ripgrep as `MatchLine` values: number, text, positions of the matches."""

import re
from collections.abc import Iterable, Sequence

from handaxe.contract.ports.search import FileText, MatchLine
from handaxe.search.rg_arguments import MatchMarks
from handaxe.search.rg_output import MAX_LINE_BYTES, crop_line

LINE_CHARS = 500
"""A longer line is shown as a window of this size around its first match."""
LEAD_CHARS = 200
TYPED_LINES = 1_000
"""A page with more lines gives the others as text only."""

AT_A_TIME = 500
"""How many files of the others are read together."""

Block = tuple[bytes, bytes]
"""The path of a file and some of its lines."""

_PREFIX = re.compile(rb"(\d+)([:-])")
_COLUMN_PREFIX = re.compile(rb"(\d+)(?:(:)(\d+):|-)")
_COLUMNS = re.compile(rb"(?m)^(\d+:)\d+:")
_LONG = re.compile(rb"[^\n]{%d}" % LINE_CHARS)


class LineReader:
    """Reads the lines of one answer."""

    def __init__(self, prefix: str, marks: MatchMarks, *, has_columns: bool) -> None:
        self._prefix = prefix
        self._marks = marks
        self._pattern = _COLUMN_PREFIX if has_columns else _PREFIX
        self._is_inside = False

    def read(self, blocks: Sequence[Block]) -> tuple[list[MatchLine], list[FileText]]:
        """The first lines in full, the rest as text."""
        typed: list[MatchLine] = []
        rest: list[Block] = []
        for number, (raw_path, body) in enumerate(blocks):
            room = TYPED_LINES - len(typed)
            if not room:
                rest += blocks[number:]
                break
            path = self._prefix + raw_path.decode("utf-8", "surrogateescape")
            lines = body.split(b"\n")[:-1]
            typed += [self._line(path, raw) for raw in lines[:room]]
            if left := b"\n".join([*lines[room:], b""]):
                rest.append((raw_path, left))
        some = (rest[at : at + AT_A_TIME] for at in range(0, len(rest), AT_A_TIME))
        return typed, [text for blocks in some for text in self._texts(blocks)]

    def _texts(self, blocks: Sequence[Block]) -> Iterable[FileText]:
        """Lines as text; short ones, as in most files, are decoded together."""
        are_long = [len(body) > LINE_CHARS and _LONG.search(body) is not None for _, body in blocks]
        short = [body for (_, body), is_long in zip(blocks, are_long, strict=True) if not is_long]
        texts = iter(self._decode_short(short))
        for (raw_path, body), is_long in zip(blocks, are_long, strict=True):
            path = self._prefix + raw_path.decode("utf-8", "surrogateescape")
            yield FileText(path, self._decode_long(path, body) if is_long else next(texts))

    def _decode_short(self, bodies: Sequence[bytes]) -> list[str]:
        if self._pattern is _COLUMN_PREFIX:
            bodies = [_COLUMNS.sub(rb"\1", body) for body in bodies]
        # No line was shortened, so the mark for a gap can separate them.
        plain = self._marks.gap.join(bodies)
        plain = plain.replace(self._marks.start, b"").replace(self._marks.end, b"")
        if b"\r" in plain:
            plain = plain.replace(b"\r\n", b"\n")
        return plain.decode("utf-8", "replace").split(self._marks.gap.decode())

    def _decode_long(self, path: str, body: bytes) -> str:
        return "".join([_format_line(self._line(path, raw)) for raw in body.split(b"\n")[:-1]])

    def _line(self, path: str, raw: bytes) -> MatchLine:
        if len(raw) > MAX_LINE_BYTES:
            raw = crop_line(raw, self._marks)
        found = self._pattern.match(raw)
        if found is None:
            return MatchLine(path, 0, "")
        is_match = found[2] == b":"
        raw = raw[found.end() :].removesuffix(b"\r")
        text, ranges, has_gap = self._strip_marks(raw)
        is_begun = has_gap and raw.startswith(self._marks.gap)
        column = ranges[0][0] + 1 if ranges and not is_begun else None
        if found.re is _COLUMN_PREFIX and is_match:
            column = int(found[3])
        if len(text) <= LINE_CHARS and not has_gap:
            return MatchLine(path, int(found[1]), text, is_match, column, tuple(ranges))
        text, ranges = crop_to_matches(text, ranges)
        return MatchLine(path, int(found[1]), text, is_match, column, tuple(ranges), is_cut=True)

    def _strip_marks(self, raw: bytes) -> tuple[str, list[tuple[int, int]], bool]:
        """The text without marks, the matches in it, and whether a part is missing."""
        if b"\x1d" not in raw:
            self._is_inside = False
            return raw.decode("utf-8", "replace"), [], False
        begin, end, gap = self._marks.start, self._marks.end, self._marks.gap
        has_gap = gap in raw
        text, *matches = (raw.replace(gap, b"") if has_gap else raw).split(begin)
        ranges: list[tuple[int, int]] = []
        if end in text or (self._is_inside and not matches):
            # The match began on the line before.
            inside, mark, after = text.partition(end)
            text = inside + after
            ranges += [(0, len(inside))] if self._is_inside else []
            self._is_inside = not mark
        for match in matches:
            inside, mark, after = match.partition(end)
            ranges.append((len(text), len(text) + len(inside)))
            text += inside + after
            self._is_inside = not mark
        ranges = [pair for pair in ranges if pair[0] < pair[1]]
        # A mark may be inside a character, so the bytes are joined before decoding.
        shown = text.decode("utf-8", "replace")
        return shown, ranges if text.isascii() else _to_character_ranges(ranges, text), has_gap


def crop_to_matches(text: str, ranges: list[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """The text around the first match of a long line, and the matches in it."""
    begin = max(0, (ranges[0][0] if ranges else 0) - LEAD_CHARS)
    begin = max(0, min(begin, len(text) - LINE_CHARS))
    end = min(len(text), begin + LINE_CHARS)
    head, tail = "…" if begin else "", "…" if end < len(text) else ""
    shift = len(head) - begin
    inside = [
        (max(start, begin) + shift, min(stop, end) + shift)
        for start, stop in ranges
        if start < end and stop > begin
    ]
    return head + text[begin:end] + tail, inside


def _to_character_ranges(ranges: list[tuple[int, int]], text: bytes) -> list[tuple[int, int]]:
    def characters(offset: int) -> int:
        return len(text[:offset].decode("utf-8", "replace"))

    return [(characters(start), characters(end)) for start, end in ranges]


def _format_line(line: MatchLine) -> str:
    if not line.line:
        return "--\n"
    return f"{line.line}{':' if line.is_match else '-'}{line.text}\n"
