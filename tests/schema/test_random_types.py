"""Types as nobody would write them: schema, dialects and reader agree on every one of them."""

import dataclasses
import datetime
import decimal
import enum
import random
import uuid
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict, cast

import jsonschema
import msgspec
import pytest

from handaxe.contract import ToolArgs
from handaxe.schema.providers import PROVIDERS, build_tool_schema
from handaxe.schema.tool_schema import build_input_schema
from handaxe.schema.validate import InputProblems, read_input

TYPES_OF_A_SEED = 60
INPUTS_OF_A_TYPE = 6
OPENAI_STRICT = {
    "type", "description", "enum", "const", "properties", "required", "items", "anyOf",
    "additionalProperties", "$defs", "$ref", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "pattern", "format", "minItems", "maxItems",
}  # fmt: skip
GEMINI = {
    "type", "description", "enum", "default", "properties", "required", "items", "anyOf", "nullable",
    "minimum", "maximum", "minLength", "maxLength", "pattern", "minItems", "maxItems",
    "minProperties", "maxProperties",
}  # fmt: skip


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    WORD = "word"
    NUMBER = 3


@dataclasses.dataclass
class Point:
    x: int
    names: list[str] = dataclasses.field(default_factory=list)


class Typed(TypedDict):
    a: int


class Pair(NamedTuple):
    a: int
    b: str = "b"


class Listed(msgspec.Struct, array_like=True):
    a: int


class Renamed(msgspec.Struct, rename="camel", omit_defaults=True):
    some_name: int = 1
    other_name: str | None = None


class Circle(msgspec.Struct, tag=True):
    radius: int


