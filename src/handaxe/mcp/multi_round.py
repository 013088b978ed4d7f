"""Call a server's tool, and answer its questions in between.

In the newest protocol revision a server does not send questions: its result says that input is
missing, and the client calls again with it. The same callbacks answer both forms.
"""

import asyncio
from typing import Any

import mcp_types
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError

from handaxe.mcp.discovery import McpClientSession

MAX_ROUNDS = 10
PAUSE_S = 0.1
"""The delay before a call is repeated that only had to wait."""


async def call_multi_round(
    session: McpClientSession, tool: str, arguments: dict[str, Any], progress: ProgressFnT
) -> mcp_types.CallToolResult:
    """The result of a call after all rounds."""
    given: mcp_types.InputResponses | None = None
    state: str | None = None
    for _ in range(MAX_ROUNDS):
        answer = await session.call_tool(
            tool,
            arguments,
            progress_callback=progress,
            input_responses=given,
            request_state=state,
            allow_input_required=True,
        )
        if not isinstance(answer, mcp_types.InputRequiredResult):
            return answer
        given, state = (
            await _collect_responses(session, answer.input_requests or {}),
            answer.request_state,
        )
    raise MCPError(mcp_types.INTERNAL_ERROR, f"it still asked after {MAX_ROUNDS} rounds")


async def _collect_responses(
    session: McpClientSession, asked: dict[str, mcp_types.InputRequest]
) -> mcp_types.InputResponses | None:
    if not asked:
        await asyncio.sleep(PAUSE_S)
        return None
    given: mcp_types.InputResponses = {}
    for key, request in asked.items():
        meta = request.params.meta if request.params else None
        context = ClientRequestContext(session=session, request_id=key, meta=meta)
        answer = await session.dispatch_input_request(context, request)
        if isinstance(answer, mcp_types.ErrorData):
            raise MCPError.from_error_data(answer)
        given[key] = answer
    return given
