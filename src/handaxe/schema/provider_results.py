"""One result, as each model provider wants it back; only shapes are made, nothing is sent."""

from typing import Any, cast

from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.result import ToolResult
from handaxe.schema.providers import get_provider_entry, to_wire_name
from handaxe.text.framing import neutralize, neutralize_result
from handaxe.text.sanitize import escape_surrogates, scrub


def build_tool_result(result: ToolResult, provider: str) -> dict[str, Any]:
    """A call's result as the block or message that `provider` expects for it."""
    return get_provider_entry(provider, _TOOL_RESULTS)(result)


def image_message(result: ToolResult, provider: str) -> dict[str, Any] | None:
    """The message that carries a result's images where the result itself cannot."""
    images = _collect_images(result)
    if provider != "openai" or not images:
        return None
    urls = [{"url": f"data:{image.media_type};base64,{image.data}"} for image in images]
    return {"role": "user", "content": [{"type": "image_url", "image_url": url} for url in urls]}


QUOTING_TOOLS = frozenset({"Read", "Grep", "Edit", "MultiEdit", "NotebookEdit"})
"""Their results quote lines of files behind numbers or names, as an edit has to spell them."""


def collect_result_texts(result: ToolResult) -> list[str]:
    """What a model reads of a result: its text, more text, notes."""
    texts = [result.text, *(block.text for block in result.content if isinstance(block, TextBlock))]
    if not _is_quoting_lines(result):
        texts = [neutralize_result(text, is_preview=_is_preview(result)) for text in texts]
    texts += [neutralize(f"Note: {note}") for note in result.notes]
    return [escape_surrogates(text) for text in texts if text]


def _is_quoting_lines(result: ToolResult) -> bool:
    if result.tool not in QUOTING_TOOLS or not result.ok:
        return False
    # A list of names quotes no line.
    data: object = result.data
    mode = cast("dict[str, object]", data).get("mode") if isinstance(data, dict) else "content"
    return result.tool != "Grep" or mode == "content"


def _is_preview(result: ToolResult) -> bool:
    data: object = result.data
    is_kept = result.tool == "Bash" and isinstance(data, dict) and "persistedOutputPath" in data
    return is_kept or result.size_chars > len(result.text)


def _collect_images(result: ToolResult) -> list[ImageBlock]:
    return [block for block in result.content if isinstance(block, ImageBlock)]


def _build_anthropic_result(result: ToolResult) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": text} for text in collect_result_texts(result)
    ]
    # A failed result may hold nothing but text.
    for image in _collect_images(result) if result.ok else ():
        source = {"type": "base64", "media_type": image.media_type, "data": image.data}
        blocks.append({"type": "image", "source": source})
    block = {"type": "tool_result", "tool_use_id": result.id, "content": blocks}
    return block if result.ok else {**block, "is_error": True}


def _build_openai_result(result: ToolResult) -> dict[str, Any]:
    texts = collect_result_texts(result)
    count = len(_collect_images(result))
    if count:
        texts.append(f"({count} image{'s' if count > 1 else ''}: see the next message)")
    text = "\n\n".join(texts)
    # A tool message has no flag for failure.
    content = text if result.ok else f"Error: {text}"
    return {"role": "tool", "tool_call_id": result.id, "content": content}


def _build_gemini_result(result: ToolResult) -> dict[str, Any]:
    response = {"output" if result.ok else "error": "\n\n".join(collect_result_texts(result))}
    answer: dict[str, Any] = {"name": to_wire_name(result.tool, "gemini"), "response": response}
    if result.id:
        answer["id"] = result.id
    inline = [
        {"mimeType": image.media_type, "data": image.data} for image in _collect_images(result)
    ]
    if inline:
        answer["parts"] = [{"inlineData": data} for data in inline]
    return {"functionResponse": answer}


def _build_plain_result(result: ToolResult) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in collect_result_texts(result)]
    pictures = [
        {"data": image.data, "mimeType": image.media_type} for image in _collect_images(result)
    ]
    content += [{"type": "image", **picture} for picture in pictures]
    answer: dict[str, Any] = {"content": content, "isError": not result.ok}
    data = result.to_json()["data"] if result.data is not None else None
    if isinstance(data, dict):
        answer["structuredContent"] = scrub(data)
    return answer


_TOOL_RESULTS = {
    "anthropic": _build_anthropic_result,
    "openai": _build_openai_result,
    "gemini": _build_gemini_result,
    "json-schema": _build_plain_result,
}