class Square(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    side: str = ""


class Tree(msgspec.Struct, forbid_unknown_fields=True):
    value: int = 0
    children: "list[Tree]" = msgspec.field(default_factory=list)


Number = NewType("Number", int)
LEAVES: list[Any] = [
    str, int, float, bool, type(None), Any, object, bytes, Number, decimal.Decimal, uuid.UUID,
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, Literal["a", "b"],
    Literal[1, 2], Literal["a", 1], Colour, Mixed, Annotated[str, "words"],
    Annotated[int, msgspec.Meta(ge=0, le=10)], Annotated[int, msgspec.Meta(gt=0, multiple_of=3)],
    Annotated[float, msgspec.Meta(ge=-1.5, lt=2)], Annotated[str, msgspec.Meta(pattern="^[a-z]+$")],
    Annotated[str, msgspec.Meta(min_length=1, max_length=5)], Point, Typed, Pair, Listed, Renamed,
    Tree, Circle | Square, list, dict, tuple, frozenset[int], set[Colour],
]  # fmt: skip
ODD: list[Any] = [
    None, True, 0, -1, 2**64, 10**400, 1.5, float("nan"), "", "a", "1", "true", "[1]", "{}", "\ud800",
    "\0", "9" * 5_000, [], {}, [[]], (1,), b"x", object(), {1: 2}, {"type": "Circle"}, {"radius": "1"},
]  # fmt: skip


class Maker:
    """Types and inputs, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def kind(self, depth: int) -> Any:
        if depth == 0 or self.random.random() < 0.4:
            return self.random.choice(LEAVES)
        inner = self.kind(depth - 1)
        made: list[Any] = [
            list[inner], dict[str, inner], dict[Colour, inner], dict[int, inner], tuple[inner, ...],
            tuple[inner, self.kind(depth - 1)], Annotated[list[inner], msgspec.Meta(max_length=3)],
            Annotated[inner, "words"], self.struct(depth - 1), inner | None if inner else None,
        ]  # fmt: skip
        return self.random.choice(made)

    def struct(self, depth: int) -> type[ToolArgs]:
        fields: list[Any] = []
        for number in range(self.random.randint(1, 3)):
            name, kind = f"field{number}", self.kind(depth)
            is_optional = self.random.random() < 0.3
            fields.append((name, kind | None, None) if is_optional and kind else (name, kind))
        made = msgspec.defstruct(
            "Made", fields, bases=(ToolArgs,), kw_only=True, omit_defaults=True
        )
        return cast("type[ToolArgs]", made)

    def value(self, schema: dict[str, Any], defs: dict[str, Any], depth: int = 0) -> Any:
        """Something that fits."""
        choose = self.random.choice
        while "$ref" in schema:
            schema = defs[schema["$ref"].rpartition("/")[2]]
        if "const" in schema or "enum" in schema:
            return choose(schema.get("enum") or [schema["const"]])
        if "anyOf" in schema:
            return self.value(choose(schema["anyOf"]), defs, depth)
        kind = schema.get("type", "null")
        kind = choose(kind) if isinstance(kind, list) else kind
        if kind == "array":
            heads = [self.value(part, defs, depth + 1) for part in schema.get("prefixItems", ())]
            more = schema.get("items") or {}
            tail = [self.value(more, defs, depth + 1)] if depth < 4 and not heads else []
            return [*heads, *tail]
        if kind == "object":
            named = schema.get("properties", {})
            wanted = [n for n in named if n in schema.get("required", ()) or depth < 2]
            made = {name: self.value(named[name], defs, depth + 1) for name in wanted}
            more = schema.get("additionalProperties")
            names = schema.get("propertyNames", {})
            free = "7" if "pattern" in names else choose(names.get("enum", ["k"]))
            return {**made, free: self.value(more, defs, depth + 1)} if more and depth < 4 else made
        return {
            "null": None, "boolean": True, "number": 1.25, "integer": schema.get("multipleOf", 2),
            "string": _text(schema),
        }[kind]  # fmt: skip

    def input(self, schema: dict[str, Any]) -> tuple[Any, bool]:
        """An input, and whether it fits."""
        fitting = self.value(schema, schema.get("$defs", {}))
        how = self.random.random()
        if how < 0.5 or not fitting:
            return fitting, True
        if how < 0.9:
            return {**fitting, self.random.choice(list(fitting)): self.random.choice(ODD)}, False
        return self.random.choice(ODD), False


def _text(schema: dict[str, Any]) -> str:
    return {
        "date": "2024-01-02", "date-time": "2024-01-02T03:04:05Z", "time": "03:04:05Z",
        "duration": "P1D", "uuid": "00000000-0000-0000-0000-000000000001", "decimal": "1.5",
    }.get(schema.get("format", ""), "abcd" if "contentEncoding" in schema else "abc")  # fmt: skip


def parts_of(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for word in ("properties", "$defs"):
            for part in schema.get(word, {}).values():
                yield from parts_of(part)
        for part in (*schema.get("anyOf", ()), *schema.get("prefixItems", ())):
            yield from parts_of(part)
        for word in ("items", "additionalProperties"):
            yield from parts_of(schema.get(word))


def read(args_type: Any, raw: Any) -> tuple[Any, list[str]]:
    """What is read, or the problems."""
    try:
        return read_input(args_type, raw)[0], []
    except InputProblems as refused:
        return None, refused.problems


@pytest.mark.proves("TC-5", "RG-6")
@pytest.mark.parametrize("seed", range(8))
def test_schema_dialects_and_reader_agree(seed):
    maker = Maker(seed)
    for _ in range(TYPES_OF_A_SEED):
        args_type = maker.struct(3)
        try:
            msgspec.json.Decoder(args_type)
        except TypeError:
            continue
        schema = build_input_schema(args_type)
        jsonschema.Draft202012Validator.check_schema(schema)
        check_dialects(schema)
        fits = jsonschema.Draft202012Validator(schema).is_valid
        for _ in range(INPUTS_OF_A_TYPE):
            raw, is_fitting = maker.input(schema)
            args, problems = read(args_type, raw)
            if problems:
                assert not is_fitting or not fits(raw), (raw, problems, schema)
                assert "\n".join(problems).encode()
            else:
                plain = msgspec.json.decode(msgspec.json.encode(args))
                assert fits(plain), (raw, plain, schema)


def check_dialects(schema: dict[str, Any]) -> None:
    for provider in PROVIDERS:
        for strict in (False, True):
            made = build_tool_schema("T", "d", schema, provider, strict=strict)
            msgspec.json.encode(made)
            if provider == "gemini":
                words = [set(part) for part in parts_of(made.get("parameters"))]
                assert not set().union(*words) - GEMINI
            elif provider == "openai" and made["function"]["strict"]:
                words = [set(part) for part in parts_of(made["function"]["parameters"])]
                assert not set().union(*words) - OPENAI_STRICT
