"""What every tool has to keep, ours and anybody's: run these checks over your own tools."""

import re
from typing import Any

from handaxe.contract.tool import Tool
from handaxe.schema.providers import build_tool_schema
from handaxe.schema.tool_schema import build_input_schema
from handaxe.schema.validate import InputProblems, read_input

PROVIDERS = ("anthropic", "openai", "gemini", "json-schema")


def problems_of(tool: Tool[Any]) -> list[str]:
    """Everything a tool gets wrong, one sentence each; empty for a good tool."""
    return [
        *_check_search_hint(tool),
        *_check_prompt(tool),
        *_check_input(tool),
        *_check_limits(tool),
    ]


def _check_search_hint(tool: Tool[Any]) -> list[str]:
    words = tool.search_hint.split()
    if not 3 <= len(words) <= 10:
        return [f"search_hint has {len(words)} words; it takes 3 to 10"]
    return []


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


def _check_limits(tool: Tool[Any]) -> list[str]:
    problems: list[str] = []
    if set(tool.uses) & set(tool.may_use):
        problems.append("a port stands both in uses and in may_use")
    if tool.max_result_chars <= 0:
        problems.append("max_result_chars is not positive")
    return problems
