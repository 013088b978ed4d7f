"""Exit codes, the same for every command."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handaxe.contract.result import ToolResult

DONE = 0
FAILED = 1
USAGE = 2
REFUSED = 3
HUNG_UP = 129
INTERRUPTED = 130
TERMINATED = 143

_REFUSALS = frozenset(
    {"permission.asked", "permission.denied", "permission.pending", "hook.blocked", "undo.outside"}
)


class Terminated(KeyboardInterrupt):
    """The process must end: SIGTERM, or SIGHUP for a lost terminal.

    It can be raised anywhere, so it is a KeyboardInterrupt: it ends an event loop, and `except
    Exception` does not catch it.
    """

    def __init__(self, code: int = TERMINATED) -> None:
        self.code = code


def compute_exit_code(results: "Iterable[ToolResult]") -> int:
    """3 if any call was refused, 1 if one failed, else 0."""
    codes = {result.code for result in results if not result.ok}
    if not codes:
        return DONE
    return FAILED if codes.isdisjoint(_REFUSALS) else REFUSED


def is_refused(result: "ToolResult") -> bool:
    """Whether permission, a hook or a limit prevented the call."""
    return not result.ok and result.code in _REFUSALS
