"""Faults of commands."""

import asyncio
from collections.abc import Awaitable

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import TemplateFault, ToolFault
from handaxe.contract.ports.shell import RunningCommand, Shell, ShellCommand
from handaxe.session.jobs import Jobs


class CommandFailed(ToolFault):
    """The command ended with an exit code that means failure."""

    code = "shell.failed"


class NoPreview(
    TemplateFault,
    code="shell.no_preview",
    sentence=(
        "The command was not run: this machine cannot isolate a dry run. Find out its effect "
        "another way, or run it without dry_run."
    ),
):
    """Dry runs are not possible on this machine."""


class NothingToWatch(
    TemplateFault,
    code="shell.nothing_to_watch",
    sentence=(
        "{problem} Give Monitor exactly one thing to watch: a `command`, or a web socket as "
        '`ws`, such as {{"url": "wss://example.org/events"}}.'
    ),
):
    """The input of Monitor does not name exactly one thing to watch."""


class BadSocket(
    TemplateFault,
    code="shell.bad_socket",
    sentence="Cannot watch the web socket: {what} is not usable, {problem}.",
):
    """Monitor cannot listen to the given web socket."""


class NoSocketClient(
    TemplateFault,
    code="shell.no_socket_client",
    sentence=(
        "Listening to a web socket needs an extra of handaxe that is not installed here. Ask "
        "the user to install it: pip install 'handaxe[sockets]'"
    ),
):
    """The web socket library is not installed."""


class BadLinePattern(
    TemplateFault,
    code="shell.bad_pattern",
    sentence=(
        "The pattern {pattern!r} is not a valid regular expression: {problem}. Correct it, or "
        "leave it out to see every line."
    ),
):
    """Monitor's pattern is not a valid regular expression."""


async def start_in_background(command: ShellCommand, ctx: ToolContext) -> RunningCommand:
    """Start a command as a background job.

    Raises:
        ToolFault: the maximum number of jobs is reached.
    """
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
    """Await something until it is done, even if this call is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
