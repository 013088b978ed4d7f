"""Text and JSON that every file, log and wire can hold.

A Python string may carry half of a UTF-16 pair (a lone surrogate), a number may be NaN or longer
than 64 bits, a list may be nested without end. Whatever writes such a thing down would fail far
from where it came in; here it is found or made visible.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

MAX_DEPTH = 100
"""JSON nested deeper than this is an attack or an accident, never a tool's input or answer."""
TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep"

_MOST_BITS = 1 << 12
"""A longer number is not spelled out: Python refuses far longer ones."""
_LEAST_INT, _MOST_INT = -(2**63), 2**64 - 1


def is_well_formed(text: str) -> bool:
    """Whether `text` can be written as UTF-8."""
    if text.isascii():
        return True
    try:
        # The bytes stay with the text, where whoever writes it down finds them.
        msgspec.Raw(text if text.__class__ is str else str.__str__(text))
    except UnicodeEncodeError:
        return False
    return True


def escape_surrogates(text: str) -> str:
    r"""`text` itself, or a copy with lone surrogates spelled out as `\udXXX`.

    A text of a class of its own comes back as a plain one.
    """
    if text.__class__ is not str:
        text = str.__str__(text)
    if text.isascii() or is_well_formed(text):
        return text
    return text.encode("utf-8", "backslashreplace").decode()


_LINE_ENDS = tuple((sign.encode(), f"\\u{ord(sign):04x}".encode()) for sign in "\x85\u2028\u2029")


def escape_line_ends(encoded: bytes) -> bytes:
    """JSON that is one line for every reader: many end lines at more than the line feed."""
    for sign, written in _LINE_ENDS:
        if sign in encoded:
            encoded = encoded.replace(sign, written)
    return encoded


def scrub(value: Any, depth: int = MAX_DEPTH, above: tuple[int, ...] = ()) -> Any:  # noqa: ANN401
    """Any value with every text in it well-formed, every name one that JSON takes, and an end.

    Nothing is deeper than `depth` levels, and nothing holds itself; `above` is for its own use.
    """
    if not isinstance(value, dict | list | tuple):
        return _scrub_leaf(value)
    if depth == 0:
        return f"({TOO_DEEP})"
    if id(cast("object", value)) in above:
        return "(holds itself)"
    above = (*above, id(cast("object", value)))
    # Plain loops: a comprehension would be a second stack frame per level.
    if isinstance(value, dict):
        clean: dict[Any, Any] = {}
        for key, item in cast("dict[Any, Any]", value).items():
            clean[_name(key)] = scrub(item, depth - 1, above)
        return clean
    items: list[Any] = []
    for item in cast("list[Any]", value):
        items.append(scrub(item, depth - 1, above))  # noqa: PERF401 - see above
    return items


def _scrub_leaf(value: Any) -> Any:  # noqa: ANN401 - any value
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"(a number of {value.bit_length():,} bits)"
    return to_plain_leaf(value)


def to_plain_leaf(value: Any) -> Any:  # noqa: ANN401 - any value
    """A text or number of a class of its own as a plain one; anything else as it is."""
    if value.__class__ in _PLAIN_LEAVES or not isinstance(value, str | int | float):
        return value
    from handaxe.contract.json_values import to_json_value

    return to_json_value(value)


_PLAIN_LEAVES = (str, int, float, bool)


def to_plain_values(value: Any, depth: int = MAX_DEPTH, made: dict[int, Any] | None = None) -> Any:  # noqa: ANN401
    """JSON as dicts, lists, texts and numbers, where a program gave some of classes of its own.

    Values deeper than `depth` stay as they are; `made` is for its own use, since a value may hold
    itself.
    """
    if not isinstance(value, dict | list | tuple):
        return to_plain_leaf(value)
    made = {} if made is None else made
    key = id(cast("object", value))
    if key in made or depth < 0:
        return made.get(key, cast("Any", value))
    if isinstance(value, dict):
        fields = made[key] = dict[Any, Any]()
        for name, item in cast("dict[Any, Any]", value).items():
            fields[to_plain_leaf(name)] = to_plain_values(item, depth - 1, made)
        return fields
    items = made[key] = list[Any]()
    for item in cast("list[Any]", value):
        items.append(to_plain_values(item, depth - 1, made))
    return items


def to_json_leaf(value: Any) -> Any:  # noqa: ANN401 - any value
    """The JSON replacement for a value of unknown type: a simple type, or its text."""
    plain = to_plain_leaf(value)
    return to_safe_text(value) if plain is value else plain


