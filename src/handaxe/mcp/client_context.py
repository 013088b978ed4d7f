"""The context that all connections of a session share."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from handaxe.contract.ports.mcp_servers import McpLogins
from handaxe.contract.ports.processes import Processes
from handaxe.text.redact import Redactor


class ElicitationRequest(msgspec.Struct, frozen=True):
    """A request of a server to the user: a form to fill in, or an address to open."""

    message: str
    schema: dict[str, Any] | None = None
    url: str | None = None
    elicitation_id: str | None = None


Elicit = Callable[[str, ElicitationRequest], Awaitable[dict[str, Any] | None]]
"""The server and its request; the filled form, or None to decline."""


class McpClientContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where servers run and what they may request."""

    version: str
    """handaxe's version, for servers."""
    processes: Processes
    logins: McpLogins
    cwd: str
    env: Mapping[str, str]
    prefix: tuple[str, ...] = ()
    """A program with its first arguments that runs the command lines of servers."""
    roots: Callable[[], Sequence[str]]
    log_path: Callable[[str], str]
    spill: Callable[[str], str]
    """A path for an answer of this server that is too large."""
    redactor: Redactor = msgspec.field(default_factory=Redactor)
    """Removes secrets from such an answer."""
    elicit: Callable[[], Elicit | None]
    """Fills in forms, if possible."""
