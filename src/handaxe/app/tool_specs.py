"""The tools on offer as a model is told of them, built once for each tool."""

from collections.abc import Callable, Sequence
from typing import Any

from handaxe.contract.ports.model import ToolSpec
from handaxe.contract.tool import Tool


class ToolSpecs:
    """What a model is told now; the same tool gives the same value again."""

    def __init__(self, offered: Callable[[], Sequence[Tool[Any]]]) -> None:
        self._offered = offered
        self._built: dict[Tool[Any], ToolSpec] = {}

    def __call__(self) -> tuple[ToolSpec, ...]:
        """The definitions of all tools on offer, in their order."""
        return tuple(self._spec_of(tool) for tool in self._offered())

    def _spec_of(self, tool: Tool[Any]) -> ToolSpec:
        from handaxe.text.schema import input_schema

        known = self._built.get(tool)
        # A text that depends on the session may have changed; the others never do.
        if known is not None and "prompt" not in vars(type(tool)):
            return known
        prompt = tool.prompt()
        if known is None or known.description != prompt:
            known = self._built[tool] = ToolSpec(
                name=tool.name,
                description=prompt,
                input_schema=input_schema(tool.args_type),
                strict=tool.strict,
                examples=tool.input_examples,
            )
        return known
