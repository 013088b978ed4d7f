"""Run the tool: record what may change, and always produce one result."""

import asyncio
import logging
from typing import Any, cast, get_args

import msgspec

from handaxe.contract.cancellation import CancelledWithResult, is_external_stop
from handaxe.contract.content import ContentBlock
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Block
from handaxe.contract.effects import Effects, Extent
from handaxe.contract.faults import (
    BadOutput,
    InternalError,
    SystemFailed,
    TimedOut,
    ToolFailed,
    ToolFault,
    is_code,
    is_system_error,
)
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.prepare import PreparedCall
from handaxe.text.sanitize import escape_surrogates

TIDY_S = 0.5
"""How long stopped work may take to clean up."""


Outliving = dict[asyncio.Task[Any], str]
"""Work of a session that continues after its call, with the names of its tools."""


def abandon(work: asyncio.Task[Any], tool: str, ctx: ToolContext, context: Outliving) -> None:
    """Detach work that continues after its call; it loses access to the session."""
    ctx.close()
    if work.get_loop().is_closed():
        return
    context[work] = tool
    work.add_done_callback(lambda over: _log_late_end(over, context))
    _log.warning("%s continues after its call ended and cannot be stopped", tool)


async def cancel_abandoned(outliving: Outliving) -> None:
    """Cancel detached work at the end of the session and report what still runs."""
    for work in outliving:
        work.cancel()
    await asyncio.wait(tuple(outliving), timeout=TIDY_S)
    for name in outliving.values():
        _log.warning("%s still runs when its session closes", name)


def _log_late_end(work: asyncio.Task[Any], context: Outliving) -> None:
    name = context.pop(work, "")
    if work.cancelled():
        return
    failure = work.exception() or work.result()
    if isinstance(failure, BaseException) and not isinstance(failure, asyncio.CancelledError):
        _log.warning("%s failed after its call was over", name, exc_info=failure)


async def call_with_timeout(
    tool: Tool[Any], args: object, ctx: ToolContext, timeout_s: float, outliving: Outliving
) -> object:
    """Run the tool with its timeout; a cancellation is passed on to it.

    Raises:
        TimedOut: the timeout was reached.
    """
    work = asyncio.ensure_future(_capture_outcome(tool, args, ctx))
    try:
        await asyncio.wait((work,), timeout=timeout_s)
        is_late = not work.done()
        if is_late:
            await _stop(work)
    except asyncio.CancelledError:
        is_late = False
        await _stop(work)
        if not work.done() or work.cancelled():
            raise
    except BaseException:
        # The loop or the process is ending, and no caller waits any more.
        if not work.get_loop().is_closed():
            work.cancel()
        raise
    finally:
        if not work.done():
            abandon(work, tool.name, ctx, outliving)
    if is_late:
        raise TimedOut(tool.name, timeout_s, is_stopped=work.done())
    outcome: object = work.result()
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def _stop(work: asyncio.Task[Any]) -> None:
    work.cancel()
    await asyncio.wait((work,), timeout=TIDY_S)


async def _capture_outcome(tool: Tool[Any], args: object, ctx: ToolContext) -> object:
    """The tool's result or exception; an exit exception in a task would end the event loop."""
    try:
        return await tool.call(args, ctx)
    except CancelledWithResult as stopped:
        return stopped
    except asyncio.CancelledError:
        raise
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - raised again where the call is waited for
        return error


_log = logging.getLogger("handaxe.pipeline")
_CONTENT, _BLOCKS = get_args(ContentBlock), get_args(Block)


async def run(prepared: PreparedCall, context: PipelineContext) -> ToolResult:
    """The tool's result; a fault or bug becomes a failed result."""
    parsed = prepared.parsed
    try:
        if context.checkpoints is not None and prepared.may_change_files:
            effects = parsed.effects
            if effects.extent is not None:
                effects = await _widen_effects(effects, effects.extent, prepared, context)
            await context.checkpoints.before(parsed.call.id, parsed.tool.name, effects)
        if parsed.tool.states:
            from handaxe.pipeline.saved_state import run_with_state

            return await run_with_state(lambda: _run_tool(prepared, context), prepared, context)
        if parsed.tool.timeout_s is None:
            return _check_result(await parsed.tool.call(parsed.args, prepared.ctx), parsed.tool)
        return await _run_tool(prepared, context)
    except ToolFault as fault:
        return ToolResult.from_fault(fault)
    except BaseException as error:
        # A bug in a tool must not reach the caller, whatever it raises.
        if is_external_stop(error):
            raise
        return build_error_result(parsed.tool.name, error)


