"""How a text that was given differs from what a file has, so that everything is seen."""

import msgspec

from handaxe.text.escape import describe_character, to_visible_text
from handaxe.text.line_window import detect_line_break, split_keeping_ends


class SimilarText(msgspec.Struct, frozen=True, kw_only=True):
    """A place that resembles the lost text; lines count from 1, `differs` is the first other line.

    Attributes:
        first_line: Where the place begins.
        last_line: Where it ends.
        text: The text of the place, ready to be used as the text to replace.
        is_unique: Whether `text` is in the file exactly once.
        score: From 0 to 1, for ordering only.
        differs: The number of the first line that differs.
        given: That line as it was given, invisible characters made visible.
        stored: That line as the file has it, invisible characters made visible.
        given_character: The first character that differs, by number and name, as given.
        stored_character: The first character that differs, as the file has it.
    """

    first_line: int
    last_line: int
    text: str
    is_unique: bool
    score: float
    differs: int
    given: str
    stored: str
    given_character: str
    stored_character: str


def compare_texts(
    old: str, stored: str, first_line: int, *, is_unique: bool = True, score: float = 1.0
) -> SimilarText:
    """How a text that was given differs from what the file has on its lines."""
    theirs, ours = split_bare(old), split_bare(stored)
    index = _find_first_difference(theirs, ours)
    given_line, stored_line = _get_line(theirs, index), _get_line(ours, index)
    column = _find_first_difference(given_line, stored_line)
    return SimilarText(
        first_line=first_line,
        last_line=first_line + len(ours) - 1,
        text=stored,
        is_unique=is_unique,
        score=score,
        differs=first_line + index,
        given=to_visible_text(given_line, exact=True),
        stored=to_visible_text(stored_line, exact=True),
        given_character=describe_character(given_line[column : column + 1]),
        stored_character=describe_character(stored_line[column : column + 1]),
    )


def split_bare(text: str) -> list[str]:
    """The lines of a text without their breaks."""
    return [line.rstrip("\r\n") for line in split_keeping_ends(text, detect_line_break(text))]


def _find_first_difference(one: str | list[str], other: str | list[str]) -> int:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))


def _get_line(lines: list[str], index: int) -> str:
    return lines[index] if index < len(lines) else ""
