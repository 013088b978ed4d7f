"""Which parts of one sequence only repeat what is in another."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec


class Block(msgspec.Struct, frozen=True):
    """A run of old items that became a run of new ones, or stayed as it was."""

    old_begin: int
    old_end: int
    new_begin: int
    new_end: int
    kept: bool


def align_blocks(
    old: Sequence[str], new: Sequence[str], *, max_pairs: int = 20_000
) -> Iterator[Block]:
    """`old` and `new` as runs that are kept and runs that are replaced, in order.

    Args:
        old: What was there.
        new: What takes its place.
        max_pairs: How many pairs of equal items may be looked at; beyond it the middle is one run.
    """
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old_end, new_end = len(old) - tail, len(new) - tail
    if head:
        yield Block(0, head, 0, head, kept=True)
    for block in _compare(old[head:old_end], new[head:new_end], max_pairs):
        yield Block(
            head + block.old_begin,
            head + block.old_end,
            head + block.new_begin,
            head + block.new_end,
            kept=block.kept,
        )
    if tail:
        yield Block(old_end, len(old), new_end, len(new), kept=True)


def _compare(old: Sequence[str], new: Sequence[str], max_pairs: int) -> Iterator[Block]:
    if not old and not new:
        return
    if not 0 < _count_equal_pairs(old, new) <= max_pairs:
        yield Block(0, len(old), 0, len(new), kept=False)
        return
    from difflib import SequenceMatcher

    for tag, *span in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield Block(*span, kept=tag == "equal")


def _count_equal_pairs(old: Sequence[str], new: Sequence[str]) -> int:
    """How many pairs of equal items there are: what a comparison costs."""
    counts = Counter(new)
    return sum(counts[item] for item in old)
