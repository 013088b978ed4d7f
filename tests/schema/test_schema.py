"""One clean JSON Schema per type."""

import dataclasses
import datetime
import json
from enum import Enum
from typing import Annotated, Any, Generic, Literal, TypeVar

import jsonschema
import msgspec
import pydantic
import pytest

from handaxe.contract import ToolArgs
from handaxe.schema.tool_schema import build_input_schema, build_output_schema, is_closed

T = TypeVar("T")


class Change(ToolArgs):
    """One replacement."""

    old_string: Annotated[str, "What to replace."]
    replace_all: Annotated[bool, "Every place."] = False


class EditArgs(ToolArgs):
    """Words for people who read the code."""

    file_path: Annotated[str, "The file."]
    edits: Annotated[list[Change], "In this order."]
    limit: Annotated[Annotated[int, msgspec.Meta(ge=1, le=9)] | None, "At most."] = None
    mode: Annotated[Literal["z", "a", "m"], "How."] = "z"
    ignore_case: bool = msgspec.field(default=False, name="-i")


EDIT_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "The file."},
        "edits": {
            "type": "array",
            "description": "In this order.",
            "items": {
                "type": "object",
                "description": "One replacement.",
                "properties": {
                    "old_string": {"type": "string", "description": "What to replace."},
                    "replace_all": {
                        "type": "boolean",
                        "description": "Every place.",
                        "default": False,
                    },
                },
                "required": ["old_string"],
                "additionalProperties": False,
            },
        },
        "limit": {"type": "integer", "description": "At most.", "minimum": 1, "maximum": 9},
        "mode": {
            "type": "string",
            "description": "How.",
            "enum": ["z", "a", "m"],
            "default": "z",
        },
        "-i": {"type": "boolean", "default": False},
    },
    "required": ["file_path", "edits"],
    "additionalProperties": False,
}


class Twice(ToolArgs):
    first: Change
    second: Annotated[Change, "The other one."]


class Tree(ToolArgs):
    children: "list[Tree]" = msgspec.field(default_factory=list)
    parent: "Tree | None" = None


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Circle(ToolArgs, tag_field="shape", tag="circle"):
    radius: float


class Square(ToolArgs, tag_field="shape", tag="square"):
    side: int


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Box(ToolArgs, Generic[T]):
    item: T


class Odd(ToolArgs):
    colour: Colour = Colour.BLUE
    shape: Circle | Square | None = None
    many: dict[str, list[int]] = msgspec.field(default_factory=dict)
    pair: tuple[int, str] = (1, "a")
    numbers: tuple[int, ...] = ()
    number_or_text: int | str = 3
    null_matters: int | None = 5
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=5, pattern="^a")] = "a"
    few: Annotated[list[str], msgspec.Meta(min_length=1, max_length=2)] | None = None
    when: datetime.datetime | None = None
    point: Point | None = None
    anything: Any = None
    title: str = ""
    maybe: int | msgspec.UnsetType = msgspec.UNSET


class Part(pydantic.BaseModel):
    size: int = pydantic.Field(ge=1, description="How big.")


class Model(pydantic.BaseModel):
    title: str
    part: Part
    note: str | None = None


ALL = [EditArgs, Twice, Tree, Odd, Model, ToolArgs, Box[int]]


def properties_of(args_type):
    return build_input_schema(args_type)["properties"]


def test_a_schema_says_everything_once_and_in_the_declared_order():
    assert json.dumps(build_input_schema(EditArgs)) == json.dumps(EDIT_SCHEMA)


@pytest.mark.parametrize("args_type", ALL)
def test_every_schema_is_a_valid_json_schema(args_type):
    schema = build_input_schema(args_type)

    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert "title" not in schema


@pytest.mark.parametrize("args_type", ALL)
def test_the_same_type_gives_the_same_bytes(args_type):
    first = json.dumps(build_input_schema(args_type))
    build_input_schema.cache_clear()

    assert json.dumps(build_input_schema(args_type)) == first
    assert build_input_schema(args_type) is build_input_schema(args_type)


def test_only_a_definition_that_is_shared_is_a_reference():
    schema = build_input_schema(Twice)

    assert list(schema["$defs"]) == ["Change"]
    assert schema["properties"] == {
        "first": {"$ref": "#/$defs/Change"},
        "second": {"$ref": "#/$defs/Change", "description": "The other one."},
    }


def test_a_type_that_holds_itself_keeps_its_definition():
    schema = build_input_schema(Tree)

    assert schema["properties"]["parent"] == {"$ref": "#/$defs/Tree"}
    jsonschema.validate({"children": [{"children": []}]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"children": [{"child": []}]}, schema)


