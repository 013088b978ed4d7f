"""The edit that was meant by one whose text was not found: known mistakes, taken back.

Line numbers that were copied along, escapes where the file has the characters and the other way
round, blank lines, letters composed in another way, and what an exact search does not forgive.
The correction is an edit that makes exactly one place fit; nothing is made of it here.
"""

import re
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import Literal

import msgspec

from handaxe.text.chunks import count_in_chunks
from handaxe.text.encoding import UnencodableCharacter, has_surrogates, sniff
from handaxe.text.line_window import detect_line_break
from handaxe.text.replace.adapt import ReplacementAdapter
from handaxe.text.replace.find import MatchSearch, MatchSpan
from handaxe.text.replace.haystack import Haystack
from handaxe.text.replace.loose_match import LooseMistake, LooseText
from handaxe.text.replace.loose_replacement import UnclearReplacement, adapt_new
from handaxe.text.replace.plan import AmbiguousMatch, MatchedWith, NoPlace, Tolerance

Mistake = Literal["line_numbers", "escaped"] | LooseMistake | MatchedWith

_MAX_CHARS = 200_000


class CorrectedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """The mistake in an edit, and the intended edit if there is no doubt about it."""

    mistakes: tuple[Mistake, ...]
    lines: tuple[int, ...]
    """Where the places begin, from 1; with more than one the edit is refused."""
    stored: str = ""
    """The text of the file at that place."""
    old: str | None = None
    new: str | None = None


class _Reading(msgspec.Struct, frozen=True):
    """Both texts of an edit after a possible correction."""

    mistakes: tuple[Mistake, ...]
    old: str
    new: str
    is_certain: bool = True
    """Whether the new text can have been meant in this way only."""


def find_correction(
    content: bytes,
    text: str,
    old: str,
    new: str,
    *,
    name: str = "",
    replace_all: bool = False,
    tolerance: Tolerance = "visible",
) -> CorrectedEdit | None:
    """The correction of an edit that found no place; None if no mistake explains it.

    Args:
        content: The whole file.
        text: Its text.
        old: The text that was not found.
        new: Its replacement.
        name: The file's name, which a search shows in front of lines.
        replace_all: Whether every place was meant.
        tolerance: How the edit was looked for, and will be again.
    """
    if len(old) > _MAX_CHARS or has_surrogates(old) or has_surrogates(new):
        return None
    trial = _Trial(Haystack.of(content, sniff(content)), tolerance, replace_all=replace_all)
    readings = list(_list_readings(old, new, name))
    readings.sort(key=lambda reading: trial.haystack.find(reading.old) < 0)
    for reading in readings:
        # As it is, the text was looked for already, except where that was done to the letter.
        if (reading.mistakes or tolerance == "exact") and (found := trial.run(reading)):
            return found
    for reading in readings:
        if found := _correct_loosely(reading, text, trial):
            return found
    return None


class _Trial:
    """Tries readings against one file."""

    def __init__(self, haystack: Haystack, tolerance: Tolerance, *, replace_all: bool) -> None:
        self.haystack = haystack
        self._tolerance: Tolerance = tolerance
        self._replace_all = replace_all

    def run(self, reading: _Reading) -> CorrectedEdit | None:
        """The edit under this interpretation, or None if it matches no place."""
        try:
            search = MatchSearch(self.haystack, reading.old, "visible")
            every = search.find_all_places() if self._replace_all else (search.find_only(),)
            places = list(every)
        except NoPlace:
            return None
        except AmbiguousMatch as many:
            mistakes = self._add_class(reading, many.matched_with)
            return CorrectedEdit(mistakes=mistakes, lines=tuple(many.lines))
        numbers = self.haystack.line_numbers([place.begin for place in places])
        corrected = CorrectedEdit(
            mistakes=self._add_class(reading, search.matched_with),
            lines=tuple(numbers),
            stored=self.haystack.text(places[0].begin, places[0].end),
        )
        pair = self._correct(reading, search.matched_with, places)
        return msgspec.structs.replace(corrected, old=pair[0], new=pair[1]) if pair else corrected

    def _correct(
        self, reading: _Reading, matched_with: MatchedWith, places: list[MatchSpan]
    ) -> tuple[str, str] | None:
        """Both texts to send; None where they would change nothing, or are not certain."""
        adapter = ReplacementAdapter(self.haystack, reading.old, reading.new, matched_with)
        try:
            written = {splice.data for splice in adapter.splices(places)}
        except UnencodableCharacter:
            return None
        stored = {self.haystack.text(place.begin, place.end) for place in places}
        wanted = {data.decode(self.haystack.stored.encoding) for data in written}
        if stored == wanted or reading.old == reading.new or not reading.is_certain:
            return None
        if self._tolerance == "visible":
            return reading.old, reading.new
        if len(stored) > 1 or len(wanted) > 1 or not self._is_exact(min(stored), len(places)):
            return None
        return min(stored), min(wanted)

    def _is_exact(self, stored: str, count: int) -> bool:
        """Whether an exact search for what is stored finds these places and no other."""
        found = list(MatchSearch(self.haystack, stored, "exact").find_all_places())
        return len(found) == count

    def _add_class(self, reading: _Reading, matched_with: MatchedWith) -> tuple[Mistake, ...]:
        if self._tolerance == "visible" or matched_with == "exact":
            return reading.mistakes
        return (*reading.mistakes, matched_with)


