"""A session's tools for AutoGen: `AssistantAgent(name, client, tools=tools_for(session))`.

A failure is raised as `CallFailed`, which AutoGen's workbenches and tool agents turn into a result
with `is_error`. Results are text, so an image becomes a note.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from autogen_core import CancellationToken, trace_tool_span
from autogen_core.tools import BaseTool, ParametersSchema, ToolSchema
from pydantic import BaseModel

from handaxe.adapters.tool_conversion import FrameworkTool, SessionAdapter
from handaxe.app.session import Session

_UNSEEN = "(AutoGen shows only the text of a result, not its images.)"


def tools_for(session: Session, *, fresh_ids: bool = False) -> list[BaseTool[Any, Any]]:
    """The session's tools as AutoGen's; `fresh_ids` ignores the ids of the model."""
    exchange = SessionAdapter(session, fresh_ids=fresh_ids)
    return [AutogenTool(exchange, offer) for offer in exchange.offers()]


class CallFailed(Exception):
    """A call failed; the text says why and what to do."""


class AnyInput(BaseModel, extra="allow"):
    """The input of the model; the session checks it."""


class AutogenTool(BaseTool[AnyInput, Any]):
    """One tool of a session."""

    def __init__(self, exchange: SessionAdapter, offer: FrameworkTool) -> None:
        super().__init__(AnyInput, str, offer.name, offer.description)
        self._exchange = exchange
        self._parameters = cast("ParametersSchema", offer.schema)

    @property
    def schema(self) -> ToolSchema:
        """The tool definition for the model."""
        return ToolSchema(
            name=self.name,
            description=self.description,
            parameters=self._parameters,
            strict=False,
        )

    async def run(self, args: AnyInput, cancellation_token: CancellationToken) -> str:
        """One call without an id."""
        return await self.run_json(args.model_dump(), cancellation_token)

    async def run_json(
        self,
        args: Mapping[str, Any],
        cancellation_token: CancellationToken,
        call_id: str | None = None,
    ) -> str:
        """Make a call as the base class does, but let the session check the input."""
        with trace_tool_span(self.name, tool_description=self.description, tool_call_id=call_id):
            calling = asyncio.ensure_future(self._exchange.call(self.name, dict(args), call_id))
            cancellation_token.link_future(calling)
            answer = await calling
            if answer.is_failure:
                raise CallFailed(answer.text)
        return f"{answer.text}\n\n{_UNSEEN}" if answer.pictures else answer.text
