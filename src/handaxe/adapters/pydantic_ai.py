"""A session's tools for pydantic-ai: `Agent(model, tools=tools_for(session))`.

A failure is a `ToolFailed`: the model reads it and the run spends no retry on it. Images are part
of the answer; the result object is its metadata. With `approvals` a call that needs approval is an
`ApprovalRequired`, whose metadata is the permission request.
"""

import base64
from typing import Any

from pydantic_ai import BinaryContent, RunContext, Tool, ToolReturn
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart
from pydantic_ai.tools import ToolDefinition

from handaxe.adapters.tool_conversion import FrameworkResult, FrameworkTool, SessionAdapter
from handaxe.app.session import Session
from handaxe.contract.decision import Allow


def tools_for(
    session: Session, *, fresh_ids: bool = False, approvals: bool = False
) -> list[Tool[Any]]:
    """The session's tools as pydantic-ai's; `fresh_ids` ignores the ids of the model.

    `approvals` leaves calls that need approval to `DeferredToolRequests`.
    """
    exchange = SessionAdapter(session, fresh_ids=fresh_ids, approvals=approvals)
    return [_build_tool(exchange, offer, approvals=approvals) for offer in exchange.offers()]


def _build_tool(exchange: SessionAdapter, offer: FrameworkTool, *, approvals: bool) -> Tool[Any]:
    async def call(ctx: RunContext[Any], /, **arguments: Any) -> ToolReturn[Any]:  # noqa: ANN401
        sent, said = arguments, None
        if approvals and ctx.tool_call_approved:
            sent = _find_sent(ctx.messages, ctx.tool_call_id, arguments)
            said = Allow(input=None if arguments == sent else arguments)
        answer = await exchange.call(offer.name, sent, ctx.tool_call_id, said)
        if answer.question is not None:
            raise ApprovalRequired(answer.question)
        if answer.is_failure:
            raise ToolFailed(answer.text)
        return ToolReturn(_build_content(answer), metadata=answer.result.to_json())

    tool = Tool[Any].from_schema(call, offer.name, offer.description, offer.schema, takes_ctx=True)
    # By default some models would make the schema stricter.
    tool.strict = False
    if approvals:

        async def prepare(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition:
            await exchange.take_denials(lambda _, call_id: _find_denial(ctx.messages, call_id))
            return definition

        tool.prepare = prepare
    return tool


def _find_sent(
    messages: list[ModelMessage], call_id: str | None, arguments: dict[str, Any]
) -> dict[str, Any]:
    """The input of the model, if the approval replaced it."""
    for part in (part for message in reversed(messages) for part in message.parts):
        if isinstance(part, ToolCallPart) and part.tool_call_id == call_id:
            return part.args_as_dict()
    return arguments


def _find_denial(messages: list[ModelMessage], call_id: str) -> str | None:
    for part in (part for message in reversed(messages) for part in message.parts):
        if isinstance(part, ToolReturnPart) and part.tool_call_id == call_id:
            return str(part.content) if part.outcome == "denied" else None
    return None


def _build_content(answer: FrameworkResult) -> str | list[str | BinaryContent]:
    if not answer.pictures:
        return answer.text
    pictures = [
        BinaryContent(base64.b64decode(picture.data), media_type=picture.media_type)
        for picture in answer.pictures
    ]
    return [answer.text, *pictures]
