"""A session's tools for LangChain and LangGraph: `ToolNode(tools_for(session))`.

A failure is a `ToolMessage` with status `error`; the result object is the message's artifact.
Images are content blocks. The tools are asynchronous: use `ainvoke`, not `invoke`. With `approvals`
a call that needs approval interrupts its graph.
"""

from typing import Any, NoReturn

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import PrivateAttr

from handaxe.adapters.langgraph_answers import GraphAnswers
from handaxe.adapters.tool_conversion import FrameworkResult, SessionAdapter
from handaxe.app.session import Session


def tools_for(
    session: Session, *, fresh_ids: bool = False, approvals: bool = False
) -> list[BaseTool]:
    """The session's tools as LangChain's; `fresh_ids` ignores the ids of the model.

    `approvals` interrupts the graph for approval: `Command(resume={call_id: "allow"})`.
    """
    exchange = SessionAdapter(session, fresh_ids=fresh_ids, approvals=approvals)
    answers = GraphAnswers(exchange) if approvals else None
    tools: list[BaseTool] = []
    for offer in exchange.offers():
        tool = LangchainTool(
            name=offer.name, description=offer.description, args_schema=offer.schema
        )
        tool.join(exchange, answers)
        tools.append(tool)
    return tools


class LangchainTool(BaseTool):
    """One tool of a session."""

    # Without an id no message can be marked as an error, so the text must show it.
    handle_tool_error: Any = True
    _exchange: SessionAdapter = PrivateAttr()
    _answers: GraphAnswers | None = PrivateAttr()

    def join(self, exchange: SessionAdapter, answers: GraphAnswers | None) -> None:
        """Set the session of the calls and the approvals."""
        self._exchange, self._answers = exchange, answers

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Pass the input on unchanged with its id; the session checks it."""
        return (tool_input, tool_call_id), {}

    async def _arun(self, call_input: object, call_id: str | None) -> Any:  # noqa: ANN401
        if self._answers is not None and call_id:
            answer = await self._answers.call(self.name, call_input, call_id)
        else:
            answer = await self._exchange.call(self.name, call_input, call_id)
        if call_id is None:
            if answer.is_failure:
                raise ToolException(answer.text)
            return _build_content(answer)
        return ToolMessage(
            _build_content(answer),
            name=self.name,
            tool_call_id=call_id,
            status="error" if answer.is_failure else "success",
            artifact=answer.result.to_json(),
        )

    def _run(self, *_: object) -> NoReturn:
        raise NotImplementedError(f"{self.name} is asynchronous. Use ainvoke, or astream.")


def _build_content(answer: FrameworkResult) -> str | list[Any]:
    if not answer.pictures:
        return answer.text
    pictures = [
        {"type": "image", "base64": picture.data, "mime_type": picture.media_type}
        for picture in answer.pictures
    ]
    return [{"type": "text", "text": answer.text}, *pictures]
