"""Parts of what a server sent, as the kind they should be; anything else counts as absent."""

from typing import Any, cast

Json = dict[str, Any]


def to_object(value: Any) -> Json:  # noqa: ANN401 - a part of decoded JSON
    """An object."""
    return cast("Json", value) if isinstance(value, dict) else {}


def to_objects(value: Any) -> list[Json]:  # noqa: ANN401 - a part of decoded JSON
    """The objects of a list."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def to_text(value: Any) -> str:  # noqa: ANN401 - a part of decoded JSON
    """A text."""
    return value if isinstance(value, str) else ""


def to_count(value: Any) -> int:  # noqa: ANN401 - a part of decoded JSON
    """A number of things."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count else 0
