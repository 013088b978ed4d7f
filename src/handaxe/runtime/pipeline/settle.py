"""Make it fit: size, store, hooks after, the numbers every result carries."""

import msgspec

from handaxe.contract.result import ToolResult
from handaxe.runtime.pipeline.collaborators import Collaborators
from handaxe.runtime.pipeline.prepare import Prepared, hook_event
from handaxe.text.tokens import estimate
from handaxe.text.wellformed import well_formed
from handaxe.text.windows import two_ended_preview


async def settle(result: ToolResult, prepared: Prepared, among: Collaborators) -> ToolResult:
    """The result as the model gets it."""
    parsed = prepared.parsed
    text = well_formed(result.text)
    size_chars = len(text)
    if result.ok and size_chars > parsed.tool.max_result_chars:
        path = among.results.keep(parsed.call.id, text)
        text = two_ended_preview(text, path)
    notes = (*parsed.notes, *result.notes)
    messages = (*prepared.messages, *result.messages)
    result = msgspec.structs.replace(
        result,
        text=text,
        data={} if result.data is None else result.data,
        notes=notes,
        messages=messages,
        decision=prepared.decision,
        size_chars=size_chars,
        tokens=estimate(text),
    )
    if among.hooks.watch_after:
        result = await _hear_hooks(result, prepared, among)
    return result


async def _hear_hooks(result: ToolResult, prepared: Prepared, among: Collaborators) -> ToolResult:
    parsed = prepared.parsed
    name = "PostToolUse" if result.ok else "PostToolUseFailure"
    event = {**hook_event(parsed, among, name), "tool_response": result.to_json()}
    outcome = await among.hooks.after(event, ok=result.ok)
    complaint = (outcome.blocked,) if outcome.blocked else ()
    result = msgspec.structs.replace(
        result,
        notes=(*result.notes, *outcome.notes),
        messages=(*result.messages, *outcome.messages, *complaint),
    )
    if result.ok and not parsed.effects.is_read_only:
        result = await parsed.tool.recheck(parsed.args, prepared.ctx, result)
    return result
