"""A tool's work within its time limit, and what becomes of work that will not be stopped.

The work has a task of its own, so that whoever waits for it can go. What was told to stop and
goes on is left to itself: its context is closed, its end changes nothing, and the session tells
of it when it closes. A tool without a limit runs in its caller's task and is not seen to here.
"""

import asyncio
import logging
from typing import Any

from handaxe.contract.cancellation import CancelledWithResult
from handaxe.contract.context import ToolContext
from handaxe.contract.faults import TimedOut
from handaxe.contract.tool import Tool

TIDY_S = 0.5
"""So long has work that is told to stop for putting its things in order."""

_log = logging.getLogger("handaxe.pipeline")

Outliving = dict[asyncio.Task[Any], str]
"""The work of one session that goes on although its call is over, with the names of its tools."""


def abandon(work: asyncio.Task[Any], tool: str, ctx: ToolContext, among: Outliving) -> None:
    """The call is over and its work goes on; it reaches nothing of the session any more."""
    ctx.close()
    if work.get_loop().is_closed():
        return
    among[work] = tool
    work.add_done_callback(lambda over: _log_late_end(over, among))
    _log.warning("%s goes on although its call is over: it will not be stopped", tool)


async def cancel_abandoned(outliving: Outliving) -> None:
    """The session ends: ask once more, and tell what stays."""
    for work in outliving:
        work.cancel()
    await asyncio.wait(tuple(outliving), timeout=TIDY_S)
    for name in outliving.values():
        _log.warning("%s is still at work when its session closes", name)


def _log_late_end(work: asyncio.Task[Any], among: Outliving) -> None:
    name = among.pop(work, "")
    if work.cancelled():
        return
    failure = work.exception() or work.result()
    if isinstance(failure, BaseException) and not isinstance(failure, asyncio.CancelledError):
        _log.warning("%s failed after its call was over", name, exc_info=failure)


async def call_with_timeout(
    tool: Tool[Any], args: object, ctx: ToolContext, timeout_s: float, outliving: Outliving
) -> object:
    """What the tool gives, or `TimedOut`; a cancellation is passed on to it."""
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
        # The loop or the process is going, and nobody waits any more.
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
    """What the tool gives or raises: a task that raises an exit would take the loop along."""
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
