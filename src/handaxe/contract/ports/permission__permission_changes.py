"""Change what a session allows, for now or for good."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from handaxe.contract.decision import DecidedBy, ToolDefinition
from handaxe.contract.permission_updates import PermissionChange


class PermissionChanges(ABC):
    """Puts changes in force that came with somebody's yes."""

    @abstractmethod
    async def make(
        self,
        changes: Sequence[PermissionChange],
        *,
        by: DecidedBy,
        call_id: str,
        from_project: bool = False,
        definitions: Sequence[ToolDefinition] | None = None,
    ) -> tuple[str, ...]:
        """Make them in order and tell of it; sentences on those that were not made.

        What comes from a project's own files may not reach beyond the project. Rules for servers'
        tools hold for these definitions; without any, for the tools as they are now.
        """
