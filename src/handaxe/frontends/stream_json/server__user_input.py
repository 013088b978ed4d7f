"""What a client says to the agent, as a prompt."""

from collections.abc import Sequence
from typing import Any, cast

from handaxe.agent.input_messages import Prompt
from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.frontends.stream_json.wire_types import Json

Blocks = list[TextBlock | ImageBlock]


class InvalidUserMessage(Exception):
    """A message that says nothing an agent could work on."""


def parse_prompt(message: Json) -> str | Blocks:
    """The prompt in a user message: text as it is, or blocks of text and pictures."""
    inner = message.get("message")
    content = cast("Json", inner).get("content") if isinstance(inner, dict) else None
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise InvalidUserMessage(
            "A user message needs `message.content`: a text, or a list of blocks."
        )
    blocks = [_parse_block(item) for item in cast("list[object]", content)]
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    return blocks


def join_prompts(prompts: Sequence[str | Blocks]) -> Prompt:
    """Several prompts as one."""
    if len(prompts) == 1:
        return prompts[0]
    blocks: Blocks = []
    for prompt in prompts:
        blocks += [TextBlock(prompt)] if isinstance(prompt, str) else prompt
    return blocks


def _parse_block(item: object) -> TextBlock | ImageBlock:
    block = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return TextBlock(block["text"])
    if kind == "image":
        source = cast("Json", block.get("source") or {})
        if source.get("type") == "base64":
            return ImageBlock(str(source.get("media_type")), str(source.get("data")))
        raise InvalidUserMessage("A picture has to come as base64 data.")
    if kind == "document":
        source = cast("Json", block.get("source") or {})
        if source.get("type") == "text":
            return TextBlock(str(source.get("data")))
    raise InvalidUserMessage(f"A block of type {kind!r} cannot be said to the agent.")
