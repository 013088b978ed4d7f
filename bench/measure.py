"""Measure contenders side by side: interleaved rounds, medians, ratios, memory."""

import asyncio
import contextlib
import gc
import glob
import resource
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

Work = Callable[[], Awaitable[Any]]


async def interleaved(
    contenders: dict[str, Work],
    rounds: int,
    warm_up: int = 3,
    pick: Callable[[list[float]], float] = statistics.median,
) -> dict[str, float]:
    """The median seconds of each contender, taken in turns so that noise hits all alike.

    With `pick=min` the best of each: what is left when nobody disturbs.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + warm_up):
        for name, work in contenders.items():
            gc.disable()
            begin = time.perf_counter()
            await work()
            passed = time.perf_counter() - begin
            gc.enable()
            if number >= warm_up:
                times[name].append(passed)
    return {name: pick(values) for name, values in times.items()}


def report(line: str, ours: float, floor: float, goal: str, *, extra: str = "") -> None:
    """One line of the table."""
    print(
        f"{line:44} {_time(ours):>10} {_time(floor):>10} {ours / floor:6.2f}x   {goal:>18}  {extra}",
        flush=True,
    )


def header() -> None:
    """The head of the table."""
    print(f"{'line':44} {'handaxe':>10} {'floor':>10} {'ratio':>7}   {'goal':>18}")


def peak_memory_mb() -> float:
    """The most resident memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_mb(pid: int | str = "self") -> float:
    """The resident memory of a process now."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / (1 << 20)


def processes_below(pid: int) -> list[int]:
    """The processes that a process started, with those that they started."""
    found: list[int] = []
    for thread in glob.glob(f"/proc/{pid}/task/*/children"):
        # A process may end while we look at it.
        with contextlib.suppress(OSError), open(thread, encoding="ascii") as file:
            for child in map(int, file.read().split()):
                found += [child, *processes_below(child)]
    return found


def sync(work: Callable[[], Any]) -> Work:
    """A plain function as a contender."""

    async def run() -> Any:
        return work()

    return run


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds:.2f} s"


def run(work: Awaitable[Any]) -> Any:
    """Run a benchmark's coroutine."""
    return asyncio.run(work)
