"""A session's tools for the OpenAI Agents SDK: `Agent(name, tools=tools_for(session))`.

A failure is a text that starts with `Error:`, for the SDK has no other sign that lets the run
go on. Pictures follow the text as data URLs.
"""

from typing import Any

import msgspec
from agents import FunctionTool, Tool, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext

from handaxe.adapters.tool_conversion import FrameworkResult, FrameworkTool, SessionAdapter
from handaxe.app.session import Session


def tools_for(session: Session, *, fresh_ids: bool = False) -> list[Tool]:
    """The session's tools as the SDK's; `fresh_ids` ignores the ids of the model."""
    exchange = SessionAdapter(session, fresh_ids=fresh_ids)
    return [_build_tool(exchange, offer) for offer in exchange.offers()]


def _build_tool(exchange: SessionAdapter, offer: FrameworkTool) -> FunctionTool:
    async def call(ctx: ToolContext[Any], arguments: str) -> Any:  # noqa: ANN401
        return _build_output(
            await exchange.call(offer.name, _decode_arguments(arguments), ctx.tool_call_id)
        )

    return FunctionTool(
        name=offer.name,
        description=offer.description,
        params_json_schema=offer.schema,
        on_invoke_tool=call,
        strict_json_schema=False,
    )


def _decode_arguments(arguments: str) -> object:
    try:
        return msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        # The session says what is wrong with it, so that the model can repair it.
        return arguments


def _build_output(answer: FrameworkResult) -> str | list[ToolOutputText | ToolOutputImage]:
    if answer.is_failure:
        return f"Error: {answer.text}"
    if not answer.pictures:
        return answer.text
    pictures = [
        ToolOutputImage(image_url=f"data:{picture.media_type};base64,{picture.data}")
        for picture in answer.pictures
    ]
    return [ToolOutputText(text=answer.text), *pictures]
