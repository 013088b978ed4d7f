"""How many logs stand open at once: few, however many sessions there are in a process.

A log that was used is kept open for the next event. Where many are, those that were not used for
the longest time rest, since descriptors are what a process has least of.
"""

import threading
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict

MOST = 64
"""So many logs of one thread stand open at the most, beside those with calls under way."""


class PooledFile(ABC):
    """Something that can let go of its files until it is used again."""

    @abstractmethod
    def release_files(self) -> bool:
        """Let go of the files, unless they are needed right now; whether that was done."""

    def mark_used(self) -> None:
        """Say that the files were used, and let others rest where too many are open."""
        holders = _of_this_thread.holders
        key = id(self)
        if key in holders:
            holders.move_to_end(key)
            return
        holders[key] = weakref.ref(self)
        if len(holders) > MOST:
            oldest, holder = holders.popitem(last=False)
            log = holder()
            if log is not None and not log.release_files():
                holders[oldest] = holder


class _Holders(threading.local):
    """Of each thread its own: nobody closes what another one is writing to."""

    def __init__(self) -> None:
        self.holders: OrderedDict[int, weakref.ref[PooledFile]] = OrderedDict()


_of_this_thread = _Holders()
