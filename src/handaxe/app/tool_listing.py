"""Tools and results in the form a provider, a front end or a program has them."""

from typing import Any

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.faults import Cancelled
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool
from handaxe.permission.decide import Policy, build_hidden_check
from handaxe.permission.reasons import to_display as as_shown

_OFFERED_WHERE = {
    "Agents": "a model is at work: `handaxe`, `handaxe -p`, `handaxe.Agent`",
    "McpServers": "a session has MCP servers",
    "Questions": "somebody can answer: `handaxe` at a terminal, `on_question` of a host",
}
"""Ports that not every session has, by name, and who has them."""


def get_tool_schema(tool: Tool[Any], provider: str, prompt: str | None = None) -> dict[str, Any]:
    """One tool's schema in a provider's dialect, with the prompt that a session has for it."""
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
    """What a tool says its data is; None if nothing, or nothing that JSON can hold."""
    from handaxe.schema.tool_schema import build_output_schema

    try:
        return build_output_schema(tool.output_type)
    except (TypeError, ValueError, NameError):
        return None


def find_unavailable_tool(name: str) -> tuple[Tool[Any], str] | None:
    """A built-in tool that only some sessions can offer, and a sentence on which those are."""
    if name in {"StructuredOutput", "SyntheticOutput"}:
        from handaxe.agent.structured_output import FinalOutput

        where = "a final answer has to fit a schema (`--json-schema`), which is its input"
        return FinalOutput({"type": "object"}).tool(), f"It is on offer where {where}."
    from handaxe.tools import build_loaders

    for load in build_loaders().values():
        tool = load()
        if name in {tool.name, *tool.aliases}:
            where = (_OFFERED_WHERE.get(port.__name__) for port in tool.uses)
            sentence = next(filter(None, where), None)
            return None if sentence is None else (tool, f"It is on offer where {sentence}.")
    return None


def explain_missing_port(port: type[Any]) -> str:
    """A sentence on what an own tool that uses this type lacks."""
    where = _OFFERED_WHERE.get(port.__name__)
    if where is not None and port.__module__.startswith("handaxe."):
        return f"It is on offer where {where}."
    return f"It uses {port.__name__}, which nothing provides. Give one with Session(provide=[...])."


def explain_hidden_tool(tool: str, policy: Policy) -> str:
    """A sentence on what keeps a tool out of a model's sight; empty if nothing does."""
    rule = policy.book.find_hiding_rule(tool)
    if rule is not None:
        return (
            f"The deny rule {as_shown(rule.text)} ({rule.origin}) hides it, and refuses its calls."
        )
    if build_hidden_check(policy)(tool):
        return f"It is hidden while the session is in {policy.mode} mode."
    return ""


def make_closed_result(call: ToolCall) -> ToolResult:
    """The result of a call that came after the session's end."""
    refused = ToolResult.from_fault(Cancelled(started=False))
    text = "The session is closed. Open a new one."
    return msgspec.structs.replace(refused, id=call.id, tool=call.tool, text=text)


def describe_call_shape(name: str) -> str | None:
    """What a call looks like, for whoever gave something else than a name."""
    if not (name.startswith("<") and name.endswith(">")):
        return None
    return (
        "A call is the name of a tool and its input: `call_many` takes pairs such as "
        '("Read", {"file_path": "a.txt"}), `run` and `run_many` take a `ToolCall`.'
    )
