"""Wakes an idle agent when background work has news."""

import math
from collections.abc import Callable

from handaxe.agent.loop import AgentLoop
from handaxe.app.session import Session, get_parts


class AgentWakes:
    """Watches for news from background work and hooks for the main agent."""

    def __init__(self, loop: AgentLoop, session: Session) -> None:
        self._loop = loop
        self.on_wake: Callable[[], object] = lambda: None
        """Called when an idle agent has news; `run(None)` delivers it."""
        self._listeners = session.jobs.notices.listeners
        self._listeners.append(self._wake)
        get_parts(session).hooks.hooks.wake = self._wake_by_hook

    @property
    def may_wake(self) -> bool:
        """Whether a run may start without a prompt.

        Not during a run, after one that was stopped or failed, or at a limit.
        """
        return not self._loop.is_running and self._loop.continuation.may_wake

    @property
    def wants_run(self) -> bool:
        """Whether such a run would have news."""
        return self.may_wake and self._loop.continuation.wants_run

    async def wait(self, timeout_s: float | None) -> bool:
        """Wait until there is news; False if no background work is left."""
        if self._loop.is_running:
            raise RuntimeError("The agent runs and gets news by itself.")
        if self.may_wake and not self.wants_run:
            limit_s = math.inf if timeout_s is None else timeout_s
            await self._loop.inputs.wait_for_work(limit_s, limit_s)
        return self.wants_run

    def close(self) -> None:
        """Stop watching."""
        if self._wake in self._listeners:
            self._listeners.remove(self._wake)

    def _wake_by_hook(self) -> None:
        self._loop.inputs.stop_waiting()
        self._wake()

    def _wake(self) -> None:
        if self.wants_run:
            self.on_wake()
