"""How an input is spoken of in notes and problems: its places, its types and its values."""

from typing import Any, TypeAlias, cast

import msgspec

from handaxe.text.escape__counting import format_count
from handaxe.text.sanitize import scrub, to_safe_text

Json: TypeAlias = Any

_NAMES: dict[type[Any], str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}


def get_json_type(value: Json) -> str:
    """The name of a value's type in JSON."""
    kind = cast("type[Any]", type(value))
    return _NAMES.get(kind) or next(
        (name for known, name in _NAMES.items() if issubclass(kind, known)),
        # A class may be called as a type of JSON is, and is none all the same.
        f"Python {kind.__name__}",
    )


def sort_types(kinds: set[str]) -> list[str]:
    """Names of types, always in the same order; null is said only where it is all there is."""
    return sorted(kinds - {"null"} or kinds, key=list(dict.fromkeys(_NAMES.values())).index)


def join_path(path: str, below: str) -> str:
    """The place of something below a place."""
    return f"{path}.{below}" if path and below and not below.startswith("[") else path + below


def format_path(loc: tuple[str | int, ...]) -> str:
    """A place given in steps."""
    path = ""
    for step in loc:
        path = f"{path}[{step}]" if isinstance(step, int) else join_path(path, step)
    return path


def shorten_path(name: str) -> str:
    """A place, cut to a readable length."""
    return name if len(name) <= 100 else f"{name[:60]}...{name[-20:]}"


def format_value(value: Json) -> str:
    """A value as JSON spells it, cut to a readable length."""
    if isinstance(value, str):
        return f'"{value[:60]}..."' if len(value) > 60 else f'"{value}"'
    if get_json_type(value) in ("array", "object"):
        return format_count(len(value), "item")
    return msgspec.json.encode(scrub(value), enc_hook=to_safe_text).decode()


def describe_coercion(value: Json, read: Json) -> str:
    """What a lenient reading made of a value."""
    name = get_json_type(read)
    if name in ("array", "object"):
        return f"read a JSON {name} sent as text"
    return f"read {format_value(value)} as {format_value(read)}"


def describe_disallowed(path: str, value: Json, allowed: list[Json]) -> str:
    """The problem with a value that is not among those there are."""
    from handaxe.text.escape__near_names import find_closest_name

    texts = [option for option in allowed if isinstance(option, str)]
    near = find_closest_name(value, texts) if isinstance(value, str) else None
    hint = f"; did you mean {format_value(near)}?" if near else ""
    listed = "must be one of " + ", ".join(format_value(option) for option in allowed)
    given = f"but was provided as {format_value(value)}{hint}"
    return f"The parameter `{shorten_path(path)}` {listed} {given}"


def describe_missing_tag(path: str, known: list[Json]) -> str:
    """The problem with an object that does not say which of several kinds it is."""
    listed = ", ".join(format_value(option) for option in known)
    return f"The required parameter `{shorten_path(path)}` is missing; it is one of {listed}"
