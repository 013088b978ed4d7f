"""One tool, one result, four providers."""

import datetime
import decimal
import json
import re
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pytest

from handaxe.contract import SetupError, ToolArgs, ToolResult
from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.schema.provider_results import image_message
from handaxe.schema.providers import PROVIDERS, build_tool_schema, to_wire_name
from handaxe.schema.tool_schema import build_input_schema
from handaxe.schema.user_turn import build_tool_result
from handaxe.schema.validate import read_input


class Change(ToolArgs):
    """One replacement."""

    old_string: Annotated[str, "What to replace."]
    replace_all: bool = False


class EditArgs(ToolArgs):
    file_path: Annotated[str, msgspec.Meta(min_length=1), "The file."]
    edits: list[Change]
    limit: Annotated[Annotated[int, msgspec.Meta(ge=1)] | None, "At most."] = None
    mode: Literal["content", "count"] = "content"
    number_or_text: Annotated[int | str, "Either."] = 3
    ignore_case: bool = msgspec.field(default=False, name="-i")


class Circle(ToolArgs, tag_field="shape", tag="circle"):
    radius: Annotated[float, msgspec.Meta(gt=0)]


class Square(ToolArgs, tag_field="shape", tag="square"):
    side: int


class WildArgs(ToolArgs):
    shape: Annotated[Circle | Square, "Round or not."]
    level: Literal[1, 2] = 1
    tree: "Tree | None" = None
    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    pair: tuple[int, str] = (1, "a")
    anything: Any = None
    things: list[Any] = msgspec.field(default_factory=list)
    nothing_or_number: int | None = 5


class Tree(ToolArgs):
    children: "list[Tree]" = msgspec.field(default_factory=list)


FOREIGN = {
    "type": "object",
    "properties": {
        "query": {"$ref": "#/definitions/Query"},
        "tags": {"type": ["array", "null"], "items": {"type": "string"}},
        "extra": {"properties": {"a": {"type": "string"}}, "required": ["a", "gone"]},
        "definitions": {"allOf": [{"$ref": "#/definitions/Query"}, {"required": ["q"]}]},
        "when": {"type": "string", "format": "uri", "examples": ["x"], "title": "When"},
    },
    "definitions": {"Query": {"type": "object", "properties": {"q": {"type": "string"}}}},
    "$schema": "http://json-schema.org/draft-07/schema#",
}
SCHEMAS = [
    build_input_schema(EditArgs),
    build_input_schema(WildArgs),
    build_input_schema(ToolArgs),
    FOREIGN,
]
GEMINI_KEYS = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems",
    "properties", "required", "minProperties", "maxProperties", "minLength", "maxLength",
    "pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum", "maximum",
}  # fmt: skip
GEMINI_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}


def edit_tool(provider, **more):
    return build_tool_schema(
        "Edit", "Change a file.", build_input_schema(EditArgs), provider, **more
    )


def inner_schemas(schema):
    yield schema
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    if isinstance(schema.get("items"), dict):
        parts.append(schema["items"])
    for part in parts:
        yield from inner_schemas(part)


def test_anthropic_gets_the_schema_as_it_is():
    assert edit_tool("anthropic", examples=[{"file_path": "a", "edits": []}]) == {
        "name": "Edit",
        "description": "Change a file.",
        "input_schema": build_input_schema(EditArgs),
        "input_examples": [{"file_path": "a", "edits": []}],
    }


def test_anthropic_strict_says_limits_in_words():
    tool = edit_tool("anthropic", strict=True)

    assert tool["strict"] is True
    limit = tool["input_schema"]["properties"]["limit"]
    assert limit == {"type": "integer", "description": "At most. (minimum: 1)"}
    assert "strict" not in build_tool_schema(
        "T", "", build_input_schema(Tree), "anthropic", strict=True
    )


def test_openai_gets_a_function_with_examples_in_its_description():
    tool = edit_tool("openai", examples=[{"file_path": "a"}])

    assert tool == {
        "type": "function",
        "function": {
            "name": "Edit",
            "description": 'Change a file.\n\nInput examples:\n{"file_path":"a"}',
            "parameters": build_input_schema(EditArgs),
            "strict": False,
        },
    }


