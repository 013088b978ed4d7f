"""The replacement in the file's own form, where the text was found loosely.

What it repeats of the text takes the blank lines, escapes and composed letters of the file.
"""

import re
from collections.abc import Iterator, Mapping

from handaxe.text.line_window import split_keeping_ends
from handaxe.text.replace.loose_match import VARIABLE, LoosePlace, name_mistake
from handaxe.text.replace.plan import align_blocks

_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)


class UnclearReplacement(Exception):
    """The form of the replacement in the file's own style is uncertain."""


def adapt_new(place: LoosePlace, new: str) -> str:
    """`new` in the file's form wherever it repeats the text.

    Raises:
        UnclearReplacement: A part that differs is changed as well.
    """
    old = "".join(segment.given for segment in place.segments)
    styles = _collect_styles(place)
    composed = {
        segment.given: segment.stored
        for segment in place.segments
        if name_mistake(segment.given, segment.stored) == "composition"
    }
    result, read, written = "", 0, 0
    kept = [_snap(place, *span) for span in _merge_spans(_list_kept(old, new))]
    for old_begin, old_end, new_begin in (*kept, (len(old), len(old), len(new))):
        if old_begin > old_end:
            continue
        _check_dropped(place, read, old_begin)
        fresh = _apply_styles(new[written:new_begin], styles)
        result += VARIABLE.sub(lambda found: composed.get(found[0], found[0]), fresh)
        result += _map_span(place, old_begin, old_end)
        read, written = old_end, new_begin + old_end - old_begin
    return result


def _list_kept(old: str, new: str) -> Iterator[tuple[int, int, int]]:
    """The parts of `old` that occur in `new` again: from, to, and where in `new`."""
    theirs, ours = split_keeping_ends(old), split_keeping_ends(new)
    old_at = new_at = 0
    for block in align_blocks(theirs, ours):
        gone, come = theirs[block.old_begin : block.old_end], ours[block.new_begin : block.new_end]
        if block.kept:
            size = sum(map(len, gone))
            yield old_at, old_at + size, new_at
            old_at, new_at = old_at + size, new_at + size
            continue
        pairs = (
            zip(gone, come, strict=True)
            if len(gone) == len(come)
            else [("".join(gone), "".join(come))]
        )
        for one, other in pairs:
            yield from _list_kept_parts(one, other, old_at, new_at)
            old_at, new_at = old_at + len(one), new_at + len(other)


def _list_kept_parts(
    old: str, new: str, old_at: int, new_at: int
) -> Iterator[tuple[int, int, int]]:
    """The same within lines: what both begin and end with, and the words in between."""
    head, tail = _count_common(old, new)
    yield old_at, old_at + head, new_at
    theirs = _split_words(old[head : len(old) - tail])
    ours = _split_words(new[head : len(new) - tail])
    begin, new_begin = old_at + head, new_at + head
    for block in align_blocks(theirs, ours):
        size = sum(map(len, theirs[block.old_begin : block.old_end]))
        if block.kept:
            yield begin, begin + size, new_begin
        begin += size
        new_begin += sum(map(len, ours[block.new_begin : block.new_end]))
    yield old_at + len(old) - tail, old_at + len(old), new_at + len(new) - tail


def _split_words(text: str) -> list[str]:
    """The words of a part of one line; which line of several became which is not known."""
    return [text] if "\n" in text else _WORD.findall(text)


def _merge_spans(spans: Iterator[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Spans that follow each other on both sides as one; none that is empty."""
    current: tuple[int, int, int] | None = None
    for begin, end, new_begin in spans:
        if begin == end:
            continue
        if current and current[1] == begin and current[2] + current[1] - current[0] == new_begin:
            current = current[0], end, current[2]
            continue
        if current:
            yield current
        current = begin, end, new_begin
    if current:
        yield current


def _snap(place: LoosePlace, begin: int, end: int, new_begin: int) -> tuple[int, int, int]:
    """A span without the parts of pieces that differ, of which the file has all or nothing."""
    first, last = begin, end
    for segment in place.segments:
        if segment.given != segment.stored:
            if segment.begin < begin < segment.end:
                first = segment.end
            if segment.begin < end < segment.end:
                last = segment.begin
    return first, last, new_begin + first - begin


def _count_common(one: str, other: str) -> tuple[int, int]:
    """How many characters both begin and end with."""
    shorter = min(len(one), len(other))
    head = next((n for n in range(shorter) if one[n] != other[n]), shorter)
    rest = shorter - head
    return head, next((n for n in range(rest) if one[-1 - n] != other[-1 - n]), rest)


def _map_span(place: LoosePlace, begin: int, end: int) -> str:
    """The text of the file for a part of the search text."""
    pieces: list[str] = []
    for segment in place.segments:
        first, last = max(begin, segment.begin), min(end, segment.end)
        if first >= last:
            continue
        if segment.given == segment.stored:
            pieces.append(segment.given[first - segment.begin : last - segment.begin])
        elif (first, last) == (segment.begin, segment.end):
            pieces.append(segment.stored)
        else:
            raise UnclearReplacement
    return "".join(pieces)


def _check_dropped(place: LoosePlace, begin: int, end: int) -> None:
    """Raise if a replacement would remove blank lines that the edit does not name."""
    for segment in place.segments:
        if segment.given == segment.stored or segment.begin >= end or segment.end <= begin:
            continue
        longer = segment.stored.count("\n") > segment.given.count("\n")
        if longer or not segment.may_change:
            raise UnclearReplacement


_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", '"': '\\"', "'": "\\'"}


def _collect_styles(place: LoosePlace) -> dict[str, set[bool]]:
    """For each sign, whether the file spells it with a backslash: always, never, or both."""
    styles: dict[str, set[bool]] = {}
    for segment in place.segments:
        for sign in _ESCAPES:
            if sign in segment.given and segment.may_change:
                is_escaped = segment.stored.count("\\") > segment.given.count("\\")
                styles.setdefault(sign, set()).add(is_escaped)
    return styles


def _apply_styles(text: str, styles: Mapping[str, set[bool]]) -> str:
    for sign, escape in _ESCAPES.items():
        known = styles.get(sign, set())
        if sign in text and True in known:
            if len(known) > 1:
                raise UnclearReplacement
            text = text.replace(sign, escape)
    return text
