"""What the built-in tools say about their data."""

import jsonschema_rs
import pytest

from handaxe import Effects, Session, Tool, ToolArgs, ToolResult
from handaxe.schema.tool_schema import build_closed_output_schema, build_output_schema
from handaxe.tools import build_loaders

FREE = {
    # Whatever a program kept with a task; any value of a setting; a schema.
    "TaskGet": {"task.metadata"},
    "Config": {"value", "settings[].value"},
    "ToolSearch": {"tools[].input_schema"},
}


@pytest.mark.proves("TC-17")
@pytest.mark.parametrize("name", sorted(build_loaders()))
def test_every_built_in_tool_names_the_fields_of_its_data_with_their_types(name):
    built = build_loaders()[name]()
    schema = build_output_schema(built.output_type)
    assert schema is not None
    assert schema["type"] == "object"
    jsonschema_rs.validator_for(schema, validate_formats=True)
    shapes = schema.get("anyOf", [schema])
    free = {field for shape in shapes for field in untyped(shape, "", schema.get("$defs", {}))}
    assert free == FREE.get(name, set())


def untyped(node, path, defs):
    """The fields of which nothing is known but that they are there."""
    if "$ref" in node:
        return untyped(defs[node["$ref"].rpartition("/")[2]], path, defs)
    if "anyOf" in node:
        return {field for one in node["anyOf"] for field in untyped(one, path, defs)}
    if "properties" in node:
        return {
            field
            for name, inner in node["properties"].items()
            for field in untyped(inner, f"{path}.{name}".lstrip("."), defs)
        }
    if node.get("type") == "array":
        return untyped(node.get("items", {}), f"{path}[]", defs)
    if node.get("type") == "object":
        return set() if "additionalProperties" in node else {path}
    return set() if {"type", "enum", "const"} & node.keys() else {path}


def test_the_closed_schema_refuses_what_is_not_declared():
    schema = build_closed_output_schema(build_loaders()["Sleep"]().output_type)
    check = jsonschema_rs.validator_for(schema)
    assert check.is_valid({"sleptSeconds": 1.0, "wokenBy": None})
    assert not check.is_valid({"sleptSeconds": 1.0, "wokenBy": None, "more": 1})


@pytest.mark.parametrize("data", [{}, {"done": "x"}, {"done": True, "more": 1}])
async def test_the_tests_notice_a_built_in_tool_that_breaks_its_promise(
    project, data, broken_promises
):
    class NothingArgs(ToolArgs):
        pass

    class Done(ToolArgs):
        done: bool

    class Odd(Tool[NothingArgs]):
        """Breaks its promise."""

        # As if it were one of ours.
        __module__ = "handaxe.tools.odd"
        search_hint = "breaks what it promises"
        effects = Effects.pure()
        output_type = Done

        async def call(self, args, ctx):
            return ToolResult("done", data=data)

    async with Session(project, tools=[Odd], setting_sources=()) as session:
        assert (await session.call("Odd")).code == "internal.bad_output"
    assert broken_promises
    broken_promises.clear()
