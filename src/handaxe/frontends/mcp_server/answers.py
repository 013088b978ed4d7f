"""A call's result as the protocol wants it: content blocks, data beside them, codes of failures."""

from typing import Any, cast

from handaxe.app.session import Session
from handaxe.contract.content import ImageBlock
from handaxe.contract.faults import UnknownTool
from handaxe.contract.result import ToolResult
from handaxe.frontends.mcp_server.protocol import CODE_KEY, INVALID_PARAMS, RpcError


def answer(session: Session, result: ToolResult) -> dict[str, Any]:
    """What `tools/call` gives; a tool that does not exist is an error of the protocol."""
    if result.code == UnknownTool.code:
        raise RpcError(INVALID_PARAMS, result.text)
    told = session.tool_result(result, "json-schema")
    content: list[dict[str, Any]] = told["content"]
    # A client has no other place for what hooks and tools add to the conversation.
    content += [{"type": "text", "text": message} for message in result.messages]
    pictures = {block.data for block in result.content if isinstance(block, ImageBlock)}
    if pictures and "structuredContent" in told:
        told["structuredContent"] = _without(pictures, told["structuredContent"])
    if not result.ok:
        told["structuredContent"] = {**told.get("structuredContent", {}), "code": result.code}
        told["_meta"] = {CODE_KEY: result.code}
    return told


def _without(pictures: set[str], data: object) -> Any:  # noqa: ANN401 - JSON as it came
    """Data that does not repeat the pictures that stand beside it."""
    if isinstance(data, dict):
        named = cast("dict[str, Any]", data)
        return {
            name: _without(pictures, value)
            for name, value in named.items()
            if not (isinstance(value, str) and value in pictures)
        }
    if isinstance(data, list):
        return [_without(pictures, value) for value in cast("list[Any]", data)]
    return data
