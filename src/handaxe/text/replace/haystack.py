"""A file's content in the units it is searched in.

UTF-8 is searched as the bytes it is, without decoding; every other encoding as its text. Positions
count those units.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property

from handaxe.text.chunks import count_in_chunks, find_in_chunks
from handaxe.text.encoding import Format, encode_part

_BREAK = re.compile("\r\n|\n")
_BREAK_WITH_CR = re.compile("\r\n|\n|\r")


class Haystack(ABC):
    """The content to search, in any encoding."""

    def __init__(self, stored: Format, first: int, size: int) -> None:
        self.stored = stored
        # The position of the first unit of text, behind the byte order mark.
        self.first = first
        self.size = size

    @staticmethod
    def of(content: bytes, stored: Format) -> "Haystack":
        """The haystack that suits the encoding."""
        return _Bytes(content, stored) if stored.encoding == "utf-8" else _Text(content, stored)

    @abstractmethod
    def find(self, needle: str, begin: int = 0, end: int | None = None) -> int:
        """Where `needle` is first between two positions, or -1."""

    @abstractmethod
    def rfind(self, needle: str, begin: int, end: int) -> int:
        """Where `needle` is last between two positions, or -1."""

    @abstractmethod
    def count(self, needle: str, begin: int, end: int) -> int:
        """How often `needle` is between two positions."""

    @abstractmethod
    def length(self, needle: str) -> int:
        """How many units `needle` takes."""

    @abstractmethod
    def text(self, begin: int, end: int) -> str:
        """The text between two positions."""

    @abstractmethod
    def get_units(self, begin: int, end: int) -> str:
        """The text between two positions, as a string with one character for each unit."""

    @abstractmethod
    def to_units(self, needle: str) -> str:
        """`needle` with one character for each unit."""

    @abstractmethod
    def get_byte_offset(self, position: int) -> int:
        """Where a position is in the file's bytes; cheapest when asked in rising order."""

    @property
    @abstractmethod
    def is_ascii(self) -> bool:
        """Whether the text holds plain ASCII only."""

    @cached_property
    def breaks_at_cr(self) -> bool:
        """Whether a lone CR ends a line: only in a file without LF."""
        return self.find("\n") < 0 and self.find("\r") >= 0

    @property
    def _line_break(self) -> str:
        return "\r" if self.breaks_at_cr else "\n"

    def find_all(self, needle: str) -> Iterator[int]:
        """Every position of `needle`, overlapping ones included."""
        position = self.find(needle)
        while position >= 0:
            yield position
            position = self.find(needle, position + 1)

    def split(self, text: str) -> tuple[list[str], list[str]]:
        """The lines of `text` by this file's idea of a line, and the breaks between them."""
        pattern = _BREAK_WITH_CR if self.breaks_at_cr else _BREAK
        return pattern.split(text), pattern.findall(text)

    def normalize_breaks(self, text: str) -> str:
        """`text` with LF for every line break, by this file's idea of one."""
        plain = text.replace("\r\n", "\n")
        return plain.replace("\r", "\n") if self.breaks_at_cr else plain

    def find_ending_after(self, position: int) -> str | None:
        """How the line at `position` ends, or None where the file ends first."""
        if self.breaks_at_cr:
            return "\r" if self.find("\r", position) >= 0 else None
        return self._read_ending(self.find("\n", position))

    def find_ending_before(self, position: int) -> str | None:
        """How the line before the one at `position` ends, or None where there is none."""
        if self.breaks_at_cr:
            return "\r" if self.rfind("\r", 0, position) >= 0 else None
        return self._read_ending(self.rfind("\n", 0, position))

    def find_line_start(self, position: int, count: int) -> int:
        """Where the line begins that is `count` lines before the one at `position`."""
        for _ in range(count + 1):
            position = self.rfind(self._line_break, 0, position)
            if position < 0:
                return self.first
        return position + 1

    def find_line_end(self, position: int, count: int) -> int:
        """Where `count` lines have ended, from the one at `position` on."""
        for _ in range(count):
            position = self.find(self._line_break, position) + 1
            if not position:
                return self.size
        return position

    def line_numbers(self, positions: Iterable[int]) -> list[int]:
        """The numbers of the lines at rising positions, from 1."""
        numbers: list[int] = []
        number, counted = 1, self.first
        for position in positions:
            number += self.count(self._line_break, counted, position)
            counted = position
            numbers.append(number)
        return numbers

    def is_inside_crlf(self, position: int) -> bool:
        """Whether `position` is between the CR and the LF of one line ending."""
        return position > 0 and self.text(position - 1, position + 1) == "\r\n"

    def _read_ending(self, line_feed: int) -> str | None:
        if line_feed < 0:
            return None
        return "\r\n" if self.is_inside_crlf(line_feed) else "\n"


