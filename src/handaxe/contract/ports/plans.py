"""Keep the plans that a model presents, where the user wants them."""

from abc import ABC, abstractmethod

import msgspec


class SavedPlan(msgspec.Struct, frozen=True):
    """A plan that is on disk."""

    path: str
    was_edited: bool = False
    """Whether the text was changed before the user agreed."""


class Plans(ABC):
    """The plans of one session."""

    @abstractmethod
    async def keep(self, call_id: str, text: str) -> SavedPlan | None:
        """Keep the current plan of a call; None if it cannot be written."""
