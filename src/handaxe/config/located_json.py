"""JSON with the line of every value, so that a mistake can be shown where it stands.

Settings are written by hand, so the reasons are for people. A name that stands twice in an object
is not lost: objects are joined and lists put together, since the first of two `deny` lists was
meant as well.
"""

import json
import re
from bisect import bisect_right
from typing import Any, cast

from handaxe.config.keys import BadSettingsJson

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|[{}\[\]:,]|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)|[^\s{}\[\]:,"]+|"', re.DOTALL
)


def salvage_json(text: str) -> dict[str, Any]:
    """The object that a text seems to hold; empty if it holds none."""
    reader = _Reader()
    for found in _TOKEN.finditer(text):
        reader.take(found[0])
    return reader.root


class _Reader:
    def __init__(self) -> None:
        self.root: dict[str, Any] = {}
        self._open: list[dict[str, Any] | list[Any]] = []
        self._name: str | None = None
        self._last: str | None = None

    def take(self, token: str) -> None:
        """One token, whether or not it fits."""
        match token:
            case "{":
                self._begin({} if self._open else self.root)
            case "[":
                self._begin([])
            case "}" | "]":
                self._end(dict if token == "}" else list)  # noqa: S105 - a bracket
            case ":":
                self._name = self._last
            case ",":
                self._name = self._last = None
            case _ if not token.startswith(("//", "/*", "#")):
                self._value(token)
            case _:
                pass

    def _begin(self, value: dict[str, Any] | list[Any]) -> None:
        if self._open:
            self._put(value)
        if len(self._open) < _MAX_DEPTH:
            self._open.append(value)
        self._name = self._last = None

    def _end(self, kind: type[Any]) -> None:
        # A bracket that was forgotten ends with the one around it.
        if any(isinstance(one, kind) for one in self._open):
            while not isinstance(self._open.pop(), kind):
                pass
        self._name = self._last = None

    def _value(self, token: str) -> None:
        try:
            value: Any = json.loads(token)
        except ValueError:
            return
        around = self._open[-1] if self._open else None
        if isinstance(around, dict) and self._name is None:
            self._last = value if isinstance(value, str) else None
        else:
            self._put(value)

    def _put(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        around = self._open[-1]
        if isinstance(around, list):
            around.append(value)
        elif self._name is not None:
            known = around.get(self._name)
            # The first of two was meant as well, and the second is filled from here on.
            if isinstance(known, list) and isinstance(value, list):
                cast("list[Any]", value).extend(cast("list[Any]", known))
            elif isinstance(known, dict) and isinstance(value, dict):
                cast("dict[str, Any]", value).update(cast("dict[str, Any]", known))
            around[self._name] = value
            self._name = self._last = None


Path = tuple[str | int, ...]

_MAX_DEPTH = 100
_LONGEST_NUMBER = 300
_BLANKS = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9A-Za-z.+-])")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS = {"true": True, "false": False, "null": None}
_SURROGATE = re.compile("[\ud800-\udfff]")
_MISSING = object()
_DECODER = json.JSONDecoder()


class LocatedJson:
    """The value of a JSON text, and where its parts stand."""

    def __init__(self, text: str) -> None:
        self._text = text.removeprefix("\ufeff")
        self._breaks = [found.start() for found in re.finditer("\n", self._text)]
        self.lines: dict[Path, int] = {}
        """The line of every member's name and of every item of a list."""
        self.repeated: list[Path] = []
        """Members with a duplicate name."""
        at = self._skip(0)
        if at == len(self._text):
            raise BadSettingsJson(1, "the file is empty; an empty object is {}")
        self.value: Any
        self.value, at = self._read(at, (), _MISSING)
        at = self._skip(at)
        if at != len(self._text):
            raise self._bad(at, "something stands behind the end of the value")

    def _read(self, at: int, path: Path, earlier: object) -> tuple[Any, int]:
        text = self._text
        first = text[at : at + 1]
        if len(path) > _MAX_DEPTH:
            raise self._bad(at, "it is nested too deeply")
        if first == "{":
            known = cast("dict[str, Any]", earlier) if isinstance(earlier, dict) else {}
            return self._object(at + 1, path, known)
        if first == "[":
            listed = cast("list[Any]", earlier) if isinstance(earlier, list) else []
            return self._array(at + 1, path, listed)
        if first == '"':
            return self._read_string(at)
        if (number := _NUMBER.match(text, at)) is not None:
            return self._number(at, number), number.end()
        word = _WORD.match(text, at)
        if word is not None and word[0] in _WORDS:
            return _WORDS[word[0]], word.end()
        raise self._bad(at, self._missing(at, "a value"))

    def _object(self, at: int, path: Path, known: dict[str, Any]) -> tuple[dict[str, Any], int]:
        at = self._skip(at)
        while self._text[at : at + 1] != "}":
            if self._text[at : at + 1] != '"':
                raise self._bad(at, self._missing(at, "a name in double quotes"))
            line = self._line(at)
            name, at = self._read_string(at)
            below = (*path, name)
            if name in known:
                self.repeated.append(below)
            self.lines[below] = line
            at = self._skip(at)
            if self._text[at : at + 1] != ":":
                raise self._bad(at, f"a colon is missing behind {name[:80]!r}")
            known[name], at = self._read(self._skip(at + 1), below, known.get(name, _MISSING))
            at = self._skip_comma(at, "}")
        return known, at + 1

    def _array(self, at: int, path: Path, listed: list[Any]) -> tuple[list[Any], int]:
        at = self._skip(at)
        while self._text[at : at + 1] != "]":
            below = (*path, len(listed))
            self.lines[below] = self._line(at)
            value, at = self._read(at, below, _MISSING)
            listed.append(value)
            at = self._skip_comma(at, "]")
        return listed, at + 1

    def _skip_comma(self, at: int, closing: str) -> int:
        """Where the next item or the closing bracket stands."""
        at = self._skip(at)
        char = self._text[at : at + 1]
        if char == closing:
            return at
        if char != ",":
            raise self._bad(at, self._missing(at, f"a comma or {closing!r}"))
        behind = self._skip(at + 1)
        if self._text[behind : behind + 1] == closing:
            raise self._bad(at, f"there is a comma too many before {closing!r}")
        return behind

    def _read_string(self, at: int) -> tuple[str, int]:
        try:
            text, end = _DECODER.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            raise self._bad(at, f"a text is not valid JSON ({error.msg.lower()})") from None
        if not text.isascii() and _SURROGATE.search(text):
            raise self._bad(at, "a text holds half of a character (a lone surrogate)")
        return text, end

    def _number(self, at: int, found: re.Match[str]) -> int | float:
        if len(found[0]) > _LONGEST_NUMBER:
            raise self._bad(at, "a number is too long")
        return int(found[0]) if found[1] is None and found[2] is None else float(found[0])

    def _missing(self, at: int, wanted: str) -> str:
        rest = self._text[at : at + 2]
        if not rest:
            return f"the file ends where {wanted} should stand"
        if rest in {"//", "/*"} or rest[0] == "#":
            return "JSON has no comments"
        return f"{wanted} should stand where {rest[0]!r} is"

    def _skip(self, at: int) -> int:
        found = _BLANKS.match(self._text, at)
        return found.end() if found else at

    def _line(self, at: int) -> int:
        return bisect_right(self._breaks, at - 1) + 1

    def _bad(self, at: int, reason: str) -> BadSettingsJson:
        return BadSettingsJson(self._line(at), reason)
