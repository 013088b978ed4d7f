"""Waiting for what a test is about, however slow the machine is: the one polling loop of the tests."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, cast

HANG_S = 60
"""Nothing that works takes that long on any machine; it only ends what would wait for ever."""
_LOOK_EVERY_S = 0.01

T = TypeVar("T")


async def until(
    condition: Callable[[], T] | Callable[[], Awaitable[T]], every_s: float = _LOOK_EVERY_S
) -> T:
    """What the condition says as soon as it says something true, while the loop goes on."""
    async with asyncio.timeout(HANG_S):
        while True:
            said = condition()
            found = await said if isinstance(said, Awaitable) else said
            if found:
                return cast("T", found)
            await asyncio.sleep(every_s)


def blocked_until(condition: Callable[[], T], state: Callable[[], str] = str) -> T:
    """The same for a test without an event loop; a failure shows the state."""
    ends_at = time.monotonic() + HANG_S
    while not (found := condition()):
        if time.monotonic() > ends_at:
            raise TimeoutError(f"waited {HANG_S} s in vain: {state()}")
        time.sleep(_LOOK_EVERY_S)
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie that waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def number_in(path: Path) -> int:
    """The number that a program writes to a file, as soon as it has."""
    return int(await until(lambda: path.exists() and path.read_text().strip()))
