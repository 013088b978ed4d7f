"""An idle agent that has something to hear: whether it wants a run, and waiting for that."""

import math
from collections.abc import Callable

from handaxe.agent.loop import AgentLoop
from handaxe.app.session import Session, get_parts


class AgentWakes:
    """Watches what background work and hooks have for the main agent of a session."""

    def __init__(self, loop: AgentLoop, session: Session) -> None:
        self._loop = loop
        self.on_wake: Callable[[], object] = lambda: None
        """Called when an idle agent has something to hear; `run(None)` lets it."""
        self._listeners = session.jobs.notices.listeners
        self._listeners.append(self._wake)
        get_parts(session).hooks.hooks.wake = self._wake_by_hook

    @property
    def may_wake(self) -> bool:
        """Whether a run may begin that nobody asked for.

        Never while one is under way, after one that was stopped or failed, or without room in its
        limits.
        """
        return not self._loop.is_running and self._loop.continuation.may_wake

    @property
    def wants_run(self) -> bool:
        """Whether such a run has something to hear."""
        return self.may_wake and self._loop.continuation.wants_run

    async def wait(self, timeout_s: float | None) -> bool:
        """Wait until one is wanted; False if nothing goes on that could ask for it."""
        if self._loop.is_running:
            raise RuntimeError("This agent is at work; it hears what ends by itself.")
        if self.may_wake and not self.wants_run:
            limit_s = math.inf if timeout_s is None else timeout_s
            await self._loop.inputs.wait_for_work(limit_s, limit_s)
        return self.wants_run

    def close(self) -> None:
        """Watch no more."""
        if self._wake in self._listeners:
            self._listeners.remove(self._wake)

    def _wake_by_hook(self) -> None:
        self._loop.inputs.stop_waiting()
        self._wake()

    def _wake(self) -> None:
        if self.wants_run:
            self.on_wake()
