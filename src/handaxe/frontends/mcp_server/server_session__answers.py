"""A call's result as the protocol wants it: content blocks, data beside them, codes of failures.

Many clients show their model the data in place of the text, and nothing else. So data goes out
only where it says everything: it carries the text along, and where that would be long, or where
pictures could get lost, there is none.
"""

from typing import Any

import msgspec

from handaxe.app.session import Session
from handaxe.contract.content import ImageBlock
from handaxe.contract.faults import UnknownTool
from handaxe.contract.result import ToolResult, to_json_data
from handaxe.frontends.mcp_server.protocol import CODE_KEY, INVALID_PARAMS, RpcError

MAX_TOLD_TWICE_CHARS = 10_000
"""Longer than this, a text is not repeated in data, nor data added to a text."""

_encoder = msgspec.json.Encoder(enc_hook=str)


def build_call_result(session: Session, result: ToolResult) -> dict[str, Any]:
    """What `tools/call` gives; a tool that does not exist is an error of the protocol."""
    if result.code == UnknownTool.code:
        raise RpcError(INVALID_PARAMS, result.text)
    told = session.tool_result(msgspec.structs.replace(result, data=None), "json-schema")
    content: list[dict[str, Any]] = told["content"]
    # A client has no other place for what hooks and tools add to the conversation.
    content += [{"type": "text", "text": message} for message in result.messages]
    data = _get_schema_data(session, result) if result.ok else None
    if data is None:
        data = _build_data(
            result, "\n\n".join(block["text"] for block in content if "text" in block)
        )
    if data is not None:
        told["structuredContent"] = data
    if not result.ok:
        told["_meta"] = {CODE_KEY: result.code}
    return told


def _get_schema_data(session: Session, result: ToolResult) -> dict[str, Any] | None:
    """The data of a tool that has a schema for it, as it is."""
    try:
        tool, _ = session.catalog.find(result.tool)
    except UnknownTool:
        return None
    if tool.output_type is None:
        return None
    from handaxe.frontends.mcp_server.tool_list import get_output_schema

    return to_json_data(result.data) if get_output_schema(tool) is not None else None


def _build_data(result: ToolResult, text: str) -> dict[str, Any] | None:
    """Data that can stand for the whole result; None if there is none, or it would be too much."""
    has_pictures = any(isinstance(block, ImageBlock) for block in result.content)
    if has_pictures or len(text) > MAX_TOLD_TWICE_CHARS:
        return None
    data = to_json_data(result.data)
    whole: dict[str, Any] = {"text": text}
    if isinstance(data, dict):
        whole |= data
    if not result.ok:
        whole["code"] = result.code
    if len(whole) == 1:
        return None
    return whole if len(_encoder.encode(whole)) <= 2 * MAX_TOLD_TWICE_CHARS else None
