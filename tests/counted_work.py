"""How much work something is, counted instead of timed: the same on every machine."""

import sys
from collections.abc import Callable
from typing import Any


def steps_of(work: Callable[[], object]) -> int:
    """How many lines of Python ran and how many functions were called until it ended."""
    count = 0

    def on_line(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return on_line

    def on_call(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(on_line)
    sys.setprofile(on_call)
    try:
        work()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return count


def grows_in_proportion(work: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Whether ten times the size takes about ten times the steps at most, rather than a hundred."""
    return steps_of(work(10 * size)) <= 20 * steps_of(work(size))
