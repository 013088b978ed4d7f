"""The tools on offer as a model is told of them, built once for each tool."""

from collections.abc import Sequence
from typing import Any

import msgspec

from handaxe.contract.events import ToolsOffered
from handaxe.contract.ports.model import ToolSpec
from handaxe.contract.tool import Tool
from handaxe.pipeline.context import PipelineContext
from handaxe.text.tokens import estimate_tokens


class ToolSpecs:
    """What a model is told now; the same tool gives the same value again."""

    def __init__(
        self, among: PipelineContext, built: dict[Tool[Any], ToolSpec] | None = None
    ) -> None:
        """`built` holds what others have built already; agents of one session share it."""
        deferral = among.deferral
        # Those that wait to be searched for are not sent.
        self._offered = deferral.sent if deferral is not None else among.catalog.list_offered
        self._emit = among.emit
        self._built = {} if built is None else built
        self._last: tuple[Sequence[Tool[Any]], tuple[ToolSpec, ...]] = (), ()

    def __call__(self) -> tuple[ToolSpec, ...]:
        """The definitions of all tools on offer, in their order."""
        tools = self._offered()
        # A text that depends on the session may have changed; the others never do.
        telling = [tool for tool in tools if "prompt" in vars(type(tool))]
        if tools != self._last[0] or any(self._is_stale(tool) for tool in telling):
            self._last = tools, tuple(self._build_spec(tool) for tool in tools)
            self._emit(
                ToolsOffered(
                    definitions={spec.name: _estimate_cost(spec) for spec in self._last[1]}
                )
            )
        return self._last[1]

    def _is_stale(self, tool: Tool[Any]) -> bool:
        known = self._built.get(tool)
        return known is None or known.description != tool.prompt()

    def _build_spec(self, tool: Tool[Any]) -> ToolSpec:
        from handaxe.schema.tool_schema import build_input_schema

        known = self._built.get(tool)
        if known is None or ("prompt" in vars(type(tool)) and self._is_stale(tool)):
            known = self._built[tool] = ToolSpec(
                name=tool.name,
                description=tool.prompt(),
                input_schema=build_input_schema(tool.args_type),
                strict=tool.strict,
                examples=tool.input_examples,
            )
        return known


def _estimate_cost(spec: ToolSpec) -> int:
    """About how many tokens a definition is in every request."""
    return estimate_tokens(f"{spec.description}{msgspec.json.encode(spec.input_schema).decode()}")
