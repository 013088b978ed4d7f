"""What all adapters share: the tools on offer, a framework's call, the answer in plain parts.

It knows no framework. An answer is text and pictures; how a failure is told is up to each adapter.
"""

from typing import Any, NamedTuple

from handaxe.app.services.background import append_notices
from handaxe.app.session import Session, get_parts
from handaxe.contract.call import ToolCall
from handaxe.contract.content import ImageBlock
from handaxe.contract.result import ToolResult


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

    @property
    def is_failure(self) -> bool:
        """Whether the model has to be told that the call did not work."""
        return not self.result.ok


class SessionAdapter:
    """A session as a framework's tools see it.

    A framework's own call id becomes the id of the call: running a stored conversation again
    repeats its answers and changes nothing twice. `fresh_ids` is for servers that give the same
    id to several calls.
    """

    def __init__(self, session: Session, *, fresh_ids: bool) -> None:
        self._session = session
        self._fresh_ids = fresh_ids

    def offers(self) -> list[FrameworkTool]:
        """The tools on offer, with their schemas as they are."""
        shown = self._session.tools("json-schema")
        return [
            FrameworkTool(tool["name"], tool["description"], tool["inputSchema"]) for tool in shown
        ]

    async def call(self, tool: str, call_input: object, call_id: str | None) -> FrameworkResult:
        """Run one call through permission, hooks, log and result store; never raises."""
        known_id = None if self._fresh_ids else call_id
        call = ToolCall(known_id or get_parts(self._session).new_call_id(), tool, call_input)
        result = await self._session.run(call)
        return _build_result(self._session, append_notices(result, self._session.jobs))


def _build_result(session: Session, result: ToolResult) -> FrameworkResult:
    blocks = session.tool_result(result, "json-schema")["content"]
    texts: list[str] = [block["text"] for block in blocks if block["type"] == "text"]
    pictures = [block for block in result.content if isinstance(block, ImageBlock)]
    return FrameworkResult(result, "\n\n".join(texts), tuple(pictures if result.ok else ()))
