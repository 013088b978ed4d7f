"""What stops a call from outside, and a call that then still has something to say."""

import asyncio
from typing import Any

from handaxe.contract.result import ToolResult


class CancelledWithResult(asyncio.CancelledError):
    """Raised by a tool in place of the cancellation it met: what had happened until then.

    It is a cancellation, so everybody on the way up treats it as one; only the pipeline looks at
    the result.
    """

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


def find_current_task() -> asyncio.Task[Any] | None:
    """The task that runs here, if any does."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def is_external_stop(error: BaseException, home: asyncio.Task[Any] | None = None) -> bool:
    """Whether it ends more than the code that raised it: somebody stops the task or the process.

    `sys.exit` in a tool or a hook is not that, nor is the cancellation of what it waited for, nor a
    `GeneratorExit` in the task that is the home of the code: from outside it comes in another one.
    """
    if isinstance(error, GeneratorExit):
        return home is None or find_current_task() is not home
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return isinstance(error, CancelledWithResult) or task is None or task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt)
