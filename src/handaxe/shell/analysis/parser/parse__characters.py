"""Characters that a terminal hides or acts upon, and that therefore block automatic approval."""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    # Blanks that look like a space but do not separate words in bash.
    "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    # Zero width and fillers.
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u3164\ufeff\uffa0"
    # Direction controls.
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"
    # Variation selectors but the emoji one, tags, interlinear marks, lone surrogates.
    "\ufe00-\ufe0e\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff"
    "]"
)


def find_hidden_character(text: str) -> tuple[int, str] | None:
    """Where the first hidden or controlling character stands and how to name it."""
    if text.isascii() and text.isprintable():
        return None
    found = _HIDDEN.search(text)
    if found is None:
        return None
    return found.start(), f"U+{ord(found.group()):04X}"
