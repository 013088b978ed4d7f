"""Conversations with a real model on record, and played again without it.

A recording is JSON lines, one exchange each: a digest of the request and the events it was
answered with. Prompts and results are not in it, but what the model said is.
"""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from handaxe.contract.faults import SetupError
from handaxe.contract.messages import AssistantMessage
from handaxe.contract.ports.model import (
    Failure,
    Model,
    ModelEvent,
    ModelFailed,
    ModelRequest,
)

FORMAT = 1


class RecordedFailure(msgspec.Struct, frozen=True):
    """How an exchange ended that did not end well."""

    failure: Failure
    sentence: str
    status: int | None = None


class RecordedExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording."""

    format: int = FORMAT
    model: str
    context_tokens: int
    request: str
    """The digest of what was asked."""
    said: int
    """How many responses the conversation already held."""
    events: tuple[ModelEvent, ...]
    failed: RecordedFailure | None = None


class RecordingModel(Model):
    """A model whose answers are written to a file as they come."""

    def __init__(self, model: Model, path: Path) -> None:
        self.name = model.name
        self.context_tokens = model.context_tokens
        self._model = model
        self._path = path

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The wrapped model's response."""
        return self._stream(request)

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        events: list[ModelEvent] = []
        failed = None
        answer = self._model.stream(request)
        try:
            async for event in answer:
                events.append(event)
                yield event
        except ModelFailed as failure:
            failed = RecordedFailure(failure.failure, failure.sentence, failure.status)
            raise
        finally:
            # Also what was broken off is on record, as far as it came.
            self._write(request, tuple(events), failed)
            if isinstance(answer, AsyncGenerator):
                await answer.aclose()

    def _write(
        self, request: ModelRequest, events: tuple[ModelEvent, ...], failed: RecordedFailure | None
    ) -> None:
        exchange = RecordedExchange(
            model=self.name,
            context_tokens=self.context_tokens,
            request=hash_request(request),
            said=_count_responses(request),
            events=events,
            failed=failed,
        )
        line = msgspec.json.encode(exchange) + b"\n"
        with self._path.open("ab") as file:
            file.write(line)

    async def close(self) -> None:
        """Close the wrapped model."""
        await self._model.close()


class ReplayModel(Model):
    """Answers from a recording: the same request gets the same events, each once.

    A request that was never made gets the next answer of the same length of conversation, so a
    recording survives changes of wording; `strict` refuses that.
    """

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        self._exchanges = _load(path)
        self._path = path
        self._strict = strict
        self.name = self._exchanges[0].model
        self.context_tokens = self._exchanges[0].context_tokens

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The recorded response."""
        return self._stream(request)

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        exchange = self._take(request)
        for event in exchange.events:
            yield event
        if exchange.failed is not None:
            failed = exchange.failed
            raise ModelFailed(failed.failure, failed.sentence, status=failed.status)

    def _take(self, request: ModelRequest) -> RecordedExchange:
        wanted, said = hash_request(request), _count_responses(request)
        same = [each for each in self._exchanges if each.request == wanted]
        if not same and not self._strict:
            same = [each for each in self._exchanges if each.said == said]
        if not same:
            raise ModelFailed(
                "script_ended", f"The recording {self._path} has no answer to this request."
            )
        self._exchanges.remove(same[0])
        return same[0]


def hash_request(request: ModelRequest) -> str:
    """What a request is known by: its messages and tools, whatever the model or its limits."""
    asked: list[Any] = [request.messages, [tool.name for tool in request.tools]]
    encoded = msgspec.json.encode(asked, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:32]


def _count_responses(request: ModelRequest) -> int:
    return sum(isinstance(message, AssistantMessage) for message in request.messages)


def _load(path: Path) -> list[RecordedExchange]:
    try:
        lines = path.read_bytes().splitlines()
        exchanges = [
            msgspec.json.decode(line, type=RecordedExchange) for line in lines if line.strip()
        ]
    except OSError as error:
        raise SetupError(f"The recording {path} cannot be read: {error}") from error
    except msgspec.DecodeError as error:
        raise SetupError(f"The recording {path} is damaged: {error}") from error
    if not exchanges:
        raise SetupError(f"The recording {path} is empty.")
    return exchanges
