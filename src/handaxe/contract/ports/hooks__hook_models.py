"""Put a hook's question to a model, or to an agent that may look around first."""

from abc import ABC, abstractmethod

import msgspec


class HookQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook wants to know about one event."""

    prompt: str
    """The hook's own words with the event in them."""
    model: str | None = None
    """Who is to answer; None: the model of the session's agent."""
    may_look: bool = False
    """Whether an agent with tools that change nothing answers, not the model alone."""
    cwd: str = ""
    """Where such an agent begins to look."""


class HookModels(ABC):
    """Somebody who can have a hook's question answered."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The model that answers where a hook names none."""

    @abstractmethod
    async def answer(self, question: HookQuestion) -> str:
        """The last words of the answer; cancelling stops whoever works on it.

        Raises:
            NoAnswer: of `handaxe.contract.ports.hooks`; nobody could answer.
        """
