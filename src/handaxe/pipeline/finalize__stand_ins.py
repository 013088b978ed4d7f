"""What a hook gives in place of a tool's output, and how the model reads it.

A hook that takes something out of a result must not be passed over: what stands in for the data
stands in for the text as well, and nothing of the original is left beside it.
"""

from typing import Any, cast

import msgspec

from handaxe.contract.result import ToolResult

_OWN = frozenset({"text", "data"})
_STREAMS = ("stdout", "stderr")
_NOTHING = "(no output)"


class OutputOverride(msgspec.Struct, frozen=True):
    """Another output; without a text the old one stays."""

    text: str | None
    data: Any


def parse_output_override(tool: str, result: ToolResult, given: object) -> OutputOverride | None:
    """What stands in for a result's output; None if it has not the shape of it.

    That is a text; an object with `text` and `data`; or an object with fields of the tool's own
    data, as the ecosystem knows them. What an MCP server gave may be replaced by anything.
    """
    if isinstance(given, str):
        return OutputOverride(given, result.data)
    if isinstance(given, dict):
        fields = cast("dict[str, Any]", given)
        if fields and fields.keys() <= _OWN:
            return _parse_own_fields(fields, result)
        if tool.startswith("mcp__") or _is_same_shape(fields, result.data):
            return OutputOverride(_extract_text(fields), fields)
        return None
    if isinstance(given, list) and tool.startswith("mcp__"):
        return OutputOverride(_join_block_texts(cast("list[Any]", given)), {})
    return None


def _parse_own_fields(fields: dict[str, Any], result: ToolResult) -> OutputOverride | None:
    text, data = fields.get("text"), fields.get("data", result.data)
    if not isinstance(data, dict) or ("text" in fields and not isinstance(text, str)):
        return None
    return OutputOverride(text, cast("dict[str, Any]", data))


def _is_same_shape(fields: dict[str, Any], data: object) -> bool:
    """Whether all fields are the tool's, and of the kinds that it gives."""
    known: object = msgspec.to_builtins(data, enc_hook=str)
    if not isinstance(known, dict) or not fields:
        return False
    own = cast("dict[str, Any]", known)
    return all(
        name in own
        and (own[name] is None or value is None or _find_kind(own[name]) is _find_kind(value))
        for name, value in fields.items()
    )


def _find_kind(value: object) -> type:
    if isinstance(value, bool):
        return bool
    return float if isinstance(value, int | float) else type(value)


def _extract_text(fields: dict[str, Any]) -> str:
    if any(name in fields for name in _STREAMS):
        said = [str(fields[name]) for name in _STREAMS if fields.get(name)]
        return "\n".join(said) or _NOTHING
    if isinstance(fields.get("content"), list):
        return _join_block_texts(fields["content"])
    return msgspec.json.encode(fields, enc_hook=str).decode()


def _join_block_texts(blocks: list[Any]) -> str:
    texts = [
        str(cast("dict[str, Any]", block)["text"])
        if isinstance(block, dict) and "text" in block
        else msgspec.json.encode(block, enc_hook=str).decode()
        for block in blocks
    ]
    return "\n".join(texts) or _NOTHING
