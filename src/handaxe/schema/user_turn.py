"""The user's turn after calls, as each model provider wants it: results, messages, pictures.

`Agent`, custom loops, adapters, the MCP server and stream-json all use this module. So a model
reads the same from each of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from handaxe.contract.content import ContentBlock, ImageBlock, TextBlock
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import ToolResultBlock, UserBlock, UserMessage
from handaxe.contract.result import ToolResult
from handaxe.schema import image_limits
from handaxe.schema.provider_results import collect_result_texts
from handaxe.schema.providers import get_provider_entry, to_wire_name
from handaxe.text.framing import Framed, frame_reminder
from handaxe.text.sanitize import escape_surrogates, scrub

Json = dict[str, Any]
Dropped = Mapping[int, str]
"""By `id()` of a picture that cannot be sent, the sentence in its place."""

NEVER_RAN = "The call was interrupted before it started: nothing was changed."
NO_OUTPUT = "(no output)"


def build_result_block(call_id: str, result: ToolResult | None) -> ToolResultBlock:
    """A result as the model gets it: text, notes and pictures; None never ran."""
    if result is None:
        return ToolResultBlock(call_id, (TextBlock(NEVER_RAN),), is_error=True)
    texts = tuple(TextBlock(text) for text in collect_result_texts(result) if text.strip())
    if not result.ok:
        # A failed result may hold nothing but text.
        return ToolResultBlock(call_id, texts or (TextBlock(NO_OUTPUT),), is_error=True)
    pictures = tuple(block for block in result.content if isinstance(block, ImageBlock))
    return ToolResultBlock(call_id, (*texts, *pictures) or (TextBlock(NO_OUTPUT),))


def collect_messages(results: Sequence[ToolResult]) -> list[Framed]:
    """The additions of skills and hooks to the conversation besides results, marked as such."""
    return [
        frame_reminder(escape_surrogates(text))
        for result in results
        for text in result.messages
        if text.strip()
    ]


def build_user_turn(
    results: Sequence[ToolResult], provider: str, notices: Sequence[str] = ()
) -> Any:  # noqa: ANN401 - a message, for OpenAI a list of messages
    """The whole turn in the shape of `provider`: results, what they bring along, notices."""
    check_user_turn(results, provider)
    build = get_provider_entry(provider, _TURNS)
    return build(results, [*collect_messages(results), *map(frame_reminder, notices)])


def check_user_turn(results: object, provider: str) -> None:
    """Refuse wrong arguments before one-time messages are taken for the turn.

    Raises:
        SetupError: the provider is unknown, or the results are something else.
    """
    get_provider_entry(provider, _TURNS)
    given = cast("Sequence[object]", results) if isinstance(results, Sequence) else (results,)
    if given is not results or not all(isinstance(one, ToolResult) for one in given):
        raise SetupError(
            "A turn is made of a list with the results of `call_many` or `run_many`, "
            f"not of {results!r:.100}."
        )


def build_tool_result(result: ToolResult, provider: str) -> Json:
    """One result as the block or message that `provider` expects, with its messages as text."""
    check_user_turn([result], provider)
    block = build_result_block(result.id, result)
    said = tuple(map(TextBlock, collect_messages((result,))))
    content: tuple[ContentBlock, ...] = (*block.content, *said)
    whole = ToolResultBlock(block.tool_use_id, content, block.is_error)
    return get_provider_entry(provider, _RESULTS)(whole, result)


def build_anthropic_content(message: UserMessage, dropped: Dropped) -> list[Json]:
    """The blocks of a user's message, results first as the Messages API wants it."""
    blocks = (_build_anthropic_block(block, dropped) for block in message.content)
    return sorted((block for block in blocks if block is not None), key=is_not_tool_result)


def is_not_tool_result(block: Json) -> bool:
    """Whether a block of the Messages API comes after the results of its turn."""
    return block["type"] != "tool_result"


def build_openai_messages(message: UserMessage, dropped: Dropped) -> Iterator[Json]:
    """The answers to calls, each a message of its own, then everything else as one."""
    rest: list[Json] = []
    for block in message.content:
        if isinstance(block, ToolResultBlock):
            yield _build_openai_result(block, dropped)
            # A tool message holds only text; its pictures follow with the user's words.
            rest += [
                _build_openai_image(part)
                for part in block.content
                if isinstance(part, ImageBlock) and id(part) not in dropped
            ]
        elif isinstance(block, ImageBlock):
            text = dropped.get(id(block))
            rest.append(_build_openai_image(block) if text is None else _build_text(text))
        elif block.text:
            rest.append(_build_text(block.text))
    if rest:
        only_text = all(part["type"] == "text" for part in rest)
        content = "\n\n".join(part["text"] for part in rest) if only_text else rest
        yield {"role": "user", "content": content}


def _build_text(text: str) -> Json:
    return {"type": "text", "text": text}


def _build_anthropic_block(block: UserBlock, dropped: Dropped) -> Json | None:
    if isinstance(block, ToolResultBlock):
        return _build_anthropic_result(block, dropped)
    if isinstance(block, ImageBlock):
        return _build_anthropic_image(block, dropped)
    # Blank text is refused.
    return _build_text(block.text) if block.text.strip() else None


