"""Everything that opens with a session, in the order it is opened."""

from handaxe.app.background_work import BackgroundWork
from handaxe.app.companions import Companions, Surroundings
from handaxe.app.mcp_companion import McpArguments, McpCompanion
from handaxe.app.memory import Memory
from handaxe.storage.sessions import History


class SessionCompanions(Companions):
    """The companions of one session, by name where the session itself needs them."""

    def __init__(
        self,
        around: Surroundings,
        history: History,
        mcp_servers: McpArguments,
        *,
        is_strict: bool,
    ) -> None:
        self.memory = Memory(around, history)
        self.background = BackgroundWork(around)
        self.mcp = McpCompanion(around, mcp_servers, is_strict=is_strict)
        super().__init__(self.memory, self.background, self.mcp)
