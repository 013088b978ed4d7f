"""Pieces of a text searched by ripgrep, each a file in memory of its own."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import msgspec

from handaxe.contract.ports.search import TextQuery
from handaxe.search.chunked_search import PieceSearch
from handaxe.search.rg.json_stream import JsonStream
from handaxe.search.rg.matched_files__held_files import build_fd_path
from handaxe.search.rg.rg_process import Feed, RipgrepOutcome, RipgrepProcess
from handaxe.search.rg_arguments import MatchMarks, RipgrepOptions, is_json_needed
from handaxe.search.rg_output import CountStream, HeadingStream

OpenPieces = Callable[
    [TextQuery, Feed, RipgrepOptions, Callable[[RipgrepOutcome], None], "MemfdFiles"],
    RipgrepProcess,
]
"""Begins a run over files in memory."""


class MemfdFiles:
    """Texts as files without names, which a child process can open."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self.fds: list[int] = []
        self.targets: list[str] = []
        self._numbers: dict[bytes, int] = {}
        for number, text in enumerate(texts):
            fd = _create_memory_file()
            self.fds.append(fd)
            written = 0
            while written < len(text):
                written += os.write(fd, text[written:] if written else text)
            os.lseek(fd, 0, os.SEEK_SET)
            target = build_fd_path(fd)
            self.targets.append(target)
            self._numbers[os.fsencode(target)] = number

    def number_of(self, target: bytes) -> int:
        """The number of a text by the name that ripgrep has for it."""
        return self._numbers[target]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self.fds:
            os.close(fd)


class RipgrepPieces(PieceSearch):
    """Searches texts with runs of ripgrep."""

    whole_bytes = 2 << 20

    def __init__(self, query: TextQuery, marks: MatchMarks, open_run: OpenPieces) -> None:
        self._query = msgspec.structs.replace(query, mode="content")
        self._marks = marks
        self._open = open_run

    def bodies(self, texts: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        """The number of a text and lines to show of it, as ripgrep writes them; in any pieces."""
        ready: list[tuple[int, bytes]] = []
        with MemfdFiles(texts) as files:

            def take(target: bytes, body: bytes) -> bool:
                ready.append((files.number_of(target), body))
                return False

            stream = (
                JsonStream(take, self._marks, self._query)
                if is_json_needed(self._query)
                else HeadingStream(take, self._marks)
            )

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

        with MemfdFiles([text]) as files:
            manner = RipgrepOptions(counts_only=True, one_thread=True)
            run = self._open(self._query, CountStream(take).feed, manner, lambda _: None, files)
            try:
                run.go()
            finally:
                run.end()
        return total


def _create_memory_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("piece", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