async def _run_tool(prepared: PreparedCall, context: PipelineContext) -> ToolResult:
    parsed, ctx = prepared.parsed, prepared.ctx
    limit_s = parsed.tool.timeout_s
    if limit_s is None:
        return _check_result(await parsed.tool.call(parsed.args, ctx), parsed.tool)
    given = await call_with_timeout(parsed.tool, parsed.args, ctx, limit_s, context.outliving)
    return _check_result(given, parsed.tool)


async def record_changes(prepared: PreparedCall, context: PipelineContext) -> tuple[str, ...]:
    """Record the changes of the call, including those of its after-hooks."""
    if context.checkpoints is None or not prepared.may_change_files:
        return ()
    return await context.checkpoints.after(prepared.parsed.call.id)


async def _widen_effects(
    effects: Effects, extent: Extent, prepared: PreparedCall, context: PipelineContext
) -> Effects:
    """The effects of a call, widened to the files that its undo record covers."""
    own = await context.commands.project_programs(prepared.ctx.cwd)
    if own.isdisjoint(extent.programs) and not context.hooks.watch_after:
        return effects
    return msgspec.structs.replace(effects, extent=None)


def build_error_result(tool: str, error: BaseException) -> ToolResult:
    """The result for an unexpected exception; the traceback goes to the log."""
    if is_system_error(error):
        _log.warning("%s failed: %s", tool, error)
        return ToolResult.from_fault(SystemFailed(tool, error))
    _log.error("%s failed", tool, exc_info=error)
    return ToolResult.from_fault(InternalError(tool, error))


def _check_result(result: object, tool: Tool[Any]) -> ToolResult:
    if not isinstance(result, ToolResult):
        raise TypeError(f"call() returned {type(result).__name__}, not ToolResult")
    is_plain = result.text.__class__ is str and result.ok.__class__ is bool
    if not is_plain or result.notes or result.messages or result.content or result.display:
        result = _normalize_result(result)
    if result.ok:
        if tool.output_check:
            check_output(tool, result)
        return result if result.code is None else msgspec.structs.replace(result, code=None)
    # A failure without a proper code could not be distinguished from others.
    if not is_code(result.code):
        result = msgspec.structs.replace(result, code=ToolFailed.code)
    return (
        result if result.text.strip() else msgspec.structs.replace(result, text=ToolFailed.no_words)
    )


def check_output(tool: Tool[Any], result: ToolResult) -> None:
    """Check that the data matches the tool's declared type.

    Raises:
        BadOutput: it does not.
    """
    from handaxe.schema.output_check import find_output_problems

    is_closed = tool.output_check == "closed"
    problems = find_output_problems(tool.output_type, result.data, closed=is_closed)
    if problems:
        origin = {"tool_module": type(tool).__module__}
        _log.error(
            "%s returned data that does not match its type: %s", tool.name, problems, extra=origin
        )
        raise BadOutput(tool.name, problems)


def _normalize_result(result: ToolResult) -> ToolResult:
    """The result with every part checked.

    Raises:
        TypeError: a part has the wrong type; logs, providers and displays rely on the types.
    """
    if not isinstance(cast("object", result.text), str):
        raise _make_type_error("text", "a text", result.text)
    if not isinstance(cast("object", result.ok), bool):
        raise _make_type_error("ok", "true or false", result.ok)
    return msgspec.structs.replace(
        result,
        notes=_check_texts("notes", result.notes),
        messages=_check_texts("messages", result.messages),
        content=_check_blocks("content", result.content, _CONTENT),
        display=None
        if result.display is None
        else _check_blocks("display", result.display, _BLOCKS),
    )


def _check_texts(part: str, given: object) -> tuple[str, ...]:
    texts = _list_members(given)
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise _make_type_error(part, "a tuple of texts", given)
    return tuple(escape_surrogates(text) for text in cast("tuple[str, ...]", texts))


def _check_blocks(part: str, given: object, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    blocks = _list_members(given)
    if blocks is None or not all(isinstance(block, kinds) for block in blocks):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise _make_type_error(part, f"a tuple of {names}", given)
    return blocks


def _list_members(given: object) -> tuple[object, ...] | None:
    return tuple(cast("list[object]", given)) if isinstance(given, tuple | list) else None


def _make_type_error(part: str, wanted: str, given: object) -> TypeError:
    return TypeError(f"ToolResult.{part} must be {wanted}, not {given!r:.200}")
