"""A model server on loopback for any agent: it asks for one call after the other, in the wire format
of whoever asks, and notes when requests come and when answers are sent.

Wire formats: Anthropic Messages, OpenAI Responses and Chat Completions, Gemini generateContent.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]


class Call(NamedTuple):
    """A call the server asks for."""

    tool: str
    input: Json | str
    """JSON for most tools; a text for tools that take free text."""


def messages_api(number: int, call: Call | None) -> Iterable[Json]:
    """Anthropic's events."""
    yield {"type": "message_start", "message": {
        "id": f"m{number}", "type": "message", "role": "assistant", "model": "x", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1}}}  # fmt: skip
    if call is None:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
    else:
        block = {"type": "tool_use", "id": f"c{number}", "name": call.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.input)}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if call is None else "tool_use"
    yield {"type": "message_delta", "usage": {"output_tokens": 1},
           "delta": {"stop_reason": reason, "stop_sequence": None}}  # fmt: skip
    yield {"type": "message_stop"}


def responses_api(number: int, call: Call | None) -> Iterable[Json]:
    """OpenAI's newer events."""
    response: Json = {"id": f"r{number}", "object": "response", "status": "in_progress"}
    yield {"type": "response.created", "response": response}
    item: Json = {"id": f"i{number}", "call_id": f"c{number}", "status": "completed"}
    if call is None:
        text = {"type": "output_text", "text": "Done.", "annotations": []}
        item |= {"type": "message", "role": "assistant", "content": [text]}
    elif isinstance(call.input, str):
        item |= {"type": "custom_tool_call", "name": call.tool, "input": call.input}
    else:
        arguments = json.dumps(call.input)
        item |= {"type": "function_call", "name": call.tool, "arguments": arguments}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    ended = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": ended}


def chat_completions(number: int, call: Call | None) -> Iterable[Json]:
    """OpenAI's older events, which most other servers speak."""
    delta: Json = {"role": "assistant", "content": "Done."}
    if call is not None:
        function = {"name": call.tool, "arguments": json.dumps(call.input)}
        asked = {"index": 0, "id": f"c{number}", "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [asked]}
    head = {"id": f"m{number}", "object": "chat.completion.chunk", "created": 1, "model": "x"}
    yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = "stop" if call is None else "tool_calls"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}


def generate_content(number: int, call: Call | None) -> Iterable[Json]:
    """Gemini's one event."""
    part: Json = {"text": "Done."}
    if call is not None:
        part = {"functionCall": {"id": f"c{number}", "name": call.tool, "args": call.input}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    yield {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage, "modelVersion": "x", "responseId": f"r{number}",
    }  # fmt: skip


WIRES: dict[str, Callable[[int, Call | None], Iterable[Json]]] = {
    "/messages": messages_api,
    "/responses": responses_api,
    "/chat/completions": chat_completions,
    ":streamGenerateContent": generate_content,
}


class Request(NamedTuple):
    """A request of the conversation, and when it had come in."""

    at: float
    body: bytes


class ModelServer:
    """Asks for `calls` in order, then ends the conversation."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self.requests: list[Request] = []
        self.answered: list[float] = []
        """When the answer to each request had been sent."""
        self._listening: asyncio.Server | None = None

    async def start(self) -> str:
        """Listen; the address to give to an agent."""
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26)
        return f"http://127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        """Take no more connections."""
        if self._listening is not None:
            self._listening.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await _body(reader, head.lower())
                at = time.perf_counter()
                path = head.split(b" ", 2)[1].partition(b"?")[0].decode()
                wire = next((path_end for path_end in WIRES if path.endswith(path_end)), None)
                if wire is None:
                    writer.write(_whole(b"{}"))
                elif b'"tools":' in body or b'"functionDeclarations":' in body:
                    self.requests.append(Request(at, body))
                    number = len(self.answered)
                    call = self._calls[number] if number < len(self._calls) else None
                    writer.write(_stream(WIRES[wire](number, call)))
                    self.answered.append(time.perf_counter())
                else:
                    # Somebody wants a title or a summary; that is no part of the conversation.
                    writer.write(_stream(WIRES[wire](0, None)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if b"transfer-encoding: chunked" in head:
        whole = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            whole += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
        return whole
    length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
    return await reader.readexactly(int(length or 0))


def _stream(events: Iterable[Json]) -> bytes:
    lines: list[str] = []
    for event in events:
        if "type" in event:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {json.dumps(event)}\n\n")
    if "type" not in event:
        lines.append("data: [DONE]\n\n" if "choices" in event else "")
    return _whole("".join(lines).encode(), b"text/event-stream")


def _whole(body: bytes, kind: bytes = b"application/json") -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
    return head % (kind, len(body)) + body
