"""Keep the plans that a model presents, where the user wants them."""

from abc import ABC, abstractmethod

import msgspec


class SavedPlan(msgspec.Struct, frozen=True):
    """A plan that is on disk."""

    path: str
    was_edited: bool = False
    """Whether somebody changed the text between the model and the agreement."""


class Plans(ABC):
    """The plans of one session."""

    @abstractmethod
    async def keep(self, call_id: str, text: str) -> SavedPlan | None:
        """Keep the plan of a call as it stands now; None where the disk does not take it."""
