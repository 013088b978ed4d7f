"""What is kept of logins at MCP servers: tokens, and who we are to whoever gave them."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec


class McpLogin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One login, or what is left of it."""

    access_token: str = ""
    refresh_token: str = ""
    expires_at: float | None = None
    """In seconds of the clock; None if nobody said."""
    scope: str | None = None
    """What was granted, words between blanks."""
    resource: str | None = None
    """For which server the tokens are meant, if that has to be said."""
    token_endpoint: str = ""
    revocation_endpoint: str | None = None
    client: dict[str, Any] = {}
    """Our registration, as the authorisation server knows it."""
    challenge: str = ""
    """What the server said when it last refused; the next login asks for what it names."""

    def __repr__(self) -> str:
        """Without what must not be seen."""
        return f"McpLogin(scope={self.scope!r})"


class McpLogins(ABC):
    """The logins of a user, by the key of a server's definition."""

    @abstractmethod
    def read(self, key: str) -> McpLogin | None:
        """The login, if there is one; what cannot be read is none."""

    @abstractmethod
    async def write(self, key: str, login: McpLogin) -> None:
        """Keep a login in place of the one there was."""

    @abstractmethod
    def forget(self, key: str) -> None:
        """Remove a login, there or not."""

    @abstractmethod
    def alone(self, key: str) -> AbstractAsyncContextManager[None]:
        """No other session, here or in another process, renews or replaces this login meanwhile."""
