"""Models with the Messages API.

Belongs here: its request, its stream, and the client that uses both.
Does not: HTTP (`models.http`), failures and retries (`models.failures`).
May import: the other modules of `models`, and what `models` may import.
"""

from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from handaxe.contract.ports.model import ModelEvent, ModelRequest
from handaxe.models.anthropic.request import build_request
from handaxe.models.anthropic.stream import MessageReader
from handaxe.models.failures import MAX_RETRIES, ModelServer, retry_attempts
from handaxe.models.http.transport import HttpTransport
from handaxe.models.http_stream import HttpModel, encode_body

API_VERSION = "2026-10-21"
DEFAULT_URL = "https://api.anthropic.com"


class AnthropicModel(HttpModel):
    """A model of Anthropic, or of another server with the Messages API."""

    def __init__(
        self,
        name: str,
        transport: HttpTransport,
        *,
        base_url: str = DEFAULT_URL,
        token: str | None = None,
        extra_headers: Mapping[str, str] | None = None,
        user_id: str | None = None,
        context_tokens: int = 200_000,
        max_retries: int = MAX_RETRIES,
    ) -> None:
        server = ModelServer(
            "Anthropic" if base_url == DEFAULT_URL else base_url,
            build_messages_url(base_url), name, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
        )  # fmt: skip
        headers = {"anthropic-version": API_VERSION, **(extra_headers or {})}
        super().__init__(
            name, transport, server, headers,
            token=token, context_tokens=context_tokens, max_retries=max_retries,
        )  # fmt: skip
        self._user_id = user_id

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The response, event by event."""
        body = encode_body(build_request(self.name, request, user_id=self._user_id))
        return retry_attempts(
            lambda: self._exchange(MessageReader(self._server), body), self._max_retries
        )


def build_messages_url(base_url: str) -> str:
    """The URL for messages; the base URL may end in `/v1` or not."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/").removesuffix("/v1")
    return parts._replace(path=f"{path}/v1/messages").geturl()
