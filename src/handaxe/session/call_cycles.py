"""Find calls that would wait for each other forever, so that one of them is refused."""

from handaxe.contract.call import CallSlot
from handaxe.contract.faults import NestedCall


def refuse_cycle(slot: CallSlot) -> None:
    """Raise `NestedCall` if the call waits for one that waits for it or for a call around it."""
    blocker = find_cycle(slot)
    if blocker is not None:
        raise build_nested_fault(slot, blocker)


def find_cycle(slot: CallSlot) -> CallSlot | None:
    """The call that it waits for and that ends only after it, or None."""
    # A call waits for the calls made in it, so whoever waits for a call around it is found too.
    for blocker in () if slot.waits is None else slot.waits():
        if blocker is slot or _is_reaching(blocker, slot):
            return blocker
    return None


def build_nested_fault(slot: CallSlot, blocker: CallSlot) -> NestedCall:
    """The refusal of a call that would have to wait for `blocker`."""
    parent = slot.parent
    return NestedCall.for_cycle(slot.call, blocker.call, None if parent is None else parent.call)


def _is_reaching(start: CallSlot, goal: CallSlot) -> bool:
    seen, found = {start}, [start]
    while found:
        slot = found.pop()
        following = [*(slot.inner or ()), *(() if slot.waits is None else slot.waits())]
        if goal in following:
            return True
        fresh = [one for one in following if one not in seen]
        seen.update(fresh)
        found += fresh
    return False
