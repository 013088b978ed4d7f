"""Detect a model that repeats itself: send a hint, and stop it only if the host wants that.

Repeated work with progress is fine: a call counts only while its result stays the same, and tools
for waiting never count.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.result import ToolResult

WAITING_TOOLS = frozenset({"Monitor", "Sleep", "TaskOutput", "TaskList", "TaskGet", "TodoWrite"})
SAME = 3
FAILURES = 5
ROUNDS = 3
"""How often a pair of calls may alternate before it counts as a loop."""


class DetectedLoop(msgspec.Struct, frozen=True):
    """The model repeats itself."""

    action: Literal["nudge", "stop"]
    sentence: str


class LoopGuard:
    """Watches the calls of one run."""

    def __init__(self, *, stop_after_nudges: int | None = None) -> None:
        self._stop_after = stop_after_nudges
        self._past: list[tuple[bytes, bytes]] = []
        self._errors: list[dict[bytes, str]] = []
        self._failures = 0
        self._last_code: str | None = None
        self._nudges = 0

    def watch(
        self, calls: Sequence[ToolCall], results: Sequence[ToolResult]
    ) -> DetectedLoop | None:
        """Add a message's calls; returns a detected loop."""
        found: str | None = None
        errors: dict[bytes, str] = {}
        for call, result in zip(calls, results, strict=True):
            if result.tool in WAITING_TOOLS:
                continue
            self._past.append(_hash_call(call, result))
            if not result.ok:
                errors[self._past[-1][1]] = f"{result.tool} failed with {result.code}"
            self._count_failure(result)
            found = found or self._find_loop(result)
        del self._past[: -4 * ROUNDS]
        found = found or self._find_same_error(errors)
        if found is None:
            return None
        self._past.clear()
        self._errors.clear()
        self._failures = 0
        self._nudges += 1
        if self._stop_after is not None and self._nudges > self._stop_after:
            return DetectedLoop("stop", f"Stopped: {found}")
        return DetectedLoop("nudge", found)

    def _count_failure(self, result: ToolResult) -> None:
        if result.ok:
            self._failures, self._last_code = 0, None
        elif result.code == self._last_code:
            self._failures += 1
        else:
            self._failures, self._last_code = 1, result.code

    def _find_same_error(self, errors: dict[bytes, str]) -> str | None:
        """A failure that repeats in message after message with the same text, for any input."""
        self._errors = [*self._errors[1 - SAME :], errors]
        if len(self._errors) < SAME:
            return None
        again = next((e for e in errors if all(e in earlier for earlier in self._errors)), None)
        if again is None:
            return None
        return (
            f"{errors[again]} and the same message {SAME} times in a row, with different "
            "inputs. Read what the message says is missing: do that first, or report the "
            "obstacle."
        )

    def _find_loop(self, result: ToolResult) -> str | None:
        past = self._past
        if len(past) >= SAME and len(set(past[-SAME:])) == 1:
            return (
                f"the same {result.tool} call returned the same result {SAME} times in a "
                "row. Repeating it will not change anything: use the result, try another "
                "way, or report the obstacle."
            )
        tail = past[-2 * ROUNDS :]
        if len(tail) == 2 * ROUNDS and len(set(tail)) == 2 and tail[::2] == tail[:1] * ROUNDS:
            return (
                f"the same two calls alternated {ROUNDS} times with the same results. "
                "Choose one way, or report the obstacle."
            )
        if self._failures >= FAILURES:
            return (
                f"{self._failures} calls in a row failed with {result.code}. Read the "
                "last message again and change the approach, not only the wording."
            )
        return None


def _hash_call(call: ToolCall, result: ToolResult) -> tuple[bytes, bytes]:
    asked = msgspec.json.encode((call.tool, call.input), enc_hook=str, order="deterministic")
    given = f"{result.ok}{result.code}{result.text}".encode(errors="backslashreplace")
    return sha256(asked).digest()[:12], sha256(given).digest()[:12]
