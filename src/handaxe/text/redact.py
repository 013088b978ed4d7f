"""Secret values of variables replaced by the names of the variables.

One object per session knows the values. A session without secrets pays for one look at its
emptiness; with secrets, text is searched for the values first, and rebuilt only where one occurs.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, AnyStr, Generic, TypeAlias, TypeVar, cast

import msgspec

from handaxe.text.chunks import LONG, find_in_chunks
from handaxe.text.secrets import is_secret_name

MAX_NAME_CHARS = 64
MAX_DEPTH = 200
T = TypeVar("T")
Needles: TypeAlias = list[tuple[AnyStr, AnyStr]]
"""Values and their replacements, the longest first."""


class Redactor:
    """Replaces the values of secret variables by markers such as `[redacted: GITHUB_TOKEN]`."""

    def __init__(
        self,
        variables: Mapping[str, str] | None = None,
        listed: Iterable[str] = (),
        is_file: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`listed` are names of variables whose values are secret, whatever they are called.

        The path of a file is not a secret, so `is_file` is called with values that may be one.
        """
        self._is_file = is_file
        self._listed = {name for name in listed if not any(sign in name for sign in "*?[")}
        self._known: dict[str, str] = {}
        self._markers: dict[str, str] = {}
        self._texts: Needles[str] = []
        self._raw: Needles[bytes] = []
        self._in_json: Needles[bytes] = []
        if variables:
            self.learn(variables)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def learn(self, variables: Mapping[str, str]) -> None:
        """Hide the secret values of these variables too."""
        found: dict[str, str] = {}
        for name, value in variables.items():
            if self._known.get(name) != value:
                self._known[name] = value
                for spelling in self._find_spellings(name, value):
                    found.setdefault(spelling, _mark(name))
        found = {text: marker for text, marker in found.items() if text not in self._markers}
        if found:
            self._markers |= found
            self._sort()

    def redact(self, text: str) -> str:
        """The text without secrets."""
        return _replace(text, self._texts) if self._texts else text

    def find_marker(self, text: str) -> str | None:
        """A marker of this session in a text; None where there is none."""
        if not self._texts or "[redacted: " not in text:
            return None
        return next((marker for marker in self._markers.values() if marker in text), None)

    def redact_bytes(self, data: bytes) -> bytes:
        """The bytes without secrets."""
        return _replace(data, self._raw) if self._raw else data

    def redact_value(self, value: T) -> T:
        """The value with every text in it redacted; the same object where there is no secret."""
        return cast("T", _Walk(self._texts).visit(value)) if self._texts else value

    def redact_json(self, encoded: bytes) -> bytes:
        """A JSON document with every text in it redacted."""
        if not self._in_json or not any(needle in encoded for needle, _ in self._in_json):
            return encoded
        try:
            return msgspec.json.encode(self.redact_value(msgspec.json.decode(encoded)))
        except (RecursionError, ValueError, OverflowError):
            # A document that cannot be made anew is better damaged than in clear.
            return _replace(encoded, self._in_json)

    def open_stream(self) -> "RedactedStream":
        """A redactor of bytes that come in pieces."""
        return RedactedStream(self._raw)

    def _find_spellings(self, name: str, value: str) -> set[str]:
        is_named = name in self._listed or is_secret_name(name)
        if not value or not (is_named or "://" in value):
            return set()
        from handaxe.text.secrets import (
            list_password_spellings,
            list_value_spellings,
        )

        is_place = value.startswith("/") and self._is_file(value)
        if is_place or value in self._known:
            # The value is where a secret is, or what another variable is called.
            return set()
        return list_value_spellings(value) if is_named else list_password_spellings(value)

    def _sort(self) -> None:
        from handaxe.text.secrets import encode_value

        markers = set(self._markers.values())
        pairs = [
            (text, marker)
            for text, marker in self._markers.items()
            if not any(text in other for other in markers)
        ]
        self._texts = sorted(pairs, key=lambda pair: (-len(pair[0]), pair))
        self._raw = [(encode_value(text), marker.encode()) for text, marker in self._texts]
        self._in_json = [(_encode_inside(text), marker.encode()) for text, marker in self._texts]


