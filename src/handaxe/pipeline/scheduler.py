"""Who may go: calls run side by side unless one writes what another reads or writes.

A call takes its place in the order when it arrives. It may start when it collides with no
unfinished call before it, and when a lane is free. That one rule serves a single call, the
calls of one message, and calls that arrive while the model still talks.
"""

import asyncio
from collections import deque
from collections.abc import Collection

from handaxe.contract.effects import Effects

Wake = asyncio.Future[None]


class Slot:
    """A call's place in the order."""

    __slots__ = ("effects", "is_alone", "is_reader", "is_running", "order")

    def __init__(self, order: int, effects: Effects) -> None:
        self.order = order
        self.effects = effects
        self.is_reader = effects.is_read_only
        self.is_alone = False
        self.is_running = False


class Scheduler:
    """The unfinished calls of one session."""

    def __init__(self, lanes: int) -> None:
        self._free_lanes = lanes
        self._next_order = 0
        self._open: dict[int, Slot] = {}
        self._writers: dict[int, Slot] = {}
        self._blocked: dict[int, tuple[Slot, Wake]] = {}
        self._for_a_lane: deque[Wake] = deque()

    def join(self, effects: Effects) -> Slot:
        """Take the next place in the order."""
        ticket = Slot(self._next_order, effects)
        self._next_order += 1
        self._open[ticket.order] = ticket
        if not ticket.is_reader:
            self._writers[ticket.order] = ticket
        return ticket

    def isolate(self, ticket: Slot) -> None:
        """The call turned out to do something else than it was ordered by: it runs alone."""
        ticket.effects = Effects.unknown()
        ticket.is_reader = False
        ticket.is_alone = True
        self._writers[ticket.order] = ticket

    async def clear(self, ticket: Slot) -> None:
        """Wait until the way is clear."""
        while not self.is_clear(ticket):
            wake = asyncio.get_running_loop().create_future()
            self._blocked[ticket.order] = ticket, wake
            try:
                await wake
            finally:
                del self._blocked[ticket.order]

    def try_acquire(self, ticket: Slot) -> bool:
        """Take a lane if one is free."""
        if self._free_lanes > 0:
            self._free_lanes -= 1
            ticket.is_running = True
        return ticket.is_running

    async def start(self, ticket: Slot) -> None:
        """Take a lane, waiting for one to come free; a lone call waits for all others too."""
        if ticket.is_alone:
            await self.clear(ticket)
        if not self.try_acquire(ticket):
            await self._wait_for_free()
            ticket.is_running = True

    def leave(self, ticket: Slot) -> None:
        """The call is over; whoever waited for it may go."""
        if self._open.pop(ticket.order, None) is None:
            return
        self._writers.pop(ticket.order, None)
        if ticket.is_running:
            self._release_one()
        for blocked, wake in self._blocked.values():
            if not wake.done() and self.is_clear(blocked):
                wake.set_result(None)

    async def _wait_for_free(self) -> None:
        wake: Wake = asyncio.get_running_loop().create_future()
        self._for_a_lane.append(wake)
        try:
            await wake
        except asyncio.CancelledError:
            if wake.done() and not wake.cancelled():
                # The lane was handed over at the very moment it was no longer wanted.
                self._release_one()
            raise

    def _release_one(self) -> None:
        """Hand the lane to whoever waits longest, or keep it free."""
        while self._for_a_lane:
            wake = self._for_a_lane.popleft()
            if not wake.done():
                wake.set_result(None)
                return
        self._free_lanes += 1

    def is_clear(self, ticket: Slot) -> bool:
        """Whether no unfinished earlier call collides; for a lone one, no running one too."""
        # Two readers never collide, so a reader looks only at the writers.
        others: Collection[Slot] = (
            self._writers.values() if ticket.is_reader else self._open.values()
        )
        for other in others:
            is_ahead = other.order < ticket.order or (ticket.is_alone and other.is_running)
            if is_ahead and other is not ticket and ticket.effects.collides(other.effects):
                return False
        return True
