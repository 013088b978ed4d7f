"""Whether data fits what a tool says it is."""

import dataclasses
import datetime
import enum
import typing
from pathlib import Path
from typing import Any, cast

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe import Effects, Tool, ToolArgs, ToolResult, tool
from handaxe.contract.input_shape import OutputShape
from handaxe.schema.output_check import find_output_problems
from handaxe.schema.tool_schema import build_output_schema


class Inner(typing.TypedDict):
    size: int


class Record(typing.TypedDict):
    kind: typing.Literal["record"]
    inner: list[Inner]
    note: typing.NotRequired[str]


class Other(typing.TypedDict):
    kind: typing.Literal["other"]
    total: float | None


@pytest.mark.parametrize(
    ("data", "problems"),
    [
        ({"kind": "record", "inner": [{"size": 1}]}, []),
        ({"kind": "other", "total": None}, []),
        ({"kind": "other", "total": "1"}, ["the field `total` is string, not null or number"]),
        (
            {"kind": "record", "inner": [{"size": 1}, {"size": "x"}]},
            ["the field `inner[1].size` is string, not integer"],
        ),
        ({"kind": "record"}, ["the field `inner` is missing"]),
        ({"kind": "record", "inner": [{}]}, ["the field `inner[0].size` is missing"]),
        (None, ["it gave no data"]),
        ([1], ["the data is array, not object"]),
    ],
)
def test_a_problem_names_the_field_of_the_alternative_that_was_meant(data, problems):
    assert find_output_problems(Record | Other, data) == problems


def test_a_field_that_is_not_declared_is_a_problem_only_where_shapes_are_closed():
    data = {"kind": "other", "total": 1, "more": 2}
    assert find_output_problems(Record | Other, data) == []
    told = find_output_problems(Record | Other, data, closed=True)
    assert told == ["the field `more` is not declared"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=6,
    )
)
def test_any_data_is_judged_without_an_exception(data):
    problems = find_output_problems(Record | Other, data)
    assert all(len(problem) < 400 for problem in problems)


def test_what_promises_nothing_is_never_broken():
    for promised in (None, typing.Any, object, OutputShape({"type": 7}), type("Odd", (), {})):
        assert find_output_problems(promised, {"a": [1]}) == []


class Colour(enum.Enum):
    RED = 1


class Word(enum.StrEnum):
    YES = "yes"


class Struct(msgspec.Struct, rename="camel"):
    foo_bar: int
    at: datetime.date | None = None


class First(msgspec.Struct, tag=True):
    a: int


class Second(msgspec.Struct, tag=True):
    b: str


class Model(pydantic.BaseModel):
    a: int = pydantic.Field(alias="A", default=1)


class AliasModel(pydantic.BaseModel):
    model_config = {"serialize_by_alias": True}
    a: int = pydantic.Field(serialization_alias="zz", default=1)


@dataclasses.dataclass
class Data:
    paths: list[Path]


WRONG: Any = "x"
RETURNED = [
    (int, 3, "x"),
    (float, 1, float("nan")),
    (bool, True, 1),
    (list[int], [1], [1, "x"]),
    (dict[int, str], {1: "a"}, {1: 2}),
    (set[str], {"a"}, {1}),
    (tuple[int, str], (1, "a"), (1, "a", 2)),
    (Colour, Colour.RED, 2),
    (dict[Colour, int], {Colour.RED: 1}, {Colour.RED: "x"}),
    (typing.Literal["a", "b"], "a", "c"),
    (Word, Word.YES, 3),
    (Struct, Struct(1), Struct(WRONG)),
    (Struct | None, None, Struct(WRONG)),
    (Struct | None, Struct(1, datetime.date(2020, 1, 1)), 7),
    (First | Second, Second("x"), Second(cast("Any", 1))),
    (Model, Model(), {"a": "x"}),
    (list[AliasModel], [AliasModel()], [{"zz": "x"}]),
    (Data, Data([Path("/a")]), Data(cast("Any", [1]))),
    (str | int, "text", [1]),
    (str | None, None, 5),
    (Record, {"kind": "record", "inner": []}, {"kind": "other"}),
    (ToolResult | Struct, ToolResult("x", data={"any": 1}), None),
]


@pytest.mark.proves("TC-17", "TC-1")
@pytest.mark.parametrize(("promised", "good", "bad"), RETURNED, ids=lambda value: str(value)[:30])
async def test_what_a_function_returns_has_to_fit_its_annotation(
    project, promised, good, bad, caplog
):
    from handaxe import Session

    given: list[object] = [good, bad]

    async def give():
        """Give the next one."""
        return given.pop(0)

    give.__annotations__["return"] = promised
    made = tool(effects=Effects.pure())(give)
    async with Session(project, tools=[made], setting_sources=()) as session:
        fits = await session.call("give")
        assert (fits.ok, fits.code) == (True, None), fits.text
        if bad is None:
            return
        broken = await session.call("give")
    assert (broken.ok, broken.code) == (False, "internal.bad_output")
    assert broken.text.startswith("give gave data that does not fit its output type: ")
    assert broken.data["problems"]


@pytest.mark.proves("TC-17")
async def test_a_class_is_held_to_its_output_type_and_state_is_put_back(project):
    from handaxe import Session, State

    class Count(State):
        calls: int = 0

    class NothingArgs(ToolArgs):
        pass

    class Counter(Tool[NothingArgs]):
        """Counts."""

        search_hint = "counts its own calls"
        effects = Effects.pure()
        uses = (Count,)
        output_type = Inner

        async def call(self, args, ctx):
            ctx[Count].calls += 1
            size = ctx[Count].calls
            return ToolResult("counted", data={"size": size if size < 2 else "many"})

    class Same(Counter):
        """Inherits what it promises."""

        name = "Same"

    async with Session(project, tools=[Counter, Same], setting_sources=()) as session:
        assert (await session.call("Counter")).data == {"size": 1}
        for name in ("Counter", "Same", "Counter"):
            broken = await session.call(name)
            assert broken.code == "internal.bad_output"
            assert "the field `size` is string, not integer" in broken.text


async def test_a_failed_call_promises_no_data(project):
    from handaxe import Session

    class NothingArgs(ToolArgs):
        pass

    class Failing(Tool[NothingArgs]):
        """Fails."""

        search_hint = "fails each time again"
        effects = Effects.pure()
        output_type = Inner

        async def call(self, args, ctx):
            return ToolResult("no", ok=False, code="a.b", data={"why": 1})

    async with Session(project, tools=[Failing], setting_sources=()) as session:
        result = await session.call("Failing")
    assert (result.code, result.data) == ("a.b", {"why": 1})


def test_data_of_several_shapes_is_an_object_at_the_root():
    schema = build_output_schema(Record | Other)
    assert schema is not None
    assert schema["type"] == "object"
    assert len(schema["anyOf"]) == 2
