"""Call another tool through the whole pipeline, as the same session."""

from abc import ABC, abstractmethod
from typing import Any

from handaxe.contract.result import ToolResult


class ToolCaller(ABC):
    """Somebody who makes calls for a tool; nobody is asked, so what would ask is refused."""

    @abstractmethod
    async def call(self, parent_call_id: str, tool: str, call_input: dict[str, Any]) -> ToolResult:
        """One call; never raises."""
