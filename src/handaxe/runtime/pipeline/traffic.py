"""Who may go: calls run side by side unless one writes what another reads or writes.

A call takes its place in the order when it arrives. It may start when it collides with no
unfinished call before it, and when a lane is free. That one rule serves a single call, the
calls of one message, and calls that arrive while the model still talks.
"""

import asyncio
from collections.abc import Iterable

from handaxe.contract.effects import Effects


class Ticket:
    """A call's place in the order."""

    __slots__ = ("effects", "is_running", "order", "wake")

    def __init__(self, order: int, effects: Effects) -> None:
        self.order = order
        self.effects = effects
        self.is_running = False
        self.wake: asyncio.Future[None] | None = None


class Traffic:
    """The unfinished calls of one session."""

    def __init__(self, lanes: int) -> None:
        self._free_lanes = lanes
        self._next_order = 0
        self._open: dict[int, Ticket] = {}
        self._writers: dict[int, Ticket] = {}
        self._waiting: dict[int, tuple[Ticket, bool]] = {}

    def join(self, effects: Effects) -> Ticket:
        """Take the next place in the order."""
        ticket = Ticket(self._next_order, effects)
        self._next_order += 1
        self._open[ticket.order] = ticket
        if not effects.is_read_only:
            self._writers[ticket.order] = ticket
        return ticket

    def change(self, ticket: Ticket, effects: Effects) -> None:
        """The call turned out to do something else; its place stays."""
        ticket.effects = effects
        self._writers.pop(ticket.order, None)
        if not effects.is_read_only:
            self._writers[ticket.order] = ticket

    async def clear(self, ticket: Ticket) -> None:
        """Wait until no unfinished earlier call collides."""
        await self._wait(ticket, to_run=False)

    async def start(self, ticket: Ticket) -> None:
        """Wait until also nothing that is running collides and a lane is free; then run."""
        await self._wait(ticket, to_run=True)
        ticket.is_running = True
        self._free_lanes -= 1

    def leave(self, ticket: Ticket) -> None:
        """The call is over; whoever waited for it may go."""
        if self._open.pop(ticket.order, None) is None:
            return
        self._writers.pop(ticket.order, None)
        self._waiting.pop(ticket.order, None)
        if ticket.is_running:
            self._free_lanes += 1
        if self._waiting:
            self._wake()

    async def _wait(self, ticket: Ticket, *, to_run: bool) -> None:
        while not self._may_go(ticket, to_run=to_run):
            ticket.wake = asyncio.get_running_loop().create_future()
            self._waiting[ticket.order] = (ticket, to_run)
            try:
                await ticket.wake
            finally:
                self._waiting.pop(ticket.order, None)

    def _wake(self) -> None:
        for ticket, to_run in list(self._waiting.values()):
            if ticket.wake and not ticket.wake.done() and self._may_go(ticket, to_run=to_run):
                ticket.wake.set_result(None)

    def _may_go(self, ticket: Ticket, *, to_run: bool) -> bool:
        if to_run and self._free_lanes <= 0:
            return False
        # Two readers never collide, so a reader looks only at the writers.
        others: Iterable[Ticket] = (
            self._writers.values() if ticket.effects.is_read_only else self._open.values()
        )
        for other in others:
            is_before = other.order < ticket.order
            if not is_before and not (to_run and other.is_running):
                continue
            if other is not ticket and ticket.effects.collides(other.effects):
                return False
        return True
