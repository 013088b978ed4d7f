r"""What ripgrep writes, taken apart while it comes: per file a path and some lines.

With `--heading --null` a file begins with its path and a NUL byte, each line with its number and
`:` or `-`, and an empty line ends the file; no line of a file can look like that, because every
one of them is numbered. Files are handed on in pieces, so a file of ten million matches is never
in memory, and a line longer than `LONG_LINE_BYTES` is reduced to what stands around its match.
"""

import re
from collections.abc import Callable

import msgspec

from handaxe.host.search.arguments import Marks

LONG_LINE_BYTES = 1 << 20
KEPT_OF_LONG_LINE = 1 << 13

Take = Callable[[bytes, bytes], bool]
"""Takes a path and whole lines of that file; True means that no more is wanted."""

_IS_BINARY = re.compile(rb"(?:\n|\A)(?P<path>[^\n]*): binary file matches \(found [^\n]*\n", re.DOTALL)


class HeadingStream:
    """Cuts `--heading --null` output into files and lines."""

    __slots__ = ("_marks", "_path", "_rest", "_take", "binary_files")

    def __init__(self, take: Take, marks: Marks) -> None:
        self._take = take
        self._marks = marks
        self._path: bytes | None = None
        self._rest = b""
        self.binary_files = 0

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
            end = data.find(b"\n\n", at)
            if end < 0:
                break
            if self._take(self._path, data[at : end + 1]):
                return True
            self._path, at = None, end + 2
        return self._hand_on(data, at)

    def finish(self) -> bool:
        """Hand on what is left when the output ends."""
        rest, self._rest = self._rest, b""
        if self._path is None:
            self._named(rest)
            return False
        return bool(rest) and self._take(self._path, rest if rest.endswith(b"\n") else rest + b"\n")

    def _hand_on(self, data: bytes, at: int) -> bool:
        """Hand on whole lines of a file that goes on; the last one may prove to be its end."""
        if self._path is None:
            self._rest = data[at:]
            return False
        last = data.rfind(b"\n", at, len(data) - 1)
        if last >= 0:
            self._rest = data[last + 1 :]
            return self._take(self._path, data[at : last + 1])
        self._rest = data[at:]
        if len(self._rest) > LONG_LINE_BYTES:
            self._rest = shortened(self._rest, self._marks)
        return False

    def _named(self, before_nul: bytes) -> bytes:
        """The path before a NUL, without what ripgrep says about binary files before it."""
        while (found := _IS_BINARY.match(before_nul)) is not None:
            self.binary_files += 1
            before_nul = before_nul[found.end() :]
        return plain_path(before_nul.removeprefix(b"\n"))


class NulStream:
    """Cuts `path NUL` and `path NUL count` output into entries."""

    __slots__ = ("_rest", "_take", "_with_count")

    def __init__(self, take: Callable[[bytes, int], bool], *, with_count: bool) -> None:
        self._take = take
        self._with_count = with_count
        self._rest = b""

    def feed(self, piece: bytes) -> bool:
        """Take a piece of output."""
        *whole, self._rest = (self._rest + piece).split(b"\0")
        if not self._with_count:
            return any([self._take(plain_path(path), 0) for path in whole])
        return self._feed_counts(whole)

    def _feed_counts(self, whole: list[bytes]) -> bool:
        # The number of a path stands before the next path, and both before the next NUL.
        is_full = False
        for path in whole:
            number, _, name = path.partition(b"\n") if self._pending else (b"", b"", path)
            if self._pending:
                is_full = self._take(plain_path(self._pending), int(number)) or is_full
            self._pending = name
        return is_full
