r"""Parsers for the output of ripgrep: per file a path and some lines.

With `--heading --null` a file begins with its path and a NUL byte, each line with its number and
`:` or `-`, and an empty line ends the file; no line of a file can look like that, because every
one of them is numbered. Files are handed on in pieces, so a file of ten million matches is never
in memory, and a line longer than `MAX_LINE_BYTES` is cropped around its match.
"""

import re
from collections.abc import Callable

from handaxe.search.rg_arguments import MatchMarks

MAX_LINE_BYTES = 1 << 17
"""The maximum length of a line with its marks; a longer line is cropped around its match."""
KEPT_BEFORE = 1 << 12
KEPT_AFTER = 1 << 15

Take = Callable[[bytes, bytes], bool]
"""Takes a path and whole lines of that file; True means that no more is wanted."""

_IS_BINARY = re.compile(rb"(?:\r\n)?([^\n]*): binary file matches \(found [^\n]*\n")
# With `--crlf` ripgrep ends lines with CRLF, but not between files of two threads.
_END_OF_FILE = re.compile(rb"\n\r?\n")
_COUNT = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
_NUMBER = re.compile(rb"\d+[:-](?:\d+:)?")
_MAX_NUMBER = 64
"""Maximum length of a line number in bytes."""


class HeadingStream:
    """Cuts `--heading --null` output into files and lines."""

    def __init__(self, take: Take, marks: MatchMarks) -> None:
        self._take = take
        self._marks = marks
        self._path: bytes | None = None
        self._rest = b""
        self._is_shortened = False
        self.binary_files: list[bytes] = []
        self.too_large: bytes | None = None

    def feed(self, piece: bytes) -> bool:
        """Take a piece of output."""
        data = self._rest + piece if self._rest else piece
        at = 0
        while True:
            if self._path is None:
                nul = data.find(b"\0", at)
                if nul < 0:
                    break
                self._path = self._named(data[at:nul])
                at = nul + 1
            end = _END_OF_FILE.search(data, at)
            if end is None:
                break
            if self._take(self._path, self._fitted(data[at : end.start() + 1])):
                return True
            self._path, at = None, end.end()
        return self._emit_lines(data, at)

    def finish(self) -> bool:
        """Take the rest after the output has ended."""
        rest, self._rest = self._rest, b""
        if self._path is None:
            self._named(rest)
            return False
        rest = rest if rest.endswith(b"\n") or not rest else rest + b"\n"
        return bool(rest) and self._take(self._path, self._fitted(rest))

    def _fitted(self, body: bytes) -> bytes:
        if len(body) <= MAX_LINE_BYTES and not self._is_shortened:
            return body
        self._is_shortened = False
        return crop_lines(body, self._marks)

    def _emit_lines(self, data: bytes, at: int) -> bool:
        """Give whole lines of an unfinished file; the last line may turn out to be its end."""
        if self._path is None:
            self._rest = data[at:]
            return False
        last = data.rfind(b"\n", at, len(data) - 2)
        if last >= 0:
            self._rest = data[last + 1 :]
            return self._take(self._path, self._fitted(data[at : last + 1]))
        self._rest = data[at:]
        if len(self._rest) > 2 * MAX_LINE_BYTES:
            self._rest, self._is_shortened = crop_line_start(self._rest, self._marks), True
        return False

    def _named(self, before_nul: bytes) -> bytes:
        """The path before a NUL, without messages about binary files before it."""
        if b"\n" not in before_nul:
            return strip_dot_slash(before_nul)
        while (found := _IS_BINARY.match(before_nul)) is not None:
            self.binary_files.append(found[1])
            before_nul = before_nul[found.end() :]
        return strip_dot_slash(before_nul.removeprefix(b"\r\n"))


class PathStream:
    """Cuts `path NUL` output into paths."""

    def __init__(self, take: Callable[[list[bytes]], bool]) -> None:
        self._take = take
        self._rest = b""

    def feed(self, piece: bytes) -> bool:
        """Take a piece of output."""
        # No path contains a NUL, so this removes the `./` of all paths at once.
        data = (b"\0" + self._rest + piece).replace(b"\0./", b"\0")
        end = data.rfind(b"\0")
        paths, self._rest = data[1:end], data[end + 1 :]
        return bool(end) and self._take(paths.split(b"\0"))


class CountStream:
    """Cuts `path NUL count LF` output into pairs."""

    def __init__(self, take: Callable[[list[tuple[bytes, int]]], bool]) -> None:
        self._take = take
        self._rest = b""

    def feed(self, piece: bytes) -> bool:
        """Take a piece of output."""
        data = self._rest + piece
        end = 0
        pairs: list[tuple[bytes, int]] = []
        for found in _COUNT.finditer(data):
            pairs.append((strip_dot_slash(found[1]), int(found[2])))
            end = found.end()
        self._rest = data[end:]
        return self._take(pairs)


def strip_dot_slash(path: bytes) -> bytes:
    """A path of ripgrep without its leading `./`."""
    return path[2:] if path.startswith(b"./") else path


def make_path_key(path: bytes) -> bytes:
    """A key that sorts paths part by part, as a sorted run of ripgrep does."""
    return path.replace(b"/", b"\0")


def crop_lines(body: bytes, marks: MatchMarks) -> bytes:
    """The lines, each cropped to `MAX_LINE_BYTES`."""
    lines = body.split(b"\n")
    for at, line in enumerate(lines):
        if len(line) > MAX_LINE_BYTES or marks.gap in line[:_MAX_NUMBER]:
            lines[at] = crop_line(line, marks)
    return b"\n".join(lines)


def crop_line_start(line: bytes, marks: MatchMarks) -> bytes:
    """The start of a very long line that has no end yet, cropped around its first match."""
    number, text = _split_line_number(line)
    text = text.removeprefix(marks.gap)
    first = text.find(marks.start)
    if first < 0:
        return number + marks.gap + text[-MAX_LINE_BYTES:]
    begin = max(0, first - KEPT_BEFORE)
    gap = marks.gap if begin or len(number) + len(text) < len(line) else b""
    return number + gap + text[begin : first + MAX_LINE_BYTES]


def crop_line(line: bytes, marks: MatchMarks) -> bytes:
    """A long line cropped around its first match, with gaps where text is left out."""
    number, text = _split_line_number(line)
    is_begun = text.startswith(marks.gap)
    text = text.removeprefix(marks.gap)
    first = max(0, text.find(marks.start))
    begin, end = max(0, first - KEPT_BEFORE), first + KEPT_AFTER
    kept = text[begin:end]
    if end < len(text):
        kept = _strip_cut_mark(kept, marks)
        if kept.rfind(marks.start) > kept.rfind(marks.end):
            kept += marks.end
        kept += marks.gap
    return number + (marks.gap if begin or is_begun else b"") + kept


def _strip_cut_mark(text: bytes, marks: MatchMarks) -> bytes:
    """The text without an incomplete mark at its end."""
    for mark in (marks.start, marks.end):
        for size in range(len(mark) - 1, 0, -1):
            if text.endswith(mark[:size]):
                return text[:-size]
    return text


def _split_line_number(line: bytes) -> tuple[bytes, bytes]:
    found = _NUMBER.match(line)
    number = found[0] if found is not None else b""
    return number, line[len(number) :]
