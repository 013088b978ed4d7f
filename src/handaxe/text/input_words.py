"""How an input is spoken of in notes and problems: its places, its types and its values."""

from typing import Any, TypeAlias, cast

import msgspec

from handaxe.text.counting import counted
from handaxe.text.wellformed import in_words, scrub

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


def name_of(value: Json) -> str:
    """The name of a value's type in JSON."""
    kind = cast("type[Any]", type(value))
    return _NAMES.get(kind) or next(
        (name for known, name in _NAMES.items() if issubclass(kind, known)),
        # A class may be called as a type of JSON is, and is none all the same.
        f"Python {kind.__name__}",
    )


def in_order(kinds: set[str]) -> list[str]:
    """Names of types, always in the same order; null is said only where it is all there is."""
    return sorted(kinds - {"null"} or kinds, key=list(dict.fromkeys(_NAMES.values())).index)


def joined(path: str, below: str) -> str:
    """The place of something below a place."""
    return f"{path}.{below}" if path and below and not below.startswith("[") else path + below


def place_of(loc: tuple[str | int, ...]) -> str:
    """A place given in steps."""
    path = ""
    for step in loc:
        path = f"{path}[{step}]" if isinstance(step, int) else joined(path, step)
    return path


def short(name: str) -> str:
    """A place, cut to a readable length."""
    return name if len(name) <= 100 else f"{name[:60]}...{name[-20:]}"


def shown(value: Json) -> str:
    """A value as JSON spells it, cut to a readable length."""
    if isinstance(value, str):
        return f'"{value[:60]}..."' if len(value) > 60 else f'"{value}"'
    if name_of(value) in ("array", "object"):
        return counted(len(value), "item")
    return msgspec.json.encode(scrub(value), enc_hook=in_words).decode()


def how_read(value: Json, read: Json) -> str:
    """What a lenient reading made of a value."""
    name = name_of(read)
    if name in ("array", "object"):
        return f"read a JSON {name} sent as text"
    return f"read {shown(value)} as {shown(read)}"


def not_allowed(path: str, value: Json, allowed: list[Json]) -> str:
    """The problem with a value that is not among those there are."""
    from handaxe.text.near_names import nearest

    texts = [option for option in allowed if isinstance(option, str)]
    near = nearest(value, texts) if isinstance(value, str) else None
    hint = f"; did you mean {shown(near)}?" if near else ""
    listed = "must be one of " + ", ".join(shown(option) for option in allowed)
    return f"The parameter `{short(path)}` {listed} but was provided as {shown(value)}{hint}"


def missing_tag(path: str, known: list[Json]) -> str:
    """The problem with an object that does not say which of several kinds it is."""
    listed = ", ".join(shown(option) for option in known)
    return f"The required parameter `{short(path)}` is missing; it is one of {listed}"
