"""Text of others in messages for the model, framed so that it never passes for the runtime's own.

The runtime marks its words with tags. Every place that puts text of a file, server, agent, command
or model into such a message uses `frame`, `frame_field` or `quote_line`; no other module spells a
tag of the runtime.
"""

import re
from functools import lru_cache
from string import ascii_lowercase
from typing import Final

from handaxe.text.escape import is_hidden

RUNTIME_TAGS: Final = (
    "system-reminder",
    "task-notification",
    "persisted-output",
    "available-deferred-tools",
    "instructions-file",
    "server-instructions",
    "skill-text",
    "conversation-summary",
)
"""Tags that only the runtime may write. Tags inside these are not listed."""

_RUNTIME_NAMES = frozenset(tag.replace("-", "") for tag in RUNTIME_TAGS)
# What looks like `<`, as far as fonts and models go.
_OPENERS = "<＜﹤‹〈〈⟨˂ᐸ❮❬⧼«≺⋖ㄑ𝈶\U000e003c"
_SMUGGLED = "\U000e003c"
"""`<` in letters that only models read; nothing else is written with it."""
_SLASHES = frozenset("/\\⁄∕⟋⧸╱／＼")
_HYPHENS = frozenset("-_‐‑‒–—―−﹘﹣－⁃·˗➖ー")
_TWINS = str.maketrans(
    "аеорсухѕіјԁԛԝмтпгкнвһαεικνορτυχηϲγϳıɑɩʏꜱᴛᴇᴍʀɪɴᴅᴀᴏᴜᴘʟɡոսօհցӏ",
    "aeopcyxsijdqwmtnrkhbhaeikvoptuxncyjiaiystemrindaouplgnuohgl",
)


class Framed(str):
    """Text that is safe without changes; only this module makes it, and joining loses the type."""

    __slots__ = ()


def neutralize(text: str, *, closing: str = "") -> str:
    """`text` with `&lt;` for what opens or ends a tag of the runtime, however it is spelled.

    Upper case, blanks, invisible characters and look-alikes do not hide a tag. All other markup
    stays as it is, except the end of the tag `closing`. What is framed already stays whole.
    """
    if isinstance(text, Framed):
        return text
    kept: list[str] = []
    done = 0
    for match in _compile_candidates(closing).finditer(text):
        if match[0] == _SMUGGLED or _is_tag(text, match.end(), closing):
            kept += (text[done : match.start()], "&lt;")
            done = match.end()
    return "".join((*kept, text[done:])) if kept else text


def neutralize_result(text: str, *, is_preview: bool) -> str:
    """The text of a tool's result; only a preview that a tool framed may look like one."""
    if not is_preview or not text.startswith("<persisted-output>"):
        return neutralize(text)
    head, end, rest = text.partition("</persisted-output>")
    return f"{head}{end}{neutralize(rest)}"


def frame(tag: str, *pieces: str, **attributes: str) -> Framed:
    """The pieces on lines of their own between the tag and its end; they cannot end it."""
    inside = _escape_pieces(tag, pieces).strip("\n")
    return Framed(f"{_format_open_tag(tag, attributes)}\n{inside}\n</{tag}>")


def frame_field(tag: str, text: str) -> Framed:
    """A value between the tag and its end; it contains no tags."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Framed(f"<{tag}>{neutralize(plain)}</{tag}>")


def join_framed(*pieces: str) -> Framed:
    """Pieces below each other, each safe."""
    return Framed(_escape_pieces("", pieces))


def frame_reminder(*pieces: str) -> Framed:
    """Text that no user wrote, marked as the runtime's."""
    return frame("system-reminder", *pieces)


def quote_line(text: str) -> str:
    """Text of others as part of one line: it can begin no line of its own, and no tag."""
    return neutralize(" ".join(text.split()))


def _format_open_tag(tag: str, attributes: dict[str, str]) -> str:
    words = [tag]
    for name, value in attributes.items():
        quoted = quote_line(value).replace("<", "&lt;").replace('"', "&quot;")
        words.append(f'{name}="{quoted}"')
    return f"<{' '.join(words)}>"


def _escape_pieces(tag: str, pieces: tuple[str, ...]) -> str:
    """Unsafe neighbours are checked together: a tag may begin in one of them."""
    safe: list[str] = []
    loose: list[str] = []
    for piece in (*pieces, Framed()):
        if not isinstance(piece, Framed):
            loose.append(piece)
            continue
        if loose:
            safe.append(neutralize("\n".join(loose), closing=tag))
            loose = []
        if piece:
            safe.append(piece)
    return "\n".join(safe)


@lru_cache(maxsize=64)
def _compile_candidates(closing: str) -> re.Pattern[str]:
    """The possible starts of a tag. The first letter identifies nearly all ordinary markup."""
    first = {name[0] for name in (*_RUNTIME_NAMES, closing) if name}
    others = "".join(sorted(set(ascii_lowercase) - first))
    return re.compile(rf"[{_OPENERS}](?!/?(?:[{others}]|[{others.upper()}]))")


def _is_tag(text: str, at: int, closing: str) -> bool:
    """Whether a tag's name follows here, behind blanks and slashes."""
    names = _RUNTIME_NAMES
    found = ""
    for place in range(at, len(text)):
        character = text[place]
        if character in _OPENERS:
            break
        if not found and character in _SLASHES:
            names = _collect_tag_names(closing)
        elif character.isspace() or character in _HYPHENS:
            if found in names:
                return True
        elif not is_hidden(character):
            for sign in _fold(character):
                if any(name.startswith(found + sign) for name in names):
                    found += sign
                else:
                    return found in names and not (character.isascii() and sign.isalnum())
    return found in names


@lru_cache(maxsize=64)
def _collect_tag_names(closing: str) -> frozenset[str]:
    own = closing.replace("-", "").replace("_", "")
    return _RUNTIME_NAMES | {own} if own else _RUNTIME_NAMES


def _fold(character: str) -> str:
    """The plain letters that a character stands for, without marks."""
    if character.isascii():
        return character.lower()
    from unicodedata import combining, normalize

    folded = normalize("NFKD", character.translate(_TWINS)).casefold().translate(_TWINS)
    return "".join(sign for sign in folded if not combining(sign) and not is_hidden(sign))
