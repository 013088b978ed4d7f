"""A request for a chat completion."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from handaxe.contract.content import TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    Message,
    ToolUseBlock,
    UserMessage,
)
from handaxe.contract.ports.model import ModelRequest, ToolSpec
from handaxe.schema import image_limits
from handaxe.schema.image_limits import cache_by_identity
from handaxe.schema.providers import build_tool_schema
from handaxe.schema.user_turn import build_openai_messages
from handaxe.text.sanitize import scrub

_TOKEN_FIELDS = ("max_completion_tokens", "max_tokens")


_OPTIONAL_FIELDS = {
    "stream_options": ("stream_options",),
    "strict": ("strict",),
    "reasoning_effort": ("reasoning_effort", "reasoning"),
    "response_format": ("response_format", "json_schema"),
}
"""Fields that a request can leave out, and the words by which a server rejects them."""


class ServerQuirks:
    """The fields that a server accepts; one that it rejects is left out from then on."""

    def __init__(self, *, is_openai: bool = True) -> None:
        # OpenAI's newer models accept only the first name, older servers only the second.
        self.token_field, self._other_field = _TOKEN_FIELDS[:: 1 if is_openai else -1]
        self._rejected: set[str] = set()

    def accepts(self, field: str) -> bool:
        """Whether to send an optional field."""
        return field not in self._rejected

    def learn(self, refusal: str, body: bytes) -> bool:
        """Whether the server rejected a field that the next request can leave out."""
        if self._other_field and _is_about(refusal, self.token_field):
            self.token_field, self._other_field = self._other_field, ""
            return True
        for field, words in _OPTIONAL_FIELDS.items():
            is_sent = self.accepts(field) and f'"{field}"'.encode() in body
            if is_sent and any(_is_about(refusal, word) for word in words):
                self._rejected.add(field)
                return True
        return False


def _is_about(refusal: str, field: str) -> bool:
    return re.search(rf"\b{field}\b", refusal) is not None


Json = dict[str, Any]

_EFFORTS = {"max": "xhigh"}
"""Efforts that this vendor names differently."""


def build_request(name: str, request: ModelRequest, quirks: ServerQuirks) -> Json:
    """The body of a streaming request."""
    system = "\n\n".join(part for part in request.system if part.strip())
    messages = [{"role": "system", "content": system}] if system else []
    body: Json = {
        "model": name,
        "messages": [*messages, *_build_messages(request.messages)],
        quirks.token_field: request.max_tokens,
        "stream": True,
    }
    if quirks.accepts("stream_options"):
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        tool = _build_tool if quirks.accepts("strict") else _build_loose_tool
        body["tools"] = [tool(spec) for spec in request.tools]
        if request.tool_choice != "auto":
            body["tool_choice"] = _build_tool_choice(request.tool_choice)
    if request.effort and quirks.accepts("reasoning_effort"):
        body["reasoning_effort"] = _EFFORTS.get(request.effort, request.effort)
    if request.output_schema is not None and quirks.accepts("response_format"):
        body["response_format"] = _build_response_format(request.output_schema)
    return body


@cache_by_identity
def _build_tool(spec: ToolSpec) -> Json:
    return _build_tool_schema(spec, strict=spec.strict)


@cache_by_identity
def _build_loose_tool(spec: ToolSpec) -> Json:
    return _build_tool_schema(spec, strict=False)


def _build_tool_schema(spec: ToolSpec, *, strict: bool) -> Json:
    tool = build_tool_schema(
        spec.name,
        spec.description,
        spec.input_schema,
        "openai",
        strict=strict,
        examples=spec.examples,
    )
    # `false` is the default, and some servers reject the field.
    if not tool["function"]["strict"]:
        del tool["function"]["strict"]
    return tool


def _build_tool_choice(choice: str) -> Any:  # noqa: ANN401 - a word or an object
    if choice in ("auto", "none"):
        return choice
    if choice == "any":
        return "required"
    return {"type": "function", "function": {"name": choice}}


def _build_response_format(schema: Json) -> Json:
    function = build_tool_schema("answer", "", schema, "openai", strict=True)["function"]
    # A strict answer has every field, so the schema must require every field itself.
    is_strict = bool(function["strict"]) and function["parameters"] == schema
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": is_strict},
    }


def _build_messages(messages: Sequence[Message]) -> Iterator[Json]:
    dropped = image_limits.find_unsendable_images(messages, image_limits.OPENAI)
    for message in messages:
        # Which images fit depends on the others; all other messages are built once.
        parts = _build_plain_parts(message)
        yield from _build_parts(message, dropped) if parts is None else parts


@cache_by_identity
def _build_plain_parts(message: Message) -> list[Json] | None:
    return None if image_limits.collect_images(message) else _build_parts(message, {})


def _build_parts(message: Message, dropped: dict[int, str]) -> list[Json]:
    if isinstance(message, UserMessage):
        return [*build_openai_messages(message, dropped)]
    made = _build_assistant_message(message)
    return [] if made is None else [made]


def _build_assistant_message(message: AssistantMessage) -> Json | None:
    text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
    calls = [_build_call(block) for block in message.content if isinstance(block, ToolUseBlock)]
    if not text and not calls:
        return None
    made: Json = {"role": "assistant", "content": text or None}
    return {**made, "tool_calls": calls} if calls else made


def _build_call(block: ToolUseBlock) -> Json:
    # Chat templates of some servers decode the arguments, so broken ones are not sent back.
    arguments = "{}" if block.broken is not None else _encode_json(block.input)
    function = {"name": block.name, "arguments": arguments}
    return {"id": block.id, "type": "function", "function": function}


def _encode_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(scrub(value)).decode()
