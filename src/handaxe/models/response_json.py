"""Read JSON that models and servers write, which may be broken."""

from typing import Any, NamedTuple, cast

import msgspec


class ToolInput(NamedTuple):
    """The input of a call, and the raw text if it is not JSON."""

    value: Any
    broken: str | None


def read_input(text: str) -> ToolInput:
    """The input; an empty text is an empty input, and text that is not JSON is `broken`.

    Some servers send an object inside a JSON string, or an empty object before the real one.
    """
    if not text.strip():
        return ToolInput({}, None)
    value = _decode_json(text)
    if value is _NOTHING and text.lstrip().startswith("{}"):
        value = _decode_json(text.lstrip().removeprefix("{}"))
    if isinstance(value, str) and value.lstrip().startswith("{"):
        inner = _decode_json(value)
        value = value if inner is _NOTHING else inner
    if value is _NOTHING:
        return ToolInput({}, text)
    return ToolInput({} if value is None else value, None)


def is_complete_json(text: str) -> bool:
    """Whether `text` is complete JSON."""
    return _decode_json(text) is not _NOTHING


_NOTHING = object()


def _decode_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return _NOTHING


Json = dict[str, Any]


def to_object(value: Any) -> Json:  # noqa: ANN401 - a part of decoded JSON
    """The value if it is an object, otherwise an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def to_objects(value: Any) -> list[Json]:  # noqa: ANN401 - a part of decoded JSON
    """The objects of a list; empty for another value."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def to_text(value: Any) -> str:  # noqa: ANN401 - a part of decoded JSON
    """The value if it is a text, otherwise an empty one."""
    return value if isinstance(value, str) else ""


def to_count(value: Any) -> int:  # noqa: ANN401 - a part of decoded JSON
    """The value if it is a positive integer, otherwise 0."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count else 0
