"""Keep an oversized result and say where it is."""

from abc import ABC, abstractmethod


class ResultStore(ABC):
    """Where results live that are too long for the model's context."""

    @abstractmethod
    def keep(self, call_id: str, text: str) -> str:
        """Store the whole text and return the path to read it from."""

    @abstractmethod
    def keep_bytes(self, call_id: str, content: bytes, suffix: str) -> str:
        """Store bytes under a name with this suffix and return the path of the file."""
