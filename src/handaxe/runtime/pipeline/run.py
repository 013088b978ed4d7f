"""Do it: remember what may change, run the tool, whatever happens give one result."""

import logging

import msgspec

from handaxe.contract.effects import Effects, Extent
from handaxe.contract.faults import Failed, InternalError, ToolFault, is_code
from handaxe.contract.result import ToolResult
from handaxe.contract.stopping import comes_from_outside
from handaxe.runtime.pipeline.collaborators import Collaborators
from handaxe.runtime.pipeline.prepare import Prepared

_log = logging.getLogger("handaxe.pipeline")


async def run(prepared: Prepared, among: Collaborators) -> ToolResult:
    """The tool's own result; a fault or a bug becomes a failed one."""
    parsed = prepared.parsed
    try:
        if among.checkpoints is not None and not parsed.effects.is_internal:
            effects = parsed.effects
            if effects.extent is not None:
                effects = await _kept_for(effects, effects.extent, prepared, among)
            await among.checkpoints.before(parsed.call.id, parsed.tool.name, effects)
        if parsed.tool.timeout_s is None:
            return _checked(await parsed.tool.call(parsed.args, prepared.ctx))
        from handaxe.runtime.pipeline.in_time import call_in_time

        limit_s = parsed.tool.timeout_s
        given = await call_in_time(parsed.tool, parsed.args, prepared.ctx, limit_s, among.outliving)
        return _checked(given)
    except ToolFault as fault:
        return ToolResult.from_fault(fault)
    except BaseException as error:
        # A bug in a tool must not reach the caller, whatever it raises.
        if comes_from_outside(error):
            raise
        return failed_by_bug(parsed.tool.name, error)


async def remember_outcome(prepared: Prepared, among: Collaborators) -> tuple[str, ...]:
    """Record what the call left; what its after-hooks changed in its files belongs to it."""
    if among.checkpoints is None or prepared.parsed.effects.is_internal:
        return ()
    return await among.checkpoints.after(prepared.parsed.call.id)


async def _kept_for(
    effects: Effects, extent: Extent, prepared: Prepared, among: Collaborators
) -> Effects:
    """The effects of a call with those of others that its record covers, and its proof does not."""
    own = await among.commands.project_programs(prepared.ctx.cwd)
    if own.isdisjoint(extent.programs) and not among.hooks.watch_after:
        return effects
    return msgspec.structs.replace(effects, extent=None)


def failed_by_bug(tool: str, error: BaseException) -> ToolResult:
    """The result for an exception nobody foresaw; the traceback goes to the log."""
    _log.error("%s failed", tool, exc_info=error)
    return ToolResult.from_fault(InternalError(tool, error))


def _checked(result: object) -> ToolResult:
    if not isinstance(result, ToolResult):
        raise TypeError(f"call() returned {type(result).__name__}, not ToolResult")
    if result.ok:
        return result if result.code is None else msgspec.structs.replace(result, code=None)
    # A failure without a code, or with something else in its place, could not be told from others.
    return result if is_code(result.code) else msgspec.structs.replace(result, code=Failed.code)
