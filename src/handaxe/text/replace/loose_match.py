"""A text that differs from the file in blank lines, composed letters or escapes: where it stands.

Only help after a failed edit looks here. A place decides nothing; it becomes a call to send.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal

import msgspec

from handaxe.text.chunks import find_in_chunks
from handaxe.text.replace.normalize import PLAIN, to_plain_typography

LooseMistake = Literal["unescaped", "blank_lines", "composition"]

_MAX_CHARS = 50_000
_MAXVARIABLES = 5_000
_MAX_WINDOWS = 64
_WINDOW_CHARS = 2_000
_SMALL_CHARS = 200_000
# Combining marks, and the vowels and final consonants that Hangul syllables fall apart into.
_JOINING = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0903"
    "\u093c-\u094d\u09bc-\u09cd\u0e31-\u0e4e\u1160-\u11ff\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f"
)
_BREAKS = r"\r?\n(?:[ \t]*\r?\n)*"
VARIABLE = re.compile(
    rf"{_BREAKS}|\t|\\+[\"']?|[\"']|[{''.join(PLAIN)}]|[A-Za-z][{_JOINING}]+|[^\x00-\x7f][{_JOINING}]*"
)
_LEAD = re.compile(r"(?:[ \t]*\r?\n)+")
_TAIL = re.compile(r"\r?\n(?:[ \t]*\r?\n)*\Z")


class _Token(msgspec.Struct, frozen=True):
    """A piece of the text; `pattern` says what the file may have for it, empty if just itself."""

    text: str
    pattern: str = ""


class LooseSegment(msgspec.Struct, frozen=True):
    """A piece of the text, and what the file has for it."""

    begin: int
    given: str
    stored: str
    may_change: bool = True
    """Whether a replacement may leave it out, though it differs."""

    @property
    def end(self) -> int:
        """Where it ends in the text."""
        return self.begin + len(self.given)


class LoosePlace(msgspec.Struct, frozen=True):
    """A place in a text: from, to, and how it differs."""

    begin: int
    end: int
    mistakes: tuple[LooseMistake, ...]
    segments: tuple[LooseSegment, ...]

    @property
    def old(self) -> str:
        """The text as the file has it; typographic signs stay as they were given."""
        return "".join(segment.stored for segment in self.segments)


class LooseText:
    """One text to look for."""

    def __init__(self, old: str) -> None:
        lead = _LEAD.match(old)
        self._lead = lead[0] if lead else ""
        rest = old[len(self._lead) :]
        tail = _TAIL.search(rest)
        self._tail = tail[0] if tail else ""
        self._core = rest[: len(rest) - len(self._tail)]

    def find(self, text: str) -> list[LoosePlace]:
        """Up to two places in `text`; none if the text is too long or too vague."""
        if not self._core.strip() or len(self._core) > _MAX_CHARS or not self._anchor:
            return []
        if len(self._tokens) > _MAXVARIABLES:
            return []
        pattern = re.compile("".join(t.pattern or re.escape(t.text) for t in self._tokens))
        places: list[LoosePlace] = []
        for begin, end in self._find_windows(text):
            position = begin
            while len(places) < 2 and (found := pattern.search(text, position, end)):
                position = found.start() + 1
                if place := self._measure(text, found.start(), found.end()):
                    places.append(place)
        return places

    @cached_property
    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        done = 0
        for begin, end, pattern in _list_variables(self._core):
            if begin > done:
                tokens.append(_Token(self._core[done:begin]))
            tokens.append(_Token(self._core[begin:end], pattern))
            done = end
        return [*tokens, _Token(self._core[done:])] if done < len(self._core) else tokens

    @cached_property
    def _anchor(self) -> str:
        """The longest piece that can only stand for itself."""
        fixed = [token.text.strip() for token in self._tokens if not token.pattern]
        return max(fixed, key=len, default="")

    def _find_windows(self, text: str) -> Iterator[tuple[int, int]]:
        if len(text) <= _SMALL_CHARS:
            yield 0, len(text)
            return
        slack = 4 * len(self._core) + _WINDOW_CHARS
        windows: list[tuple[int, int]] = []
        position = find_in_chunks(text, self._anchor)
        for _ in range(_MAX_WINDOWS):
            if position < 0:
                break
            begin, end = max(0, position - slack), position + len(self._anchor) + slack
            if windows and begin <= windows[-1][1]:
                begin = windows.pop()[0]
            windows.append((begin, end))
            position = find_in_chunks(text, self._anchor, position + 1)
        if position < 0:
            yield from windows

    def _measure(self, text: str, begin: int, end: int) -> LoosePlace | None:
        first, last = self._extend_back(text, begin), self._extend(text, end)
        if first is None or last is None:
            return None
        segments: list[LooseSegment] = []
        at = 0

        def add(given: str, stored: str, *, may_change: bool = True) -> None:
            nonlocal at
            segments.append(LooseSegment(at, given, stored, may_change))
            at += len(given)

        mistakes: dict[LooseMistake, None] = {}
        add(self._lead, text[first:begin], may_change=False)
        position = begin
        for token in self._tokens:
            stored = token.text
            if token.pattern:
                found = re.compile(token.pattern).match(text, position, end)
                assert found is not None
                stored = found[0]
            position += len(stored)
            if mistake := name_mistake(token.text, stored):
                mistakes[mistake] = None
            elif to_plain_typography(stored) == to_plain_typography(token.text):
                # Signs are forgiven, or corrected, where all else fits.
                stored = token.text
            add(token.text, stored)
        add(self._tail, text[end:last], may_change=False)
        for given, stored in ((self._lead, text[first:begin]), (self._tail, text[end:last])):
            if given.count("\n") != stored.count("\n"):
                mistakes["blank_lines"] = None
        return LoosePlace(first, last, tuple(mistakes), tuple(segments))

    def _extend_back(self, text: str, begin: int) -> int | None:
        """Where the blank lines in front begin: at most as many as were given."""
        if not self._lead:
            return begin
        if begin and text[begin - 1] != "\n":
            return None
        for _ in range(self._lead.count("\n")):
            line_end = begin - 1
            if line_end < 0 or text[line_end] != "\n":
                break
            begin = line_end - (text[line_end - 1 : line_end] == "\r")
            line = text.rfind("\n", 0, begin) + 1
            if not text[line:begin].strip(" \t\r"):
                begin = line
        return begin

    def _extend(self, text: str, end: int) -> int | None:
        """Where the blank lines behind end: at most as many as were given."""
        if not self._tail:
            return end
        if end < len(text) and text[end] not in "\r\n":
            return None
        for _ in range(self._tail.count("\n")):
            line_end = text.find("\n", end)
            if line_end < 0 or text[end:line_end].strip(" \t\r"):
                break
            end = line_end + 1
        return end


def _list_variables(core: str) -> Iterator[tuple[int, int, str]]:
    """Pieces for which a file may have something else: from, to, and what."""
    for found in VARIABLE.finditer(core):
        if pattern := _make_pattern(found[0]):
            yield found.start(), found.end(), pattern


_SIGNS: Mapping[str, str] = {
    plain: "".join(sign for sign, other in PLAIN.items() if other == plain) for plain in "'\""
}


def _make_pattern(text: str) -> str:
    """The variants of a piece that a file may have, the likeliest first."""
    if "\n" in text:
        count = text.count("\n")
        return rf"(?>\r?\n(?:[ \t]*+\r?\n)*+|(?<!\\)(?:(?:\\r)?\\n){{{count}}})"
    if text == "\t":
        return r"(?>\t|(?<!\\)\\t)"
    if text[0] == "\\" or text in ("'", '"'):
        return _make_quote_pattern(text)
    if text in PLAIN:
        return f"[{text}{PLAIN[text]}]"
    from unicodedata import normalize

    forms = {text, normalize("NFC", text), normalize("NFD", text)}
    if len(forms) == 1:
        return ""
    return f"(?>{'|'.join(map(re.escape, sorted(forms, key=len, reverse=True)))})"


def _make_quote_pattern(text: str) -> str:
    """Backslashes and a quote as they are, or with a backslash in front of each."""
    quote = text[-1] if text[-1] in "'\"" else ""
    count = len(text) - len(quote)
    counts = [2 * count, count]
    if quote:
        counts = [2 * count + 1, 2 * count, count + 1, count]
    forms = [re.escape("\\" * number + quote) for number in dict.fromkeys(counts)]
    if quote and not count:
        forms.append(f"[{_SIGNS[quote]}]")
    return rf"(?<!\\)(?>{'|'.join(forms)})" + ("" if quote else r"(?!\\)")


def name_mistake(given: str, stored: str) -> LooseMistake | None:
    """How a piece differs from what a file has for it; None where no search minds."""
    if given == stored:
        return None
    if stored.count("\\") != given.count("\\"):
        return "unescaped"
    if "\n" in given:
        return "blank_lines" if given.count("\n") != stored.count("\n") else None
    from unicodedata import normalize

    return "composition" if normalize("NFC", given) == normalize("NFC", stored) else None
