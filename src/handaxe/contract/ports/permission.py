"""Put a permission question to a human, or to whoever answers for one."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from handaxe.contract.decision import Allow, Deny, PermissionRequest

Classifier = Callable[[PermissionRequest], Awaitable[Allow | Deny | None]]
"""Answers in a human's place in `auto` mode; None leaves the question to the human."""


class Asker(ABC):
    """Somebody who can say yes or no."""

    looks: bool = True
    """Whether it matters to them what a call would change."""
    is_background: Callable[[str], bool]
    """Says of an agent whether nobody waits for it; whoever starts agents sets it."""

    @property
    def is_there(self) -> bool:
        """Whether anybody may be asked now."""
        return True

    @abstractmethod
    async def ask(self, request: PermissionRequest) -> Allow | Deny:
        """Wait for the answer."""
