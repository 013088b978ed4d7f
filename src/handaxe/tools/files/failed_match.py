"""Help after an edit that found no place: where the text nearly stands, and what to send."""

from collections.abc import Callable

from handaxe.text.encoding import NotText, decode
from handaxe.text.nearest import Nearby, nearest

MAX_TEXT_CHARS = 1_500


def explain_no_match(content: bytes, path: str, old: str, resend: Callable[[str], str]) -> str:
    """The nearest places with their first difference, and what to send for the best one."""
    try:
        text = decode(content).text
    except NotText:
        return ""
    found = nearest(text, old)
    if not found:
        return f"Nothing in {path} resembles it. Read the file again."
    shown = [_describe(place) for place in found]
    best = found[0]
    # A place that begins or ends elsewhere than what was given would leave pieces behind.
    has_same_ends = best.text[:1] == old[:1] and best.text[-1:] == old[-1:]
    if best.is_unique and has_same_ends and len(best.text) <= MAX_TEXT_CHARS:
        shown.append(f"If that is the place, send: {resend(best.text)}")
    return "\n".join(shown)


def _describe(place: Nearby) -> str:
    lines = f"line {place.first_line}"
    if place.last_line != place.first_line:
        lines = f"lines {place.first_line}-{place.last_line}"
    return (
        f"Nearest: {lines}; the first difference is in line {place.differs}\n"
        f"  given:   {place.given}\n"
        f"  in file: {place.stored}\n"
        f"  ({place.given_character} where the file has {place.stored_character})"
    )


def shortened(new: str) -> str:
    """A new text as it stands in a call that is proposed."""
    return repr(new) if len(new) <= MAX_TEXT_CHARS else "..."