def _name(key: Any) -> str | int | float:  # noqa: ANN401 - any key of a dict
    is_number = isinstance(key, int | float) and not isinstance(key, bool)
    return key if is_number else to_safe_text(key)


def to_safe_text(value: object) -> str:
    """Whatever it is as text, also if it cannot say so itself."""
    try:
        return escape_surrogates(str(value))
    except Exception:  # noqa: BLE001 - anybody's code
        return f"({type(value).__name__})"


def has_plain_values(raw: Any) -> bool:  # noqa: ANN401 - any value
    """Whether `raw` is an object whose values a log can hold; `flaws_of` says why not.

    The outermost names are not looked at: they are checked against the fields anyway.
    """
    if raw.__class__ is not dict:
        return False
    if not raw:
        return True
    level = _find_containers(raw.values())
    for _ in range(MAX_DEPTH):
        if not level:
            return level is not None
        level = _collect_inner_containers(level)
    return False


def _collect_inner_containers(level: list[Any]) -> list[Any] | None:
    """The containers one level further in, each once; None if anything there has a flaw."""
    below: dict[int, Any] = {}
    for box in level:
        items: Iterable[Any] = (*box, *box.values()) if box.__class__ is dict else box
        found = _find_containers(items)
        if found is None:
            return None
        for container in found:
            below[id(container)] = container
    return list(below.values())


def _find_containers(items: Iterable[Any]) -> list[Any] | None:
    """The containers among `items`, or None if one of the others has a flaw."""
    containers: list[Any] = []
    for item in items:
        # By exact type and the most frequent first: this runs for every call.
        kind = item.__class__
        if kind is str:
            if not item.isascii() and not is_well_formed(item):
                return None
        elif kind is int:
            if not _LEAST_INT <= item <= _MOST_INT:
                return None
        elif kind is dict or kind is list or kind is tuple:
            containers.append(item)
        elif kind is float:
            if find_flaw(item):
                return None
        elif kind is not bool and item is not None:
            return None
    return containers


def find_flaw(leaf: Any) -> str | None:  # noqa: ANN401 - any value
    """Why no log could hold this single value, or None."""
    if leaf is None:
        return None
    if isinstance(leaf, int):
        return None if _LEAST_INT <= leaf <= _MOST_INT else "is a number beyond 64 bits"
    if isinstance(leaf, float):
        # Infinity minus itself is no number, and neither is NaN.
        return None if leaf - leaf == 0 else f"is {leaf}, which JSON cannot hold"
    if isinstance(leaf, str):
        return None if is_well_formed(leaf) else _describe_surrogate(leaf)
    if isinstance(leaf, dict | list | tuple):
        return TOO_DEEP
    return f"is a Python `{type(leaf).__name__}`, which is not a JSON value"


def _describe_surrogate(text: str) -> str:
    found = re.search("[\ud800-\udfff]", text)
    escape = f"U+{ord(found[0]):04X}" if found else ""
    return f"contains a lone surrogate ({escape}), which no text file can hold"


def find_flaws(value: Any) -> dict[str, str]:  # noqa: ANN401 - any value
    """By path, all that no log could hold."""
    flaws: dict[str, str] = {}
    for path, leaf in walk_leaves(value):
        flaw = find_flaw(leaf)
        if flaw:
            flaws.setdefault(path, flaw)
    return flaws


def walk_leaves(value: Any, depth: int = MAX_DEPTH) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Every key and every value that holds no others, each with its path.

    A container that lies deeper than `depth` levels is given as a leaf, unopened. Level by
    level and each container once, so that neither depth nor a cycle can hurt.
    """
    level: dict[int, tuple[str, Any]] = {id(value): ("", value)}
    while level:
        deeper: dict[int, tuple[str, Any]] = {}
        for path, item in level.values():
            if depth <= 0 or not isinstance(item, dict | list | tuple):
                yield path, item
                continue
            for inner_path, inner in _walk_container(path, item):
                if isinstance(inner, dict | list | tuple):
                    deeper.setdefault(id(cast("Any", inner)), (inner_path, cast("Any", inner)))
                else:
                    yield inner_path, inner
        level = deeper
        depth -= 1


def _walk_container(path: str, container: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    if isinstance(container, dict):
        for key, item in cast("dict[Any, Any]", container).items():
            inner_path = f"{path}.{key}" if path else str(key)
            yield inner_path, key
            yield inner_path, item
    else:
        for index, item in enumerate(container):
            yield f"{path}[{index}]", item