def test_openai_strict_requires_everything_and_lets_the_optional_be_null():
    function = edit_tool("openai", strict=True)["function"]

    assert function["strict"] is True
    for schema in inner_schemas(function["parameters"]):
        if schema.get("type") == "object":
            assert schema["required"] == list(schema["properties"])
            assert schema["additionalProperties"] is False
        assert not schema.keys() & {"default", "minLength", "oneOf"}
    properties = function["parameters"]["properties"]
    assert properties["limit"]["type"] == ["integer", "null"]
    assert properties["mode"] == {
        "type": ["string", "null"],
        "description": '(default: "content")',
        "enum": ["content", "count", None],
    }
    assert properties["file_path"]["type"] == "string"


def test_what_openai_strict_makes_a_model_send_can_be_read():
    sent = {
        "file_path": "a",
        "edits": [{"old_string": "x", "replace_all": None}],
        **dict.fromkeys(("limit", "mode", "number_or_text", "-i")),
    }
    schema = edit_tool("openai", strict=True)["function"]["parameters"]

    jsonschema.validate(sent, schema)
    assert read_input(EditArgs, sent)[0] == EditArgs(file_path="a", edits=[Change(old_string="x")])


def test_what_cannot_be_strict_is_offered_without():
    for schema in (build_input_schema(WildArgs), FOREIGN):
        assert (
            build_tool_schema("T", "", schema, "openai", strict=True)["function"]["strict"] is False
        )
    tree = build_tool_schema("T", "", build_input_schema(Tree), "openai", strict=True)["function"]
    assert tree["strict"] is True
    jsonschema.Draft202012Validator.check_schema(tree["parameters"])


@pytest.mark.parametrize("schema", SCHEMAS)
def test_gemini_gets_nothing_it_refuses(schema):
    declaration = build_tool_schema("T", "d", schema, "gemini")

    assert "$ref" not in json.dumps(declaration)
    for part in inner_schemas(declaration.get("parameters", {"type": "OBJECT"})):
        assert part.keys() <= GEMINI_KEYS
        if "anyOf" in part:
            assert part.keys() == {"anyOf"}
            continue
        assert part["type"] in GEMINI_TYPES
        assert all(isinstance(value, str) for value in part.get("enum", []))
        assert set(part.get("required", [])) <= set(part.get("properties", {}))
        assert part["type"] != "ARRAY" or part["items"]


def test_gemini_forms_of_single_fields():
    wild = build_tool_schema("T", "d", build_input_schema(WildArgs), "gemini")["parameters"][
        "properties"
    ]

    assert wild["level"]["description"] == "One of: 1, 2."
    assert wild["nothing_or_number"] == {"type": "INTEGER", "nullable": True, "default": 5}
    circle, square = wild["shape"]["anyOf"]
    assert circle["description"] == "Round or not."
    assert circle["properties"]["shape"] == {"type": "STRING", "enum": ["circle"]}
    assert circle["properties"]["radius"]["description"] == "(exclusiveMinimum: 0)"
    assert square["properties"]["side"] == {"type": "INTEGER"}
    foreign = build_tool_schema("T", "d", FOREIGN, "gemini")["parameters"]["properties"]
    assert foreign["tags"] == {"type": "ARRAY", "items": {"type": "STRING"}, "nullable": True}
    assert foreign["definitions"]["required"] == ["q"]


def test_a_tool_without_input_has_no_parameters_for_gemini():
    assert build_tool_schema("T", "d", build_input_schema(ToolArgs), "gemini") == {
        "name": "T",
        "description": "d",
    }


def test_plain_json_schema_stays_a_valid_schema():
    tool = edit_tool("json-schema", examples=[{"file_path": "a", "edits": []}])

    jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
    jsonschema.validate(tool["inputSchema"]["examples"][0], tool["inputSchema"])
    assert (tool["name"], tool["description"]) == ("Edit", "Change a file.")


def test_alternatives_at_the_root_become_one_object():
    either = {
        "oneOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]
    }

    schema = build_tool_schema("T", "d", either, "anthropic")["input_schema"]
    assert schema == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    }


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_given_schema_is_never_changed(provider, schema):
    before = json.dumps(schema)
    build_tool_schema("T", "d", schema, provider, strict=True, examples=[{}])

    assert json.dumps(schema) == before


