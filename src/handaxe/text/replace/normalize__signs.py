"""Typographic signs, the plain ones they stand for, and how a file's own survive an edit.

The table is closed: no ellipsis, no guillemets, no other folding of Unicode.
"""

import re

from handaxe.text.replace.align import align_blocks

PLAIN: dict[str, str] = {
    **dict.fromkeys("\u2018\u2019\u201a", "'"),
    **dict.fromkeys("\u201c\u201d\u201e", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u202f", " "),
}
Style = dict[str, set[str]]
_TABLE = str.maketrans(PLAIN)
_PAIRS = {"'": ("\u2018", "\u2019"), '"': ("\u201c", "\u201d")}
_TOKEN = re.compile(r"\w+|.", re.DOTALL)
_OPENS_AFTER = frozenset(" \t\n\u00a0\u202f([{<=:,/-\u2013\u2014")


def to_plain_signs(text: str) -> str:
    """`text` with plain signs only; as many characters as before."""
    return text if text.isascii() else text.translate(_TABLE)


def keep_signs(old: str, stored: str, new: str, style: Style) -> str:
    """`new` with the file's own signs wherever it repeats `old`, and in its style elsewhere.

    Args:
        old: The text to replace, as given.
        stored: What the file has there: the same but for its signs.
        new: The replacement, as given.
        style: The style of the whole place, of which these may be a part.
    """
    given, wanted = _TOKEN.findall(old), _TOKEN.findall(new)
    result, read, written = "", 0, 0
    for block in align_blocks(given, wanted):
        old_length = sum(map(len, given[block.old_begin : block.old_end]))
        new_length = sum(map(len, wanted[block.new_begin : block.new_end]))
        if block.kept:
            result += stored[read : read + old_length]
        else:
            result = _append(result, new, range(written, written + new_length), style)
        read += old_length
        written += new_length
    return result


def detect_sign_style(old: str, stored: str) -> Style:
    """For every sign that was given, what the file has in its places."""
    style: Style = {}
    for given, kept in zip(old, stored, strict=True):
        if given in PLAIN or kept in PLAIN or given in _PAIRS:
            style.setdefault(given, set()).add(kept)
    return style


def _append(result: str, new: str, span: range, style: Style) -> str:
    """`result` with characters of `new` that nothing in the file stands for."""
    for index in span:
        character = new[index]
        if character in style:
            following = new[index + 1 : index + 2]
            character = _apply_style(character, result[-1:], following, style[character])
        result += character
    return result


def _apply_style(character: str, before: str, following: str, kept: set[str]) -> str:
    """One inserted sign the way the file writes it, where that is beyond doubt."""
    if character in PLAIN:
        # A typographic sign that the file has as a plain one throughout was never meant.
        return PLAIN[character] if kept == {PLAIN[character]} else character
    # Dashes and spaces differ in meaning; only quotation marks and apostrophes follow a style.
    if character not in _PAIRS or character in kept:
        return character
    opening, closing = _PAIRS[character]
    if before.isalnum() and following.isalnum():
        return closing if closing in kept else character
    if not {opening, closing} <= kept:
        return character
    return opening if not before or before in _OPENS_AFTER else closing
