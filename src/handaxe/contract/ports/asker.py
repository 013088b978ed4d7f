"""Put a permission question to a human, or to whoever answers for one."""

from abc import ABC, abstractmethod

from handaxe.contract.decision import Allow, Deny, PermissionRequest


class Asker(ABC):
    """Somebody who can say yes or no."""

    @abstractmethod
    async def ask(self, request: PermissionRequest) -> Allow | Deny:
        """Wait for the answer."""
