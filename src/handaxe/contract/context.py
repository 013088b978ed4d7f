"""What one running call can reach: the ports and state its tool declared, nothing else."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

P = TypeVar("P")

_NOTHING: Mapping[type[Any], Any] = {}
_OUT_OF_REACH: frozenset[type[Any]] = frozenset()


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

    __slots__ = ("_allowed", "_offers", "_own", "_report", "call_id", "cwd", "is_closed")

    def __init__(
        self,
        call_id: str,
        offers: Mapping[type[Any], Any],
        allowed: frozenset[type[Any]],
        report: Callable[[str], None],
        cwd: str = "/",
        own: Mapping[type[Any], Any] = _NOTHING,
    ) -> None:
        """`own` is made for this very call and stands before what is offered to all."""
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
