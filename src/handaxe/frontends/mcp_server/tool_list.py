"""A session's tools as clients see them: names, schemas, and hints that follow from effects."""

import math
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from handaxe.app.tool_listing import get_tool_schema
from handaxe.contract.tool import Tool, get_display_name
from handaxe.frontends.mcp_server.protocol import RESULT_SIZE_KEY

SERVED = (
    "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "TaskOutput", "TaskStop", "Undo",
    "WebFetch", "Write",
)  # fmt: skip
"""What a server offers where no tools are named; agents bring their own plans, memory, helpers."""
MAX_LIST_CHARS = 16_000
"""What the list of these tools may cost a client's model."""

_SELF_BOUNDED_CHARS = 500_000
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def list_default_tools(known: Collection[str]) -> list[str]:
    """The names of the built-in tools that a server offers by itself."""
    return [name for name in SERVED if name in known]


def build_definitions(
    tools: Iterable[Tool[Any]], describe: Callable[[Tool[Any]], str] | None = None
) -> list[dict[str, Any]]:
    """What `tools/list` says; `describe` gives the prompts of a session."""
    return [_build_definition(tool, describe and describe(tool)) for tool in tools]


def _build_definition(tool: Tool[Any], prompt: str | None) -> dict[str, Any]:
    definition = get_tool_schema(tool, "json-schema", prompt)
    definition["inputSchema"] = {"type": "object", **definition["inputSchema"]}
    output = get_output_schema(tool)
    if output is not None:
        definition["outputSchema"] = output
    definition["annotations"] = build_annotations(tool)
    if math.isinf(tool.max_result_chars):
        # The tool bounds itself; a client that cuts its results shorter cuts what was asked for.
        definition["_meta"] = {RESULT_SIZE_KEY: _SELF_BOUNDED_CHARS}
    return definition


def build_annotations(tool: Tool[Any]) -> dict[str, Any]:
    """Hints for whoever decides about a call, true of every input the tool can get.

    In the protocol's words, destructive is whatever replaces what was there, also if it can be
    put back.
    """
    effects = tool.effects
    title = get_display_name(tool) or _WORDS.sub(" ", tool.name).replace("_", " ")
    hints: dict[str, Any] = {"title": title}
    hints["readOnlyHint"] = effects.is_read_only
    if effects.is_read_only:
        hints["idempotentHint"] = True
    else:
        hints["destructiveHint"] = not effects.is_internal
        hints["idempotentHint"] = False
    is_outside = effects.is_destructive or bool(effects.external_names)
    hints["openWorldHint"] = is_outside or _has_web_access(tool)
    return hints


def _has_web_access(tool: Tool[Any]) -> bool:
    return any(port.__module__.rpartition(".")[2] in {"web", "http"} for port in tool.reach)


def get_output_schema(tool: Tool[Any]) -> dict[str, Any] | None:
    """The schema of a result's data, where the tool promises an object."""
    from handaxe.schema.tool_schema import build_output_schema

    schema = build_output_schema(tool.output_type)
    return schema if schema is not None and schema.get("type") == "object" else None
