"""What other libraries say of a parameter in `Annotated`, in words that msgspec knows.

Their limits and descriptions are known by their names: none of these libraries is imported.
"""

import types
from collections.abc import Collection
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec

_NUMBERS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length")
_DESCRIPTIONS = ("description", "documentation")


def from_annotations(hint: Any) -> Any:  # noqa: ANN401 - any annotation
    """The annotation with a `Meta` for every limit and description that stands in it."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner, *extras = parts
        metas = [extra for given in extras for extra in _convert_metadata(given)]
        return cast("Any", Annotated)[(from_annotations(inner), *metas)]
    if origin is Union or origin is types.UnionType:
        return cast("Any", Union)[tuple(from_annotations(part) for part in parts)]
    if isinstance(origin, type) and issubclass(origin, Collection) and parts:
        return cast("Any", origin)[tuple(from_annotations(part) for part in parts)]
    return hint


def _convert_metadata(extra: Any) -> list[Any]:  # noqa: ANN401 - whatever stands in an annotation
    if isinstance(extra, str | msgspec.Meta):
        return [extra]
    facts: dict[str, Any] = {}
    # Fields of pydantic hold their limits in a list, each an object of its own.
    for given in (extra, *(getattr(extra, "metadata", None) or ())):
        for name in _NUMBERS:
            value = getattr(given, name, None)
            if isinstance(value, int | float):
                facts[name] = value
        if isinstance(pattern := getattr(given, "pattern", None), str):
            facts["pattern"] = pattern
        for name in _DESCRIPTIONS:
            if isinstance(text := getattr(given, name, None), str):
                facts["description"] = text
    return [msgspec.Meta(**facts)] if facts else [extra]
