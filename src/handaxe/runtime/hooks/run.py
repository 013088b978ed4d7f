"""Ask the hooks.

A hook is an async function `(event) -> outcome | None`. The event is plain data, the same that
a hook outside the process would be sent.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from handaxe.contract.decision import Decision
from handaxe.contract.faults import SetupError
from handaxe.runtime.hooks.outcome import (
    NOTHING_AFTER,
    NOTHING_BEFORE,
    AfterOutcome,
    BeforeOutcome,
)

Hook = Callable[[dict[str, Any]], Awaitable[Any]]
EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")

_log = logging.getLogger("handaxe.hooks")
_STRICTNESS: dict[str, int] = {"allow": 0, "ask": 1, "deny": 2}


class Hooks:
    """In-process hooks by event name, asked in the order they were given."""

    def __init__(self, hooks: Mapping[str, Sequence[Hook]] | None = None) -> None:
        hooks = hooks or {}
        for name, listed in hooks.items():
            if name not in EVENTS:
                raise SetupError(f"{name!r} is not a hook event. Events: {', '.join(EVENTS)}.")
            for hook in listed:
                if not inspect.iscoroutinefunction(hook):
                    raise SetupError(f"The {name} hook {hook!r} is not an async function.")
        self._before = tuple(hooks.get("PreToolUse", ()))
        self._after = tuple(hooks.get("PostToolUse", ()))
        self._after_failure = tuple(hooks.get("PostToolUseFailure", ()))
        self.watch_before = bool(self._before)
        self.watch_after = bool(self._after or self._after_failure)

    async def before(self, event: dict[str, Any]) -> BeforeOutcome:
        """What the PreToolUse hooks say; one that fails blocks the call."""
        merged = NOTHING_BEFORE
        for hook in self._before:
            answer = await _ask(hook, event)
            if isinstance(answer, BaseException):
                return BeforeOutcome(blocked=f"A hook failed ({type(answer).__name__}: {answer}).")
            if answer is None:
                continue
            if not isinstance(answer, BeforeOutcome):
                return BeforeOutcome(blocked=f"A hook answered with {type(answer).__name__}.")
            merged = _merge_before(merged, answer)
            if merged.input is not None:
                event = {**event, "tool_input": merged.input}
        return merged

    async def after(self, event: dict[str, Any], *, ok: bool) -> AfterOutcome:
        """What the hooks after a call say; one that fails is only noted."""
        merged = NOTHING_AFTER
        for hook in self._after if ok else self._after_failure:
            answer = await _ask(hook, event)
            if isinstance(answer, BaseException):
                answer = AfterOutcome(notes=(f"A hook failed: {answer}",))
            if isinstance(answer, AfterOutcome):
                merged = AfterOutcome(
                    messages=(*merged.messages, *answer.messages),
                    notes=(*merged.notes, *answer.notes),
                    blocked=merged.blocked or answer.blocked,
                )
        return merged


async def _ask(hook: Hook, event: dict[str, Any]) -> object:
    try:
        return await hook(event)
    except Exception as error:  # noqa: BLE001 - a bug in a user's hook is an answer, not a crash
        _log.warning("a hook failed", exc_info=error)
        return error


def _merge_before(first: BeforeOutcome, second: BeforeOutcome) -> BeforeOutcome:
    return BeforeOutcome(
        blocked=first.blocked or second.blocked,
        decision=strictest(first.decision, second.decision),
        input=second.input if second.input is not None else first.input,
        messages=(*first.messages, *second.messages),
    )


def strictest(first: Decision | None, second: Decision | None) -> Decision | None:
    """The stricter of two words; deny over ask over allow over silence."""
    if first is None or second is None:
        return first or second
    return max(first, second, key=lambda word: _STRICTNESS[word.verdict])
