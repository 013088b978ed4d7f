"""A call that was cancelled and still has something to say."""

import asyncio

from handaxe.contract.result import ToolResult


class Stopped(asyncio.CancelledError):
    """Raised by a tool in place of the cancellation it met: what had happened until then.

    It is a cancellation, so everybody on the way up treats it as one; only the pipeline looks at
    the result.
    """

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result
