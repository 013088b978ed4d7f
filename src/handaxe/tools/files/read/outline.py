"""A table of contents for a file of which only the first window is shown."""

import asyncio
from typing import Any

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.ports.files import Files, FileWindow
from handaxe.tools.files.read import outline__outline as text_outline
from handaxe.tools.files.read.outline__outline import Outline

MAX_BYTES = 1 << 20
"""How far into a file its headings and definitions are looked for."""
_SMALL_BYTES = 128 * 1024


async def describe_outline(
    window: FileWindow, path: str, ctx: ToolContext
) -> tuple[str, dict[str, Any]]:
    """What to tell of a cut file, in words and as data; both empty where nothing is known."""
    data = window.content
    if data is None:
        data = await ctx[Files].head(path, MAX_BYTES)
    text = data[:MAX_BYTES].decode(window.encoding, "replace").removeprefix("\ufeff")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    if len(text) <= _SMALL_BYTES:
        outline = text_outline.build_outline(text, path)
    else:
        outline = await asyncio.to_thread(text_outline.build_outline, text, path)
    if outline is None or not outline.marks:
        return "", {}
    is_partial = window.version.size_bytes > MAX_BYTES
    notice = f"\n[{format_outline(outline, 'line', is_partial=is_partial)}]"
    return notice, {"outline": msgspec.to_builtins(outline)}


def format_outline(outline: Outline, unit: str, *, is_partial: bool = False) -> str:
    """An outline in words."""
    some = (
        f"{len(outline.marks)} of {outline.total:,}, " if len(outline.marks) < outline.total else ""
    )
    where = " of the first 1 MiB" if is_partial else ""
    marks = " | ".join(f"{mark.line} {mark.text}" for mark in outline.marks)
    return f"Outline{where} ({some}by {unit}): {marks}"
