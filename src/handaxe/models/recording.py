"""Record conversations with a model, and replay them without it."""

from collections.abc import AsyncGenerator, AsyncIterator
from itertools import takewhile
from pathlib import Path

from handaxe.contract.ports.model import Model, ModelEvent, ModelFailed, ModelRequest
from handaxe.models.normalized_request import NormalizedRequest, describe_difference
from handaxe.models.recording_file import (
    FORMAT,
    RecordedConversation,
    RecordedExchange,
    RecordedFailure,
    Recording,
    load_recording,
)

_ADVICE = (
    "Use the project, tools and settings of the recording, record again, or use `replay:`, which "
    "ignores differences."
)


class RecordingModel(Model):
    """A model whose answers are written to a file."""

    def __init__(self, model: Model, file: "Path | str | Recording") -> None:
        """`file` is a path, or a `Recording`, which its owner closes."""
        self.name = model.name
        self.context_tokens = model.context_tokens
        self.answers_for_all = model.answers_for_all
        self._model = model
        self._owns_recording = not isinstance(file, Recording)
        self.recording = file if isinstance(file, Recording) else Recording(Path(file))

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The wrapped model's response."""
        return self._stream(request)

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        events: list[ModelEvent] = []
        failed = None
        asked = NormalizedRequest(request)
        answer = self._model.stream(request)
        try:
            async for event in answer:
                events.append(event)
                yield event
        except ModelFailed as failure:
            failed = RecordedFailure(failure.failure, failure.sentence, failure.status)
            raise
        finally:
            # An incomplete answer is recorded as well.
            self.recording.add(self._model, asked, tuple(events), failed)
            if isinstance(answer, AsyncGenerator):
                await answer.aclose()

    async def close(self) -> None:
        """Close the wrapped model, and the file if this model opened it."""
        if self._owns_recording:
            self.recording.close()
        await self._model.close()


def record_model(model: Model, recording: Recording) -> Model:
    """The model with its answers recorded, once for each recording."""
    is_recorded = isinstance(model, RecordingModel) and model.recording is recording
    return model if is_recorded else RecordingModel(model, recording)


class ReplayModel(Model):
    """Answers from a recording: the same request gets the same events, each once.

    Another request gets the next answer to a conversation of the same length. With `strict` it
    fails and reports the first difference.
    """

    answers_for_all = True

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        self._left = [*load_recording(path)]
        self._path = path
        self._strict = strict
        self._difference: ModelFailed | None = None
        self.name = self._left[0].exchange.model
        self.context_tokens = self._left[0].exchange.context_tokens

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The recorded response."""
        return self._stream(request)

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        asked = NormalizedRequest(request)
        exchange = self._take(asked).exchange
        for event in asked.restore(exchange.events):
            yield event
        if exchange.failed is not None:
            failed = exchange.failed
            sentence = asked.restore_text(failed.sentence)
            raise ModelFailed(failed.failure, sentence, status=failed.status)

    def _take(self, asked: NormalizedRequest) -> RecordedConversation:
        found = next((e for e in self._left if e.exchange.request == asked.digest), None)
        if found is None and not self._strict:
            found = next((e for e in self._left if _has_place_of(asked, e.exchange)), None)
        if found is None:
            # Later differences may only be consequences of the first one.
            self._difference = self._difference or self._explain(asked)
            failed = self._difference
            raise ModelFailed(failed.failure, failed.sentence, status=failed.status)
        self._left.remove(found)
        return found

    def _explain(self, asked: NormalizedRequest) -> ModelFailed:
        """The failure for a request without a recorded answer."""
        who = f"agent {asked.agent}" if asked.agent else "the main agent"
        which = f"request {asked.said + 1} of {who}"
        there = [each for each in self._left if _has_place_of(asked, each.exchange)]
        if not there:
            return ModelFailed(
                "script_ended", f"The recording {self._path} has no answer to {which}."
            )
        near = max(there, key=lambda each: _count_same(each.messages, asked.messages))
        if near.exchange.format < FORMAT:
            return ModelFailed(
                "bad_request",
                f"The recording {self._path} is from an older version and cannot be replayed "
                "strictly. Record it again, or use `replay:`.",
            )
        difference = describe_difference(near.messages, asked.messages) or _describe_tools(
            near.tools, asked.tools
        )
        return ModelFailed(
            "bad_request",
            f"The conversation is not the recorded one: {which} differs from line {near.line} of "
            f"{self._path} in {difference}\n{_ADVICE}",
        )


def _has_place_of(asked: NormalizedRequest, exchange: RecordedExchange) -> bool:
    """Whether an exchange has the same position in the conversation of the same agent."""
    is_same_agent = exchange.format < FORMAT or exchange.agent == asked.agent
    return is_same_agent and exchange.said == asked.said


def _count_same(recorded: tuple[str, ...], now: tuple[str, ...]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(recorded, now)))  # noqa: B905


def _describe_tools(recorded: tuple[str, ...], now: tuple[str, ...]) -> str:
    gone, new = sorted({*recorded} - {*now}), sorted({*now} - {*recorded})
    if not gone and not new:
        return "the order of its tools."
    return f"its tools: without {', '.join(gone) or 'none'}, with {', '.join(new) or 'none'} more."
