"""A session of a program, served to one MCP client on standard input and output."""

from collections.abc import Sequence

from handaxe.app.session import Session, get_parts
from handaxe.contract.faults import SetupError
from handaxe.frontends.mcp_server.handlers import serve
from handaxe.frontends.mcp_server.server_session import SessionFactory
from handaxe.frontends.mcp_server.stdio_transport import take_stdio
from handaxe.permission.prompts import OnAsk


async def serve_mcp(
    session: Session, *, source: int | None = None, sink: int | None = None
) -> None:
    """Serve the tools of a session over MCP until the client disconnects; the session stays open.

    `source` and `sink` are descriptors to read and write. Without them the protocol takes standard
    input and output, and prints of the program go to standard error. The client's user answers
    questions if the session has no callback.
    """
    if get_parts(session).pipeline.is_closed:
        raise SetupError("The session is closed. Open a new one.")
    if (source is None) != (sink is None):
        raise SetupError("`serve_mcp` needs both `source` and `sink`, or neither.")
    if source is None or sink is None:
        source, sink = take_stdio()

    def lend(root: str, add_dirs: Sequence[str], on_ask: OnAsk) -> Session:  # noqa: ARG001
        return session

    await serve(SessionFactory(lend, session.workdir.root, is_lent=True), source, sink)
