"""The MCP servers of a session: their tools, resources and prompts."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

import msgspec

from handaxe.contract.decision import ToolDefinition
from handaxe.contract.result import ToolResult

LOGIN_WAIT_S = 300.0
"""How long a person may take to log in."""

ServerStatus = Literal["connected", "failed", "needs-auth", "pending", "disabled"]


class McpResource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something a server can be asked to hand out."""

    uri: str
    name: str
    mime_type: str | None = None
    description: str | None = None
    server: str


class McpContent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a resource: text, or a file that its bytes were saved to."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob_saved_to: str | None = None


class McpPrompt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text template that a server offers to the person in front."""

    name: str
    """As it is invoked: `mcp__server__prompt`."""
    server: str
    description: str = ""
    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


class McpTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool in a server's status."""

    name: str
    description: str = ""
    annotations: dict[str, bool] = {}


class McpServer(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How one server stands; the fields of the ecosystem's `mcp_status`."""

    name: str
    status: ServerStatus
    server_info: dict[str, str] | None = None
    error: str | None = None
    config: dict[str, Any] | None = None
    scope: str | None = None
    tools: tuple[McpTool, ...] = ()
    instructions: str | None = None
    log_path: str | None = None


class McpServers(ABC):
    """All servers of a session."""

    @abstractmethod
    def status(self) -> tuple[McpServer, ...]:
        """How every server stands now, by name."""

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Every tool on offer, as a lasting yes would be bound to it."""
        return ()

    @abstractmethod
    async def settled(self, server: str | None = None) -> None:
        """Wait until no server, or not this one, is still connecting for the first time."""

    @abstractmethod
    async def resources(self, server: str | None = None) -> tuple[McpResource, ...]:
        """The resources of servers. A server that fails is left out unless it was named."""

    @abstractmethod
    async def read(self, server: str, uri: str, call_id: str) -> tuple[McpContent, ...]:
        """A resource; bytes are saved under the call's name."""

    @abstractmethod
    async def prompts(self) -> tuple[McpPrompt, ...]:
        """Every prompt on offer."""

    @abstractmethod
    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """A prompt filled in, as one text."""

    @abstractmethod
    async def call_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a server's tool by its own name, past the pipeline: for hooks that name it."""

    @abstractmethod
    async def reconnect(self, server: str) -> None:
        """Drop a server's connection, if it has one, and make a new one."""

    @abstractmethod
    async def switch(self, server: str, *, on: bool) -> None:
        """End a server for this session and take its tools away, or start it again."""

    @abstractmethod
    async def login(
        self,
        server: str,
        show: Callable[[str], Awaitable[None]],
        *,
        client_secret: str | None = None,
        wait_s: float = LOGIN_WAIT_S,
    ) -> None:
        """Log in at a server: `show` gets the address where the user approves it in a browser.

        The tokens are kept for all sessions. `client_secret` belongs to `oauth.clientId`.

        Raises:
            LoginFailed: it failed; with the reason.
        """

    @abstractmethod
    async def logout(self, server: str) -> bool:
        """Delete a login, revoke its tokens if possible, and return whether there was one."""


class McpLogin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One login, or the rest of it."""

    access_token: str = ""
    refresh_token: str = ""
    expires_at: float | None = None
    """In seconds of the clock; None if it is unknown."""
    scope: str | None = None
    """The granted scopes, separated by spaces."""
    resource: str | None = None
    """For which server the tokens are meant, if that has to be said."""
    token_endpoint: str = ""
    revocation_endpoint: str | None = None
    client: dict[str, Any] = {}
    """Our registration, as the authorisation server knows it."""
    challenge: str = ""
    """The server's message at its last refusal. The next login requests the scopes it names."""

    def __repr__(self) -> str:
        """Without what must not be seen."""
        return f"McpLogin(scope={self.scope!r})"


class McpLogins(ABC):
    """The logins of a user, by the key of a server's definition."""

    @abstractmethod
    def read(self, key: str) -> McpLogin | None:
        """The login, if there is one; an unreadable one counts as missing."""

    @abstractmethod
    async def write(self, key: str, login: McpLogin) -> None:
        """Keep a login in place of the one there was."""

    @abstractmethod
    def forget(self, key: str) -> None:
        """Remove a login, there or not."""

    @abstractmethod
    def alone(self, key: str) -> AbstractAsyncContextManager[None]:
        """No other session, here or in another process, renews or replaces this login meanwhile."""
