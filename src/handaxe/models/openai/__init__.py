"""Models with the Chat Completions API: OpenAI, Ollama, llama.cpp, vLLM, gateways.

Belongs here: its request, its stream, differences between servers, and the client.
Does not: HTTP (`models.http`), failures and retries (`models.failures`).
May import: the other modules of `models`, and what `models` may import.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from urllib.parse import urlsplit

from handaxe.contract.ports.model import ModelEvent, ModelRequest
from handaxe.models.failures import MAX_RETRIES, AttemptFailed, ModelServer, retry_attempts
from handaxe.models.http.transport import HttpTransport
from handaxe.models.http_stream import HttpModel, encode_body
from handaxe.models.openai.request import ServerQuirks, build_request
from handaxe.models.openai.stream import CompletionReader

DEFAULT_URL = "https://api.openai.com/v1"


class OpenAIModel(HttpModel):
    """A model of OpenAI, or of another server with Chat Completions."""

    def __init__(
        self,
        name: str,
        transport: HttpTransport,
        *,
        base_url: str = DEFAULT_URL,
        token: str | None = None,
        extra_headers: Mapping[str, str] | None = None,
        context_tokens: int = 128_000,
        max_retries: int = MAX_RETRIES,
    ) -> None:
        is_openai = base_url == DEFAULT_URL
        server = ModelServer(
            "OpenAI" if is_openai else base_url,
            build_completions_url(base_url), name, "OPENAI_API_KEY", "OPENAI_BASE_URL",
        )  # fmt: skip
        super().__init__(
            name, transport, server, extra_headers or {},
            token=token, context_tokens=context_tokens, max_retries=max_retries,
        )  # fmt: skip
        self._quirks = ServerQuirks(is_openai=is_openai)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The response, event by event."""
        return retry_attempts(lambda: self._stream_attempt(request), self._max_retries)

    async def _stream_attempt(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        while True:
            body = encode_body(build_request(self.name, request, self._quirks))
            exchange = self._exchange(CompletionReader(self._server), body)
            try:
                async for event in exchange:
                    yield event
            except AttemptFailed as failed:
                # Without the field that the server rejects, the request may succeed.
                if failed.failure.status not in (400, 422) or not self._quirks.learn(
                    failed.failure.sentence, body
                ):
                    raise
            else:
                return
            finally:
                await exchange.aclose()


def build_completions_url(base_url: str) -> str:
    """The URL for completions; a base URL without a path gets the usual one."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path = f"{path or '/v1'}/chat/completions"
    return parts._replace(path=path).geturl()
