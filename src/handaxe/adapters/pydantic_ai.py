"""A session's tools for pydantic-ai: `Agent(model, tools=tools_for(session))`.

A failure is a `ToolFailed`: the model reads it and no retry of the run is spent on it.
Pictures are part of the answer; the whole result object is its metadata.
"""

import base64
from typing import Any

from pydantic_ai import BinaryContent, RunContext, Tool, ToolReturn
from pydantic_ai.exceptions import ToolFailed

from handaxe.adapters.tool_conversion import FrameworkResult, FrameworkTool, SessionAdapter
from handaxe.app.session import Session


def tools_for(session: Session, *, fresh_ids: bool = False) -> list[Tool[Any]]:
    """The session's tools as pydantic-ai's; `fresh_ids` ignores the ids of the model."""
    exchange = SessionAdapter(session, fresh_ids=fresh_ids)
    return [_build_tool(exchange, offer) for offer in exchange.offers()]


def _build_tool(exchange: SessionAdapter, offer: FrameworkTool) -> Tool[Any]:
    async def call(ctx: RunContext[Any], /, **arguments: Any) -> ToolReturn[Any]:  # noqa: ANN401
        answer = await exchange.call(offer.name, arguments, ctx.tool_call_id)
        if answer.is_failure:
            raise ToolFailed(answer.text)
        return ToolReturn(_build_content(answer), metadata=answer.result.to_json())

    tool = Tool[Any].from_schema(call, offer.name, offer.description, offer.schema, takes_ctx=True)
    # Left open, some models would ask for a stricter schema than ours.
    tool.strict = False
    return tool


def _build_content(answer: FrameworkResult) -> str | list[str | BinaryContent]:
    if not answer.pictures:
        return answer.text
    pictures = [
        BinaryContent(base64.b64decode(picture.data), media_type=picture.media_type)
        for picture in answer.pictures
    ]
    return [answer.text, *pictures]
