"""Finish a result: size, storage, hooks after the call, numbers."""

from functools import partial
from typing import Any, cast

import msgspec

from handaxe.contract.faults import Cancelled
from handaxe.contract.result import ToolResult
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.hook_events import build_hook_event
from handaxe.pipeline.permission_request import build_rule_check
from handaxe.pipeline.prepare import PreparedCall
from handaxe.text.line_window import build_preview
from handaxe.text.sanitize import escape_surrogates
from handaxe.text.tokens import estimate_tokens

MAX_REMARK_CHARS = 2_000
MAX_REMARKS = 50


async def finalize_result(
    result: ToolResult, prepared: PreparedCall, context: PipelineContext, *, took_s: float = 0.0
) -> ToolResult:
    """The result for the model."""
    parsed = prepared.parsed
    # Before anything is cut, stored or told to hooks: half of a secret would not be known as one.
    result = context.redactor.redact_value(result)
    text, size_chars = _fit_text(result, result.text, prepared, context)
    result = msgspec.structs.replace(
        result,
        text=text,
        size_chars=size_chars,
        tokens=estimate_tokens(text),
        data={} if result.data is None else _to_plain_data(result.data),
        notes=(*parsed.notes, *prepared.notes, *result.notes),
        messages=(*prepared.messages, *result.messages),
        decision=prepared.decision,
    )
    if context.hooks.watch_after and result.code != Cancelled.code:
        result = await _run_after_hooks(result, prepared, context, round(took_s * 1000, 3))
    if late := context.hooks.take_late():
        result = msgspec.structs.replace(result, messages=(*result.messages, *late))
    return result


def _to_plain_data(data: object) -> object:
    """Data in JSON form; objects that JSON lacks stay for the host."""
    if not isinstance(data, dict):
        return data
    try:
        return msgspec.to_builtins(cast("dict[str, Any]", data))
    except (TypeError, ValueError, RecursionError):
        return cast("dict[str, Any]", data)


def _fit_text(
    result: ToolResult, text: str, prepared: PreparedCall, context: PipelineContext
) -> tuple[str, int]:
    """A result's text, or a preview if it is too long, and its length."""
    text = escape_surrogates(text)
    size_chars = len(text)
    limit = prepared.parsed.tool.max_result_chars
    if result.ok and size_chars > limit:
        keep = partial(context.results.keep, prepared.parsed.call.id)
        text = build_preview(text, keep, within=int(limit))
    return text, size_chars


async def _run_after_hooks(
    result: ToolResult, prepared: PreparedCall, context: PipelineContext, took_ms: float
) -> ToolResult:
    parsed = prepared.parsed
    name = "PostToolUse" if result.ok else "PostToolUseFailure"
    if context.hooks.watches(name):
        event = build_hook_event(parsed, context, name)
        known = {"id": parsed.call.id, "tool": parsed.tool.name, "duration_ms": took_ms}
        event["tool_response"] = _build_response(result, known)
        event["duration_ms"] = took_ms
        if not result.ok:
            event |= {"error": result.text, "is_interrupt": False}
        outcome = await context.hooks.fire(
            event, aliases=parsed.other_names, covers=build_rule_check(parsed, context)
        )
        complaint = (outcome.blocked,) if outcome.blocked else ()
        stop = (f"A hook asks to stop: {outcome.stop}",) if outcome.stop else ()
        replaced = _replace_output(result, outcome.output, prepared, context)
        if outcome.output is msgspec.UNSET or replaced.notes == result.notes:
            _record_remark(outcome.extra.get("classifierContext"), prepared, context)
        result = replaced
        result = msgspec.structs.replace(
            result,
            notes=(*result.notes, *outcome.notes, *stop),
            messages=(*result.messages, *outcome.messages, *complaint),
            stops=outcome.stop,
        )
    if result.ok and not parsed.effects.is_read_only:
        result = await parsed.tool.recheck(parsed.args, prepared.ctx, result)
    return result


def _record_remark(said: object, prepared: PreparedCall, context: PipelineContext) -> None:
    """Record a hook's remark about a changing call for the classifier."""
    parsed = prepared.parsed
    if isinstance(said, str) and said.strip() and not parsed.effects.is_read_only:
        context.remarks.append(f"{parsed.tool.name}: {said.strip()[:MAX_REMARK_CHARS]}")
        del context.remarks[:-MAX_REMARKS]


def _build_response(result: ToolResult, known: dict[str, Any]) -> dict[str, Any]:
    """The tool's result under the ecosystem's field names, next to handaxe's result object."""
    own = result.to_json()
    data = own["data"]
    given = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return {**own, **known, **given, "text": result.text, "data": data}


def _replace_output(
    result: ToolResult, output: object, prepared: PreparedCall, context: PipelineContext
) -> ToolResult:
    """Replace the output by a hook's output, if its shape fits."""
    if output is msgspec.UNSET or not result.ok:
        return result

    given = parse_output_override(prepared.parsed.tool.name, result, output)
    if given is None:
        note = "A hook returned an output with another shape than the tool's; it was ignored."
        return msgspec.structs.replace(result, notes=(*result.notes, note))
    if given.text is None:
        return msgspec.structs.replace(result, data=given.data)
    text, size_chars = _fit_text(result, context.redactor.redact(given.text), prepared, context)
    return msgspec.structs.replace(
        result,
        data=given.data,
        content=(),
        text=text,
        size_chars=size_chars,
        tokens=estimate_tokens(text),
    )


_OWN = frozenset({"text", "data"})
_STREAMS = ("stdout", "stderr")
_NOTHING = "(no output)"


class OutputOverride(msgspec.Struct, frozen=True):
    """Another output; without a text the previous one stays."""

    text: str | None
    data: Any


def parse_output_override(tool: str, result: ToolResult, given: object) -> OutputOverride | None:
    """Parse a replacement for a result's output; None if its shape does not fit.

    Valid are a text, an object with `text` and `data`, or an object with fields of the tool's data.
    The output of an MCP server can be replaced by anything.
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
    """Whether all fields belong to the tool's data and have its types."""
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
