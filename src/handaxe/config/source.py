"""Read one source of settings, value by value.

A wrong value is left out and named; everything beside it counts. Nothing is merged here.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec

from handaxe.config.keys import (
    BadSettingsJson,
    KeyPath,
    SettingKey,
    find_key,
    find_nearest_key,
    is_unused,
    list_choices,
    list_groups,
    split_key,
)

Source = Literal["user", "project", "local", "flags", "policy"]
Json = Any
JsonPath = tuple[str | int, ...]

RULES: tuple[KeyPath, ...] = (
    ("permissions", "deny"),
    ("permissions", "ask"),
    ("permissions", "allow"),
)
PROTECTING = RULES[:2]
_PLAIN_NAMES = {
    "str": "a text",
    "int": "a whole number",
    "bool": "true or false",
    "object": "an object",
}


class Origin(msgspec.Struct, frozen=True):
    """Where a value was written."""

    source: Source
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        if self.file is None:
            return self.source
        return self.file if self.line is None else f"{self.file}:{self.line}"


class SettingEntry(msgspec.Struct, frozen=True):
    """One value, or one item of a list."""

    path: KeyPath
    value: Json
    origin: Origin
    kind: Literal["value", "item", "empty", "unused"] = "value"
    """`empty` is a list without items, `unused` a key that only others use."""

    @property
    def name(self) -> str:
        """The key as people write it."""
        return ".".join(self.path)


class SettingsProblem(msgspec.Struct, frozen=True):
    """A mistake, and where it stands."""

    origin: Origin
    text: str
    is_value: bool = False
    """Whether a key that counts has a value that cannot; not just an unknown key."""

    def __str__(self) -> str:
        return f"{self.origin}: {self.text}"


class SettingsFragment(msgspec.Struct, frozen=True):
    """Everything one file, or the arguments of a session, says."""

    source: Source
    file: str | None = None
    entries: tuple[SettingEntry, ...] = ()
    problems: tuple[SettingsProblem, ...] = ()
    is_doubtful: bool = False
    """Whether a mistake in it looks like an intended deny rule that has no effect."""


def read_text(text: str, *, source: Source, file: str | None = None) -> SettingsFragment:
    """The settings in a JSON text; raises `BadJson` if it is invalid."""
    # Where there is no file, nothing has to be able to read one.
    from handaxe.config.located_json import LocatedJson

    found = LocatedJson(text)
    value: object = found.value
    if not isinstance(value, dict):
        raise BadSettingsJson(1, "settings are an object: { ... }")
    reader = _Reader(source, file, found.lines)
    for path in found.repeated:
        reader.add_problem(path, f"{_format_path(path)} stands twice; both count")
    return reader.read(cast("dict[str, Json]", value))


def read_data(data: Mapping[str, Json], *, source: Source = "flags") -> SettingsFragment:
    """The settings in plain data."""
    return _Reader(source, None, {}).read(data)


class _Reader:
    """One walk through one source."""

    def __init__(self, source: Source, file: str | None, lines: Mapping[JsonPath, int]) -> None:
        self._source: Source = source
        self._file = file
        self._lines = lines
        self._entries: list[SettingEntry] = []
        self._problems: list[SettingsProblem] = []
        self._is_doubtful = False

    def read(self, data: Mapping[str, Json]) -> SettingsFragment:
        """All of it."""
        self._group((), (), data)
        return SettingsFragment(
            self._source,
            self._file,
            tuple(self._entries),
            tuple(self._problems),
            self._is_doubtful,
        )

    def add_problem(self, place: JsonPath, text: str, *, is_value: bool = False) -> None:
        """Note a mistake."""
        self._problems.append(SettingsProblem(self._find_origin(place), text, is_value))

    def _group(self, path: KeyPath, place: JsonPath, data: Mapping[str, Json]) -> None:
        for name, value in data.items():
            # A dotted key stands for nested ones, at the top only.
            below = (*path, str(name)) if path else split_key(str(name))
            self._read_member(below, (*place, name), value)

    def _read_member(self, path: KeyPath, place: JsonPath, value: Json) -> None:
        if path in list_groups():
            if isinstance(value, Mapping):
                self._group(path, place, cast("Mapping[str, Json]", value))
            elif value is not None:
                self._report_wrong(path, place, f"must be an object, not {_format_value(value)}")
            return
        found = find_key(path)
        if found is None:
            self._handle_unknown(path, place, value)
        elif value is not None:
            self._read_option(found[0], path, place, value)

    def _handle_unknown(self, path: KeyPath, place: JsonPath, value: Json) -> None:
        if is_unused(path):
            self._entries.append(SettingEntry(path, value, self._find_origin(place), "unused"))
            return

        near = find_nearest_key(path)
        hint = f"; did you mean `{near}`?" if near else ""
        self._is_doubtful |= near in MEANT_TO_FORBID or is_likely_restriction(value)
        self._is_doubtful |= near is None and path[0] == RULES[0][0]
        self.add_problem(place, f"there is no setting {_format_path(path)}{hint}")

    def _read_option(self, key: SettingKey, path: KeyPath, place: JsonPath, value: Json) -> None:
        is_name = path != key.path
        if key.kind == "table" and not is_name:
            if not isinstance(value, Mapping):
                self._report_wrong(path, place, f"must be an object, not {_format_value(value)}")
                return
            for name, item in cast("Mapping[str, Json]", value).items():
                self._read_option(key, (*path, str(name)), (*place, name), item)
        elif key.kind == "list" or (is_name and key.has_lists):
            self._read_items(key, path, place, value)
        else:
            self._value(key, path, place, value)

    def _value(self, key: SettingKey, path: KeyPath, place: JsonPath, value: Json) -> None:
        if key.kind == "table" and isinstance(value, bool | int | float):
            # Variables are texts, but people write "PORT": 80.
            import json

            value = json.dumps(value)
        if self._fits(path, place, value, key.type):
            self._entries.append(SettingEntry(path, value, self._find_origin(place)))

    def _read_items(self, key: SettingKey, path: KeyPath, place: JsonPath, value: Json) -> None:
        if isinstance(value, str) and path in PROTECTING:
            # What was meant to forbid must not be lost for want of two brackets.
            self.add_problem(
                place, f"{_format_path(path)} must be a list; its one text is taken as a rule"
            )
            value = [value]
        if not isinstance(value, list | tuple):
            self._report_wrong(path, place, f"must be a list, not {_format_value(value)}")
            return
        items = cast("list[Json]", value)
        kind = key.type.__args__[0] if key.has_lists else key.type
        for at, item in enumerate(items):
            if self._fits(path, (*place, at), item, kind, item_number=at + 1):
                self._entries.append(
                    SettingEntry(path, item, self._find_origin((*place, at)), "item")
                )
        if path in PROTECTING and items:
            # What is wrong with a rule is told by whoever reads rules.

            self._is_doubtful |= not all(map(is_rule, items))
        if not items:
            self._entries.append(SettingEntry(path, [], self._find_origin(place), "empty"))

    def _fits(
        self, path: KeyPath, place: JsonPath, value: Json, kind: Json, item_number: int = 0
    ) -> bool:
        try:
            msgspec.convert(value, kind)
        except (msgspec.ValidationError, UnicodeError) as error:
            which = f"item {item_number} " if item_number else ""
            self._report_wrong(path, place, f"{which}{_explain_mismatch(value, kind, error)}")
            return False
        return True

    def _report_wrong(self, path: KeyPath, place: JsonPath, text: str) -> None:
        self._is_doubtful |= path in PROTECTING or path == RULES[0][:1]
        self.add_problem(place, f"{_format_path(path)} {text}", is_value=True)

    def _find_origin(self, place: JsonPath) -> Origin:
        while place and place not in self._lines:
            place = place[:-1]
        return Origin(self._source, self._file, self._lines.get(place))


def _explain_mismatch(value: Json, kind: Json, error: Exception) -> str:
    words = list_choices(kind)
    if words:
        from handaxe.text.escape import find_closest_name

        near = find_closest_name(value, words) if isinstance(value, str) else None
        hint = f"; did you mean `{near}`?" if near else ""
        listed = " or ".join(f"`{word}`" for word in words)
        return f"must be {listed}, not {_format_value(value)}{hint}"
    # msgspec says "Expected `int`, got `str`"; people want to see what they wrote.
    expected = str(error).partition("`")[2].partition(" - at")[0]
    expected = expected.replace("`", "").replace(" | null", "").partition(", got")[0]
    name, _, limit = expected.partition(" ")
    return (
        f"must be {_PLAIN_NAMES.get(name, name)}{limit and ' '}{limit}, not {_format_value(value)}"
    )


def _format_path(path: JsonPath) -> str:
    name = ".".join(str(part) for part in path)
    return f"`{name if len(name) <= 120 else name[:120] + '...'}`"


def _format_value(value: Json) -> str:
    import json

    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


MEANT_TO_FORBID = frozenset({"permissions", "permissions.deny", "permissions.ask"})
"""Keys whose misspelling would leave something unprotected."""
_RULE = r"(?s)[^()\s]+(\s*\(.*\))?"
_SCOPED_RULE = r"(?s)[A-Za-z_][\w*-]*\(.*\)?"


def is_rule(text: object) -> bool:
    """Whether a text has the form of a rule: `Tool` or `Tool(pattern)`."""
    return isinstance(text, str) and re.fullmatch(_RULE, text.strip()) is not None


def is_likely_restriction(value: Any) -> bool:  # noqa: ANN401 - whatever stands behind an unknown key
    """Whether a value holds what only rules hold: lists named deny or ask, or texts like rules."""
    if isinstance(value, str):
        return re.fullmatch(_SCOPED_RULE, value.strip()) is not None
    if isinstance(value, list):
        return any(is_likely_restriction(item) for item in cast("list[Any]", value)[:100])
    if isinstance(value, Mapping):
        names = {str(name).casefold() for name in cast("Mapping[Any, Any]", value)}
        return not names.isdisjoint({"deny", "ask"})
    return False
