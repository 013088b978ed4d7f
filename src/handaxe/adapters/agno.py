"""A session's tools for Agno: `Agent(model=model, tools=tools_for(session))`, run with `arun`.

A failure is a `RetryAgentRun`: the model reads it as the tool's error and the run continues. Images
are part of the answer.
"""

import base64
from typing import Any

from agno.exceptions import RetryAgentRun
from agno.media import Image
from agno.tools.function import Function, FunctionCall, ToolResult

from handaxe.adapters.tool_conversion import FrameworkResult, FrameworkTool, SessionAdapter
from handaxe.app.session import Session


def tools_for(session: Session, *, fresh_ids: bool = False) -> list[Function]:
    """The session's tools as Agno's; `fresh_ids` ignores the ids of the model."""
    exchange = SessionAdapter(session, fresh_ids=fresh_ids)
    return [_build_function(exchange, offer) for offer in exchange.offers()]


def _build_function(exchange: SessionAdapter, offer: FrameworkTool) -> Function:
    # Agno passes the call to the parameter of this name.
    async def call(fc: FunctionCall, **arguments: Any) -> ToolResult:  # noqa: ANN401
        answer = await exchange.call(offer.name, arguments, fc.call_id)
        if answer.is_failure:
            raise RetryAgentRun(answer.text)
        return ToolResult(content=answer.text, images=_decode_images(answer) or None)

    return Function(
        name=offer.name,
        description=offer.description,
        parameters=offer.schema,
        strict=False,
        entrypoint=call,
        skip_entrypoint_processing=True,
    )


def _decode_images(answer: FrameworkResult) -> list[Image]:
    return [
        Image(content=base64.b64decode(picture.data), mime_type=picture.media_type)
        for picture in answer.pictures
    ]
