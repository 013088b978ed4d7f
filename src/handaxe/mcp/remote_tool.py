"""A server's tool as a `Tool`: its name, its description, its effects, its calls."""

import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec

from handaxe.config.mcp_definitions import ServerDefinition
from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Ask, Decision, ToolDefinition
from handaxe.contract.effects import Effects
from handaxe.contract.faults.mcp import BadStructuredContent
from handaxe.contract.input_shape import OutputShape
from handaxe.contract.ports.mcp_servers import McpTool
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool
from handaxe.schema.json_schema_input import JsonSchemaInput
from handaxe.schema.output_check import find_output_problems
from handaxe.schema.repair import MAX_DOC_CHARS
from handaxe.text.escape import strip_hidden
from handaxe.text.framing import neutralize

if TYPE_CHECKING:
    from handaxe.mcp.discovery import Entry

DEFAULT_RESULT_CHARS, MAX_RESULT_CHARS = 100_000, 500_000
MAX_SCHEMA_BYTES = 256 << 10
MAX_PART_CHARS, MAX_PARTS = 2000, 20
_REPORT_EVERY_S = 0.1
_PART_NAMES = {
    "inputSchema": "input schema",
    "outputSchema": "output schema",
    "server": "field `server`",
}

_log = logging.getLogger("handaxe.mcp")

Args = dict[str, Any]
Call = Callable[[str, Args, str, Callable[[str], None]], Awaitable[ToolResult]]
"""The tool's own name, its input, the call's id and a progress callback."""


class RemoteTool(Tool[Args]):
    """A tool that runs on a server."""

    name = "RemoteTool"
    server: str
    definition: ClassVar[ToolDefinition]  # pyright: ignore[reportIncompatibleVariableOverride]
    remote_name: str
    annotations: dict[str, bool]
    description: str
    always_asks: bool
    is_new: Callable[["RemoteTool"], bool]
    send: Call

    def prompt(self) -> str:
        """The server's description, cleaned and cut."""
        return self.description

    async def decide(self, args: Args, ctx: ToolContext) -> Decision | None:  # noqa: ARG002
        """Ask if the server requires the user, or if the tool changed since its approval."""
        if self.always_asks:
            return Ask(f"{self.server} requires the user to confirm every call of this tool.")
        if self.is_new(self):
            return Ask(
                f"{self.server} has changed the description of this tool since it was last allowed."
            )
        return None

    async def call(self, args: Args, ctx: ToolContext) -> ToolResult:
        """Run the tool on the server."""
        told_at = 0.0

        def report(text: str) -> None:
            nonlocal told_at
            now = time.monotonic()
            if now - told_at >= _REPORT_EVERY_S:
                told_at = now
                ctx.report(strip_hidden(text, 500))

        return self._check_data(await self.send(self.remote_name, args, ctx.call_id, report))

    def _check_data(self, result: ToolResult) -> ToolResult:
        """The result; failed if its data does not match the server's schema."""
        if not result.ok:
            return result
        data: Any = result.data
        problems = find_output_problems(self.output_type, data)
        if problems and isinstance(data, dict) and data.keys() == {"value"}:
            # Values other than objects were wrapped in one.
            wrapped = cast("Args", data)["value"]
            problems = problems if find_output_problems(self.output_type, wrapped) else []
        if not problems:
            return result
        listed = "; ".join(problems)
        fault = BadStructuredContent(server=self.server, problems=listed, answer=result.text)
        failed = ToolResult.from_fault(fault)
        return msgspec.structs.replace(failed, data=data, content=result.content)

    def title(self, partial_input: dict[str, Any]) -> str:
        """Server, tool and the first value."""
        for value in partial_input.values():
            return f"{self.server} - {self.remote_name}({strip_hidden(str(value), 100)})"
        return f"{self.server} - {self.remote_name}"

    def status(self) -> McpTool:
        """The tool in its server's status."""
        words = {
            "readOnlyHint": "readOnly",
            "destructiveHint": "destructive",
            "openWorldHint": "openWorld",
        }
        hints = {words[k]: v for k, v in self.annotations.items() if k in words}
        return McpTool(name=self.remote_name, description=self.description, annotations=hints)


def build_remote_tool(
    definition: dict[str, Any],
    *,
    server: ServerDefinition,
    reached: str,
    name: str,
    result_chars: int,
    is_new: Callable[[RemoteTool], bool],
    send: Call,
) -> RemoteTool:
    """The tool that a server describes; `ValueError` if it is unusable.

    `reached` describes how its server is started or reached.
    """
    schema = definition.get("inputSchema")
    if not isinstance(schema, dict):
        raise ValueError("its input schema is not an object")  # noqa: TRY004 - told like all mistakes
    plain = msgspec.json.encode(definition, order="deterministic")
    if len(plain) > MAX_SCHEMA_BYTES:
        raise ValueError(f"its definition is longer than {MAX_SCHEMA_BYTES:,} bytes")
    given = definition.get("annotations")
    listed = cast("dict[str, Any]", given if isinstance(given, dict) else {})
    annotations = {key: value for key, value in listed.items() if isinstance(value, bool)}
    given = definition.get("_meta")
    meta = cast("dict[str, Any]", given if isinstance(given, dict) else {})
    shape = JsonSchemaInput(cast("dict[str, Any]", schema))
    given = str(definition.get("description") or "")
    description = neutralize(strip_hidden(given, MAX_DOC_CHARS))
    if shape.remark:
        description = f"{description}\n\n{shape.remark}".strip()
    wanted_chars = meta.get("anthropic/maxResultSizeChars")
    if isinstance(wanted_chars, int) and not isinstance(wanted_chars, bool) and wanted_chars > 0:
        result_chars = min(wanted_chars, MAX_RESULT_CHARS)
    output = cast("dict[str, Any] | None", definition.get("outputSchema"))
    effects = infer_effects(annotations)
    digest = sha256(b"\0".join((server.reach_digest.encode(), name.encode(), plain))).hexdigest()
    members: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": None,
        "name": name,
        "args_type": shape,
        "server": server.name,
        "remote_name": definition["name"],
        "definition": ToolDefinition(
            name, server.name, digest, tuple(_list_parts(reached, definition))
        ),
        "annotations": annotations,
        "description": description or f"{definition['name']} of {server.name}.",
        "output_type": OutputShape(output) if isinstance(output, dict) else None,
        "search_hint": strip_hidden(str(definition.get("title") or ""), 100),
        "effects": effects,
        "interrupt": "cancel" if effects.is_read_only else "block",
        "max_result_chars": result_chars,
        "always_load": server.always_load or meta.get("anthropic/alwaysLoad") is True,
        "always_asks": meta.get("anthropic/requiresUserInteraction") is True,
        "is_new": staticmethod(is_new),
        "send": staticmethod(send),
    }
    return cast("RemoteTool", type("RemoteTool", (RemoteTool,), members)())


