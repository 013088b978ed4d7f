"""What one running call can reach: the ports and state its tool declared, nothing else."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

P = TypeVar("P")

_NOTHING: Mapping[type[Any], Any] = {}


class UndeclaredReachError(Exception):
    """A tool asked for a port or a piece of state that it does not list in `uses`."""


class ToolContext:
    """Handed to a tool with every call.

    `ctx[Files]` gives the port or state object of that type. Only what the tool lists in
    `uses` (always there) or `may_use` (there if the host offers it) can be had.
    """

    __slots__ = ("_allowed", "_offers", "_own", "_report", "call_id", "cwd")

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

    def __getitem__(self, port: type[P]) -> P:
        if port not in self._allowed:
            raise UndeclaredReachError(f"{port.__name__} is not in this tool's `uses`.")
        own = self._own
        return own[port] if port in own else self._offers[port]

    def find(self, port: type[P]) -> P | None:
        """A port the tool may use, or None where the host does not offer it."""
        if port not in self._allowed:
            raise UndeclaredReachError(f"{port.__name__} is not in this tool's `may_use`.")
        own = self._own
        return own[port] if port in own else self._offers.get(port)

    def report(self, text: str) -> None:
        """Tell whoever watches how far the call is."""
        self._report(text)