class _Bytes(Haystack):
    """UTF-8 content; a unit is a byte of the file."""

    def __init__(self, content: bytes, stored: Format) -> None:
        super().__init__(stored, len(stored.bom), len(content))
        self._content = content

    @property
    def is_ascii(self) -> bool:
        return self._content.isascii()

    def find(self, needle: str, begin: int = 0, end: int | None = None) -> int:
        return find_in_chunks(self._content, needle.encode(), max(begin, self.first), end)

    def rfind(self, needle: str, begin: int, end: int) -> int:
        return self._content.rfind(needle.encode(), max(begin, self.first), end)

    def count(self, needle: str, begin: int, end: int) -> int:
        return count_in_chunks(self._content, needle.encode(), begin, end)

    def length(self, needle: str) -> int:
        return len(needle.encode())

    def text(self, begin: int, end: int) -> str:
        # Ends of a neighbourhood may fall inside a character; places never do.
        return self._content[begin:end].decode("utf-8", "replace")

    def get_units(self, begin: int, end: int) -> str:
        return str(memoryview(self._content)[begin:end], "latin-1")

    def to_units(self, needle: str) -> str:
        return needle.encode().decode("latin-1")

    def get_byte_offset(self, position: int) -> int:
        return position


class _Text(Haystack):
    """Content in any other encoding; a unit is a character of its text."""

    def __init__(self, content: bytes, stored: Format) -> None:
        self._text = str(memoryview(content)[len(stored.bom) :], stored.encoding)
        super().__init__(stored, 0, len(self._text))
        self._known = (0, len(stored.bom))

    @property
    def is_ascii(self) -> bool:
        return self._text.isascii()

    def find(self, needle: str, begin: int = 0, end: int | None = None) -> int:
        return find_in_chunks(self._text, needle, begin, end)

    def rfind(self, needle: str, begin: int, end: int) -> int:
        return self._text.rfind(needle, begin, end)

    def count(self, needle: str, begin: int, end: int) -> int:
        return count_in_chunks(self._text, needle, begin, end)

    def length(self, needle: str) -> int:
        return len(needle)

    def text(self, begin: int, end: int) -> str:
        return self._text[begin:end]

    def get_units(self, begin: int, end: int) -> str:
        return self._text[begin:end]

    def to_units(self, needle: str) -> str:
        return needle

    def get_byte_offset(self, position: int) -> int:
        known, offset = self._known if self._known[0] <= position else (0, len(self.stored.bom))
        offset += len(self._text[known:position].encode(self.stored.encoding))
        self._known = (position, offset)
        return offset


def find_missing_line_break(content: bytes, stored: Format) -> bytes:
    """The line break that a file lacks at its end, as its last line has it; empty if it has one."""
    haystack = Haystack.of(content, stored)
    if haystack.size == haystack.first:
        return b""
    last = haystack.get_units(haystack.size - 1, haystack.size)
    if last == "\n" or (last == "\r" and haystack.breaks_at_cr):
        return b""
    return encode_part(haystack.find_ending_before(haystack.size) or "\n", stored.encoding)