def _list_parts(reached: str, definition: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "server", strip_hidden(reached, MAX_PART_CHARS)
    for key, value in list(definition.items())[:MAX_PARTS]:
        text = value if isinstance(value, str) else _format_json(value)
        name = _PART_NAMES.get(key) or ascii(key[:40])[1:-1]
        yield name, strip_hidden(text, MAX_PART_CHARS)


def _format_json(value: object) -> str:
    plain = msgspec.json.encode(value, order="deterministic")
    return msgspec.json.format(plain).decode() if len(plain) <= MAX_PART_CHARS else plain.decode()


def infer_effects(annotations: dict[str, bool]) -> Effects:
    """The effects that a server declares for a tool; without a declaration the widest."""
    if annotations.get("readOnlyHint"):
        return Effects.none()
    if annotations.get("destructiveHint") is False:
        return Effects(reads_everything=True, writes_everything=True)
    return Effects.unknown()


MAX_NAME_CHARS = 64
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def sanitize_name(name: str) -> str:
    """A name with invalid characters replaced by `_`."""
    return _OTHER.sub("_", name) or "_"


def build_tool_name(server: str, tool: str) -> str:
    """The name of a server's tool or prompt; a long one ends in a digest."""
    name = f"mcp__{sanitize_name(server)}__{sanitize_name(tool)}"
    return name if len(name) <= MAX_NAME_CHARS else _shorten_name(name, f"{server}\0{tool}")


class ToolNameRegistry:
    """Gives every remote tool a unique and stable name."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}

    def names(self, server: str, tools: Iterable[str]) -> dict[str, str]:
        """The names of a server's tools."""
        for tool in sorted(tools):
            if (server, tool) not in self._given:
                self._given[server, tool] = self._free(server, tool)
        return {tool: self._given[server, tool] for tool in tools}

    def _free(self, server: str, tool: str) -> str:
        name = build_tool_name(server, tool)
        taken = set(self._given.values())
        return name if name not in taken else _shorten_name(name, f"{server}\0{tool}")


def _shorten_name(name: str, whole: str) -> str:
    return f"{name[: MAX_NAME_CHARS - 9]}_{sha256(whole.encode()).hexdigest()[:8]}"


class RemoteToolCatalog:
    """The current tools of servers, and their descriptions at their last use."""

    def __init__(self, result_chars: int) -> None:
        self._result_chars = result_chars
        self._names = ToolNameRegistry()
        self._used: dict[str, str] = {}
        self._tools: dict[str, list[RemoteTool]] = {}

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Every available tool, in the form to which approvals are bound."""
        return tuple(tool.definition for tools in self._tools.values() for tool in tools)

    def list_tools(self, server: str) -> list[RemoteTool]:
        """The tools of one server, by name."""
        return sorted(self._tools.get(server, ()), key=lambda tool: tool.name)

    def drop_tools(self, server: str) -> None:
        """Forget the tools of a removed server."""
        self._tools.pop(server, None)

    def replace_tools(
        self, server: ServerDefinition, listed: "list[Entry]", reached: str, call: Call
    ) -> list[RemoteTool]:
        """Replace a server's tools by its current list; returns the new ones.

        `reached` describes how the server is reached, `call` runs one of its tools by its own name.
        """
        # A name that comes twice means the first one.
        by_name = {definition["name"]: definition for definition in reversed(listed)}
        names = self._names.names(server.name, by_name)

        async def send(
            tool: str, arguments: dict[str, Any], call_id: str, report: Callable[[str], None]
        ) -> ToolResult:
            result = await call(tool, arguments, call_id, report)
            self._used[names[tool]] = tools[tool].definition.digest
            return result

        tools: dict[str, RemoteTool] = {}
        for remote, definition in by_name.items():
            try:
                tools[remote] = build_remote_tool(
                    definition,
                    server=server,
                    reached=reached,
                    name=names[remote],
                    result_chars=self._result_chars,
                    is_new=self._is_new,
                    send=send,
                )
            except ValueError as error:
                _log.warning("the tool %s of %s was skipped: %s", remote, server.name, error)
        self._tools[server.name] = list(tools.values())
        return self._tools[server.name]

    def _is_new(self, tool: RemoteTool) -> bool:
        """Whether the tool was used before and has changed since."""
        return self._used.get(tool.name) not in {None, tool.definition.digest}
