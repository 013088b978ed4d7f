"""Faults of MCP servers."""

from collections.abc import Sequence

from handaxe.contract.faults import TemplateFault, ToolFault


class UnknownServer(ToolFault):
    """No server has this name."""

    code = "mcp.unknown_server"

    def __init__(self, server: str, known: Sequence[str]) -> None:
        names = ", ".join(known) or "none"
        super().__init__(f"There is no MCP server named {server!r} here. Servers: {names}.")


class NotConnected(
    TemplateFault,
    code="mcp.not_connected",
    sentence=(
        "The MCP server {server!r} is not connected: {reason}\nThe call did not run. Repeat it "
        "later, or continue without this server."
    ),
):
    """The server is not reachable, so the call did not run."""


class ConnectionLost(
    TemplateFault,
    code="mcp.connection_lost",
    sentence=(
        "The MCP server {server!r} disconnected during the call: {reason}\nIt is not known "
        "whether the call took effect. Check before you repeat it. handaxe is reconnecting the "
        "server."
    ),
):
    """The connection to the server broke during the call."""


class LoginFailed(
    TemplateFault,
    code="mcp.login_failed",
    sentence="The login at the MCP server {server!r} failed: {reason}",
):
    """The login failed."""


class ServerTimedOut(
    TemplateFault,
    code="mcp.timed_out",
    sentence=(
        "The MCP server {server!r} did not answer within {timeout_s:g} s. The request was "
        "cancelled. Ask for less at a time, or check what the call did before you repeat it."
    ),
):
    """The server did not answer before the timeout."""


class ServerRefused(
    TemplateFault,
    code="mcp.refused",
    sentence=(
        "The MCP server {server!r} refused the request: {reason}\nChange the input, or "
        "continue without it."
    ),
):
    """The server answered with a protocol error, or with an invalid answer."""


class AnswerTooLarge(ToolFault):
    """The answer of the server exceeds the size limit."""

    code = "mcp.too_large"

    def __init__(self, server: str, size_bytes: int | None, limit_bytes: int, path: str) -> None:
        size = "more" if size_bytes is None else f"{size_bytes:,} bytes"
        kept = f" The first part of it is in {path}; search it there." if path else ""
        super().__init__(
            f"The call ran, but the MCP server {server!r} answered with {size} where the limit "
            f"is {limit_bytes:,} bytes.{kept} Otherwise ask for less at a time."
        )


class RemoteToolFailed(ToolFault):
    """The tool ran on its server and failed; the text comes from the tool."""

    code = "mcp.tool_failed"


class BadStructuredContent(
    TemplateFault,
    code="mcp.bad_output",
    sentence=(
        "The call ran, but the data of the MCP server {server!r} does not fit the output "
        "schema of its tool: {problems}. Do not rely on the data. What the call changed stays "
        "changed. The server answered:\n{answer}"
    ),
):
    """The tool ran on its server, and its data does not fit the listed output schema."""
