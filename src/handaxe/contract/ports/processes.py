"""Long-lived children that are talked to: servers of tools and of languages."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import msgspec


class ChildProgram(msgspec.Struct, frozen=True, kw_only=True):
    """The program to start, with its options."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = {}
    """Added to the harmless part of the environment of handaxe."""
    log_path: str
    """Where its standard error is kept, within bounds."""


class ProcessStartFailed(Exception):
    """The program is not there or cannot be run; the sentence says why."""


class Child(ABC):
    """A running program."""

    @property
    @abstractmethod
    def exit_code(self) -> int | None:
        """How it ended; None while it lives."""

    @abstractmethod
    async def read(self) -> bytes:
        """The next piece of its standard output; empty at the end of it, or soon after its own."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Give it input; `BrokenPipeError` if it does not listen any more."""

    @abstractmethod
    def note(self, text: str) -> None:
        """Add a line to its log."""

    @abstractmethod
    def read_stderr_tail(self, limit_chars: int) -> str:
        """The end of what it wrote to standard error."""

    @abstractmethod
    async def stop(self) -> None:
        """End it with everything it started, politely first; returns when nothing of it lives."""


class Processes(ABC):
    """Starts children that live as long as a session."""

    @abstractmethod
    async def start(self, program: ChildProgram) -> Child:
        """Start a program in a session of its own; `CannotStart` if that fails."""
