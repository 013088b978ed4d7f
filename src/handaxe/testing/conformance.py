"""Conformance checks for tools; run them on your own tools."""

import asyncio
import re
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from handaxe.app.session import Session, get_parts
from handaxe.contract.decision import Allow, PermissionRequest
from handaxe.contract.faults import BadOutput, InternalError, UnknownTool, describe_error
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool
from handaxe.schema.providers import build_tool_schema
from handaxe.schema.tool_schema import build_input_schema, build_output_schema
from handaxe.schema.validate import InputProblems, read_input


def check_every_output() -> None:
    """Check the data of every call against its tool's output type, from now on in this process.

    For tests: by default only the data of own tools is checked. An undeclared field is an error,
    too. A call whose data does not fit fails with `internal.bad_output`.
    """
    Tool.output_check = "closed"


PROVIDERS = ("anthropic", "openai", "gemini", "json-schema")


def problems_of(
    tool: Tool[Any] | type[Tool[Any]],
    *,
    calls: bool = True,
    provide: Sequence[object] | Mapping[type[Any], object] = (),
) -> list[str]:
    """The problems of a tool, one sentence each; empty for a good tool.

    With `calls` the tool is called with each of its input examples, or with made-up values without
    examples, in a session with an empty directory; every permission question is approved. `provide`
    holds the ports of that session.
    """
    tool = tool() if isinstance(tool, type) else tool
    if not isinstance(cast("object", tool), Tool):
        raise TypeError(f"problems_of() needs a tool; got {tool!r}.")
    problems = _check_facts(tool)
    if problems or not calls:
        return problems
    # A loop may already be running.
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(_call_examples(tool, provide))).result()


def _check_facts(tool: Tool[Any]) -> list[str]:
    return [
        *_check_search_hint(tool),
        *_check_name(tool),
        *_check_prompt(tool),
        *_check_input(tool),
        *_check_output(tool),
        *_check_limits(tool),
    ]


def _check_search_hint(tool: Tool[Any]) -> list[str]:
    words = tool.search_hint.split()
    if not 3 <= len(words) <= 10:
        return [f"search_hint has {len(words)} words; it takes 3 to 10"]
    return []


def _check_name(tool: Tool[Any]) -> list[str]:
    """Check the texts that users see before the input is known."""
    try:
        shown = cast("object", tool.user_facing_name())
    except Exception as error:  # noqa: BLE001 - code of somebody else
        return [f"`user_facing_name` failed without input: {describe_error(error)}"]
    return [] if isinstance(shown, str) else [f"`user_facing_name` gave {shown!r:.100}, not a text"]


def _check_prompt(tool: Tool[Any]) -> list[str]:
    prompt = tool.prompt()
    problems = [] if prompt else ["there is no prompt"]
    unfilled = re.findall(r"\$[a-z_]+", prompt)
    problems += [f"the prompt's placeholder {name} is not filled" for name in unfilled]
    if len(prompt.splitlines()) > 120:
        problems.append("the prompt has more than 120 lines")
    return problems


def _check_input(tool: Tool[Any]) -> list[str]:
    schema = build_input_schema(tool.args_type)
    problems = [
        f"the parameter {name} has no description"
        for name, field in schema.get("properties", {}).items()
        if not field.get("description")
    ]
    if schema.get("type") != "object" or schema.get("additionalProperties") is not False:
        problems.append("the input schema is not a closed object")
    try:
        read_input(tool.args_type, {"no_such_parameter": 1})
        problems.append("an unknown parameter is not refused")
    except InputProblems:
        pass
    for provider in PROVIDERS:
        build_tool_schema(tool.name, tool.prompt(), schema, provider, strict=tool.strict)
    for example in tool.input_examples:
        try:
            read_input(tool.args_type, example)
        except InputProblems as wrong:
            problems.append(f"the example {example!r} does not fit: {wrong}")
    return problems


def _check_output(tool: Tool[Any]) -> list[str]:
    try:
        build_output_schema(tool.output_type)
    except (TypeError, ValueError, NameError) as error:
        return [f"`output_type` has a type that JSON cannot represent: {error}"]
    return []


def _check_limits(tool: Tool[Any]) -> list[str]:
    problems: list[str] = []
    if set(tool.uses) & set(tool.may_use):
        problems.append("a port stands both in uses and in may_use")
    if tool.max_result_chars <= 0:
        problems.append("max_result_chars is not positive")
    return problems


async def _call_examples(
    tool: Tool[Any], provide: Sequence[object] | Mapping[type[Any], object]
) -> list[str]:
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as home:
        session = Session(
            directory,
            home=home,
            tools=["read-only", tool],
            provide=provide,
            setting_sources=(),
            permission_mode="bypassPermissions",
            on_ask=_allow,
        )
        async with session:
            session.tools()
            problems += get_parts(session).catalog.prompt_problems
            for example in tool.input_examples or _make_examples(tool):
                result = await session.call(tool.name, example)
                found = _check_result(tool, example, result)
                problems += [f"called with {example!r:.200}: {problem}" for problem in found]
    return problems


async def _allow(_: PermissionRequest) -> Allow:
    return Allow()


def _check_result(tool: Tool[Any], example: dict[str, Any], result: ToolResult) -> list[str]:
    if result.code in {InternalError.code, BadOutput.code, UnknownTool.code}:
        return [result.text]
    problems: list[str] = []
    args, _ = read_input(tool.args_type, example)
    for name, shows in {
        "show": lambda: tool.show(args, result),
        "summary": lambda: tool.summary(args, result),
        "title": lambda: tool.title(example),
        "user_facing_name": lambda: tool.user_facing_name(args),
    }.items():
        try:
            shown: object = shows()
        except Exception as error:  # noqa: BLE001 - code of somebody else
            problems.append(f"`{name}` failed: {type(error).__name__}: {describe_error(error)}")
            continue
        if name != "show" and not isinstance(shown, str):
            problems.append(f"`{name}` gave {shown!r:.100}, not a text")
    return problems


def _make_examples(tool: Tool[Any]) -> list[dict[str, Any]]:
    """One input with the required parameters; None if no made-up value fits."""
    schema = build_input_schema(tool.args_type)
    made = cast("dict[str, Any]", _make_value(schema, schema.get("$defs", {})))
    try:
        read_input(tool.args_type, made)
    except InputProblems:
        return []
    return [made]


_SIMPLE: dict[object, object] = {"boolean": False, "null": None}


def _make_value(schema: dict[str, Any], definitions: dict[str, Any]) -> object:
    kind = schema.get("type")
    choices: list[dict[str, Any]] = schema.get("anyOf") or schema.get("oneOf") or []
    if "$ref" in schema:
        choices = [definitions[schema["$ref"].rpartition("/")[2]]]
    if choices:
        return _make_value(choices[0], definitions)
    if given := [
        *schema.get("enum", ()),
        *(schema[k] for k in ("const", "default") if k in schema),
    ]:
        return given[0]
    if kind == "object":
        fields: dict[str, dict[str, Any]] = schema.get("properties", {})
        return {name: _make_value(fields[name], definitions) for name in schema.get("required", ())}
    if kind == "array":
        item: dict[str, Any] = schema.get("items") or {}
        return [_make_value(item, definitions) for _ in range(schema.get("minItems", 0))]
    if kind in {"integer", "number"}:
        return schema.get("minimum", schema.get("maximum", 1))
    return _SIMPLE.get(kind, "example"[: schema.get("maxLength", 7)])
