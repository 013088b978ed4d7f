"""Convert Python values that JSON does not know."""

from collections.abc import Collection, Mapping
from operator import index
from typing import Any, cast


def to_json_value(value: Any) -> Any:  # noqa: ANN401, PLR0911 - one answer per kind of value
    """The value as something that JSON knows, or that holds its parts; a `TypeError` if none is it.

    A text, number or path of a class of its own is what it is, a model of pydantic its fields.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, type):
        raise TypeError("a class has no form in JSON")
    if hasattr(value, "__index__"):
        return int.__index__(index(value))
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, Collection):
        return list(cast("Collection[Any]", value))
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def to_json_copy(value: Any) -> Any:  # noqa: ANN401 - any value
    """The value as fresh JSON data; a `TypeError` or `ValueError` if JSON cannot hold it."""
    import msgspec

    plain = msgspec.to_builtins(value, enc_hook=to_json_value, str_keys=True)
    try:
        return msgspec.json.decode(msgspec.json.encode(plain))
    except RecursionError:
        raise ValueError("the value holds itself, which JSON cannot say") from None


def replace_tuples(plain: Any) -> Any:  # noqa: ANN401 - JSON data
    """Replace every tuple by a list, as JSON would."""
    kind = plain.__class__
    if kind is dict:
        return {name: replace_tuples(item) for name, item in plain.items()}
    return [replace_tuples(item) for item in plain] if kind is list or kind is tuple else plain


def to_json_or_text(value: Any) -> Any:  # noqa: ANN401 - any value
    """The value itself, or its own JSON form if it has one."""
    try:
        return to_json_value(value)
    except TypeError:
        return str(value)
