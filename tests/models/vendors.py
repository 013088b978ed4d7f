"""Both wire formats side by side: a model, and prepared answers for it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.models.serving import Reply, error, named, plain

from handaxe.contract.ports.model import Model
from handaxe.models.anthropic import AnthropicModel
from handaxe.models.http.asyncio_transport import DirectTransport
from handaxe.models.openai import OpenAIModel


class Vendor(NamedTuple):
    """One wire format."""

    model: Callable[..., Model]
    encode: Callable[..., bytes]
    text: list[dict[str, Any]]
    """An answer of two words, `Hel` and `lo`, without a count of tokens."""
    calls: Callable[..., list[dict[str, Any]]]
    """An answer with these calls: id, name, input as text."""
    too_long: Reply


def _anthropic_calls(
    *calls: tuple[Any, Any, str], reason: str = "tool_use"
) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"content": []}}]
    for index, (call_id, name, text) in enumerate(calls):
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": text}
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}})
    return [*events, {"type": "message_stop"}]


def _openai_calls(*calls: tuple[Any, Any, str], reason: str = "tool_calls") -> list[dict[str, Any]]:
    parts = [
        {"index": index, "id": call_id, "function": {"name": name, "arguments": text}}
        for index, (call_id, name, text) in enumerate(calls)
    ]
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]} for part in parts]
    return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}]


def _wire(**limits: float) -> DirectTransport:
    return DirectTransport({}, **{"idle_timeout_s": 5, **limits})


VENDORS = {
    "anthropic": Vendor(
        lambda url, **limits: AnthropicModel("m", _wire(**limits), base_url=url, max_retries=2),
        named,
        [
            {"type": "message_start", "message": {"content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ],
        _anthropic_calls,
        error(400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 5"}}),
    ),
    "openai": Vendor(
        lambda url, **limits: OpenAIModel("m", _wire(**limits), base_url=url, max_retries=2),
        plain,
        [
            {"choices": [{"index": 0, "delta": {"content": "Hel"}}]},
            {"choices": [{"index": 0, "delta": {"content": "lo"}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ],
        _openai_calls,
        error(400, {"error": {"message": "too much", "code": "context_length_exceeded"}}),
    ),
}  # fmt: skip
