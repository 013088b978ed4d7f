"""The step from a general type to the type that a test expects, checked when the test runs."""

from typing import TypeVar

from handaxe.contract.content import TextBlock
from handaxe.contract.messages import ToolResultBlock

T = TypeVar("T")


def expect_type(kind: type[T], value: object) -> T:
    """The value, which has to be of this type."""
    assert isinstance(value, kind), f"expected {kind.__name__}, found {value!r}"
    return value


def require(value: T | None) -> T:
    """The value, which must not be None."""
    assert value is not None
    return value


def get_text(block: object) -> str:
    """The text of a text block."""
    return expect_type(TextBlock, block).text


def get_result_text(block: object) -> str:
    """The text that the result of a call begins with."""
    return get_text(expect_type(ToolResultBlock, block).content[0])
