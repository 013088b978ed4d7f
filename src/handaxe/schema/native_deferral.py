"""Deferred tools for a provider that searches for tools itself: Anthropic's Messages API."""

import re
from collections.abc import Collection, Iterable
from typing import Any, cast

Json = dict[str, Any]

SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
"""It takes words, as ToolSearch does; the other one takes regular expressions."""
CALL = "server_tool_use"
RESULT = "tool_search_tool_result"

_CANNOT_SEARCH = re.compile(r"claude-(\d|instant|(opus|sonnet|haiku)-4(-[01]\b|-2025|$))")
"""Models before Claude 4.5."""


def can_search(model: str) -> bool:
    """Whether the provider of this model searches for tools."""
    return "claude-" in model and _CANNOT_SEARCH.search(model) is None


def defer_tools(sent: Iterable[Json], deferred: Iterable[Json]) -> list[Json]:
    """The search, then the tools that are sent, then those it may find, in a steady order.

    Without any that may be found there is no search: it would have nothing to look at.
    """
    waiting = [{**_drop_examples(tool), "defer_loading": True} for tool in deferred]
    waiting.sort(key=lambda tool: tool["name"])
    return [SEARCH, *map(_drop_examples, sent), *waiting] if waiting else [*sent]


def _drop_examples(tool: Json) -> Json:
    """The API takes no examples of input beside its search."""
    return {key: value for key, value in tool.items() if key != "input_examples"}


def list_found_tools(block: Json) -> list[str]:
    """The names that a result of the search refers to."""
    return [reference["tool_name"] for reference in _list_references(block)]


def select_sendable_blocks(blocks: Iterable[Json], known: Collection[str]) -> list[Json]:
    """The part of an answer that the API accepts back: searches with results for known tools.

    A search that was cut off has no result, and a tool may be gone since it was found.
    """
    content = [*blocks]
    called = [block.get("id") for block in content if block.get("type") == CALL]
    answered = [block.get("tool_use_id") for block in content if block.get("type") == RESULT]
    kept: list[Json] = []
    for block in content:
        kind = block.get("type")
        if kind == CALL and block.get("id") in answered:
            kept.append(block)
        elif kind == RESULT and block.get("tool_use_id") in called:
            kept.append(_drop_unknown_tools(block, known))
        elif kind not in (CALL, RESULT):
            kept.append(block)
    return kept


def _drop_unknown_tools(block: Json, known: Collection[str]) -> Json:
    references = _list_references(block)
    kept = [reference for reference in references if reference["tool_name"] in known]
    if len(kept) == len(references):
        return block
    return {**block, "content": {**block["content"], "tool_references": kept}}


def _list_references(block: Json) -> list[Json]:
    content = block.get("content")
    listed = cast("Json", content).get("tool_references") if isinstance(content, dict) else None
    references = cast("list[Any]", listed) if isinstance(listed, list) else []
    return [one for one in references if isinstance(one, dict) and _is_name(cast("Json", one))]


def _is_name(reference: Json) -> bool:
    return isinstance(reference.get("tool_name"), str)
