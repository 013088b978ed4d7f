"""Starting what goes on in the background, and ending things for certain."""

import asyncio
from collections.abc import Awaitable

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.shell import RunningCommand, Shell, ShellCommand
from handaxe.session.jobs import Jobs


async def start_in_background(command: ShellCommand, ctx: ToolContext) -> RunningCommand:
    """The command, running, let go and listed; a fault if there may be no more of them."""
    ctx[Jobs].refuse_if_full()
    running = await ctx[Shell].start(command)
    try:
        # Others may have been quicker while this one started.
        ctx[Jobs].refuse_if_full()
        running.let_go()
    except ToolFault:
        await shield_until_done(running.stop())
        raise
    ctx[Jobs].add(running)
    return running


async def shield_until_done(work: Awaitable[None]) -> None:
    """Await something to its end, however often this call is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
