"""Parts of input and output types that Python cannot express: schemas, custom classes."""

from abc import ABC, abstractmethod
from typing import Any


class InputShape(ABC):
    """Used in `Tool.args_type` instead of a type: has the schema, and reads the model's input."""

    @property
    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """The JSON Schema; shared between callers, not to be changed."""

    @abstractmethod
    def read(self, raw: object) -> tuple[dict[str, Any], list[str]]:
        """The input as named values, and a note for everything that was read leniently."""


class OutputShape:
    """Used in `Tool.output_type` instead of a type: a foreign schema, unchanged."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema


def is_class_converted(kind: Any) -> bool:  # noqa: ANN401 - any type
    """Whether values of a class are made by the class: models of pydantic, paths."""
    return isinstance(kind, type) and (
        hasattr(kind, "model_validate") or hasattr(kind, "__fspath__")
    )
