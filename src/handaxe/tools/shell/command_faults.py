"""Faults of commands."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.shell import RunningCommand, Shell, ShellCommand
from handaxe.session.jobs import Jobs


class CommandFailed(ToolFault):
    """The command ended with an exit code that means failure."""

    code = "shell.failed"

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        super().__init__(text, data=data)


class NoPreview(ToolFault):
    """Dry runs are not possible on this machine."""

    code = "shell.no_preview"

    def __init__(self) -> None:
        super().__init__(
            "The command was not run: this machine cannot isolate a dry run. Find out "
            "its effect another way, or run it without dry_run."
        )


class NothingToWatch(ToolFault):
    """The input of Monitor does not name exactly one thing to watch."""

    code = "shell.nothing_to_watch"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"{problem} Give Monitor exactly one thing to watch: a `command`, or a web socket as "
            '`ws`, such as {"url": "wss://example.org/events"}.'
        )


class BadSocket(ToolFault):
    """Monitor cannot listen to the given web socket."""

    code = "shell.bad_socket"

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(f"Cannot watch the web socket: {what} is not usable, {problem}.")


class NoSocketClient(ToolFault):
    """The web socket library is not installed."""

    code = "shell.no_socket_client"

    def __init__(self) -> None:
        super().__init__(
            "Listening to a web socket needs an extra of handaxe that is not installed here. Ask "
            "the user to install it: pip install 'handaxe[sockets]'"
        )


class BadLinePattern(ToolFault):
    """Monitor's pattern is not a valid regular expression."""

    code = "shell.bad_pattern"

    def __init__(self, pattern: str, problem: str) -> None:
        super().__init__(
            f"The pattern {pattern!r} is not a valid regular expression: {problem}. "
            "Correct it, or leave it out to see every line."
        )


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
