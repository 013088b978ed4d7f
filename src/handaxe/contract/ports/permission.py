"""Put a permission question to the user, or to a callback that answers instead."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence

from handaxe.contract.decision import (
    Allow,
    DecidedBy,
    Defer,
    Deny,
    PermissionRequest,
    ToolDefinition,
)
from handaxe.contract.permission_updates import PermissionChange

Classifier = Callable[[PermissionRequest], Awaitable[Allow | Deny | None]]
"""Answers in a human's place in `auto` mode; None leaves the question to the human."""


class Asker(ABC):
    """Answers permission questions."""

    looks: bool = True
    """Whether it matters to them what a call would change."""
    is_background: Callable[[str], bool]
    """Says whether an agent is in the background; the agent registry sets it."""

    @property
    def is_there(self) -> bool:
        """Whether a question can be asked now."""
        return True

    @abstractmethod
    async def ask(self, request: PermissionRequest) -> Allow | Deny | Defer:
        """Wait for the answer."""

    async def accept(self, answer: Allow | Deny, request: PermissionRequest) -> Allow | Deny:  # noqa: ARG002 - for those who keep answers
        """Take an answer that came in another way."""
        return answer


class PermissionChanges(ABC):
    """Applies permission changes that came with an approval."""

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
        """Make them in order and emit events; returns sentences on refused changes.

        Changes from a project's own files may not reach beyond the project. Rules for servers'
        tools hold for these definitions; without any, for the tools as they are now.
        """
