"""What can be wrong with a command."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.shell import RunningCommand, Shell, ShellCommand
from handaxe.session.jobs import Jobs


class CommandFailed(ToolFault):
    """The command ran and ended with an exit code that means failure."""

    code = "shell.failed"

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        super().__init__(text, data=data)


class NoPreview(ToolFault):
    """This machine cannot show what a command would change without changing it."""

    code = "shell.no_preview"

    def __init__(self) -> None:
        super().__init__(
            "The command was not run: dry_run needs a way to keep its changes apart, and there is "
            "none here. Look at what it would do another way, or run it without dry_run."
        )


class NothingToWatch(ToolFault):
    """Monitor was not told one thing to watch."""

    code = "shell.nothing_to_watch"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"{problem} Give Monitor exactly one thing to watch: a `command`, or a web socket as "
            '`ws`, such as {"url": "wss://example.org/events"}.'
        )


class BadSocket(ToolFault):
    """What Monitor was told of a web socket cannot be listened to."""

    code = "shell.bad_socket"

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(f"The web socket was not listened to: {what} cannot be used, {problem}.")


class NoSocketClient(ToolFault):
    """The library that speaks to web sockets is not there."""

    code = "shell.no_socket_client"

    def __init__(self) -> None:
        super().__init__(
            "Listening to a web socket needs an extra of handaxe that is not installed here. Ask "
            "the user to install it: pip install 'handaxe[sockets]'"
        )


class BadLinePattern(ToolFault):
    """Monitor's pattern is no regular expression."""

    code = "shell.bad_pattern"

    def __init__(self, pattern: str, problem: str) -> None:
        super().__init__(
            f"The pattern {pattern!r} is no regular expression: {problem}. Mend it, or leave it "
            "out to see every line."
        )


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
