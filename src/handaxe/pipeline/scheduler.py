"""The scheduler: calls run in parallel unless one writes what another reads or writes.

A call gets its slot on arrival. It starts when it conflicts with no unfinished call before it and
the parallel limit allows it. The same rule applies to a single call, the calls of one message, and
calls that arrive while the model streams.

A nested call uses the slot of its outer call. It conflicts with no call around it, waits for
running calls and for earlier calls of the same outer call, and goes before all calls that have not
started. A cycle of waiting calls is refused.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterator
from functools import partial

from handaxe.contract.call import CallSlot, ToolCall
from handaxe.contract.effects import Effects
from handaxe.contract.faults import NestedCall

Wake = asyncio.Future[None]
MAX_DEPTH = 10
"""Maximum nesting depth of calls."""


class ParallelLimit:
    """The number of calls that may run at once."""

    __slots__ = ("_free", "_waiting")

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[Wake] = deque()

    def try_take(self) -> bool:
        """Take a place if one is free."""
        if self._free > 0:
            self._free -= 1
            return True
        return False

    async def take(self) -> None:
        """Wait for a free place and take it."""
        wake: Wake = asyncio.get_running_loop().create_future()
        self._waiting.append(wake)
        try:
            await wake
        except asyncio.CancelledError:
            if wake.done() and not wake.cancelled():
                # The lane was handed over at the very moment it was no longer wanted.
                self.release()
            raise

    def release(self) -> None:
        """Give the place to the longest waiter, or free it."""
        while self._waiting:
            wake = self._waiting.popleft()
            if not wake.done():
                wake.set_result(None)
                return
        self._free += 1


class Scheduler:
    """The unfinished calls of one session."""

    def __init__(self, limit: int) -> None:
        self._count = limit
        self._limit = ParallelLimit(limit)
        self._next_order = 0
        self._inner_calls = 0
        self._open: dict[int, CallSlot] = {}
        self._writers: dict[int, CallSlot] = {}
        self._blocked: dict[int, tuple[CallSlot, Wake]] = {}

    def join(self, call: ToolCall, effects: Effects, parent: CallSlot | None = None) -> CallSlot:
        """Add a call at the end, or inside an unfinished `parent`."""
        slot = CallSlot(call, effects, self._next_order, self, parent)
        if parent is not None:
            self._enter(slot, parent)
        self._next_order += 1
        self._open[slot.order] = slot
        if not slot.is_reader:
            self._writers[slot.order] = slot
        return slot

    def _enter(self, slot: CallSlot, parent: CallSlot) -> None:
        around: CallSlot | None = parent
        while around is not None and (around.scheduler is not self or around.is_over):
            around = around.parent
        if around is not None:
            # One of another scheduler, such as a subagent's, waits like any call of its own.
            if around.depth + 2 > MAX_DEPTH:
                raise NestedCall.for_depth(slot.call, MAX_DEPTH)
            slot.depth = around.depth + 1
            slot.root_order = around.root_order
            self._inner_calls += 1
        if parent.inner is None:
            parent.inner = []
        parent.inner.append(slot)

    def isolate(self, slot: CallSlot) -> None:
        """Let a call run alone, because its effects differ from those it was ordered by."""
        slot.effects = Effects.unknown()
        slot.is_reader = False
        slot.is_alone = True
        self._writers[slot.order] = slot

    async def clear(self, slot: CallSlot) -> None:
        """Wait until no conflicting call is ahead."""
        while not self.is_clear(slot):
            wake = asyncio.get_running_loop().create_future()
            self._blocked[slot.order] = slot, wake
            slot.waits = partial(self._find_blockers, slot)
            try:
                self._refuse_cycles(slot)
                await wake
            finally:
                slot.waits = None
                del self._blocked[slot.order]

    def try_acquire(self, slot: CallSlot) -> bool:
        """Take a place if one is free and no conflicting call has started meanwhile."""
        if not self._inner_calls:
            slot.is_running = not slot.is_alone and self._limit.try_take()
        elif self.is_clear(slot):
            slot.is_running = self._find_limit(slot).try_take()
            self._refuse_cycles()
        return slot.is_running

    async def start(self, slot: CallSlot) -> None:
        """Wait for a place; an isolated call waits for all other calls too."""
        limit = self._find_limit(slot)
        while True:
            await self.clear(slot)
            if not limit.try_take():
                await limit.take()
                if not self.is_clear(slot):
                    limit.release()
                    continue
            slot.is_running = True
            self._refuse_cycles()
            return

    def leave(self, slot: CallSlot) -> None:
        """Remove a finished call and wake its waiters."""
        if self._open.pop(slot.order, None) is None:
            return
        slot.is_over = True
        self._writers.pop(slot.order, None)
        if slot.is_running:
            self._find_limit(slot).release()
        if slot.depth:
            self._inner_calls -= 1
        if slot.parent is not None and slot.parent.inner is not None:
            slot.parent.inner.remove(slot)
        for blocked, wake in self._blocked.values():
            if not wake.done() and self.is_clear(blocked):
                wake.set_result(None)

    def is_clear(self, slot: CallSlot) -> bool:
        """Whether no unfinished earlier call conflicts; an isolated call waits for running ones."""
        if len(self._open) == 1:
            # An unfinished call asks, so that is the one.
            return True
        if self._inner_calls:
            return next(self._find_blockers(slot), None) is None
        for other in self._list_others(slot):
            is_ahead = other.order < slot.order or (slot.is_alone and other.is_running)
            if is_ahead and other is not slot and slot.effects.collides(other.effects):
                return False
        return True

    def _list_others(self, slot: CallSlot) -> Collection[CallSlot]:
        # Two readers never collide, so a reader looks only at the writers.
        return self._writers.values() if slot.is_reader else self._open.values()

    def _find_blockers(self, slot: CallSlot) -> Iterator[CallSlot]:
        """The calls that must end before this one may start."""
        for other in self._list_others(slot):
            if (
                other is not slot
                and _is_ahead(other, slot)
                and slot.effects.collides(other.effects)
                and not slot.is_inside(other)
                and not other.is_inside(slot)
            ):
                yield other

    def _find_limit(self, slot: CallSlot) -> ParallelLimit:
        """The session's limit, or that of the outer call."""
        if not slot.depth or slot.parent is None:
            return self._limit
        if slot.parent.inner_limit is None:
            slot.parent.inner_limit = ParallelLimit(self._count)
        return slot.parent.inner_limit

    def _refuse_cycles(self, first: CallSlot | None = None) -> None:
        """Refuse waiting calls, `first` before others, until no cycle is left."""
        if not self._inner_calls or not self._blocked:
            return
        from handaxe.session.call_cycles import build_nested_fault, find_cycle

        others = [slot for slot, _ in self._blocked.values() if slot.depth and slot is not first]
        for slot in (*((first,) if first and first.depth else ()), *others):
            _, wake = self._blocked[slot.order]
            if wake.done():
                continue
            blocker = find_cycle(slot)
            if blocker is not None:
                wake.set_exception(build_nested_fault(slot, blocker))
                slot.waits = None


def _is_ahead(other: CallSlot, slot: CallSlot) -> bool:
    """Whether a conflicting call goes first."""
    if other.is_running and (slot.is_alone or slot.depth or other.depth):
        return True
    if slot.depth:
        return other.parent is slot.parent and other.order < slot.order
    return other.root_order < slot.order