class RedactedStream:
    """Redacts bytes that come in pieces; a value may be cut anywhere."""

    def __init__(self, needles: Needles[bytes]) -> None:
        self._needles = needles
        self.held = b""
        """The end of the received text, which may be the beginning of a secret."""

    def feed(self, piece: bytes) -> bytes:
        """The redacted text that is certain now. The rest is held until more arrives."""
        data = self.held + piece
        begun = self._find_begun(data, 0)
        written: list[bytes] = []
        at = 0
        matches = _Matches(data, self._needles)
        while (match := matches.find_next(at)) is not None and match[0] < begun:
            start, needle, marker = match
            written += (data[at:start], marker)
            at = start + len(needle)
            if begun < at:
                begun = self._find_begun(data, at)
        written.append(data[at:begun])
        self.held = data[begun:]
        return b"".join(written)

    def finish(self) -> bytes:
        """The held text, at the end of the input."""
        rest, self.held = self.held, b""
        return _replace(rest, self._needles)

    def _find_begun(self, data: bytes, at: int) -> int:
        """Where the first secret begins that may go on in the next piece."""
        first = len(data)
        for needle, _ in self._needles:
            found = data.find(needle[:1], max(at, len(data) - len(needle) + 1), first)
            while found >= 0 and not needle.startswith(data[found:]):
                found = data.find(needle[:1], found + 1, first)
            if found >= 0:
                first = found
        return first


class _Matches(Generic[AnyStr]):
    """The places of needles in a text, in order; of those that begin together, the longest."""

    def __init__(self, text: AnyStr, needles: Needles[AnyStr]) -> None:
        self._text = text
        self._places: list[tuple[int, int, AnyStr, AnyStr]] = [
            (at, number, needle, marker)
            for number, (needle, marker) in enumerate(needles)
            if (at := cast("int", text.find(needle))) >= 0
        ]
        self._places.sort()

    def find_next(self, start: int) -> tuple[int, AnyStr, AnyStr] | None:
        """The next place from `start` on, which never goes back."""
        if self._places and self._places[0][0] < start:
            again: list[tuple[int, int, AnyStr, AnyStr]] = [
                place if place[0] >= start else (self._text.find(place[2], start), *place[1:])
                for place in self._places
            ]
            self._places = sorted(place for place in again if place[0] >= 0)
        if not self._places:
            return None
        at, _, needle, marker = self._places[0]
        return at, needle, marker


def _replace(text: AnyStr, needles: Needles[AnyStr]) -> AnyStr:
    if len(text) > LONG:
        if all(find_in_chunks(text, needle) < 0 for needle, _ in needles):
            return text
    elif not any(needle in text for needle, _ in needles):
        return text
    matches = _Matches(text, needles)
    written: list[AnyStr] = []
    at = 0
    while (match := matches.find_next(at)) is not None:
        start, needle, marker = match
        written.append(text[at:start])
        written.append(marker)
        at = start + len(needle)
    written.append(text[at:])
    empty: Any = text[:0]
    return empty.join(written)


class _Walk:
    """One visit of every text in a value, which may hold itself."""

    def __init__(self, needles: Needles[str]) -> None:
        self._needles = needles
        self._depth = 0
        self._seen: dict[int, tuple[object, object]] = {}

    def visit(self, value: object) -> object:
        """The value, or another one without secrets."""
        kind = type(value)
        if kind is str:
            return _replace(cast("str", value), self._needles)
        if kind not in (dict, list, tuple) and not isinstance(value, msgspec.Struct):
            return value
        known = self._seen.get(id(value))
        if known is None:
            self._seen[id(value)] = known = (value, value)
            if self._depth < MAX_DEPTH:
                self._depth += 1
                self._seen[id(value)] = known = (value, self._visit_members(value))
                self._depth -= 1
        return known[1]

    def _visit_members(self, value: object) -> object:
        if isinstance(value, msgspec.Struct):
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            changed = {
                name: new for name, old in fields.items() if (new := self.visit(old)) is not old
            }
            try:
                return msgspec.structs.replace(value, **changed) if changed else value
            except Exception:  # noqa: BLE001 - an own tool's value may refuse in any way
                return value
        if isinstance(value, dict):
            pairs = cast("dict[object, object]", value)
            made = {self.visit(key): self.visit(one) for key, one in pairs.items()}
            same = all(
                key is other and one is another
                for (key, one), (other, another) in zip(pairs.items(), made.items(), strict=False)
            )
            return pairs if same and len(made) == len(pairs) else made
        members = cast("list[object] | tuple[object, ...]", value)
        visited = [self.visit(one) for one in members]
        if all(new is old for new, old in zip(visited, members, strict=True)):
            return value
        return visited if isinstance(value, list) else tuple(visited)


def _mark(name: str) -> str:
    return f"[redacted: {re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:MAX_NAME_CHARS]}]"


def _encode_inside(text: str) -> bytes:
    """The text as in a JSON document."""
    safe = text.encode("utf-8", "replace").decode()
    return msgspec.json.encode(safe)[1:-1]
