"""What can go wrong with a server of other people's tools."""

from collections.abc import Sequence

from handaxe.contract.faults import ToolFault


class UnknownServer(ToolFault):
    """No server of that name is set up here."""

    code = "mcp.unknown_server"

    def __init__(self, server: str, known: Sequence[str]) -> None:
        names = ", ".join(known) or "none"
        super().__init__(f"There is no MCP server named {server!r} here. Servers: {names}.")


class NotConnected(ToolFault):
    """The server cannot be reached, so the call did not run."""

    code = "mcp.not_connected"

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(
            f"The MCP server {server!r} is not connected: {reason}\n"
            "The call did not run. Repeat it later, or go on without this server."
        )


class ConnectionLost(ToolFault):
    """The server went away while the call was running."""

    code = "mcp.connection_lost"

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(
            f"The MCP server {server!r} went away during the call: {reason}\n"
            "Whether the call took effect is not known: check before you repeat it. The server is "
            "being connected again."
        )


class LoginFailed(ToolFault):
    """Logging in at a server did not come to a good end."""

    code = "mcp.login_failed"

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"The login at the MCP server {server!r} failed: {reason}")


class ServerTimedOut(ToolFault):
    """The server did not answer in time."""

    code = "mcp.timed_out"

    def __init__(self, server: str, timeout_s: float) -> None:
        super().__init__(
            f"The MCP server {server!r} gave no answer for {timeout_s:g} s; it was told to stop. "
            "Ask for less at a time, or check what it did before you repeat the call."
        )


class ServerRefused(ToolFault):
    """The server answered with an error of the protocol, or with something that is no answer."""

    code = "mcp.refused"

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(
            f"The MCP server {server!r} refused the request: {reason}\n"
            "Change the input, or go on without it."
        )


class AnswerTooLarge(ToolFault):
    """The server's answer is larger than anybody should hold in memory."""

    code = "mcp.too_large"

    def __init__(self, server: str, size_bytes: int | None, limit_bytes: int, path: str) -> None:
        size = "more" if size_bytes is None else f"{size_bytes:,} bytes"
        kept = f" As far as it was kept it lies in {path}; search it there." if path else ""
        super().__init__(
            f"The call ran, but the MCP server {server!r} answered with {size} where at most "
            f"{limit_bytes:,} bytes are taken.{kept} Otherwise ask for less at a time."
        )


class RemoteToolFailed(ToolFault):
    """The tool ran on its server and says that it failed; the text is the tool's own."""

    code = "mcp.tool_failed"


class BadStructuredContent(ToolFault):
    """The tool ran on its server; what it gave does not fit the output schema that it lists."""

    code = "mcp.bad_output"

    def __init__(self, server: str, problems: Sequence[str], answer: str) -> None:
        super().__init__(
            f"The call ran, but the data of the MCP server {server!r} does not fit the output "
            f"schema of its tool: {'; '.join(problems)}. Do not rely on the data; what the call "
            f"changed stays. The server answered:\n{answer}"
        )
