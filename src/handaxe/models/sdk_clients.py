"""Clients of the official SDKs as models: `AsyncAnthropic` and `AsyncOpenAI`.

Neither SDK is imported. Clients are recognised by their methods, errors by their attributes. The
client itself retries.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, cast

from handaxe.contract.faults import SetupError
from handaxe.contract.ports.model import Model, ModelEvent, ModelRequest
from handaxe.models.anthropic import request as anthropic_request
from handaxe.models.anthropic.stream import MessageReader
from handaxe.models.failures import (
    AttemptFailed,
    ModelServer,
    make_status_failure,
    make_stream_failure,
    make_transport_failure,
    make_truncation_failure,
)
from handaxe.models.http.transport import TransportFailed
from handaxe.models.openai import request as openai_request
from handaxe.models.openai.request import ServerQuirks
from handaxe.models.openai.stream import CompletionReader
from handaxe.models.prices import find_model_card


def from_client(client: Any, name: str) -> Model:  # noqa: ANN401 - a client of either vendor
    """The model `name` behind the asynchronous client of an official SDK."""
    kind = type(client).__name__
    if not kind.startswith("Async"):
        raise SetupError(f"{kind} is not asynchronous. Use the Async client of the SDK.")
    if hasattr(client, "messages") and hasattr(client.messages, "create"):
        return ClientModel(client, name, "anthropic")
    if hasattr(client, "chat") and hasattr(client.chat, "completions"):
        return ClientModel(client, name, "openai")
    raise SetupError(
        f"{kind} has neither messages.create nor chat.completions.create. "
        "Use AsyncAnthropic or AsyncOpenAI."
    )


class ClientModel(Model):
    """One model behind a client of the caller, which stays open at the end."""

    def __init__(self, client: Any, name: str, vendor: str) -> None:  # noqa: ANN401
        card = find_model_card(name)
        self.name = name
        self.context_tokens = 200_000 if card is None else card.context
        self._client = client
        self._vendor = vendor
        prefix = vendor.upper()
        self._server = ModelServer(
            vendor.capitalize(), str(getattr(client, "base_url", vendor)), name,
            f"{prefix}_API_KEY", f"{prefix}_BASE_URL",
        )  # fmt: skip
        self._quirks = ServerQuirks()

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The response, event by event."""
        return self._stream(request)

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        reader: MessageReader | CompletionReader
        if self._vendor == "anthropic":
            body = anthropic_request.build_request(self.name, request)
            reader, create = MessageReader(self._server), self._client.messages.create
        else:
            body = openai_request.build_request(self.name, request, self._quirks)
            reader, create = CompletionReader(self._server), self._client.chat.completions.create
        events: Any = None
        try:
            events = await create(**body)
            async for event in events:
                for given in reader.read(event.model_dump(exclude_unset=True)):
                    yield given
        except AttemptFailed as failed:
            raise failed.failure from failed
        except Exception as error:
            failed = self._convert_error(error)
            if failed is None:
                raise
            raise failed.failure from error
        finally:
            if events is not None:
                await events.close()
        # The clients do not pass on the last event of a stream.
        if not reader.is_complete:
            raise make_truncation_failure(self._server).failure
        for given in reader.end():
            yield given

    def _convert_error(self, error: Exception) -> AttemptFailed | None:
        """The failure for an error of the client; None for an error of another kind."""
        status = getattr(error, "status_code", None)
        body = getattr(error, "body", None)
        if isinstance(status, int) and status >= 300:
            response: Any = getattr(error, "response", None)
            headers = cast("Mapping[str, str]", getattr(response, "headers", {}))
            known = {key.lower(): value for key, value in headers.items()}
            return make_status_failure(
                self._server, status, known, body if body is not None else str(error)
            )
        if isinstance(body, dict):
            return make_stream_failure(self._server, body)
        names = [kind.__name__ for kind in type(error).__mro__]
        if "APITimeoutError" in names:
            return make_transport_failure(self._server, TransportFailed("timed_out", str(error)))
        if "APIConnectionError" in names:
            return make_transport_failure(self._server, TransportFailed("unreachable", str(error)))
        if "APIError" in names or type(error).__module__.startswith("httpx2"):
            return make_transport_failure(
                self._server, TransportFailed("broken_stream", str(error))
            )
        return None
