r"""ripgrep's regular expressions as Python's: the same language, as far as both have it.

What ripgrep refuses (look-around, back-references, a lone `{`) is refused here too; what only
ripgrep has (`\p{Greek}`, class arithmetic) is refused with a hint to install it.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from handaxe.contract.ports.search import BadQuery

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_PROPERTIES = {"L": r"[^\W\d_]", "Alphabetic": r"[^\W\d_]", "N": r"\d", "Nd": r"\d"}
_PROPERTY = re.compile(r"[pP](?:\{(\^?)([A-Za-z_=]+)\}|([A-Z]))")
_REPEAT = re.compile(r"\{\s*(\d*)\s*(?:(,)\s*(\d*)\s*)?\}")
_GROUP = re.compile(r"\?(?:P?<([A-Za-z_][\w.\[\]]*)>|([imsxURu]*(?:-[imsxURu]+)?)([:)]))")
_HEX = re.compile(r"[xuU](?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]+))")
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_LOOK_AROUND = "look-around, including look-ahead and look-behind, is not supported"
_REFUSED = {
    **dict.fromkeys(("?=", "?!", "?<=", "?<!"), _LOOK_AROUND),
    "?P=": "backreferences are not supported",
}


class TranslatedPattern(NamedTuple):
    """A pattern both as an expression and as text that every match must contain."""

    source: str
    literal: str
    """Some text that stands in every match; empty if none is known."""
    is_literal: bool
    """Whether the pattern is nothing but that text."""


@lru_cache(maxsize=16)
def translate(pattern: str, *, multiline: bool) -> TranslatedPattern:
    """The pattern for `re`, or `BadQuery` with the diagnostic."""
    return _Translator(pattern, multiline=multiline).translate()


class _Translator:
    def __init__(self, pattern: str, *, multiline: bool) -> None:
        self._text = pattern
        self._at = 0
        self._multiline = multiline
        self._out: list[str] = []
        self._open: list[tuple[int, int]] = []
        """Where each open group begins, and how many flag groups end with it."""
        self._flags_open = 0
        self._last: int | None = None
        """Where the thing begins that a quantifier would repeat."""
        self._is_repeated = False
        self._runs: list[str] = [""]
        self._is_plain = True
        self._has_choice = False

    def translate(self) -> TranslatedPattern:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        if self._open:
            raise self._bad("unclosed group")
        self._out.append(")" * self._flags_open)
        literal = "" if self._has_choice else max(self._runs, key=len)
        return TranslatedPattern("".join(self._out), literal, is_literal=self._is_plain)

    def _step(self, char: str) -> None:
        if char == "\\":
            self._escape()
        elif char == "[":
            self._parse_class()
        elif char == "(":
            self._group()
        elif char == ")":
            self._close()
        elif char in "*+?{":
            self._add_repeat(char)
        elif char == "|":
            self._add_alternative()
        elif char == ".":
            self._add_atom("(?s:.)" if self._multiline else r"[^\r\n]")
        elif char in "^$":
            self._add_anchor(char)
        else:
            self._literal(char)
            self._at += 1

    def _literal(self, char: str) -> None:
        if char in "\r\n" and not self._multiline:
            name = r"\r" if char == "\r" else r"\n"
            raise BadQuery("pattern", f'the literal "{name}" is not allowed in a regex')
        self._last, self._is_repeated = len(self._out), False
        self._out.append(re.escape(char))
        if not self._open and not self._flags_open:
            self._runs[-1] += char

    def _add_atom(self, source: str, length: int = 1) -> None:
        self._last, self._is_repeated = len(self._out), False
        self._out.append(source)
        self._at += length
        self._break()

    def _add_anchor(self, source: str, length: int = 1) -> None:
        self._add_atom(source, length)
        self._out[-1] = r"(?=\r?$)" if source == "$" else source

    def _break(self) -> None:
        """End a run of literal text."""
        self._is_plain = False
        self._runs.append("")

    def _add_alternative(self) -> None:
        self._out.append("|")
        self._at += 1
        self._last = None
        self._break()
        if not self._open:
            # Neither side is in every match.
            self._has_choice = True

    def _escape(self) -> None:
        char = self._text[self._at + 1 : self._at + 2]
        if not char:
            raise self._bad("incomplete escape sequence, reached end of pattern prematurely")
        if char in "dDsSwW":
            self._add_atom("\\" + char, 2)
        elif char in "bB":
            self._add_boundary(char)
        elif char in "<>":
            self._add_anchor(r"\b(?=\w)" if char == "<" else r"\b(?<=\w)", 2)
        elif char in "Az":
            self._add_anchor(r"\A" if char == "A" else r"\Z", 2)
        elif char in "pP":
            self._parse_property()
        elif char in "xuU":
            code, length = self._parse_code_point(self._at + 1)
            self._literal(code)
            self._at += length + 1
        elif char.isdigit():
            raise self._bad("backreferences are not supported")
        else:
            self._literal(self._translate_escape(char))
            self._at += 2

    def _translate_escape(self, char: str) -> str:
        named = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
        if char in named:
            return named[char]
        if char.isascii() and not char.isalnum():
            return char
        raise self._bad("unrecognized escape sequence")

    def _add_boundary(self, char: str) -> None:
        special = {"{start}": r"\b(?=\w)", "{end}": r"\b(?<=\w)"}
        special |= {"{start-half}": r"(?<!\w)", "{end-half}": r"(?!\w)"}
        for name, source in special.items():
            if self._text.startswith(name, self._at + 2):
                self._add_anchor(source, 2 + len(name))
                return
        self._add_anchor("\\" + char, 2)

    def _parse_code_point(self, at: int) -> tuple[str, int]:
        found = _HEX.match(self._text, at)
        if found is None:
            raise self._bad("invalid hexadecimal digit")
        digits = found[1]
        length = found.end() - at
        if digits is None:
            length = 1 + _HEX_DIGITS[self._text[at]]
            digits = self._text[at + 1 : at + length]
        try:
            return chr(int(digits, 16)), length
        except (ValueError, OverflowError):
            raise self._bad("invalid Unicode scalar value") from None

    def _parse_property(self) -> None:
        found = _PROPERTY.match(self._text, self._at + 1)
        source = _PROPERTIES.get((found[2] or found[3]) if found else "")
        if found is None or source is None or found[0].startswith("P") or found[1]:
            raise self._bad("Unicode property not found; only ripgrep knows it, and it is missing")
        self._add_atom(source, 1 + len(found[0]))

    def _group(self) -> None:
        for start, problem in _REFUSED.items():
            if self._text.startswith(start, self._at + 1):
                raise self._bad(problem)
        found = _GROUP.match(self._text, self._at + 1)
        if self._text.startswith("?", self._at + 1) and found is None:
            raise self._bad("unrecognized flag")
        if found is not None and re.search("U|-.*u", found[2] or ""):
            # Bytes instead of characters, or the greed of repetitions turned round.
            raise self._bad("the flags U and -u are known to ripgrep only, which is missing")
        self._break()
        if found is not None and found[3] == ")":
            self._out.append(f"(?{_convert_flags(found[2])}:")
            self._flags_open += 1
            self._at = found.end()
            return
        self._open.append((len(self._out), self._flags_open))
        self._flags_open = 0
        is_flagged = found is not None and found[1] is None and found[2]
        self._out.append(f"(?{_convert_flags(found[2])}:" if found and is_flagged else "(?:")
        self._at = found.end() if found is not None else self._at + 1
        self._last = None

    def _close(self) -> None:
        if not self._open:
            raise self._bad("unopened group")
        self._out.append(")" * self._flags_open + ")")
        self._last, self._flags_open = self._open.pop()
        self._is_repeated = False
        self._at += 1
        self._break()

    def _add_repeat(self, char: str) -> None:
        source, length = char, 1
        if char == "{":
            found = _REPEAT.match(self._text, self._at)
            if found is None or not (found[1] or found[3]):
                raise self._bad("repetition quantifier expects a valid decimal")
            low, high = found[1] or "0", found[3]
            if high and int(high) < int(low):
                raise self._bad("invalid repetition count range, the start must be <= the end")
            source = f"{{{low},{high or ''}}}" if found[2] else f"{{{low}}}"
            length = len(found[0])
        if self._last is None:
            raise self._bad("repetition operator missing expression")
        if self._is_repeated:
            self._out.insert(self._last, "(?:")
            self._out.append(")")
        self._at += length
        if self._text.startswith("?", self._at):
            source += "?"
            self._at += 1
        self._out.append(source)
        self._is_repeated = True
        if not self._open and not self._flags_open and self._runs[-1]:
            # The last character of the run is the one that is repeated, perhaps no times.
            self._runs[-1] = self._runs[-1][:-1]
        self._break()

    def _parse_class(self) -> None:
        at = self._at + 1
        parts = ["["]
        for sign, source in (("^", "^"), ("]", r"\]")):
            if self._text.startswith(sign, at):
                parts.append(source)
                at += 1
        while not self._text.startswith("]", at):
            if at >= len(self._text):
                raise self._bad("unclosed character class")
            source, at = self._parse_class_item(at)
            parts.append(source)
        self._add_atom("".join([*parts, "]"]), at + 1 - self._at)

    def _parse_class_item(self, at: int) -> tuple[str, int]:
        text = self._text
        if text.startswith("[:", at):
            end = text.find(":]", at)
            name = text[at + 2 : end]
            if end > 0 and name in _CLASSES:
                return _CLASSES[name], end + 2
        if text[at] == "[" or text[at : at + 2] in {"&&", "--", "~~"}:
            raise self._bad("nested character classes are known to ripgrep only, which is missing")
        if text[at] != "\\":
            return (text[at] if text[at] in "-^" else re.escape(text[at])), at + 1
        char = text[at + 1 : at + 2]
        if char and char in "dDsSwW":
            return "\\" + char, at + 2
        if char and char in "xuU":
            code, length = self._parse_code_point(at + 1)
            return re.escape(code), at + 1 + length
        return re.escape(self._translate_escape(char or "\\")), at + 2

    def _bad(self, problem: str) -> BadQuery:
        shown = self._text if len(self._text) <= 200 else self._text[:200] + "..."
        place = " " * (self._at + 4) + "^"
        return BadQuery("pattern", f"regex parse error:\n    {shown}\n{place}\nerror: {problem}")


def _convert_flags(flags: str) -> str:
    """Flags as Python writes them; Unicode and CRLF are on anyway."""
    return re.sub(r"-\Z", "", re.sub("[uR]", "", flags))
