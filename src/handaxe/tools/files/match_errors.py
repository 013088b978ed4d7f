"""Help after an edit that found no place, or several: where the text nearly stands, what to send.

Who is refused again and again for the same text is shown the file itself.
"""

from collections.abc import Callable, Sequence

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.session.read_ledger import AppliedEdits
from handaxe.text.encoding import NotText, decode
from handaxe.text.line_window import number_lines, slice_lines
from handaxe.text.replace.fuzzy_match import SimilarText, find_similar_text
from handaxe.tools.files.edit_faults import AmbiguousHunk, ManyMatches, NoMatch

MAX_TEXT_CHARS = 1_500
PATIENCE = 3
"""So often the same text is refused before the file is shown."""
AROUND_LINES = 10
MAX_PLACES = 3
MAX_WINDOW_LINES = 60
MAX_LINE_CHARS = 500

Missed = NoMatch | ManyMatches | AmbiguousHunk


def add_file_window(fault: Missed, content: bytes, path: str, old: str, ctx: ToolContext) -> Missed:
    """The fault; if the same text was refused before, with the lines of the file it is about."""
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
        "\n\nThe same text was refused before. This is what the file holds there; copy from it, "
        f"without the numbers:\n{shown}"
    )
    return fault


def _format_windows(text: str, places: Sequence[tuple[int, int]], ctx: ToolContext) -> str:
    """The lines around some places, as Read shows them; no line twice."""
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


def explain_no_match(content: bytes, path: str, old: str, resend: Callable[[str], str]) -> str:
    """The nearest places with their first difference, and what to send for the best one."""
    try:
        text = decode(content).text
    except NotText:
        return ""
    found = find_similar_text(text, old)
    if not found:
        return f"Nothing in {path} resembles it. Read the file again."
    shown = [_describe(place) for place in found]
    best = found[0]
    # A place that begins or ends elsewhere than what was given would leave pieces behind.
    has_same_ends = best.text[:1] == old[:1] and best.text[-1:] == old[-1:]
    if best.is_unique and has_same_ends and len(best.text) <= MAX_TEXT_CHARS:
        shown.append(f"If that is the place, send: {resend(best.text)}")
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
    """A new text as it stands in a call that is proposed."""
    return repr(new) if len(new) <= MAX_TEXT_CHARS else "..."
