"""Remember files before they change, so that the change can be undone."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from handaxe.contract.effects import Effects

TRACED = b"traced\0"
"""The first entry of a trace: from there on no write of the call is missed."""
TRACE_ENDED = b"\0"
"""The last one: no process of the call is left."""


class Checkpoints(ABC):
    """The journal that makes every change reversible."""

    async def prepare(self) -> None:  # noqa: B027 - not everybody has something to prepare
        """Calls that could change anything may come: what makes them wait may begin now."""

    async def find_loss(
        self,
        effects: Effects,  # noqa: ARG002 - of those who know nothing
        paths: Sequence[str],  # noqa: ARG002
    ) -> str:
        """Why what lies at and below these absolute paths could not be put back after the call.

        A sentence for the question whether to go on; empty if all of it could be put back.
        """
        return "Undo cannot tell whether this could be put back."

    def open_trace(self, call_id: str) -> int | None:  # noqa: ARG002 - of those who want none
        """A descriptor for the paths that the processes of a running call write; None: unwanted.

        `TRACED`, then paths that end with a NUL each, then `TRACE_ENDED`. Who asks has to close it.
        """
        return None

    @abstractmethod
    async def before(self, call_id: str, tool: str, effects: Effects) -> None:
        """Make durable what the call may change; raising stops the call."""

    @abstractmethod
    async def after(self, call_id: str) -> tuple[str, ...]:
        """The call ended, well or badly: record what it left; what there is to tell of it.

        Whoever let something of the call run on in the background asks again when that ends.
        """