def _build_anthropic_result(block: ToolResultBlock, dropped: Dropped) -> Json:
    content: list[Json] = []
    for part in block.content:
        # A failed result may hold nothing but text.
        if isinstance(part, ImageBlock):
            if not block.is_error:
                content.append(_build_anthropic_image(part, dropped))
        elif part.text.strip():
            content.append(_build_text(part.text))
    result: Json = {"type": "tool_result", "tool_use_id": block.tool_use_id}
    if block.is_error and not content:
        content = [_build_text("The call failed.")]
    if content:
        result["content"] = content
    return {**result, "is_error": True} if block.is_error else result


def _build_anthropic_image(block: ImageBlock, dropped: Dropped) -> Json:
    if id(block) in dropped:
        return _build_text(dropped[id(block)])
    source = {"type": "base64", "media_type": block.media_type, "data": block.data}
    return {"type": "image", "source": source}


def _build_openai_result(block: ToolResultBlock, dropped: Dropped) -> Json:
    texts = [
        part.text if isinstance(part, TextBlock) else dropped.get(id(part), "")
        for part in block.content
    ]
    texts = [text for text in texts if text]
    count = sum(isinstance(part, ImageBlock) and id(part) not in dropped for part in block.content)
    if count:
        texts.append(f"({count} image{'s' if count > 1 else ''}: see the next message)")
    text = "\n\n".join(texts)
    # A tool message has no flag for failure.
    content = f"Error: {text}" if block.is_error else text
    return {"role": "tool", "tool_call_id": block.tool_use_id, "content": content}


def _build_openai_image(block: ImageBlock) -> Json:
    url = f"data:{block.media_type};base64,{block.data}"
    return {"type": "image_url", "image_url": {"url": url}}


def _build_gemini_result(block: ToolResultBlock, result: ToolResult) -> Json:
    texts = [part.text for part in block.content if isinstance(part, TextBlock)]
    response = {"error" if block.is_error else "output": "\n\n".join(texts)}
    answer: Json = {"name": to_wire_name(result.tool, "gemini"), "response": response}
    if block.tool_use_id:
        answer["id"] = block.tool_use_id
    pictures = [part for part in block.content if isinstance(part, ImageBlock)]
    if pictures:
        data = [{"mimeType": picture.media_type, "data": picture.data} for picture in pictures]
        answer["parts"] = [{"inlineData": each} for each in data]
    return {"functionResponse": answer}


def _build_plain_result(block: ToolResultBlock, result: ToolResult) -> Json:
    content: list[Json] = [
        _build_text(part.text)
        if isinstance(part, TextBlock)
        else {"type": "image", "data": part.data, "mimeType": part.media_type}
        for part in block.content
    ]
    answer: Json = {"content": content, "isError": block.is_error}
    data = result.to_json()["data"] if result.data is not None else None
    if isinstance(data, dict):
        answer["structuredContent"] = scrub(data)
    return answer


def _build_anthropic_message(block: ToolResultBlock, _: ToolResult) -> Json:
    return _build_anthropic_result(block, {})


def _build_openai_message(block: ToolResultBlock, _: ToolResult) -> Json:
    return _build_openai_result(block, {})


_RESULTS = {
    "anthropic": _build_anthropic_message,
    "openai": _build_openai_message,
    "gemini": _build_gemini_result,
    "json-schema": _build_plain_result,
}


def _build_message(results: Sequence[ToolResult], said: Sequence[str]) -> UserMessage:
    blocks = (build_result_block(result.id, result) for result in results)
    return UserMessage((*blocks, *map(TextBlock, said)), synthetic=True)


def _build_anthropic_turn(results: Sequence[ToolResult], said: Sequence[str]) -> Json:
    message = _build_message(results, said)
    dropped = image_limits.find_unsendable_images((message,), image_limits.ANTHROPIC)
    return {"role": "user", "content": build_anthropic_content(message, dropped)}


def _build_openai_turn(results: Sequence[ToolResult], said: Sequence[str]) -> list[Json]:
    message = _build_message(results, said)
    dropped = image_limits.find_unsendable_images((message,), image_limits.OPENAI)
    return [*build_openai_messages(message, dropped)]


def _build_gemini_turn(results: Sequence[ToolResult], said: Sequence[str]) -> Json:
    answers = [
        _build_gemini_result(build_result_block(result.id, result), result) for result in results
    ]
    return {"role": "user", "parts": [*answers, *({"text": text} for text in said)]}


def _build_plain_turn(results: Sequence[ToolResult], said: Sequence[str]) -> Json:
    answers = [
        {
            "type": "tool_result",
            "id": result.id,
            **_build_plain_result(build_result_block(result.id, result), result),
        }
        for result in results
    ]
    return {"role": "user", "content": [*answers, *map(_build_text, said)]}


_TURNS = {
    "anthropic": _build_anthropic_turn,
    "openai": _build_openai_turn,
    "gemini": _build_gemini_turn,
    "json-schema": _build_plain_turn,
}
