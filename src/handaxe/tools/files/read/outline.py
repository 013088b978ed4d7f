"""A table of contents for a file that is shown only in part."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.ports.files import Files, FileWindow
from handaxe.tools.files.read.read_data import OutlineFacts

P = TypeVar("P")

MOST = 30
"""Maximum number of entries."""
_TITLE_CHARS = 80


class OutlineEntry(msgspec.Struct, frozen=True):
    """A heading or a definition."""

    line: int
    text: str


class Outline(msgspec.Struct, frozen=True):
    """Some headings and definitions of a text, spread over all of it."""

    marks: Sequence[OutlineEntry]
    total: int


_WORDS = (
    r"(?:(?:export|default|declare|abstract|async|public|private|protected|internal|static"
    r"|final|sealed|partial|open|override|virtual|data|pub(?:\([\w ]+\))?|unsafe|extern) +)*"
)
_MARKUP = r"(?ms)^(?P<fence>```|~~~).*?^(?P=fence)|^(?P<depth>#{1,6})[ \t]+\S[^\n]*"
_CODE = {
    "py pyi": r"(?:async +def|def|class) +\w",
    "js jsx mjs cjs ts tsx mts cts": _WORDS
    + r"(?:function\b|class +\w|interface +\w|enum +\w|namespace +\w|type +\w+.*=|"
    r"(?:const|let|var) +\w+ *(?::[^=]{0,200})?= *(?:async *)?"
    r"(?:function\b|\([^)]{0,400}\)[^=]{0,200}=>|\w+ *=>))",
    "go": r"(?:func|type) ",
    "rs": _WORDS + r"(?:fn|struct|enum|trait|impl|mod|macro_rules!)[ <]",
    "java kt kts cs scala swift": _WORDS
    + r"(?:class|interface|enum|record|struct|object|trait|protocol|extension|namespace|func|fun)"
    r" +\w",
    "c h cc cpp cxx hpp hh": r"(?:(?:class|struct|enum|union|namespace|template)\b[^;\n]*$"
    r"|[A-Za-z_][\w:*&<>, ]*\([^;\n]*$|#define +\w+\()",
    "rb": r"(?:class|module|def) +\w",
    "php": _WORDS + r"(?:function|class|interface|trait|enum) +\w",
    "sh bash zsh": r"(?:function +[\w-]+|[\w-]+ *\(\))",
    "lua": r"(?:local +)?function\b",
    "ex exs": r"(?:defmodule|defp?|defmacro) +\w",
    "sql": r"(?i:create +(?:or +replace +)?(?:\w+ +)?(?:table|view|function|procedure|trigger) )",
    "toml ini cfg conf": r"\[{1,2}[^\]\n]+\]",
    "tex": r"\\(?:part|chapter|(?:sub)*section)\b",
    "proto": r"(?:message|service|enum|rpc) +\w",
}
_MARKUP_NAMES = frozenset({"md", "markdown", "mdx"})


def build_outline(text: str, name: str) -> Outline | None:
    """The headings and definitions of a text, shallow ones first; None for unsupported kinds."""
    pattern = _compile_pattern(name.lower().rpartition(".")[2])
    if pattern is None:
        return None
    found = [
        (match.start(), len(depth.expandtabs(4)))
        for match in pattern.finditer(text)
        if (depth := match["depth"]) is not None
    ]
    chosen = found
    for depth in sorted({depth for _, depth in found}, reverse=True):
        shallower = [place for place in chosen if place[1] < depth]
        if len(chosen) <= MOST or len(shallower) < MOST // 3:
            break
        chosen = shallower
    return Outline(
        list(_build_entries(text, [start for start, _ in sample_evenly(chosen)])), len(found)
    )


def sample_evenly(places: Sequence[P]) -> Sequence[P]:
    """At most the maximum number of entries, at even distances."""
    if len(places) <= MOST:
        return places
    return [places[number * len(places) // MOST] for number in range(MOST)]


def _build_entries(text: str, starts: Sequence[int]) -> Iterator[OutlineEntry]:
    line, at = 1, 0
    for start in starts:
        line += text.count("\n", at, start)
        at = start
        title = text[start : start + 4 * _TITLE_CHARS].partition("\n")[0].strip()
        title = title.removesuffix("{").rstrip()
        yield OutlineEntry(line, f"{title[:_TITLE_CHARS]}…" if len(title) > _TITLE_CHARS else title)


@lru_cache(maxsize=32)
def _compile_pattern(ending: str) -> re.Pattern[str] | None:
    if ending in _MARKUP_NAMES:
        return re.compile(_MARKUP)
    for endings, start in _CODE.items():
        if ending in endings.split():
            return re.compile(rf"(?m)^(?P<depth>[ \t]*)(?:{start})")
    return None


MAX_BYTES = 1 << 20
"""Number of bytes that are searched for headings and definitions."""
_SMALL_BYTES = 128 * 1024


async def describe_outline(
    window: FileWindow, path: str, ctx: ToolContext
) -> tuple[str, OutlineFacts]:
    """The outline of a partly shown file as text and as data; both empty for unknown kinds."""
    data = window.content
    if data is None:
        data = await ctx[Files].head(path, MAX_BYTES)
    text = data[:MAX_BYTES].decode(window.encoding, "replace").removeprefix("\ufeff")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    if len(text) <= _SMALL_BYTES:
        outline = build_outline(text, path)
    else:
        outline = await asyncio.to_thread(build_outline, text, path)
    if outline is None or not outline.marks:
        return "", {}
    is_partial = window.version.size_bytes > MAX_BYTES
    notice = f"\n[{format_outline(outline, 'line', is_partial=is_partial)}]"
    return notice, {"outline": msgspec.to_builtins(outline)}


def format_outline(outline: Outline, unit: str, *, is_partial: bool = False) -> str:
    """An outline as text."""
    some = (
        f"{len(outline.marks)} of {outline.total:,}, " if len(outline.marks) < outline.total else ""
    )
    where = " of the first 1 MiB" if is_partial else ""
    marks = " | ".join(f"{mark.line} {mark.text}" for mark in outline.marks)
    return f"Outline{where} ({some}by {unit}): {marks}"
