"""Change one value in the text of a settings file, and leave the rest of it as it was meant."""

import json
import re
from typing import Any, cast

from handaxe.config.keys import BadSettingsJson, KeyPath
from handaxe.config.located_json import LocatedJson
from handaxe.config.source import SettingsProblem, read_data

_INDENT = re.compile(r"^\{[ \t]*\r?\n([ \t]+)\"")


def find_problems(path: KeyPath, value: object) -> tuple[SettingsProblem, ...]:
    """The problem with setting a key to this value."""
    return read_data(wrap_value(path, value)).problems


def parse_value(path: KeyPath, word: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value of a command-line word for a key: JSON if it parses, else the word itself."""
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        return word
    fits_as_word = find_problems(path, value) and not find_problems(path, word)
    return word if fits_as_word else value


def set_key(text: str | None, path: KeyPath, value: object) -> str:
    """The text with a key set, or taken out with None; raises `BadJson` if it is not an object."""
    document: object = LocatedJson(text).value if text is not None and text.strip() else {}
    if not isinstance(document, dict):
        raise BadSettingsJson(1, "settings are an object: { ... }")
    whole = cast("dict[str, Any]", document)
    # The same key may stand there in its dotted form, and would then count twice.
    for at in range(2, len(path) + 1):
        whole.pop(".".join(path[:at]), None)
    if value is None:
        _remove(whole, path)
    else:
        _put(whole, path, value)
    found = _INDENT.match(text or "")
    indent: str | int = found[1] if found else 2
    return json.dumps(whole, indent=indent, ensure_ascii=False) + "\n"


def wrap_value(path: KeyPath, value: object) -> dict[str, Any]:
    """One value inside the objects that lead to it."""
    for name in reversed(path):
        value = {name: value}
    return cast("dict[str, Any]", value)


def _put(whole: dict[str, Any], path: KeyPath, value: object) -> None:
    for name in path[:-1]:
        below: object = whole.get(name)
        if not isinstance(below, dict):
            below = whole[name] = dict[str, Any]()
        whole = cast("dict[str, Any]", below)
    whole[path[-1]] = value


def _remove(whole: dict[str, Any], path: KeyPath) -> None:
    below: object = whole.get(path[0])
    if len(path) == 1:
        whole.pop(path[0], None)
    elif isinstance(below, dict):
        inner = cast("dict[str, Any]", below)
        _remove(inner, path[1:])
        if not inner:
            del whole[path[0]]
