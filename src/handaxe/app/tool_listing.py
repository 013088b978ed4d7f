"""Tools and results in the formats of providers, front ends and programs."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from handaxe.catalog.catalog import Catalog
from handaxe.catalog.deferral import SEARCH_TOOL, Deferral
from handaxe.catalog.edit_formats import EDIT_TOOLS
from handaxe.contract.call import ToolCall
from handaxe.contract.display import CallDisplay, Display, Items, Table, Text
from handaxe.contract.faults import Cancelled, SetupError, UnknownTool
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool
from handaxe.permission.decide import Policy, build_hidden_check
from handaxe.permission.reasons import to_display as as_shown
from handaxe.text.escape import format_count

_OFFERED_WHERE = {
    "Agents": "an agent runs: `handaxe`, `handaxe -p`, `handaxe.Agent`",
    "McpServers": "a session has MCP servers",
    "WebSearcher": "the setting `web.search` names a back end",
    "Questions": "a user can answer: `handaxe` at a terminal, `on_question` of a host",
}
"""Ports that only some sessions have, and which sessions do."""


def get_tool_schema(tool: Tool[Any], provider: str, prompt: str | None = None) -> dict[str, Any]:
    """The schema of a tool in a provider's format, with its prompt in the session."""
    from handaxe.schema.providers import build_tool_schema
    from handaxe.schema.tool_schema import build_input_schema

    return build_tool_schema(
        tool.name,
        tool.prompt() if prompt is None else prompt,
        build_input_schema(tool.args_type),
        provider,
        strict=tool.strict,
        examples=tool.input_examples,
    )


def get_data_schema(tool: Tool[Any]) -> dict[str, Any] | None:
    """The schema of a tool's data; None without one, or if JSON cannot represent it."""
    from handaxe.schema.tool_schema import build_output_schema

    try:
        return build_output_schema(tool.output_type)
    except (TypeError, ValueError, NameError):
        return None


def find_unavailable_tool(name: str) -> tuple[Tool[Any], str] | None:
    """A built-in tool that only some sessions offer, with a sentence on which do."""
    if name in {"StructuredOutput", "SyntheticOutput"}:
        from handaxe.agent.structured_output import FinalOutput

        where = "a final answer must match a schema (`--json-schema`), which is its input"
        return FinalOutput({"type": "object"}).tool(), f"It is offered where {where}."
    tool = find_builtin_tool(name)
    where = (_OFFERED_WHERE.get(port.__name__) for port in (tool.uses if tool else ()))
    sentence = next(filter(None, where), None)
    return None if tool is None or sentence is None else (tool, f"It is offered where {sentence}.")


def find_builtin_tool(name: str) -> Tool[Any] | None:
    """The built-in tool with this name or alias, offered or not."""
    from handaxe.tools import build_loaders

    return next(
        (
            tool
            for load in build_loaders().values()
            if name in {(tool := load()).name, *tool.aliases}
        ),
        None,
    )


def explain_missing_port(port: type[Any]) -> str:
    """A sentence on why an own tool that uses this type is not offered."""
    where = _OFFERED_WHERE.get(port.__name__)
    if where is not None and port.__module__.startswith("handaxe."):
        return f"It is offered where {where}."
    return f"It uses {port.__name__}, which nothing provides. Give one with Session(provide=[...])."


def explain_hidden_tool(tool: str, policy: Policy) -> str:
    """A sentence on why a tool is hidden from the model; empty if it is not."""
    rule = policy.book.find_hiding_rule(tool)
    if rule is not None:
        return (
            f"The deny rule {as_shown(rule.text)} ({rule.origin}) hides it and refuses its calls."
        )
    if build_hidden_check(policy)(tool):
        return f"It is hidden while the session is in {policy.mode} mode."
    return ""


def explain_withheld_tool(tool: Tool[Any], catalog: Catalog, policy: Policy) -> str:
    """A sentence on why a tool is not offered; empty if it is."""
    if why := explain_hidden_tool(tool.name, policy):
        return why
    try:
        catalog.find(tool.name)
    except UnknownTool as unknown:
        return unknown.why or "This session does not have it."
    if tool.name in EDIT_TOOLS.values() and not catalog.is_shown(tool.name):
        shown = next(filter(catalog.is_shown, EDIT_TOOLS.values()), catalog.edit_tool)
        return f"It can be called; the model is shown {shown} instead (setting `edit.format`)."
    return ""


def list_withheld_tools(catalog: Catalog, policy: Policy) -> list[tuple[Tool[Any], str]]:
    """Every built-in or own tool that is not offered, with the reason."""
    from handaxe.tools import build_loaders

    offered = catalog.list_visible_names()
    builtin = [load() for name, load in build_loaders().items() if name not in offered]
    own = [tool for tool in catalog.own_tools if tool.name not in offered]
    return [(tool, explain_withheld_tool(tool, catalog, policy)) for tool in (*builtin, *own)]


def make_closed_result(call: ToolCall) -> ToolResult:
    """The result of a call to a closed session."""
    refused = ToolResult.from_fault(Cancelled(started=False))
    text = "The session is closed. Open a new one."
    return msgspec.structs.replace(refused, id=call.id, tool=call.tool, text=text)


