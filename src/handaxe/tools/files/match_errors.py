"""Help after an edit that matched nowhere or in several places.

After repeated refusals of the same text, the fault shows the file's lines.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.session.read_ledger import AppliedEdits
from handaxe.text.encoding import NotText, decode
from handaxe.text.line_window import number_lines, slice_lines
from handaxe.text.replace.corrections import CorrectedEdit, Mistake, find_correction
from handaxe.text.replace.fuzzy_match import find_similar_text
from handaxe.text.replace.text_difference import SimilarText, compare_texts
from handaxe.tools.files.edit_faults import AmbiguousHunk, ManyMatches, NoMatch

MAX_TEXT_CHARS = 1_500
PATIENCE = 3
"""Number of refusals of the same text before the file is shown."""
AROUND_LINES = 10
MAX_PLACES = 3
MAX_WINDOW_LINES = 60
MAX_LINE_CHARS = 500

Missed = NoMatch | ManyMatches | AmbiguousHunk
Resend = Callable[[str, str], str | None]
"""The call to send instead, for a corrected old and new text; None if no correction fits."""


class MissedEdit(msgspec.Struct, frozen=True):
    """An edit that did not match."""

    old: str
    new: str
    replace_all: bool = False


def add_file_window(fault: Missed, content: bytes, path: str, old: str, ctx: ToolContext) -> Missed:
    """The fault; after repeated refusals, with the file's lines at that place."""
    if ctx[AppliedEdits].count_miss(path, old, ctx.call_id) < PATIENCE:
        return fault
    try:
        text = decode(content).text
    except NotText:
        return fault
    if isinstance(fault, NoMatch):
        places = [
            (near.first_line, near.last_line) for near in find_similar_text(text, old, limit=1)
        ]
    else:
        places = [(line, line + old.count("\n")) for line in fault.data["lines"][:MAX_PLACES]]
    shown = _format_windows(text, places or [(1, 1)], ctx)
    fault.sentence += (
        "\n\nThe same text was refused before. These are the file's lines there; copy "
        f"from them, without the numbers:\n{shown}"
    )
    return fault


def _format_windows(text: str, places: Sequence[tuple[int, int]], ctx: ToolContext) -> str:
    """The lines around some places, as Read shows them; each line once."""
    style = ctx[Settings].read.line_format
    pieces: list[str] = []
    done = 0
    for first, last in places:
        begin = max(1, first - AROUND_LINES, done + 1)
        count = min(last + AROUND_LINES - begin + 1, MAX_WINDOW_LINES)
        if count <= 0:
            continue
        lines, begin, _ = slice_lines(text, begin, count)
        done = begin + len(lines) - 1
        pieces.append(number_lines([line[:MAX_LINE_CHARS] for line in lines], begin, style))
    return "\n...\n".join(pieces)


def build_no_match(
    content: bytes, path: str, edit: MissedEdit, resend: Resend, ctx: ToolContext
) -> NoMatch:
    """The fault for a missing text: the likely mistake and the call to send instead."""
    try:
        text = decode(content).text
    except NotText:
        return NoMatch(edit.old, "")
    corrected = find_correction(
        content,
        text,
        edit.old,
        edit.new,
        name=path.rpartition("/")[2],
        replace_all=edit.replace_all,
        tolerance=ctx[Settings].edit.tolerance,
    )
    if corrected is None:
        return NoMatch(edit.old, _explain_no_match(text, path, edit, resend))
    data: dict[str, Any] = {"mistakes": list(corrected.mistakes), "lines": list(corrected.lines)}
    call = None
    if corrected.old is not None and corrected.new is not None:
        call = resend(corrected.old, corrected.new)
        if call is not None:
            data["corrected"] = {"old_string": corrected.old, "new_string": corrected.new}
            if max(len(corrected.old), len(corrected.new)) > MAX_TEXT_CHARS:
                call = "the same again, with both texts corrected."
    return NoMatch(edit.old, _explain_mistakes(edit, corrected, call), data)


_MISTAKES: Mapping[Mistake, str] = {
    "line_numbers": "The text contains line numbers, as Read and Grep show them before each line. "
    "The file does not contain them: leave them out.",
    "escaped": "The text writes line breaks, tabs or quotes with a backslash, such as \\n. "
    "The file contains the characters themselves.",
    "unescaped": "The text contains line breaks, tabs, quotes or backslashes where the file has "
    "them written with a backslash, such as \\n.",
    "blank_lines": "The text has more or fewer blank lines or line breaks than the file.",
    "composition": "Accented letters are composed differently: the text looks the same as in the "
    "file, but uses other characters (Unicode NFC and NFD).",
}


def _explain_mistakes(edit: MissedEdit, corrected: CorrectedEdit, call: str | None) -> str:
    told = [_MISTAKES[mistake] for mistake in corrected.mistakes if mistake in _MISTAKES]
    kinds = [mistake for mistake in corrected.mistakes if mistake not in _MISTAKES]
    if kinds:
        told.append(
            f"The text differs from the file in {' and '.join(kinds).replace('_', ' ')}, "
            "and edit.tolerance = exact allows no difference."
        )
    first_line, *others = corrected.lines
    if others and corrected.old is None:
        places = ", ".join(map(str, corrected.lines))
        told.append(
            f"With that corrected it matches several places, on lines {places}. Include "
            "more of the surrounding lines, exactly as in the file."
        )
        return "\n".join(told)
    if "line_numbers" not in corrected.mistakes:
        told.append(_describe(compare_texts(edit.old, corrected.stored, first_line)))
    if call is None:
        told.append(
            f"You probably mean line {first_line}; copy it from the "
            f"file:\n{_shorten_stored(corrected.stored)}"
        )
    else:
        told.append(f"Send: {call}")
    return "\n".join(told)


def _shorten_stored(stored: str) -> str:
    return stored if len(stored) <= MAX_TEXT_CHARS else f"{stored[:MAX_TEXT_CHARS]}..."


def _explain_no_match(text: str, path: str, edit: MissedEdit, resend: Resend) -> str:
    """Describe the most similar places, and the corrected call for the best one."""
    found = find_similar_text(text, edit.old)
    if not found:
        return f"Nothing in {path} resembles it. Read the file again."
    shown = [_describe(place) for place in found]
    best, old = found[0], edit.old
    # A match with another start or end than the given text would leave pieces behind.
    has_same_ends = best.text[:1] == old[:1] and best.text[-1:] == old[-1:]
    if best.is_unique and has_same_ends and len(best.text) <= MAX_TEXT_CHARS:
        call = resend(best.text, edit.new)
        shown += [f"If you mean that place, send: {call}"] if call else []
    return "\n".join(shown)


def _describe(place: SimilarText) -> str:
    lines = f"line {place.first_line}"
    if place.last_line != place.first_line:
        lines = f"lines {place.first_line}-{place.last_line}"
    return (
        f"Nearest: {lines}; the first difference is in line {place.differs}\n"
        f"  given:   {place.given}\n"
        f"  in file: {place.stored}\n"
        f"  ({place.given_character} where the file has {place.stored_character})"
    )


def shorten_text(new: str) -> str:
    """A new text shortened for a suggested call."""
    return repr(new) if len(new) <= MAX_TEXT_CHARS else "..."
