"""A session's tools for the OpenAI Agents SDK: `Agent(name, tools=tools_for(session))`.

A failure is a text that starts with `Error:`, the only sign that lets the run continue. Images
follow the text as data URLs. With `approvals` a call that needs approval interrupts the run.
"""

from typing import Any

import msgspec
from agents import FunctionTool, RunContextWrapper, Tool, ToolOutputImage, ToolOutputText
from agents.agent import AgentBase
from agents.tool_context import ToolContext

from handaxe.adapters.tool_conversion import FrameworkResult, FrameworkTool, SessionAdapter
from handaxe.app.session import Session
from handaxe.contract.decision import Allow


def tools_for(session: Session, *, fresh_ids: bool = False, approvals: bool = False) -> list[Tool]:
    """The session's tools as the SDK's; `fresh_ids` ignores the ids of the model.

    `approvals` leaves calls that need approval to `state.approve` and `state.reject`.
    """
    exchange = SessionAdapter(session, fresh_ids=fresh_ids, approvals=approvals)
    tools = [_build_tool(exchange, offer) for offer in exchange.offers()]
    if approvals:
        for tool in tools:
            _let_ask(tool, exchange)
    return [*tools]


def _build_tool(exchange: SessionAdapter, offer: FrameworkTool) -> FunctionTool:
    async def call(ctx: ToolContext[Any], arguments: str) -> Any:  # noqa: ANN401
        sent = _decode_arguments(arguments)
        said = Allow() if ctx.is_tool_approved(offer.name, ctx.tool_call_id) else None
        return _build_output(await exchange.call_answered(offer.name, sent, ctx.tool_call_id, said))

    return FunctionTool(
        name=offer.name,
        description=offer.description,
        params_json_schema=offer.schema,
        on_invoke_tool=call,
        strict_json_schema=False,
    )


def _let_ask(tool: FunctionTool, exchange: SessionAdapter) -> None:
    async def needs_approval(
        _: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str
    ) -> bool:
        return await exchange.check(tool.name, arguments, call_id)

    async def is_enabled(ctx: RunContextWrapper[Any], _: AgentBase[Any]) -> bool:
        def find_denial(name: str, call_id: str) -> str | None:
            is_denied = ctx.is_tool_approved(name, call_id) is False
            return ctx.get_rejection_message(name, call_id) or "" if is_denied else None

        await exchange.take_denials(find_denial)
        return True

    tool.needs_approval = needs_approval
    tool.is_enabled = is_enabled


def _decode_arguments(arguments: str) -> object:
    try:
        return msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        # The session reports what is wrong, so that the model can fix it.
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
