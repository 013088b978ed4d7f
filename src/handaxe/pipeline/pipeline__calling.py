"""Calls that a tool makes, through the same pipeline as its own."""

from typing import Any

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.ports.tools__tool_caller import ToolCaller
from handaxe.contract.result import ToolResult
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.pipeline import ToolPipeline
from handaxe.storage.home import generate_session_id


class CallIdGenerator:
    """Ids that no other call has, not even one of an earlier run of the same session."""

    def __init__(self) -> None:
        self._token, self._given = generate_session_id()[:12], 0

    def __call__(self) -> str:
        """The next one."""
        self._given += 1
        return f"call_{self._token}_{self._given}"


class PipelineCaller(ToolCaller):
    """Runs a tool's calls with nobody to ask."""

    def __init__(self) -> None:
        self._pipeline: ToolPipeline | None = None
        self._calls_made = 0

    def join(self, among: PipelineContext) -> None:
        """Use these collaborators from now on."""
        self._pipeline = ToolPipeline(
            msgspec.structs.replace(among, asker=None), lanes=1, recall=lambda _: None
        )

    async def call(self, parent_call_id: str, tool: str, call_input: dict[str, Any]) -> ToolResult:
        """One call; never raises."""
        if self._pipeline is None:
            raise RuntimeError("a tool made a call before its session was open")
        self._calls_made += 1
        call_id = f"{parent_call_id}.{self._calls_made}"
        return await self._pipeline.call(ToolCall(call_id, tool, call_input))
