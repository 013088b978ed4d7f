"""Text with its invisible characters made visible, for whoever must tell them apart."""

import re

_MARKS = {"\t": "→", "\r": "␍", "\n": "␊"}
_NAMES = {"\t": "TAB", "\r": "CARRIAGE RETURN", "\n": "LINE FEED", "\x1b": "ESCAPE", "\0": "NULL"}
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Blanks at either end of a line and runs of them; one blank between words is seen well enough.
_SPACES = re.compile(r"(?m)^ +| +$|(?<=\t) +| {2,}| +(?=[\r\t])")


def visible(text: str) -> str:
    """`text` with marks for tabs, line breaks and telling spaces, and numbers for hidden signs."""
    dotted = _SPACES.sub(lambda match: "·" * len(match[0]), text)
    return "".join(_shown(character) for character in dotted)


def named(character: str) -> str:
    """A character by number and name: `U+2019 RIGHT SINGLE QUOTATION MARK`."""
    from unicodedata import name

    if not character:
        return "end of line"
    title = _NAMES.get(character) or name(character, "")
    return f"U+{ord(character):04X} {title}".rstrip()


def without_hidden(text: str, limit_chars: int) -> str:
    """`text` without controls and characters nobody sees, cut to a length; for texts of others."""
    if not (text.isascii() and text.isprintable()):
        from unicodedata import category

        kept = (c for c in text if c in "\n\t" or category(c) not in _HIDDEN)
        text = "".join(kept)
    text = text.strip()
    if len(text) <= limit_chars:
        return text
    cut = " ... (cut)"
    return text[: limit_chars - len(cut)] + cut


def _shown(character: str) -> str:
    if character in _MARKS:
        return _MARKS[character]
    if " " <= character <= "~":
        return character
    from unicodedata import category

    # Controls, formats, marks that join the letter before, and every space but the plain one.
    if category(character)[0] in "CMZ":
        return f"<U+{ord(character):04X}>"
    return character