def test_an_unknown_provider_is_told_the_four():
    with pytest.raises(SetupError, match=re.escape("anthropic, openai, gemini, json-schema")):
        edit_tool("mistral")
    with pytest.raises(SetupError):
        build_tool_result(ToolResult(), "mistral")


def test_a_name_begins_with_a_letter_for_gemini():
    names = [to_wire_name(name, "gemini") for name in ("Read", "3d", "-x", "_a")]

    assert names == ["Read", "_3d", "_-x", "_a"]
    assert to_wire_name("3d", "openai") == "3d"


PICTURE = ImageBlock("image/png", "iVBOR")
RESULT = ToolResult(
    "Read it.",
    data={"n": 1},
    content=(TextBlock("More."), PICTURE),
    notes=("odd",),
    id="c1",
    tool="Read",
)
FAILED = ToolResult("No such file.", ok=False, code="file.missing", id="c2", tool="Read")


def test_a_result_for_anthropic():
    texts = [{"type": "text", "text": text} for text in ("Read it.", "More.", "Note: odd")]
    source = {"type": "base64", "media_type": "image/png", "data": "iVBOR"}

    assert build_tool_result(RESULT, "anthropic") == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [*texts, {"type": "image", "source": source}],
    }
    assert build_tool_result(FAILED, "anthropic") == {
        "type": "tool_result",
        "tool_use_id": "c2",
        "content": [{"type": "text", "text": "No such file."}],
        "is_error": True,
    }
    assert build_tool_result(ToolResult(id="c3"), "anthropic")["content"] == [
        {"type": "text", "text": "(no output)"}
    ]


def test_a_result_for_openai_has_its_images_in_the_next_message():
    assert build_tool_result(RESULT, "openai") == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "Read it.\n\nMore.\n\nNote: odd\n\n(1 image: see the next message)",
    }
    assert image_message(RESULT, "openai") == {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBOR"}}],
    }
    assert build_tool_result(FAILED, "openai")["content"] == "Error: No such file."
    assert image_message(FAILED, "openai") is None
    assert image_message(RESULT, "anthropic") is None


def test_a_result_for_gemini():
    assert build_tool_result(RESULT, "gemini") == {
        "functionResponse": {
            "id": "c1",
            "name": "Read",
            "response": {"output": "Read it.\n\nMore.\n\nNote: odd"},
            "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBOR"}}],
        }
    }
    failed = build_tool_result(FAILED, "gemini")["functionResponse"]
    assert failed["response"] == {"error": "No such file."}


def test_a_result_in_plain_form():
    plain = build_tool_result(RESULT, "json-schema")

    assert plain["content"][-1] == {"type": "image", "data": "iVBOR", "mimeType": "image/png"}
    assert (plain["isError"], plain["structuredContent"]) == (False, {"n": 1})
    assert build_tool_result(FAILED, "json-schema") == {
        "content": [{"type": "text", "text": "No such file."}],
        "isError": True,
    }


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_lone_surrogate_reaches_a_provider(provider):
    result = build_tool_result(ToolResult("a\ud800"), provider)
    tool = build_tool_schema("T", "a\ud800", build_input_schema(ToolArgs), provider)

    assert json.dumps([result, tool], ensure_ascii=False).encode()


class Raw(ToolArgs):
    content: bytes
    price: decimal.Decimal
    when: datetime.datetime


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_what_strict_input_does_not_know_is_said_in_words(provider):
    made = build_tool_schema("T", "d", build_input_schema(Raw), provider, strict=True)
    schema = made["input_schema"] if provider == "anthropic" else made["function"]["parameters"]
    assert schema["properties"] == {
        "content": {"type": "string", "description": '(contentEncoding: "base64")'},
        "price": {"type": "string", "description": '(format: "decimal")'},
        "when": {"type": "string", "format": "date-time"},
    }


def test_names_of_a_dict_are_said_in_words_to_gemini():
    class Chosen(ToolArgs):
        sizes: dict[Literal["a", "b"], int]

    made = build_tool_schema("T", "d", build_input_schema(Chosen), "gemini")["parameters"]
    assert made["properties"]["sizes"] == {
        "type": "OBJECT",
        "description": '(propertyNames: {"enum":["a","b"]}, additionalProperties: {"type":"INTEGER"})',
    }
