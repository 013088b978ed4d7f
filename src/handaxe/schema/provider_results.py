"""The text of one result for a model, and its pictures if a provider wants them apart."""

from typing import Any, cast

from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.result import ToolResult
from handaxe.text.framing import neutralize, neutralize_result
from handaxe.text.sanitize import escape_surrogates


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
    """The text of a result for the model: its text, more text, notes."""
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
