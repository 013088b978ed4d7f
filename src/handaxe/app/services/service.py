"""Services: what opens and closes with a session, such as the shell, servers and agents.

Each service has a module; this one has the common parts.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from handaxe.catalog.catalog import Catalog
from handaxe.config.project import Configuration
from handaxe.contract.call import ToolCall
from handaxe.contract.events import Event
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.result_store import ResultStore
from handaxe.contract.ports.undo import Checkpoints
from handaxe.permission.policy import CurrentPolicy
from handaxe.pipeline.context import PipelineContext
from handaxe.session.permission_state import PermissionState
from handaxe.session.port_registry import Offered
from handaxe.session.workdir import Workdir
from handaxe.storage.sessions import SessionHistory


class SessionContext(msgspec.Struct, frozen=True, kw_only=True):
    """The ports that a service can use."""

    session_id: str
    data_home: Path
    session_directory: Path
    configuration: Configuration
    workdir: Workdir
    permissions: PermissionState
    policy: CurrentPolicy
    files: Files
    results: ResultStore
    checkpoints: Checkpoints
    emit: Callable[[Event], object]
    pipeline_context: Callable[[], PipelineContext]
    """The pipeline context, after the session is built."""
    is_busy: Callable[[], bool]
    """Whether a call of the session runs."""
    recovered: tuple[str, ...] = ()
    """Repairs of protected files after killed processes; the next result reports them."""


Arriving = Literal["needed", "all", "long"]
"""The first request waits for required servers, for all of them for a moment, or for all up to
    their start limit.
"""


class SessionService:
    """A part that opens and closes with a session."""

    @property
    def ports(self) -> Offered:
        """Ports and state objects for tools by type; must be cheap."""
        return {}

    def create_for_agent(
        self,
        session_context: SessionContext,  # noqa: ARG002 - shared by default
        history: SessionHistory,  # noqa: ARG002
    ) -> "SessionService | None":
        """The service of a subagent; None: it shares this one."""
        return None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems of its configuration, for the user."""
        return ()

    def open(self, catalog: Catalog) -> None:  # noqa: ARG002 - none by default
        """Start background work at first use; must not wait."""
        return

    def follow(self) -> None:
        """Apply changed settings or working directories."""
        return

    async def expect(self, tool: str) -> None:  # noqa: ARG002 - none by default
        """Wait for a tool that is called but not in the catalog yet."""
        return

    async def wait_ready(self, server_wait: Arriving) -> None:  # noqa: ARG002 - none by default
        """Wait for what the first request needs."""
        return

    async def close(self) -> None:
        """Stop everything it started."""
        return


class CleanupService(SessionService):
    """Closes objects of others with the session."""

    def __init__(self, end: Callable[[], Awaitable[None]]) -> None:
        self._end = end

    async def close(self) -> None:
        """Close it; closing twice must be fine."""
        await self._end()


class ServiceGroup:
    """All services of a session."""

    def __init__(self, *members: SessionService) -> None:
        self.members = list(members)
        self.times_used = 0
        self.is_open = False

    @property
    def ports(self) -> Offered:
        """The ports of all services."""
        return {port: offer for one in self.members for port, offer in one.ports.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all services."""
        return tuple(told for one in self.members for told in one.warnings)

    def open(self, catalog: Catalog) -> None:
        """Open all services at first use."""
        if not self.is_open:
            self.is_open = True
            for one in self.members:
                one.open(catalog)

    def follow(self) -> None:
        """Apply changed settings or working directories."""
        for one in self.members:
            one.follow()

    async def expect(self, calls: Sequence[ToolCall], catalog: Catalog) -> None:
        """Wait for called tools that are not in the catalog yet."""
        for call in calls:
            if call.tool.startswith("mcp__") and not catalog.has(call.tool):
                for one in self.members:
                    await one.expect(call.tool)

    async def close(self) -> None:
        """Close them in reverse order."""
        for one in reversed(self.members):
            await one.close()
