"""Sentences on hooks for the person who set them up: which failed, which kept all waiting.

What a hook itself has to say is not told here.
"""

from typing import Final

from handaxe.contract.events import HookRan

SLOW_MS: Final = 1_000.0
SLOW_TOTAL_MS: Final = 10_000.0
"""Many short waits are a long one, too."""
BEGINNING: Final = frozenset({"Setup", "SessionStart"})
"""Events before any run, of which no run can tell."""
_MAY_TAKE_LONG = frozenset({"Setup", "WorktreeCreate", "SessionEnd"})
"""Work that somebody asked for, or that nobody watches any more."""
_FAILED = frozenset({"failed", "timed_out"})


def describe_hook_failure(event: HookRan) -> str | None:
    """That a hook failed, and why; None if it did not."""
    if event.outcome not in _FAILED:
        return None
    return f"{event.event} hook error: {event.hook!r} failed: {event.reason}."


class FailedHooks:
    """Tells each failure once: a hook that fails at every call says nothing new."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def heard(self, event: HookRan) -> tuple[str, ...]:
        """What is new of one run of a hook."""
        failure = describe_hook_failure(event)
        return () if failure is None else self.new((failure,))

    def new(self, sentences: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the sentences that were not told before."""
        fresh = tuple(sentence for sentence in sentences if sentence not in self._told)
        self._told.update(fresh)
        return fresh


class SlowHooks:
    """Adds up how long hooks were waited for, and tells of each slow one once."""

    def __init__(self) -> None:
        self._waited_ms: dict[tuple[str, str], float] = {}
        self._runs: dict[tuple[str, str], int] = {}
        self._told: set[tuple[str, str]] = set()

    def heard(self, event: HookRan) -> str | None:
        """That a hook is slow, when it has become so."""
        if event.in_background or event.event in _MAY_TAKE_LONG:
            return None
        hook = (event.event, event.hook)
        total = self._waited_ms[hook] = self._waited_ms.get(hook, 0.0) + event.duration_ms
        runs = self._runs[hook] = self._runs.get(hook, 0) + 1
        is_slow = event.duration_ms >= SLOW_MS or total >= SLOW_TOTAL_MS
        if not is_slow or hook in self._told:
            return None
        self._told.add(hook)
        took = f"{event.duration_ms / 1000:.1f} s"
        if event.duration_ms < SLOW_MS:
            took = f"{total / 1000:.1f} s in {runs} runs"
        return (
            f"The {event.event} hook {event.hook!r} took {took}, and everything waited for it. "
            'If it only watches, `"async": true` lets nobody wait.'
        )
