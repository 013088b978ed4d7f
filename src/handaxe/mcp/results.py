"""Convert a server's answer: text, images, data, and files for the rest."""

import base64
import binascii
import mimetypes
import re
from collections.abc import Callable
from typing import Any, cast

import mcp_types as sdk
import msgspec

from handaxe.contract.content import ImageBlock
from handaxe.contract.faults.mcp import RemoteToolFailed
from handaxe.contract.ports.mcp_servers import McpContent
from handaxe.contract.result import ToolResult
from handaxe.text.sanitize import escape_surrogates, scrub

Keep = Callable[[bytes, str], str]
"""Saves bytes under a name with a suffix; returns the path."""

SHOWN_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_SUFFIXES = {
    "application/octet-stream": ".bin",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "image/svg+xml": ".svg",
    "image/webp": ".webp",
    "video/mp4": ".mp4",
}
MAX_PICTURE_CHARS = 5_000_000
"""A longer base64 image is saved to a file instead of being shown."""


def convert_tool_result(answer: sdk.CallToolResult, server: str, keep: Keep) -> ToolResult:
    """The result of a remote call."""
    texts: list[str] = []
    pictures: list[ImageBlock] = []
    for block in answer.content:
        if isinstance(block, sdk.TextContent):
            texts.append(block.text)
        elif isinstance(block, sdk.ImageContent):
            _take_picture(block, texts, pictures, keep)
        elif isinstance(block, sdk.AudioContent):
            texts.append(_save_content(block.data, block.mime_type, "Audio", keep))
        elif isinstance(block, sdk.EmbeddedResource):
            texts.append(_format_resource(block.resource, server, keep))
        else:
            about = f": {block.description}" if block.description else ""
            texts.append(f"[Resource {block.name} of {server} at {block.uri}{about}]")
    text = "\n".join(texts)
    data: Any = scrub(answer.structured_content)
    if data is not None and not text.strip():
        text = msgspec.json.encode(data).decode()
    if answer.is_error:
        return ToolResult(
            text or "The tool failed and gave no reason.",
            data=_to_object(data),
            content=tuple(pictures),
            ok=False,
            code=RemoteToolFailed.code,
        )
    text = text or ("" if pictures else "(the tool returned nothing)")
    return ToolResult(text, data=_to_object(data), content=tuple(pictures))


def convert_resource(answer: sdk.ReadResourceResult, keep: Keep) -> tuple[McpContent, ...]:
    """The parts of a resource; bytes are saved to files."""
    parts: list[McpContent] = []
    for part in answer.contents:
        uri, kind = str(part.uri), part.mime_type
        if isinstance(part, sdk.TextResourceContents):
            parts.append(McpContent(uri=uri, mime_type=kind, text=escape_surrogates(part.text)))
            continue
        content = _decode_base64(part.blob)
        saved = keep(content, _choose_suffix(kind, uri)) if content is not None else None
        text = None if saved else "(the server sent bytes that are not base64)"
        parts.append(McpContent(uri=uri, mime_type=kind, text=text, blob_saved_to=saved))
    return tuple(parts)


def format_prompt(answer: sdk.GetPromptResult, server: str, keep: Keep) -> str:
    """A filled-in prompt as one text."""
    texts: list[str] = []
    for message in answer.messages:
        block = message.content
        if isinstance(block, sdk.TextContent):
            text = block.text
        else:
            text = convert_tool_result(sdk.CallToolResult(content=[block]), server, keep).text
        texts.append(text if message.role == "user" else f"({message.role}) {text}")
    return "\n\n".join(texts)


def _take_picture(
    block: sdk.ImageContent, texts: list[str], pictures: list[ImageBlock], keep: Keep
) -> None:
    is_shown = block.mime_type in SHOWN_PICTURES and len(block.data) <= MAX_PICTURE_CHARS
    if is_shown and _decode_base64(block.data) is not None:
        pictures.append(ImageBlock(block.mime_type, block.data))
    else:
        texts.append(_save_content(block.data, block.mime_type, "Picture", keep))


def _format_resource(
    resource: sdk.TextResourceContents | sdk.BlobResourceContents, server: str, keep: Keep
) -> str:
    if isinstance(resource, sdk.TextResourceContents):
        return f"[Resource of {server} at {resource.uri}]\n{resource.text}"
    return _save_content(resource.blob, resource.mime_type, f"Resource {resource.uri}", keep)


def _save_content(data: str, kind: str | None, what: str, keep: Keep) -> str:
    content = _decode_base64(data)
    if content is None:
        return f"[{what}: the server sent bytes that are not base64]"
    path = keep(content, _choose_suffix(kind, ""))
    return f"[{what} ({kind or 'unknown type'}, {len(content):,} bytes) saved to {path}]"


def _decode_base64(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _choose_suffix(kind: str | None, uri: str) -> str:
    kind = (kind or "").partition(";")[0].strip().lower()
    # Systems differ in what they know, so the common ones are listed here.
    found = _SUFFIXES.get(kind) or mimetypes.guess_extension(kind)
    if found is None and (written := re.search(r"(\.[A-Za-z0-9]{1,8})$", uri.partition("?")[0])):
        found = written[1]
    return found or ".bin"


def _to_object(data: object) -> dict[str, Any] | None:
    if data is None:
        return None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {"value": data}
