"""What lives as long as a session beside its tools: the shell, servers, agents.

Each companion is a module of its own; here is only what they have in common.
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
    """What a companion can build on."""

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
    """Everybody the pipeline works with, once the session stands."""
    is_busy: Callable[[], bool]
    """Whether a call of the session runs."""
    recovered: tuple[str, ...] = ()
    """What was put back that commands of killed processes had changed; the next result tells it."""


Arriving = Literal["needed", "all", "long"]
"""What is waited for before a model is first asked: what has to be there, everything for a moment,
or everything for as long as it may take to start."""


class SessionService:
    """Something a session opens with and closes at its end."""

    @property
    def ports(self) -> Offered:
        """Ports and state objects for tools, by type; cheap, before anything is started."""
        return {}

    def create_for_agent(
        self,
        session_context: SessionContext,  # noqa: ARG002 - shared by default
        history: SessionHistory,  # noqa: ARG002
    ) -> "SessionService | None":
        """The same for a sub-agent with a place and a past of its own; None: it shares this."""
        return None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with its set-up; for a person."""
        return ()

    def open(self, catalog: Catalog) -> None:  # noqa: ARG002 - none by default
        """The session is in use: start whatever works in the background; never waits."""
        return

    def follow(self) -> None:
        """Settings or working directories have changed."""
        return

    async def expect(self, tool: str) -> None:  # noqa: ARG002 - none by default
        """A tool is about to be called that the catalog does not have; wait if it may come."""
        return

    async def wait_ready(self, server_wait: Arriving) -> None:  # noqa: ARG002 - none by default
        """A model is about to be asked for the first time; wait for what it should see."""
        return

    async def close(self) -> None:
        """End whatever it started."""
        return


class CleanupService(SessionService):
    """What others brought into a session, ended with it if they do not do so before."""

    def __init__(self, end: Callable[[], Awaitable[None]]) -> None:
        self._end = end

    async def close(self) -> None:
        """End it; twice has to be fine."""
        await self._end()


class ServiceGroup:
    """All of a session."""

    def __init__(self, *members: SessionService) -> None:
        self.members = list(members)
        self.times_used = 0
        self.is_open = False

    @property
    def ports(self) -> Offered:
        """What they offer together."""
        return {port: offer for one in self.members for port, offer in one.ports.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with any of them."""
        return tuple(told for one in self.members for told in one.warnings)

    def open(self, catalog: Catalog) -> None:
        """The session is in use for the first time."""
        if not self.is_open:
            self.is_open = True
            for one in self.members:
                one.open(catalog)

    def follow(self) -> None:
        """Settings or working directories have changed."""
        for one in self.members:
            one.follow()

    async def expect(self, calls: Sequence[ToolCall], catalog: Catalog) -> None:
        """Wait for tools that are about to be called and not there yet."""
        for call in calls:
            if call.tool.startswith("mcp__") and not catalog.has(call.tool):
                for one in self.members:
                    await one.expect(call.tool)

    async def close(self) -> None:
        """End them, the last one first."""
        for one in reversed(self.members):
            await one.close()
