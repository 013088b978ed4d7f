"""The time since the machine was started, which nobody can set back as they can the time of day."""

import time
from functools import cache
from pathlib import Path
from typing import Protocol

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Timed(Protocol):
    """Something that happened, by the time of day and by the clock of one boot."""

    @property
    def at(self) -> float:
        """Seconds of the time of day."""
        ...

    @property
    def clock(self) -> str:
        """What `read_clock` gave; empty if nobody noted it."""
        ...


def read_clock() -> str:
    """Which boot of the machine it is, and how long ago that was; empty where nobody can tell."""
    boot = _read_boot()
    return f"{boot}:{time.clock_gettime(time.CLOCK_BOOTTIME):.3f}" if boot else ""


def measure_elapsed_s(first: Timed, second: Timed) -> float:
    """How long after the first the second happened; by the time of day only if it has to be."""
    boot, _, began = first.clock.partition(":")
    other, _, ended = second.clock.partition(":")
    return float(ended) - float(began) if boot and boot == other else second.at - first.at


@cache
def _read_boot() -> str:
    try:
        return _BOOT_ID.read_text("ascii").strip().partition("-")[0]
    except (OSError, ValueError):
        return ""