def _correct_loosely(reading: _Reading, text: str, trial: _Trial) -> CorrectedEdit | None:
    """The correction where the text differs from the file in what no search forgives."""
    places = LooseText(reading.old).find(text)
    if not places or not any(place.mistakes for place in places):
        return None
    mistakes: tuple[Mistake, ...]
    mistakes = (*reading.mistakes, *dict.fromkeys(m for place in places for m in place.mistakes))
    line_break = detect_line_break(text)
    lines = tuple(1 + count_in_chunks(text, line_break, 0, place.begin) for place in places)
    stored = text[places[0].begin : places[0].end]
    named = CorrectedEdit(mistakes=mistakes, lines=lines, stored=stored)
    if len(places) > 1:
        return named
    try:
        new = adapt_new(places[0], reading.new)
    except UnclearReplacement:
        return named
    found = trial.run(_Reading(mistakes, places[0].old, new, reading.is_certain))
    return found if found and len(found.lines) == 1 else named


_NUMBER = r"[ \t]*(?P<number>\d{1,9})"
_SHOWN = (
    # As Read shows them, with the tags of EditLines too; then as other programs do.
    rf"{_NUMBER}(?::[a-z][a-z2-9])?[→\t]",
    rf"{_NUMBER}[ \t]*[|:-]",
    rf"{_NUMBER}[ \t]*[|:-] ",
)


def _list_readings(old: str, new: str, name: str) -> Iterator[_Reading]:
    """The edit as it is, without line numbers, unescaped, and both."""
    yield (given := _Reading((), old, new))
    yield from _strip_line_numbers(given, name)
    for reading in _unescape(given):
        yield reading
        yield from _strip_line_numbers(reading, name)


def _strip_line_numbers(given: _Reading, name: str) -> Iterator[_Reading]:
    forms: list[str] = list(_SHOWN)
    if name:
        forms.append(rf"(?:[^\n]*?/)?{re.escape(name)}[:-](?P<number>\d{{1,9}})[:-]")
    lines = given.old.split("\n")
    for form in forms:
        prefix = re.compile(form)
        found = [prefix.match(line) for line in lines]
        # The first line may have been copied from its middle, and nothing stands behind the last.
        unmarked = [at for at, match in enumerate(found) if match is None]
        numbers = [int(match["number"]) for match in found if match is not None]
        if not numbers or any(at and (lines[at] or at < len(lines) - 1) for at in unmarked):
            continue
        if any(second != first + 1 for first, second in pairwise(numbers)):
            continue
        old = [
            prefix.sub("", line, count=1) if match else line
            for line, match in zip(lines, found, strict=True)
        ]
        # Lines of the file that begin so themselves leave open what was copied in the new text.
        new = given.new
        if not any(map(prefix.match, old)):
            new = "\n".join(prefix.sub("", line, count=1) for line in given.new.split("\n"))
        elif any(map(prefix.match, given.new.split("\n"))):
            continue
        mistakes = (*given.mistakes, "line_numbers")
        # Lines that were joined with escapes in the new text alone.
        is_certain = given.is_certain and not re.search(rf"\\n{form}", new)
        yield _Reading(mistakes, "\n".join(old), new, is_certain)


# A break, a tab, a quote that is not escaped, a backslash that escapes nothing.
_NO_JSON = re.compile(r'[\n\t]|(?<!\\)(?:\\\\)*(?:"|\\\Z)')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KINDS = {"n": "line breaks", "r": "line breaks", "t": "tabs", '"': "quotes", "'": "quotes"}
_SIGNS = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "b": "\b",
    "f": "\f",
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
}


def _unescape(given: _Reading) -> Iterator[_Reading]:
    """Both texts with escapes taken as the characters they stand for: all, or only some kinds."""
    escapes = {match[1] for match in _ESCAPE.finditer(given.old)}
    kinds = list(dict.fromkeys(_KINDS[one] for one in escapes if one in _KINDS))
    if not kinds and not any(one == "\\" or len(one) > 1 for one in escapes):
        return
    if _is_escaped_whole(given.old) and _is_escaped_whole(given.new):
        yield _replace_escapes(given, lambda _: True)
    for count in range(len(kinds), 0, -1):
        for chosen in combinations(sorted(kinds), count):
            reading = _replace_escapes(given, lambda one, some=chosen: _KINDS.get(one) in some)
            is_certain = "line breaks" not in chosen or not _is_cutting_strings(reading)
            yield msgspec.structs.replace(reading, is_certain=is_certain)


def _is_escaped_whole(text: str) -> bool:
    """Whether a text could be the inside of a JSON string."""
    if _NO_JSON.search(text):
        return False
    return all(match[1] in _SIGNS or len(match[1]) > 1 for match in _ESCAPE.finditer(text))


def _replace_escapes(given: _Reading, is_meant: Callable[[str], bool]) -> _Reading:
    def put(match: re.Match[str]) -> str:
        escape = match[1]
        if not is_meant(escape):
            return match[0]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _SIGNS[escape]

    def read(text: str) -> str:
        return _ESCAPE.sub(put, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    return _Reading((*given.mistakes, "escaped"), read(given.old), read(given.new))


# What ends no string on its line: apostrophes in words, and quotes that hold several lines.
_NO_QUOTES = re.compile(r"(?<=\w)'(?=\w)|\"\"\"|'''")


def _is_cutting_strings(reading: _Reading) -> bool:
    """Whether a new line begins or ends inside quotes: a line break there was one in a string."""
    known = set(reading.old.split("\n"))
    fresh = (line for line in reading.new.split("\n") if line not in known)
    bare = (_NO_QUOTES.sub("", line) for line in fresh)
    return any(line.count('"') % 2 or line.count("'") % 2 for line in bare)
