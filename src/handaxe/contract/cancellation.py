"""Cancel a call from outside, and let a cancelled call still report something."""

import asyncio
from typing import Any

from handaxe.contract.result import ToolResult


class CancelledWithResult(asyncio.CancelledError):
    """Raised by a tool instead of its cancellation, with the result so far.

    It is a cancellation, so all callers treat it as one; only the pipeline uses the result.
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
    """Whether it ends more than the code that raised it: the task or the process is stopped.

    `sys.exit` in a tool or a hook does not count, nor does the cancellation of something it waited
    for. A `GeneratorExit` counts only if it comes from another task.
    """
    if isinstance(error, GeneratorExit):
        return home is None or find_current_task() is not home
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return isinstance(error, CancelledWithResult) or task is None or task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt)
