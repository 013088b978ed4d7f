r"""The first page of a common word, often found here before ripgrep has come far.

ripgrep in path order has one thread, and opens and reads every compiled file on its way. Reading
the beginnings of those, and a few files of text, is done sooner than that. This is only for what
both engines see alike beyond doubt: fixed text, or fixed text between `\b` with ASCII around it. At
the first thing that is not plain it gives up, and ripgrep's answer stands.
"""

import os
import re
import time
from collections.abc import Callable
from itertools import islice

import msgspec

from handaxe.contract.ports.search import BadQuery, TextFound, TextQuery
from handaxe.search.deadline import SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.pagination import LinePage
from handaxe.search.rg.rg_process import RipgrepProcess
from handaxe.search.rg_arguments import MatchMarks
from handaxe.search.rust_regex import translate
from handaxe.search.text_scan import WIDE_MARKS, Scanner
from handaxe.search.walk.file_list import QueryFileList
from handaxe.search.walk.ignored_survey import IgnoredSurvey
from handaxe.search.walk.root import SearchPlace, open_beneath
from handaxe.search.walk.walk import Listings

ALONE_S = 0.012
"""How long it may take before ripgrep is started."""
BESIDE_S = 0.01
"""How long it may go on while ripgrep is at work."""
PATIENCE = 64
PATIENCE_OUT_OF_TIME = 16
PATIENCE_PER_LINE = 4
"""After so many files of text, and some more for every line found, the page is not in sight: fewer
are enough where reading them took all the time there is."""
GLIMPSE_BYTES = 1024
MAX_FILE_BYTES = 1 << 20
DETECTED_BYTES = 1 << 16
"""ripgrep passes a file by if there is a NUL in so many bytes at its beginning."""
MAX_LINES = 1_000
_FILES_AT_A_TIME = 16
_OPENING = r"\b"
_CLOSING = re.compile(r"(?<!\\)(?:\\\\)*(\\b)\Z")


class NotPlain(Exception):
    """Something that is ripgrep's to decide."""


class LiteralPrescan:
    """One attempt."""

    def __init__(
        self,
        query: TextQuery,
        place: SearchPlace,
        watch: SearchDeadline,
        screen: ExclusionFilter,
        listings: Listings,
    ) -> None:
        self._place = place
        self._marks = MatchMarks.create()
        self._scanner = Scanner(query, self._marks, watch)
        self._files = QueryFileList(query, place, watch, screen, listings)
        self._paths = self._files.list_sorted()
        self._has_boundary = _OPENING in query.pattern
        self._at_most = (query.end or 0) + 1
        self._is_given_up = False
        self.is_hopeless = False
        """Whether it gave up because the text seems to be rare."""
        self._page = LinePage(query, None)
        self._texts = 0
        self._binary = 0

    @staticmethod
    def suits(query: TextQuery) -> bool:
        """Whether a query is plain enough, and its page near enough."""
        if query.ignore_case or query.multiline or query.only_matching:
            return False
        if query.mode != "content" or query.is_file:
            return False
        if query.end is None or query.end > MAX_LINES:
            return False
        text = query.pattern.removeprefix(_OPENING)
        if closing := _CLOSING.search(text):
            text = text[: closing.start(1)]
        try:
            return bool(text) and translate(text, multiline=False).is_literal
        except BadQuery:
            return False

    def is_enough(self) -> bool:
        """Whether it came to the answer before ripgrep would be worth starting."""
        return self._can_fill_page(ALONE_S, lambda: False)

    def is_ahead_of(self, run: RipgrepProcess) -> bool:
        """Whether it came to the answer while ripgrep was still at work."""
        return self._can_fill_page(BESIDE_S, run.has_written_all)

    def found(self, survey: IgnoredSurvey) -> TextFound:
        """The answer."""
        survey.look_around()
        binary = None if self._page.has_more else self._binary
        skipped = msgspec.structs.replace(survey.skipped(), binary=binary)
        found = self._page.found(self._place.prefix, self._marks)
        return msgspec.structs.replace(found, skipped=skipped, engine="python")

    def _can_fill_page(self, for_s: float, is_answered: Callable[[], bool]) -> bool:
        """Whether the page is full, or everything was searched and something found."""
        ends_at = time.monotonic() + for_s
        try:
            while not self._is_given_up:
                for path in islice(self._paths, _FILES_AT_A_TIME):
                    lines = self._lines(path)
                    if lines and self._page.take(path.encode("utf-8", "surrogateescape"), lines):
                        return not self._files.unreadable
                if self._files.has_ended and not self._files.has_pending:
                    self._is_given_up = True
                    return self._page.seen > 0 and not self._files.unreadable
                too_many = self._texts - PATIENCE_PER_LINE * self._page.seen
                if too_many > PATIENCE:
                    self._is_given_up = self.is_hopeless = True
                    return False
                if time.monotonic() > ends_at or is_answered():
                    self.is_hopeless = too_many > PATIENCE_OUT_OF_TIME
                    return False
        except (NotPlain, OSError):
            self._is_given_up = True
        return False

    def _lines(self, path: str) -> bytes:
        """The lines to show of a file; nothing if there is none, or it is binary."""
        fd = open_beneath(self._place.fd, path)
        try:
            data = os.read(fd, GLIMPSE_BYTES)
            nul = data.find(b"\0")
            if nul < 0 and len(data) == GLIMPSE_BYTES:
                # A buffer of about the right size: a large one costs more than reading into it.
                size = min(max(os.fstat(fd).st_size, GLIMPSE_BYTES), MAX_FILE_BYTES)
                rest = os.read(fd, size)
                if len(rest) == size:
                    raise NotPlain
                data += rest
                nul = data.find(b"\0", GLIMPSE_BYTES)
        finally:
            os.close(fd)
        if data[:2] in WIDE_MARKS:
            raise NotPlain
        if 0 <= nul < DETECTED_BYTES:
            self._binary += 1
            return b""
        self._texts += 1
        if not self._scanner.can_match(data):
            return b""
        if nul > 0 or (self._has_boundary and not self._scanner.is_amid_ascii(data)):
            raise NotPlain
        return self._scanner.search_data(data, self._at_most - self._page.seen)
