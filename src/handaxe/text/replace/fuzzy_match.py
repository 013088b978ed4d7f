"""Where a text that was not found may have been meant: help after a failed edit.

Nothing here decides where an edit goes; `handaxe.text.replace` does, without any of these scores.
The work is bounded whatever the size of the file: rare lines and words of the lost text lead to a
few places, and only those are compared.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from handaxe.text.chunks import count_in_chunks, find_in_chunks
from handaxe.text.line_window import (
    detect_line_break,
    find_line_end,
    find_line_start,
    split_keeping_ends,
)
from handaxe.text.replace.plan import align_blocks
from handaxe.text.replace.text_difference import SimilarText, compare_texts, split_bare

_MAX_CLUES = 12
_MAX_FOUND = 20
_MAX_COMPARED = 24
_MAX_LINES_SCORED = 40
_MAX_SCANNED_CHARS = 2_000_000
_MAX_LINE_CHARS = 2_000
_WORD = re.compile(r"\w{3,}")
_LEAST_SCORE = 0.5


def find_similar_text(text: str, old: str, *, limit: int = 3) -> list[SimilarText]:
    """Up to `limit` places of `text` that resemble `old`, best first."""
    if not old.strip() or not text:
        return []
    search = _Nearest(text, old)
    places: list[SimilarText] = []
    for score, begin in search.rank_places():
        place = search.place(begin, score)
        if not any(
            place.first_line <= other.last_line and other.first_line <= place.last_line
            for other in places
        ):
            places.append(place)
        if len(places) == limit:
            break
    return places


class _Nearest:
    """One search; positions are those of characters in the text."""

    def __init__(self, text: str, old: str) -> None:
        self._text = text
        self._break = detect_line_break(text)
        self._old = old
        self._old_lines = split_bare(old)
        self._bare_lines = [line.strip() for line in self._old_lines]
        self._similarity = _load_similarity()

    def rank_places(self) -> list[tuple[float, int]]:
        """Score and position of lines where a place may begin, best first."""
        scored = self._score_places(
            begin for begin, _ in self._count_votes().most_common(_MAX_COMPARED)
        )
        if not scored and len(self._text) <= _MAX_SCANNED_CHARS:
            scored = self._score_places(self._scan())
        return sorted(scored, key=lambda found: (-found[0], found[1]))

    def place(self, begin: int, score: float) -> SimilarText:
        """The description of the place whose first line starts at `begin`."""
        if len(self._old_lines) == 1:
            begin, end = self._find_fragment(begin)
        else:
            begin, end = self._find_span(begin)
        text = self._text[begin:end]
        first_line = 1 + count_in_chunks(self._text, self._break, 0, begin)
        return compare_texts(
            self._old,
            text,
            first_line,
            is_unique=_is_unique(self._text, text),
            score=round(score, 3),
        )

    def _count_votes(self) -> Counter[int]:
        """Where places would begin, by the rare lines and words that lead there."""
        votes: Counter[int] = Counter()
        for clue, index, offset in self._find_clues():
            found = list(self._find_all(clue))
            if len(found) > _MAX_FOUND:
                continue
            for position in found:
                votes[self._find_begin(position, index, offset)] += len(clue)
        return votes

    def _find_clues(self) -> Iterator[tuple[str, int, int]]:
        """The longest lines and words of the lost text, with their line and place in it."""
        lines = {line: index for index, line in enumerate(self._bare_lines) if len(line) >= 3}
        for line in sorted(lines, key=len, reverse=True)[:_MAX_CLUES]:
            yield line, lines[line], 0
        words = {
            match[0]: (index, match.start())
            for index, line in enumerate(self._bare_lines)
            for match in _WORD.finditer(line)
        }
        for word in sorted(words, key=len, reverse=True)[:_MAX_CLUES]:
            yield word, *words[word]

    def _find_all(self, clue: str) -> Iterator[int]:
        position = find_in_chunks(self._text, clue)
        for _ in range(_MAX_FOUND + 1):
            if position < 0:
                return
            yield position
            position = find_in_chunks(self._text, clue, position + 1)

    def _find_begin(self, position: int, index: int, offset: int) -> int:
        """Where the place would begin if line `index` of it holds a clue at `position`."""
        begin = find_line_start(self._text, position, index, self._break)
        # In one endless line, the beginning of the line says nothing.
        return begin if position - begin < _MAX_LINE_CHARS or index else position - offset

    def _scan(self) -> Iterator[int]:
        """Lines that resemble the longest one, looked for in the whole text."""
        from itertools import accumulate

        longest = max(self._bare_lines, key=len)
        index = self._bare_lines.index(longest)
        lines = split_keeping_ends(self._text, self._break)
        starts = [0, *accumulate(map(len, lines))]
        for number in _find_similar_lines(
            longest, [line[:_MAX_LINE_CHARS].strip() for line in lines]
        ):
            yield starts[max(0, number - index)]

    def _score_places(self, begins: Iterator[int]) -> list[tuple[float, int]]:
        scored = [(self._score(begin), begin) for begin in begins]
        return [found for found in scored if found[0] >= _LEAST_SCORE]

    def _score(self, begin: int) -> float:
        count = min(len(self._bare_lines), _MAX_LINES_SCORED)
        end = find_line_end(self._text, begin, count, self._break)
        end = min(end, begin + 2 * len(self._old) + _MAX_LINE_CHARS)
        stored = [line.strip() for line in split_keeping_ends(self._text[begin:end], self._break)]
        if count == 1 and stored:
            return self._similarity(self._bare_lines[0], stored[0])
        pairs = list(zip(self._bare_lines[:count], stored, strict=False))
        likeness = sum(1.0 if a == b else self._similarity(a, b) for a, b in pairs)
        # Where the file ends early, what is missing counts half.
        return 2 * likeness / (len(pairs) + count)

    def _find_fragment(self, begin: int) -> tuple[int, int]:
        """The part of one line that the lost text stands for."""
        end = find_line_end(self._text, begin, 1, self._break)
        line = self._text[begin : min(end, begin + len(self._old) + _MAX_LINE_CHARS)]
        whole = line.rstrip("\r\n") if not self._old.endswith(("\n", "\r")) else line
        if len(whole.strip()) <= 1.5 * len(self._old.strip()):
            return self._trim(begin, begin + len(whole))
        first, last = _find_best_part(self._old.strip(), whole)
        while first > 0 and whole[first - 1 : first + 1].isalnum():
            first -= 1
        while last < len(whole) and whole[last - 1 : last + 1].isalnum():
            last += 1
        return self._trim(begin + first, begin + last)

    def _find_span(self, begin: int) -> tuple[int, int]:
        """The lines that the lost text stands for, more or fewer than it has where some are new."""
        count = len(self._old_lines)
        slack = 3 + count // 4
        start = find_line_start(self._text, begin, slack, self._break)
        stop = find_line_end(self._text, begin, count + slack, self._break)
        window = split_keeping_ends(self._text[start:stop], self._break)
        lead = self._text.count(self._break, start, begin)
        first, last = lead, min(lead + count, len(window))
        kept = [
            block
            for block in align_blocks(self._bare_lines, [line.strip() for line in window])
            if block.kept
            and any(map(_WORD.search, self._bare_lines[block.old_begin : block.old_end]))
        ]
        if kept:
            first = max(0, kept[0].new_begin - kept[0].old_begin)
            last = min(len(window), kept[-1].new_end + count - kept[-1].old_end)
        end = start + sum(map(len, window[:last]))
        if not self._old.endswith(("\n", "\r")):
            end = start + len(self._text[start:end].rstrip("\r\n"))
        return self._trim(start + sum(map(len, window[:first])), end)

    def _trim(self, begin: int, end: int) -> tuple[int, int]:
        """Without blanks at either end where the lost text has none."""
        text = self._text[begin:end]
        if not self._old[0].isspace():
            begin += len(text) - len(text.lstrip(" \t"))
        if not self._old[-1].isspace():
            end -= len(text) - len(text.rstrip(" \t"))
        return begin, max(begin, end)


def _is_unique(text: str, part: str) -> bool:
    first = find_in_chunks(text, part)
    return first >= 0 and find_in_chunks(text, part, first + max(1, len(part))) < 0


def _load_similarity() -> Callable[[str, str], float]:
    """How alike two lines are, from 0 to 1; a part of a line counts nearly as much as the line."""
    try:
        from rapidfuzz import fuzz
    except ImportError:
        from difflib import SequenceMatcher

        return lambda a, b: SequenceMatcher(None, a, b).quick_ratio()

    def similarity(a: str, b: str) -> float:
        if 0 < 1.5 * len(a) < len(b):
            return 0.95 * fuzz.partial_ratio(a, b) / 100
        return fuzz.ratio(a, b) / 100

    return similarity


def _find_similar_lines(line: str, lines: list[str]) -> list[int]:
    """The numbers of the lines most like `line`."""
    try:
        from rapidfuzz import fuzz, process
    except ImportError:
        from difflib import get_close_matches

        found = get_close_matches(line, dict.fromkeys(lines[:2_000]), n=5)
        return [lines.index(one) for one in found]
    matches = process.extract(line, lines, scorer=fuzz.ratio, score_cutoff=60, limit=5)
    return [index for _, _, index in matches]


def _find_best_part(part: str, line: str) -> tuple[int, int]:
    """Which part of `line` is most like `part`."""
    try:
        from rapidfuzz import fuzz
    except ImportError:
        return 0, len(line)
    found = fuzz.partial_ratio_alignment(part, line)
    return (found.dest_start, found.dest_end) if found else (0, len(line))
