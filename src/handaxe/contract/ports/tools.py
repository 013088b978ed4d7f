"""Search the tools that are not loaded yet, and load them."""

from abc import ABC, abstractmethod
from typing import Any

import msgspec

from handaxe.contract.result import ToolResult


class FoundTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that fits a query."""

    name: str
    description: str
    input_schema: dict[str, Any]
    was_loaded: bool = False


class ToolIndex(ABC):
    """The deferred tools, by what they are about."""

    @abstractmethod
    async def find(self, query: str, max_results: int) -> tuple[FoundTool, ...]:
        """The best matches, best first; they count as loaded from now on."""

    @abstractmethod
    def waiting(self) -> tuple[str, ...]:
        """The names of all tools that are not loaded."""

    @abstractmethod
    def explain_unknown(self, query: str) -> tuple[str, ...]:
        """A sentence for each name in `select:` that no tool has."""

    @abstractmethod
    def is_shown(self, edit_tool: str) -> bool:
        """Whether this is the one of the tools that change text which a model is shown."""


class ToolCaller(ABC):
    """Makes calls for a tool without questions: calls that would ask are refused."""

    @abstractmethod
    async def call(self, parent_call_id: str, tool: str, call_input: dict[str, Any]) -> ToolResult:
        """One call; never raises."""
