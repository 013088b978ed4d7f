"""Work done once for each value: a conversation is sent again every turn, mostly unchanged."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import ref

Value = TypeVar("Value")
Made = TypeVar("Made")


def cache_by_identity(make: Callable[[Value], Made]) -> Callable[[Value], Made]:
    """`make`, called once for each very value; what it gave is forgotten together with the value.

    Equal values are still two: comparing long messages would cost what this saves. Whoever gets
    what was made must leave it as it is.
    """
    known: dict[int, tuple[Made, ref[Any]]] = {}

    @wraps(make)
    def made(value: Value) -> Made:
        key = id(value)
        found = known.get(key)
        if found is None:
            # The number is used again when the value is gone, so both are forgotten at once.
            found = known[key] = make(value), ref(value, lambda _: known.pop(key, None))
        return found[0]

    return made
