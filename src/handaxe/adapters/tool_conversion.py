"""The common part of the adapters: tools, calls and answers of a session.

It depends on no framework. An answer is text and images; each adapter reports failures as its
framework expects.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from handaxe.app.services.background import append_notices
from handaxe.app.session import Session, get_parts
from handaxe.contract.call import ToolCall
from handaxe.contract.content import ImageBlock
from handaxe.contract.decision import Allow, Deny
from handaxe.contract.faults import AnswerPending, SetupError
from handaxe.contract.result import ToolResult

CANNOT_ASK = "It needs approval, which cannot be requested here."
_UNASKED = "It needs approval, which was not requested before the call. Call it again."
_CHANGED = "Its effect, or the reason to ask, changed after the approval. Call it again."


class FrameworkTool(NamedTuple):
    """A tool as a framework registers it."""

    name: str
    description: str
    schema: dict[str, Any]


class FrameworkResult(NamedTuple):
    """A call's result in the parts that frameworks take."""

    result: ToolResult
    text: str
    pictures: tuple[ImageBlock, ...]
    question: dict[str, Any] | None = None
    """The permission request as JSON, if the call waits for the framework's approval."""

    @property
    def is_failure(self) -> bool:
        """Whether the model must see that the call failed."""
        return not self.result.ok


class SessionAdapter:
    """A session for the tools of a framework.

    A framework's call id becomes the id of the call: running a stored conversation again repeats
    its answers and changes nothing twice. `fresh_ids` is for servers that give the same id to
    several calls. With `approvals` a call that needs approval waits for the framework.
    """

    def __init__(self, session: Session, *, fresh_ids: bool, approvals: bool = False) -> None:
        if approvals and fresh_ids:
            raise SetupError(
                "Approvals use the call ids of the model. Leave out `fresh_ids` or `approvals`."
            )
        self._session = session
        self._parts = get_parts(session)
        self._fresh_ids = fresh_ids
        self._approvals = approvals
        self._closing = asyncio.Lock()
        if approvals:
            from handaxe.app.services.permission_setup import put_questions_off

            parts = self._parts
            put_questions_off(parts.pipeline_context, session.permissions, parts.configuration)

    def offers(self) -> list[FrameworkTool]:
        """The offered tools with their schemas."""
        shown = self._session.tools("json-schema")
        return [
            FrameworkTool(tool["name"], tool["description"], tool["inputSchema"]) for tool in shown
        ]

    async def call(
        self,
        tool: str,
        call_input: object,
        call_id: str | None,
        answer: Allow | Deny | None = None,
    ) -> FrameworkResult:
        """Run one call through permission, hooks, log and result store; never raises.

        An answer counts for a waiting call; other calls are decided as usual.
        """
        known_id = None if self._fresh_ids else call_id
        call = ToolCall(known_id or self._parts.new_call_id(), tool, call_input)
        if answer is not None and not self.is_waiting(call.id):
            is_new = not self._parts.pipeline.has_call(call.id)
            if is_new and isinstance(answer, Allow) and answer.input is not None:
                call = ToolCall(call.id, tool, answer.input)
            answer = None
        result = await self._session.run(call, answer=answer)
        if self._approvals and not known_id and result.code == AnswerPending.code:
            result = await self._session.run(call, answer=Deny(CANNOT_ASK))
        return self._build_result(append_notices(result, self._session.jobs))

    async def call_answered(
        self, tool: str, call_input: object, call_id: str, answer: Allow | Deny | None
    ) -> FrameworkResult:
        """Run one call without asking again; without a valid approval it is refused."""
        has_waited = self.is_waiting(call_id)
        result = await self.call(tool, call_input, call_id, answer)
        if result.question is not None and answer is not None and not has_waited:
            result = await self.call(tool, call_input, call_id, answer)
        if result.question is None:
            return result
        reason = _CHANGED if has_waited and answer is not None else _UNASKED
        return await self.call(tool, call_input, call_id, Deny(reason))

    def is_waiting(self, call_id: str) -> bool:
        """Whether a call waits for an answer."""
        return self._parts.pipeline_context.questions.is_open(call_id)

    async def check(self, tool: str, call_input: object, call_id: str) -> bool:
        """Whether a call waits for an answer, or does from now on; does not run it."""
        if self.is_waiting(call_id):
            return True
        call = ToolCall(call_id, tool, call_input)
        if self._parts.pipeline.is_closed or self._parts.pipeline.has_call(call_id):
            return False
        from handaxe.adapters.approval_check import check_approval

        self._parts.follow()
        if not await check_approval(call, self._parts.pipeline_context):
            return False
        return (await self.call(tool, call_input, call_id)).question is not None

    async def take_denials(self, find_denial: Callable[[str, str], str | None]) -> None:
        """Close the questions that the framework denied.

        `find_denial` gives the reason of a denial for the tool and the id of a call.
        """
        if not self._session.pending:
            return
        async with self._closing:
            for request in self._session.pending:
                reason = find_denial(request.tool, request.call_id)
                if reason is not None:
                    call = ToolCall(request.call_id, request.tool, request.input)
                    await self._session.run(call, answer=Deny(reason))

    def _build_result(self, result: ToolResult) -> FrameworkResult:
        blocks = self._session.tool_result(result, "json-schema")["content"]
        texts: list[str] = [block["text"] for block in blocks if block["type"] == "text"]
        pictures = [block for block in result.content if isinstance(block, ImageBlock)]
        return FrameworkResult(
            result,
            "\n\n".join(texts),
            tuple(pictures if result.ok else ()),
            self.find_question(result.id) if result.code == AnswerPending.code else None,
        )

    def find_question(self, call_id: str) -> dict[str, Any] | None:
        """The permission request, as JSON, of a call that waits for the framework's approval."""
        if not self._approvals:
            return None
        requests = (request for request in self._session.pending if request.call_id == call_id)
        return next(map(msgspec.to_builtins, requests), None)