def describe_call_shape(name: str) -> str | None:
    """The expected form of a call, if `name` is the type of another object."""
    if not (name.startswith("<") and name.endswith(">")):
        return None
    return (
        "A call is the name of a tool and its input: `call_many` takes pairs such as "
        '("Read", {"file_path": "a.txt"}), `run` and `run_many` take a `ToolCall`.'
    )


MAX_LINE_CHARS = 200
_REFUSALS = ("permission.", "hook.")


class ResultPresenter:
    """Presents calls and results, without the events around them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def present_title(self, tool: str, given: object) -> str:
        """The title of a call in one line, also while its input is incomplete."""
        found = self._find_tool(tool)
        fields = _to_mapping(given)
        title: str | None = None if found is None else _ask(lambda: found.title(fields), str)
        if title is None or not title.strip():
            encoded = _ask(lambda: msgspec.json.encode(given, enc_hook=str).decode(), str)
            title = f"{tool}({encoded or ''})"
        return to_display_line(title)

    def present_result(
        self, result: ToolResult, given: object, *, title: str | None = None
    ) -> CallDisplay:
        """The display of an ended call: its blocks, its refusal or its failure."""
        title = self.present_title(result.tool, given) if title is None else title
        notes = tuple(Text(note, "muted") for note in result.notes)
        named = {"call_id": result.id, "tool": result.tool, "title": title}
        if result.ok:
            blocks, summary = self._show(result, given)
            return CallDisplay(
                **named,
                moment="finished",
                headline=to_display_line(f"{title}: {summary}" if summary else title),
                summary=to_display_line(summary),
                blocks=(*blocks, *notes),
            )
        if (result.code or "").startswith(_REFUSALS):
            rule = result.decision.rule if result.decision is not None else None
            by = f" (rule {rule})" if rule else ""
            return CallDisplay(
                **named,
                moment="rejected",
                headline=to_display_line(f"{title} was not run{by}"),
                tone="warning",
                blocks=(Text(result.text, "warning"), *notes),
            )
        return CallDisplay(
            **named,
            moment="failed",
            headline=to_display_line(f"{title} failed ({result.code})"),
            tone="bad",
            blocks=(Text(result.text, "bad"), *notes),
        )

    def _show(self, result: ToolResult, given: object) -> tuple[Display, str]:
        """The blocks and the summary of a successful call."""
        from handaxe.schema.validate import InputProblems, read_input

        blocks: Display | None = None
        summary: str | None = None
        if (tool := self._find_tool(result.tool)) is not None:
            try:
                args = read_input(tool.args_type, _to_mapping(given))[0]
            except InputProblems:
                args = None
            if args is not None:
                blocks = _ask(lambda: tool.show(args, result), Display)
                summary = _ask(lambda: tool.summary(args, result), str)
        if blocks is None:
            blocks = (Text(result.text),)
        elif result.tool != "Read" and not any(isinstance(b, Text | Items | Table) for b in blocks):
            # A diff shows what changed; the text says where.
            blocks = (Text(result.text), *blocks)
        return blocks, _summarize(result) if summary is None else summary

    def _find_tool(self, name: str) -> Tool[Any] | None:
        # None for an unknown name, or a tool that fails to load.
        return _ask(lambda: self._catalog.find(name)[0], None)


def _ask(method: Callable[[], Any], kind: Any) -> Any:  # noqa: ANN401 - any type of a method
    """The result of a tool's method; None if it fails or has another type."""
    try:
        shown = method()
        if kind is None or shown is None:
            return shown
        if hasattr(shown, "close") and hasattr(shown, "send"):
            # It is an async function.
            shown.close()
        if not isinstance(shown, str if kind is str else list | tuple):
            return None
        # Rendering would fail with members of other types.
        return msgspec.convert(msgspec.to_builtins(shown), kind)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - what is shown never ends a session, nor does sys.exit
        return None


def _to_mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def to_display_line(text: str) -> str:
    """A text in one line, shortened."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_LINE_CHARS else f"{line[: MAX_LINE_CHARS - 1]}…"


def _summarize(result: ToolResult) -> str:
    lines: Sequence[str] = result.text.strip().splitlines()
    first = lines[0].strip() if lines else ""
    return f"{first} (+{format_count(len(lines) - 1, 'line')})" if len(lines) > 1 else first


def build_native_tools(deferral: Deferral, catalog: Catalog, provider: str) -> list[dict[str, Any]]:
    """All tools for the provider's own search, which finds the deferred ones."""
    from handaxe.schema.native_deferral import defer_tools

    if provider != "anthropic":
        raise SetupError(f'{provider!r} has no tool search. Use `deferred=True`, or "anthropic".')
    offered = deferral.sent()
    waiting = deferral.list_deferred()
    steady = [tool for tool in offered if tool not in waiting]
    if waiting:
        steady = [tool for tool in steady if tool.name != SEARCH_TOOL]
    sent, deferred = (
        [get_tool_schema(tool, provider, catalog.describe(tool)) for tool in tools]
        for tools in (steady, waiting)
    )
    return defer_tools(sent, deferred)
