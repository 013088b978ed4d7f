"""What one running call can reach: the ports and state its tool declared, nothing else."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from handaxe.contract.result import ToolResult

P = TypeVar("P")

_NOTHING: Mapping[type[Any], Any] = {}
_OUT_OF_REACH: frozenset[type[Any]] = frozenset()
CallInside = Callable[[str, str, dict[str, Any] | None, dict[str, Any]], Awaitable[ToolResult]]
"""Makes a call inside the one of an id: its tool, its input, its input as keyword arguments."""


class UndeclaredReachError(Exception):
    """A tool asked for a port or a piece of state that it does not list in `uses`."""


class CallOverError(Exception):
    """A tool reached for a port or a piece of state after its call had ended."""


def _ignore_report(_text: str) -> None:
    """Nobody listens to a call that is over."""


class ToolContext:
    """Handed to a tool with every call.

    `ctx[Files]` gives the port or state object of that type. Only what the tool lists in
    `uses` (always there) or `may_use` (there if the host offers it) can be had.
    """

    __slots__ = (
        "_allowed", "_call_inside", "_offers", "_own", "_report", "call_id", "cwd", "is_closed",
    )  # fmt: skip

    def __init__(
        self,
        call_id: str,
        offers: Mapping[type[Any], Any],
        allowed: frozenset[type[Any]],
        report: Callable[[str], None],
        cwd: str = "/",
        own: Mapping[type[Any], Any] = _NOTHING,
        call_inside: CallInside | None = None,
    ) -> None:
        """`own` is made for this very call and stands before what is offered to all."""
        self._call_inside = call_inside
        self.call_id = call_id
        self.cwd = cwd
        """Where the session stood when the call was judged; a command has to run right there."""
        self._offers = offers
        self._own = own
        self._allowed = allowed
        self._report = report
        self.is_closed = False

    def __getitem__(self, port: type[P]) -> P:
        if port not in self._allowed:
            raise self._refusal(port, "uses")
        own = self._own
        return own[port] if port in own else self._offers[port]

    def find(self, port: type[P]) -> P | None:
        """A port the tool may use, or None where the host does not offer it."""
        if port not in self._allowed:
            raise self._refusal(port, "may_use")
        own = self._own
        return own[port] if port in own else self._offers.get(port)

    async def call(
        self,
        tool: str,
        input: dict[str, Any] | None = None,
        /,
        **arguments: Any,  # noqa: ANN401 - the tool's own types
    ) -> ToolResult:
        """Make a call inside this one; its input as keyword arguments or as one dict.

        It has its own permission and its own result, and runs while this one waits for it.
        """
        if self.is_closed:
            raise CallOverError(f"The call {self.call_id} is over: no call can be made in it.")
        if self._call_inside is None:
            raise RuntimeError("Calls can be made in a session only.")
        return await self._call_inside(self.call_id, tool, input, arguments)

    def report(self, text: str) -> None:
        """Tell whoever watches how far the call is."""
        self._report(text)

    def mute(self) -> None:
        """The call has its result: what is reported from now on would come after its end."""
        self._report = _ignore_report

    def close(self) -> None:
        """Hand out nothing more: the call is over, and what it left behind goes on."""
        self.is_closed = True
        self._allowed = _OUT_OF_REACH
        self._report = _ignore_report

    def _refusal(self, port: type[Any], fact: str) -> Exception:
        if self.is_closed:
            return CallOverError(
                f"The call {self.call_id} is over: {port.__name__} is out of reach."
            )
        return UndeclaredReachError(f"{port.__name__} is not in this tool's `{fact}`.")