def test_every_kind_of_field_has_its_own_form():
    circle, square = properties_of(Odd)["shape"]["anyOf"]

    assert circle["properties"]["shape"] == {"const": "circle"}
    assert square["required"] == ["shape", "side"]
    expected = {
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
        "many": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "integer"}},
            "default": {},
        },
        "numbers": {"type": "array", "items": {"type": "integer"}, "default": []},
        "number_or_text": {"type": ["integer", "string"], "default": 3},
        "null_matters": {"type": ["integer", "null"], "default": 5},
        "few": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "when": {"type": "string", "format": "date-time"},
        "anything": {},
        "title": {"type": "string", "default": ""},
        "maybe": {"type": "integer"},
    }
    assert {name: properties_of(Odd)[name] for name in expected} == expected


def test_limits_are_kept():
    name = properties_of(Odd)["name"]

    assert (name["minLength"], name["maxLength"], name["pattern"]) == (1, 5, "^a")


def test_a_generic_type_is_written_with_its_parameter():
    assert properties_of(Box[int]) == {"item": {"type": "integer"}}


def test_a_pydantic_model_gets_the_same_clean_form():
    assert build_input_schema(Model) == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "part": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "description": "How big.", "minimum": 1}
                },
                "required": ["size"],
                "additionalProperties": False,
            },
            "note": {"type": "string"},
        },
        "required": ["title", "part"],
        "additionalProperties": False,
    }


class Answer(msgspec.Struct):
    count: int
    note: str | None = None


def test_an_output_schema_is_open_and_honest_about_null():
    assert build_output_schema(Answer) == {
        "type": "object",
        "properties": {"count": {"type": "integer"}, "note": {"type": ["string", "null"]}},
        "required": ["count"],
    }
    assert build_output_schema(list[int]) == {"type": "array", "items": {"type": "integer"}}
    assert build_output_schema(None) is None
    assert (build_output_schema(Model) or {})["properties"]["title"] == {"type": "string"}


def test_a_type_is_closed_only_if_all_its_parts_are():
    class Open(ToolArgs):
        answers: list[Answer]

    assert [is_closed(kind) for kind in (EditArgs, Tree, Open, Odd, Model)] == [
        True,
        True,
        False,
        False,
        False,
    ]


@dataclasses.dataclass
class Origin:
    x: int = 0


class Fresh(ToolArgs):
    numbers: list[int] = msgspec.field(default_factory=lambda: [1, 2])
    names: set[str] = msgspec.field(default_factory=lambda: {"b", "c", "a"})
    options: dict[str, int] = msgspec.field(default_factory=lambda: {"a": 1})
    change: Change = msgspec.field(default_factory=lambda: Change(old_string="a"))
    point: Origin = msgspec.field(default_factory=Origin)
    nothing: list[int] = msgspec.field(default_factory=list)


def test_what_a_factory_makes_is_the_default():
    properties = build_input_schema(Fresh)["properties"]

    assert {name: field["default"] for name, field in properties.items()} == {
        "numbers": [1, 2],
        "names": ["a", "b", "c"],
        "options": {"a": 1},
        "change": {"old_string": "a", "replace_all": False},
        "point": {"x": 0},
        "nothing": [],
    }


def test_what_differs_each_time_or_fails_is_no_default():
    class Different(ToolArgs):
        identity: str = msgspec.field(default_factory=lambda: "looks fixed")
        day: datetime.date = msgspec.field(default_factory=datetime.date.today)
        counts: list[int] = msgspec.field(
            default_factory=lambda made=[]: [*made, made.append(1)]  # pyright: ignore[reportAssignmentType] - it gives something else each time
        )
        broken: list[int] = msgspec.field(default_factory=lambda: [1 // 0])

    properties = build_input_schema(Different)["properties"]

    assert [name for name, field in properties.items() if "default" in field] == []
    assert "required" not in build_input_schema(Different)


def test_the_names_of_a_dict_are_told_where_not_every_text_is_one():
    class Named(ToolArgs):
        free: dict[str, int]
        colours: dict[Colour, int]
        words: dict[Literal["a", "b"], int]
        numbers: dict[int, str]
        short: dict[Annotated[str, msgspec.Meta(max_length=3)], int]
        days: dict[datetime.date, int]

    schema = build_input_schema(Named)
    jsonschema.Draft202012Validator.check_schema(schema)

    assert {name: part.get("propertyNames") for name, part in schema["properties"].items()} == {
        "free": None,
        "colours": {"enum": ["red", "blue"]},
        "words": {"enum": ["a", "b"]},
        "numbers": {"pattern": "^-?[0-9]+$"},
        "short": {"maxLength": 3},
        "days": {"format": "date"},
    }
