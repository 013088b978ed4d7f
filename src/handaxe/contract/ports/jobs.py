"""Background work: something that runs on after the call that started it, and can be watched."""

from abc import ABC, abstractmethod

from handaxe.contract.job_state import JobState


class Job(ABC):
    """One piece of background work."""

    @property
    @abstractmethod
    def state(self) -> JobState:
        """How it stands now."""

    @abstractmethod
    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end; False if the time was up first."""

    @abstractmethod
    async def stop(self) -> None:
        """End it with everything it started; returns when nothing of it lives."""

    @abstractmethod
    def tail(self, limit_chars: int) -> str:
        """The end of what it has said so far, fit for a model."""
