"""Input by other people's schemas."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.schema.json_schema_input import JsonSchemaInput
from handaxe.schema.providers import PROVIDERS, build_tool_schema
from handaxe.schema.validate import InputProblems

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)
keywords = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "enum",
        "description",
        "pattern",
        "additionalProperties",
        "$defs",
        "minimum",
    ]
)
schemas = st.dictionaries(keywords, json_values, max_size=6)


def shape(**properties: Any) -> JsonSchemaInput:
    return JsonSchemaInput({"type": "object", "properties": properties})


@pytest.mark.parametrize(
    ("schema", "sent", "read"),
    [
        ({"type": "integer"}, "10", 10),
        ({"type": "integer"}, " 10.0", 10),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "boolean"}, "True", True),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": ["integer", "null"]}, "3", 3),
        ({"type": "string"}, "10", "10"),
        ({"type": ["string", "integer"]}, "10", "10"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "10", "10"),
    ],
)
def test_a_text_is_read_as_what_the_schema_wants_where_that_leaves_no_doubt(schema, sent, read):
    values, notes = shape(x=schema).read({"x": sent})
    assert values == {"x": read}
    assert bool(notes) == (read != sent)


def test_null_where_there_may_be_none_is_left_out():
    """Models that have to name every parameter say nothing in this way."""
    limit = {"type": "integer"}
    inner = {"type": "object", "properties": {"limit": limit}}
    named = {"limit": limit, "note": {"type": ["string", "null"]}, "more": inner}
    shape = JsonSchemaInput({"type": "object", "properties": named, "required": ["note"]})
    sent = {"limit": None, "note": None, "more": {"limit": None}}
    assert shape.read(sent) == ({"note": None, "more": {}}, [])
    with pytest.raises(InputProblems):
        JsonSchemaInput({"type": "object", "properties": named, "required": ["limit"]}).read(sent)


def test_what_was_sent_is_not_changed():
    sent = {"x": {"y": ["1"]}}
    read, _ = shape(x={"properties": {"y": {"items": {"type": "integer"}}}}).read(sent)
    assert read == {"x": {"y": [1]}}
    assert sent == {"x": {"y": ["1"]}}


def test_every_mistake_is_told():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}},
        "required": ["c"],
    }
    with pytest.raises(InputProblems) as caught:
        JsonSchemaInput(schema).read({"a": "one", "b": "y"})
    assert len(caught.value.problems) == 3
    assert "The required parameter `c` is missing" in caught.value.problems


@pytest.mark.parametrize("raw", [5, None, [], "text", "[1]"])
def test_what_is_no_object_is_refused(raw):
    with pytest.raises(InputProblems, match="named parameters"):
        shape().read(raw)


def test_an_object_sent_as_text_is_read():
    assert shape(a={"type": "integer"}).read('{"a": 1}') == (
        {"a": 1},
        ["input: read a JSON object sent as text"],
    )


def test_a_schema_that_points_to_other_places_is_not_followed():
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}
    assert JsonSchemaInput(schema).read({"a": 1}) == ({"a": 1}, [])


def test_hidden_characters_do_not_reach_the_model():
    hidden = "Read\u200b it.\U000e0041\U000e0042\x1b[8m\u202e"
    schema = JsonSchemaInput(
        {"type": "object", "properties": {"a": {"type": "string", "description": hidden}}}
    ).schema
    assert schema["properties"]["a"]["description"] == "Read it.[8m"
    long = JsonSchemaInput({"properties": {"a": {"description": "x" * 10_000}}}).schema
    assert len(long["properties"]["a"]["description"]) == 2048


@given(schemas, json_values)
def test_no_schema_and_no_input_does_worse_than_a_refusal(schema, raw):
    foreign = JsonSchemaInput(schema)
    assert foreign.schema["type"] == "object"
    assert isinstance(foreign.schema["properties"], dict)
    try:
        foreign.read(raw)
    except InputProblems:
        return


@pytest.mark.parametrize("provider", PROVIDERS)
@given(schema=schemas)
def test_every_schema_can_be_told_to_every_provider(provider, schema):
    nested = {"type": "object", "properties": {"x": schema}, "$defs": {"A": schema}}
    for given_schema in (schema, nested):
        build_tool_schema("t", "d", JsonSchemaInput(given_schema).schema, provider)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "part",
    [
        {"$ref": "#/$defs/Missing"},
        {"$ref": "#/definitions/Old"},
        {"$ref": "#/properties/x"},
        {"$ref": "#"},
        {"$ref": "http://example.com/other.json"},
        {"$ref": 5},
        {"$ref": "#/$defs/Loop"},
        {"type": ["string", 5]},
        {"anyOf": []},
        {"anyOf": {"type": "string"}},
        {"properties": []},
        {"items": [{"type": "string"}, {"type": "integer"}]},
        {"enum": "abc"},
        {"required": "abc", "properties": {"abc": True}},
        {"additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": True, "b": False}},
        {"minimum": "low"},
        {"not": {"type": "null"}},
        {"if": {}, "then": {}, "else": {}},
    ],
)
def test_odd_parts_of_schemas_can_be_told_to_every_provider(provider, part):
    schema = {
        "type": "object",
        "properties": {"x": part, "y": {"type": "array", "items": part}},
        "definitions": {"Old": {"type": "string"}},
        "$defs": {"Loop": {"type": "object", "properties": {"again": {"$ref": "#/$defs/Loop"}}}},
    }
    build_tool_schema("t", "d", JsonSchemaInput(schema).schema, provider)
    build_tool_schema("t", "d", JsonSchemaInput({**schema, **part}).schema, provider)


def test_a_root_that_is_only_a_reference_is_written_out():
    args = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    shape = JsonSchemaInput({"$ref": "#/$defs/Args", "$defs": {"Args": args}})
    assert shape.schema["properties"] == {"a": {"type": "integer"}}
    assert shape.schema["required"] == ["a"]
    assert shape.read({"a": "1"})[0] == {"a": 1}
