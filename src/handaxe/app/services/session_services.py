"""Everything that opens with a session, in the order it is opened."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from handaxe.app.services.background import BackgroundWork
from handaxe.app.services.service import ServiceGroup, SessionContext, SessionService
from handaxe.app.services.state import SessionState
from handaxe.catalog.catalog import Catalog
from handaxe.config.settings_paths import list_server_files
from handaxe.contract.faults import SetupError
from handaxe.storage.sessions import SessionHistory

if TYPE_CHECKING:
    from handaxe.app.services.mcp import McpArguments, McpService


class SessionServices(ServiceGroup):
    """The companions of one session, by name where the session itself needs them."""

    def __init__(
        self,
        session_context: SessionContext,
        history: SessionHistory,
        mcp_servers: "McpArguments",
        *,
        is_strict: bool,
    ) -> None:
        self.memory = SessionState(session_context, history)
        self.background = BackgroundWork(session_context, self.memory.wakeups)
        self.ready_tree = SnapshotPrewarm(session_context, lambda: self.times_used)
        self.mcp = _create_mcp_service(session_context, mcp_servers, is_strict=is_strict)
        mcp = (self.mcp,) if self.mcp else ()
        super().__init__(self.memory, self.background, self.ready_tree, *mcp)


def _create_mcp_service(
    session_context: SessionContext, given: "McpArguments", *, is_strict: bool
) -> "McpService | None":
    """The MCP servers; None where nothing could name one, so that nothing need be loaded."""
    configuration = session_context.configuration
    if not isinstance(cast("object", given), str | Mapping | Sequence | None):
        raise SetupError(f"`mcp_servers` takes a table, a file, or several; {given!r} is none.")
    is_named = given or isinstance(given, str) or configuration.settings.mcp_servers
    if not is_named and all(_is_absent(path) for path in list_server_files(configuration.root)):
        return None
    from handaxe.app.services.mcp import McpService

    return McpService(session_context, given, is_strict=is_strict)


def _is_absent(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


START_S = 0.5
"""How long nobody calls before it begins: calls that follow each other are not slowed down."""
_COMMANDS = ("Bash", "Monitor")


class SnapshotPrewarm(SessionService):
    """Sees to it that the first command of a session waits for little."""

    def __init__(self, session_context: SessionContext, times_used: Callable[[], int]) -> None:
        self._session_context = session_context
        self._times_used = times_used
        self._used_before = 0
        self._is_wanted = True
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Future[None] | None = None

    def open(self, catalog: Catalog) -> None:
        """The session is in use: begin when it is not for a moment."""
        with suppress(RuntimeError):
            # Without a running loop there is nobody to wait in.
            self._wait(catalog)

    def leave(self) -> None:
        """There is no need for it."""
        self._is_wanted = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self) -> None:
        """Begin nothing any more; what has begun ends with the undo record."""
        self.leave()
        if self._work is not None:
            await asyncio.wait([self._work])

    def begin_if_idle(self, catalog: Catalog) -> None:
        """Begin, unless a call runs or came since the last look; then look again in a moment."""
        if self._session_context.is_busy() or self._times_used() != self._used_before:
            self._wait(catalog)
        elif catalog.can_offer(*_COMMANDS):
            self._work = asyncio.ensure_future(self._session_context.checkpoints.prepare())

    def _wait(self, catalog: Catalog) -> None:
        if self._is_wanted:
            self._used_before = self._times_used()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(START_S, self.begin_if_idle, catalog)
