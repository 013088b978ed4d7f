"""Everything that opens with a session, in the order it is opened."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from handaxe.app.services.background import BackgroundWork
from handaxe.app.services.service import ServiceGroup, SessionContext
from handaxe.app.services.session_services__ready_tree import SnapshotPrewarm
from handaxe.app.services.state import SessionState
from handaxe.config.settings_paths import list_server_files
from handaxe.contract.faults import SetupError
from handaxe.storage.sessions import SessionHistory

if TYPE_CHECKING:
    from handaxe.app.services.mcp import McpArguments, McpService


class SessionServices(ServiceGroup):
    """The companions of one session, by name where the session itself needs them."""

    def __init__(
        self,
        around: SessionContext,
        history: SessionHistory,
        mcp_servers: "McpArguments",
        *,
        is_strict: bool,
    ) -> None:
        self.memory = SessionState(around, history)
        self.background = BackgroundWork(around, self.memory.wakeups)
        self.ready_tree = SnapshotPrewarm(around, lambda: self.times_used)
        self.mcp = _create_mcp_service(around, mcp_servers, is_strict=is_strict)
        mcp = (self.mcp,) if self.mcp else ()
        super().__init__(self.memory, self.background, self.ready_tree, *mcp)


def _create_mcp_service(
    around: SessionContext, given: "McpArguments", *, is_strict: bool
) -> "McpService | None":
    """The MCP servers; None where nothing could name one, so that nothing need be loaded."""
    configuration = around.configuration
    if not isinstance(cast("object", given), str | Mapping | Sequence | None):
        raise SetupError(f"`mcp_servers` takes a table, a file, or several; {given!r} is none.")
    is_named = given or isinstance(given, str) or configuration.settings.mcp_servers
    if not is_named and all(_is_absent(path) for path in list_server_files(configuration.root)):
        return None
    from handaxe.app.services.mcp import McpService

    return McpService(around, given, is_strict=is_strict)


def _is_absent(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
