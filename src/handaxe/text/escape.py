"""Any value as a person sees it: nothing invisible, nothing that steers a terminal."""

import re
from collections.abc import Iterable

_MARKS = {"\t": "→", "\r": "␍", "\n": "␊"}
_NAMES = {"\t": "TAB", "\r": "CARRIAGE RETURN", "\n": "LINE FEED", "\x1b": "ESCAPE", "\0": "NULL"}
_SHORT = {"\n": "\\n", "\t": "\\t"}
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that fonts draw as nothing: fillers, blank Braille, joiners, selectors.
_BLANK = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC, 0x16FE4),
            *(0x1D159, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
        ),
    )
)
_EMOJI_STYLE = "\ufe0f"
_STYLED = frozenset({"So", "Sm", "Po", "Nd"})
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
# Marks on nothing would strike out what stands before; more than three cover the line above.
_STRAY_MARKS = rf"^{_MARK}+|(?<=\s){_MARK}+|(?<={_MARK}{{3}}){_MARK}+"
_SUSPECT = f"[{''.join(sorted(_BLANK))}]|{_MARK}"
# Blanks at either end of a line and runs of them; one blank between words is seen well enough.
_SPACES = r"(?m)^ +| +$|(?<=\t) +| {2,}| +(?=[\r\t])"


def to_visible_text(value: object, *, lines: bool = False, exact: bool = False) -> str:
    """A value as text in which every character is visible and harmless.

    Controls, invisible characters and directions become numbers. `lines` keeps line breaks and tabs
    for output of several lines. `exact` also shows unusual blanks and single marks.
    """
    text = value if isinstance(value, str) else str(value)
    if exact:
        dotted = re.sub(_SPACES, lambda match: "·" * len(match[0]), text)
        return "".join(_escape_character(character) for character in dotted)
    kept = "\n\t" if lines else ""
    plain = text.replace("\n", "").replace("\t", "") if lines else text
    if plain.isprintable() and (plain.isascii() or re.search(_SUSPECT, plain) is None):
        return text
    text = re.sub(_STRAY_MARKS, lambda found: "".join(map(_number, found[0])), text)
    signs = zip(f" {text}", text, strict=False)
    return "".join(
        sign if sign in kept or _is_seen(sign, before) else _number(sign) for before, sign in signs
    )


def to_visible_json(text: str) -> str:
    """Equivalent JSON, with an escape for every invisible character."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(
        sign if sign == "\n" or _is_seen(sign, "") else encode_json_escape(sign) for sign in text
    )


def encode_json_escape(text: str) -> str:
    """Characters as JSON spells them in ASCII."""
    units = text.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def is_hidden(character: str) -> bool:
    """Whether this character is invisible: a control, a format, a filler, an unknown one."""
    if character.isascii():
        return not character.isprintable()
    from unicodedata import category

    return character in _BLANK or category(character) in _HIDDEN


def describe_character(character: str) -> str:
    """A character by number and name: `U+2019 RIGHT SINGLE QUOTATION MARK`."""
    from unicodedata import name

    if not character:
        return "end of line"
    title = _NAMES.get(character) or name(character, "")
    return f"U+{ord(character):04X} {title}".rstrip()


def strip_hidden(text: str, limit_chars: int) -> str:
    """`text` without controls and invisible characters, cut to a length; for foreign texts."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(c for c in text if c in "\n\t" or not is_hidden(c))
    text = text.strip()
    if len(text) <= limit_chars:
        return text
    cut = " ... (cut)"
    return text[: limit_chars - len(cut)] + cut


def _is_seen(sign: str, before: str) -> bool:
    if sign == _EMOJI_STYLE:
        from unicodedata import category

        return bool(before) and category(before) in _STYLED
    return sign.isprintable() and sign not in _BLANK


def _number(sign: str) -> str:
    if sign in _SHORT:
        return _SHORT[sign]
    return f"\\x{ord(sign):02x}" if ord(sign) <= 0xFF else f"<U+{ord(sign):04X}>"


def _escape_character(character: str) -> str:
    if character in _MARKS:
        return _MARKS[character]
    if " " <= character <= "~":
        return character
    from unicodedata import category

    # Controls, formats, marks that join the letter before, and every space but the plain one.
    if category(character)[0] in "CMZ" or character in _BLANK:
        return f"<U+{ord(character):04X}>"
    return character


def format_count(number: int, thing: str) -> str:
    """`1 file`, `2,000 files`, `3 matches`, `1 entry`, `2 entries`; of a phrase, its last word."""
    if number == 1:
        return f"1 {thing}"
    if thing.endswith(("ch", "sh", "s", "x")):
        return f"{number:,} {thing}es"
    if thing.endswith("y") and not thing.endswith(("ay", "ey", "oy", "uy")):
        return f"{number:,} {thing[:-1]}ies"
    return f"{number:,} {thing}s"


_LONGEST = 100
"""Maximum length of a name that is compared; longer ones are not typing mistakes."""


def find_closest_name(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that looks most like `name`, or None if none is close."""
    if not name or len(name) > _LONGEST:
        return None
    by_shape: dict[str, str] = {}
    for candidate in candidates:
        by_shape.setdefault(_normalize_name(candidate), candidate)
    wanted = _normalize_name(name)
    if wanted in by_shape:
        return by_shape[wanted]
    holding = [shape for shape in by_shape if wanted in shape] if len(wanted) > 2 else []
    if len(holding) == 1:
        return by_shape[holding[0]]
    from difflib import get_close_matches

    close = get_close_matches(wanted, by_shape, n=1, cutoff=0.6)
    return by_shape[close[0]] if close else None


def format_suggestion(name: str, candidates: Iterable[str]) -> str:
    """The question ` Did you mean 'name'?` for a misspelled name; empty if none is close."""
    near = find_closest_name(name, candidates)
    return f" Did you mean {near!r}?" if near else ""


def _normalize_name(name: str) -> str:
    """Make `filePath`, `file-path` and `FILE_PATH` equal."""
    return name.casefold().replace("_", "").replace("-", "") or name
