"""Tools and results as clients see them: names, schemas, hints from effects, data."""

import math
import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from handaxe.app.session import Session, get_parts
from handaxe.app.tool_listing import get_data_schema, get_tool_schema
from handaxe.catalog.catalog import Catalog
from handaxe.contract.content import ImageBlock
from handaxe.contract.faults import UnknownTool
from handaxe.contract.result import ToolResult, to_json_data
from handaxe.contract.tool import Tool, get_display_name, is_overridden
from handaxe.frontends.mcp_server.protocol import (
    CODE_KEY,
    INVALID_PARAMS,
    RESULT_SIZE_KEY,
    RpcError,
)
from handaxe.session.port_registry import get_full_name

SERVED = (
    "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "TaskOutput", "TaskStop", "Undo",
    "WebFetch", "Write",
)  # fmt: skip
"""The default tools of a server; agents have their own plans, memory and subagents."""
MAX_LIST_CHARS = 16_000
"""The token limit of the list of these tools."""

_SELF_BOUNDED_CHARS = 500_000
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def list_default_tools(known: Collection[str]) -> list[str]:
    """The names of the built-in tools that a server offers by default."""
    return [name for name in SERVED if name in known]


def build_definitions(
    tools: Iterable[Tool[Any]],
    describe: Callable[[Tool[Any]], str] | None = None,
    output_schemas: bool = False,  # noqa: FBT001, FBT002 - an option of the server, as it stands
) -> list[dict[str, Any]]:
    """The result of `tools/list`.

    `describe` gives the prompts of a session; with `output_schemas` those of built-in tools too.
    """
    return [
        _build_definition(tool, describe and describe(tool), output_schemas=output_schemas)
        for tool in tools
    ]


def _build_definition(
    tool: Tool[Any], prompt: str | None, *, output_schemas: bool
) -> dict[str, Any]:
    definition = get_tool_schema(tool, "json-schema", prompt)
    definition["inputSchema"] = {"type": "object", **definition["inputSchema"]}
    output = get_output_schema(tool, of_builtin=output_schemas)
    if output is not None:
        definition["outputSchema"] = output
    definition["annotations"] = build_annotations(tool)
    if math.isinf(tool.max_result_chars):
        # The tool limits its results; a client that truncates them further would lose content.
        definition["_meta"] = {RESULT_SIZE_KEY: _SELF_BOUNDED_CHARS}
    return definition


class PreparedDefinition(msgspec.Struct, frozen=True):
    """The definition of a built-in tool, made ahead so that a list loads no tool."""

    ports: tuple[str, ...]
    """The full names of the ports that it uses."""
    definition: dict[str, Any]


@cache
def read_prepared_definitions() -> dict[str, PreparedDefinition]:
    """The definitions that `docs/generate.py` wrote, by name; none where the file is missing."""
    path = Path(__file__).with_name("tool_definitions.json")
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, PreparedDefinition])
    except (OSError, msgspec.DecodeError):
        return {}


def prepare_definitions(tools: Iterable[Tool[Any]]) -> dict[str, PreparedDefinition]:
    """The definitions of tools that are the same in every session."""
    return {
        tool.name: PreparedDefinition(tuple(map(get_full_name, tool.uses)), definition)
        for tool in tools
        if not tool.has_session_prompt and not is_overridden(type(tool), "enabled")
        for definition in build_definitions([tool])
    }


def list_names(catalog: Catalog) -> tuple[str, ...]:
    """The names of the tools on offer; a prepared tool is not loaded to know it."""
    prepared = read_prepared_definitions()
    ports = {name: one.ports for name, one in prepared.items() if name not in catalog.stand_ins}
    return tuple(catalog.list_offered_names(ports))


def list_definitions(
    catalog: Catalog,
    names: Iterable[str],
    output_schemas: bool = False,  # noqa: FBT001, FBT002 - an option of the server, as it stands
) -> list[dict[str, Any]]:
    """The `tools/list` entries of these tools, cached if every session has the same."""
    own = catalog.stand_ins if not output_schemas else catalog.names()
    prepared = read_prepared_definitions()
    return [
        prepared[name].definition
        if name in prepared and name not in own
        else build_definitions([catalog.find(name)[0]], catalog.describe, output_schemas)[0]
        for name in names
    ]


def build_annotations(tool: Tool[Any]) -> dict[str, Any]:
    """Hints about a tool, true for every input.

    In the protocol, destructive means that a call may replace content, even if it can be undone.
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


def get_output_schema(tool: Tool[Any], *, of_builtin: bool = False) -> dict[str, Any] | None:
    """The schema of a result's data, if it is an object.

    Those of built-in tools would double the size of the list, and their data may be long, so they
    are given only on request.
    """
    if not of_builtin and type(tool).__module__.startswith("handaxe.tools."):
        return None
    schema = get_data_schema(tool)
    return schema if schema is not None and schema.get("type") == "object" else None


MAX_TOLD_TWICE_CHARS = 10_000
"""Maximum length of a text that is repeated in data, or that data is added to."""

_encoder = msgspec.json.Encoder(enc_hook=str)


def build_call_result(
    session: Session,
    result: ToolResult,
    output_schemas: bool = False,  # noqa: FBT001, FBT002 - an option of the server, as it stands
) -> dict[str, Any]:
    """The result of `tools/call`; an unknown tool is a protocol error.

    `output_schemas`: whether the list has the schemas of built-in tools.
    """
    if result.code == UnknownTool.code:
        raise RpcError(INVALID_PARAMS, result.text)
    told = session.tool_result(msgspec.structs.replace(result, data=None), "json-schema")
    content: list[dict[str, Any]] = told["content"]
    data = _get_schema_data(session, result, of_builtin=output_schemas) if result.ok else None
    if data is None:
        data = _build_data(
            result, "\n\n".join(block["text"] for block in content if "text" in block)
        )
    if data is not None:
        told["structuredContent"] = data
    if not result.ok:
        told["_meta"] = {CODE_KEY: result.code}
    return told


def _get_schema_data(
    session: Session, result: ToolResult, *, of_builtin: bool
) -> dict[str, Any] | None:
    """The data of a tool that has an output schema."""
    try:
        tool, _ = get_parts(session).catalog.find(result.tool)
    except UnknownTool:
        return None
    if tool.output_type is None:
        return None
    schema = get_output_schema(tool, of_builtin=of_builtin)
    return to_json_data(result.data) if schema is not None else None


def _build_data(result: ToolResult, text: str) -> dict[str, Any] | None:
    """Data that replaces the whole result, unless it is missing or too long."""
    has_pictures = any(isinstance(block, ImageBlock) for block in result.content)
    if has_pictures or len(text) > MAX_TOLD_TWICE_CHARS:
        return None
    data = to_json_data(result.data)
    whole: dict[str, Any] = {"text": text}
    if isinstance(data, dict):
        whole |= data
    if not result.ok:
        whole["code"] = result.code
    if len(whole) == 1:
        return None
    return whole if len(_encoder.encode(whole)) <= 2 * MAX_TOLD_TWICE_CHARS else None
