"""State of a session that has to be told again when its conversation was made shorter."""

from abc import ABC, abstractmethod


class Remembered(ABC):
    """Something a model must not forget: its list, its plan, what it loaded."""

    @abstractmethod
    def reminder(self) -> str:
        """How it stands, in words for the model; empty if there is nothing to tell."""
