"""Starts of ripgrep for one query, within the limits of the machine."""

import os
from collections.abc import Callable, Sequence

import msgspec

from handaxe.contract.faults.search import RipgrepFailed
from handaxe.contract.ports.search import TextQuery
from handaxe.search.deadline import SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.long_lines import find_long_files
from handaxe.search.rg.chunked_search import ChunkedSearch, PieceSearch
from handaxe.search.rg.fallback import detect_foreign_encoding
from handaxe.search.rg.json_stream import create_line_stream
from handaxe.search.rg.open_files import OpenFiles
from handaxe.search.rg.rg_outcome import RipgrepOutcome
from handaxe.search.rg.rg_process import (
    MAX_MEMORY_BYTES,
    MAX_SAID_BYTES,
    Feed,
    RipgrepProcess,
    RipgrepProcessOptions,
    compute_initial_memory,
)
from handaxe.search.rg_arguments import MatchMarks, RipgrepOptions, build_command
from handaxe.search.rg_output import PathStream, Take, make_path_key
from handaxe.search.walk.root import SearchPlace

MAX_CUT_FILES = 500


class RipgrepLauncher:
    """Starts runs, and knows which resources earlier runs lacked."""

    def __init__(
        self,
        program: str,
        query: TextQuery,
        place: SearchPlace,
        watch: SearchDeadline,
        screen: ExclusionFilter,
    ) -> None:
        self._program = program
        self._query = query
        self._place = place
        self._watch = watch
        self._screen = screen
        self.is_asked = True
        """Whether a run lists what it skips."""
        self.may_say = MAX_SAID_BYTES
        """How many bytes of messages a run may write."""
        self._encoding = detect_foreign_encoding(place.target, place.fd) if query.is_file else None
        self.marks = MatchMarks.create()
        self.one_thread = False
        self.saves_memory = False
        self.long_files: list[str] | None = None
        """Files with long lines, in path order; None until a run needed them."""
        pieces = PieceSearch(query, self.marks, self._open_pieces)
        self.cut = ChunkedSearch(query, self.marks, pieces, place.fd, watch, self._encoding)
        """Searches files with long lines."""

    @property
    def leaves_something(self) -> bool:
        """Whether there is anything to search that is not searched in pieces."""
        return not (self._query.is_file and self.long_files)

    def find_long_lines(self, path: bytes | None = None) -> None:
        """Find files with long lines, which are searched in pieces from now on.

        Args:
            path: a file that counts as one of them whatever its lines are like.
        """
        found = self.long_files
        if found is None:
            files: list[bytes] = []
            self.list_files(lambda paths: bool(files.extend(paths)))
            shown = (os.fsdecode(path) for path in files if not self._screen.is_held_back(path))
            found = find_long_files(shown, self._place.fd, self._watch)[:MAX_CUT_FILES]
        named = [] if path is None else [os.fsdecode(path)]
        order = {make_path_key(os.fsencode(path)): path for path in (*found, *named)}
        self.long_files = [order[key] for key in sorted(order)]

    def list_files(
        self,
        take: Callable[[list[bytes]], bool],
        manner: RipgrepOptions | None = None,
        targets: Sequence[str] | None = None,
        ends_at: float | None = None,
    ) -> RipgrepOutcome:
        """List the files that a search would read, without reading them."""
        options = msgspec.structs.replace(manner or RipgrepOptions(), lists_files=True)
        run = self.open(PathStream(take).feed, options, targets=targets)
        try:
            run.go(ends_at)
        finally:
            run.end()
        return run.outcome

    def exclude_long_files(self, paths: Sequence[bytes]) -> Sequence[bytes]:
        """The files that ripgrep searches by their paths."""
        if not self.long_files:
            return paths
        cut = {os.fsencode(path) for path in self.long_files}
        return [path for path in paths if path not in cut]

    def count_in_pieces(self) -> list[tuple[bytes, int]]:
        """The files with long lines that match, with the numbers of their matching lines."""
        paths = self.long_files or ()
        return [(os.fsencode(path), n) for path in paths if (n := self.cut.count(path))]

    def open(
        self,
        feed: Feed,
        manner: RipgrepOptions | None = None,
        at_end: Callable[[RipgrepOutcome], None] = lambda _: None,
        targets: Sequence[str] | None = None,
        fds: Sequence[int] = (),
    ) -> RipgrepProcess:
        """Start a run over the whole place, or only over `targets`."""
        manner = manner or RipgrepOptions()
        may_say = MAX_SAID_BYTES if manner.asks_why else self.may_say
        asks_why = manner.asks_why or self.is_asked or self.saves_memory
        manner = msgspec.structs.replace(
            manner,
            without_parents=self._place.is_ignored,
            asks_why=targets is None and asks_why,
            one_thread=self.one_thread,
            saves_memory=self.saves_memory,
            encoding=manner.encoding or self._encoding,
            without=(*self._screen.left_out, *(self.long_files or ())),
        )
        has_more = manner.lists_files or self.long_files is not None
        wanted = targets if targets is not None else (self._place.target,)
        try:
            return RipgrepProcess(
                build_command(self._program, self._query, wanted, manner, self.marks),
                self._place.directory,
                feed,
                self._watch,
                RipgrepOutcome(self._screen.is_held_back),
                at_end,
                RipgrepProcessOptions(
                    is_prompt=manner.is_prompt,
                    may_say=may_say,
                    memory_bytes=MAX_MEMORY_BYTES if has_more else compute_initial_memory(),
                    fds=fds,
                ),
            )
        except OSError as error:
            raise RipgrepFailed(str(error)) from error

    def open_lines(
        self,
        take: Take,
        manner: RipgrepOptions,
        held: OpenFiles[bytes] | None = None,
    ) -> RipgrepProcess:
        """Start a run for lines, over the whole place or over open files."""
        stream = create_line_stream(take, self.marks, self._query)

        def at_end(outcome: RipgrepOutcome) -> None:
            if outcome.ending != "satisfied":
                stream.finish()
            outcome.note_binary(stream.binary_files)
            outcome.too_large_match = stream.too_large

        targets, fds = (None, ()) if held is None else (held.targets, held.fds)
        return self.open(stream.feed, manner, at_end, targets, fds)

    def open_held(
        self, feed: Feed, manner: RipgrepOptions, held: OpenFiles[bytes]
    ) -> RipgrepProcess:
        """Start a run over open files."""
        return self.open(feed, manner, targets=held.targets, fds=held.fds)

    def _open_pieces(
        self,
        query: TextQuery,
        feed: Feed,
        manner: RipgrepOptions,
        at_end: Callable[[RipgrepOutcome], None],
        files: OpenFiles[int],
    ) -> RipgrepProcess:
        line = build_command(self._program, query, files.targets, manner, self.marks)
        directory, watch = self._place.directory, self._watch
        return RipgrepProcess(
            line,
            directory,
            feed,
            watch,
            RipgrepOutcome(),
            at_end,
            RipgrepProcessOptions(fds=files.fds),
        )
