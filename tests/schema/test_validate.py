"""Input as models send it, read as they mean it."""

import datetime
import json
import uuid
from enum import Enum
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handaxe.contract import ToolArgs
from handaxe.schema.tool_schema import build_input_schema
from handaxe.schema.validate import InputProblems, read_input
from handaxe.text.escape import find_closest_name


class Change(ToolArgs):
    old_string: str
    new_string: str
    replace_all: bool = False


class Circle(ToolArgs, tag_field="shape", tag="circle"):
    radius: float


class Square(ToolArgs, tag_field="shape", tag="square"):
    side: int


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Everything(ToolArgs):
    file_path: Annotated[str, "A path."]
    count: int = 0
    ratio: float = 0.0
    replace_all: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    mode: Literal["content", "files_with_matches", "count"] = "content"
    level: Literal[1, 2, 3] = 1
    colour: Colour = Colour.RED
    ignore_case: bool = msgspec.field(default=False, name="-i")
    tags: list[str] = msgspec.field(default_factory=list)
    numbers: list[int] = msgspec.field(default_factory=list)
    edits: list[Change] = msgspec.field(default_factory=list)
    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    pair: tuple[int, bool] = (0, False)
    text_or_number: str | int = ""
    auto_or_number: Literal["auto"] | int = "auto"
    shape: Circle | Square | None = None
    anything: Any = None


class Tree(ToolArgs):
    name: str
    children: "list[Tree]" = msgspec.field(default_factory=list)


class Lax(msgspec.Struct):
    path: str
    inner: "LaxInner | None" = None


class LaxInner(msgspec.Struct):
    size: int = 0


class Model(pydantic.BaseModel):
    path: str
    limit: int = 10
    flag: bool | None = None
    edits: list["ModelEdit"] = []


class ModelEdit(pydantic.BaseModel):
    old: str = pydantic.Field(alias="old_string")
    times: int = pydantic.Field(1, ge=1)


def problems_of(args_type, raw):
    with pytest.raises(InputProblems) as caught:
        read_input(args_type, raw)
    return caught.value.problems


def problem_of(**raw):
    (problem,) = problems_of(Everything, {"file_path": "a", **raw})
    return problem


def read(**raw):
    return read_input(Everything, {"file_path": "a", **raw})


def nested_list(levels):
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def test_a_fitting_input_is_read_without_a_note():
    args, notes = read(count=3, **{"-i": True}, edits=[{"old_string": "a", "new_string": "b"}])

    assert (args.count, args.ignore_case) == (3, True)
    assert args.edits == [Change(old_string="a", new_string="b")]
    assert notes == []


@pytest.mark.parametrize(
    ("field", "sent", "meant"),
    [
        ("replace_all", "true", True),
        ("replace_all", "False", False),
        ("replace_all", " TRUE ", True),
        ("count", "3", 3),
        ("count", " 10", 10),
        ("count", "+10", 10),
        ("count", "-7\n", -7),
        ("count", 3.0, 3),
        ("count", "3.0", 3),
        ("ratio", "0.5", 0.5),
        ("ratio", " 1e3 ", 1000.0),
        ("ratio", "2", 2.0),
        ("limit", "10", 10),
        ("level", "2", 2),
        ("numbers", '[1, "2"]', [1, 2]),
        ("numbers", ["1", 2.0], [1, 2]),
        ("tags", '["x", "1"]', ["x", "1"]),
        ("sizes", '{"a": "1"}', {"a": 1}),
        ("sizes", {"a": "1"}, {"a": 1}),
        ("pair", ["4", "true"], (4, True)),
        ("auto_or_number", "12", 12),
        ("auto_or_number", "auto", "auto"),
        ("text_or_number", "12", "12"),
    ],
)
def test_what_can_only_mean_one_thing_is_read_as_that(field, sent, meant):
    args, _ = read(**{field: sent})

    assert getattr(args, field) == meant


def test_a_note_says_what_was_read_as_what():
    edits = '[{"old_string": "a", "new_string": "b", "replace_all": "true"}]'
    _, notes = read(limit="10", edits=edits, **{"-i": "TRUE"})

    assert notes == [
        'limit: read "10" as 10',
        "edits: read a JSON array sent as text",
        'edits[0].replace_all: read "true" as true',
        '-i: read "TRUE" as true',
    ]


def test_a_tagged_object_sent_as_text_finds_its_type():
    args, _ = read(shape='{"shape": "circle", "radius": "2"}')

    assert args.shape == Circle(radius=2.0)


class One(ToolArgs, tag_field="version", tag=1):
    old: str


class Two(ToolArgs, tag_field="version", tag=2):
    new: str


class Versions(ToolArgs):
    items: list[One | Two]


class Cat(pydantic.BaseModel):
    kind: Literal["cat", "kitten"]
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    legs: int = 4


class Pet(pydantic.BaseModel):
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("args_type", "raw", "problem"),
    [
        (
            Everything,
            {"file_path": "a", "shape": {"shape": "sqare", "side": 1}},
            (
                'The parameter `shape.shape` must be one of "circle", "square" but was provided as "sqare"; '
                'did you mean "square"?'
            ),
        ),
        (
            Everything,
            {"file_path": "a", "shape": {"radius": 1, "side": 2}},
            'The required parameter `shape.shape` is missing; it is one of "circle", "square"',
        ),
        (
            Everything,
            {"file_path": "a", "shape": {"shape": ["circle"]}},
            'The parameter `shape.shape` must be one of "circle", "square" but was provided as 1 item',
        ),
        (
            Versions,
            {"items": [{"version": 1, "old": "x"}, {"version": 3, "new": "y"}]},
            "The parameter `items[1].version` must be one of 1, 2 but was provided as 3",
        ),
        (
            Versions,
            {"items": [{"version": True, "old": "x"}]},
            "The parameter `items[0].version` must be one of 1, 2 but was provided as true",
        ),
        (
            Pet,
            {"pet": {"kind": "hamster"}},
            'The parameter `pet.kind` must be one of "cat", "kitten", "dog" but was provided as "hamster"',
        ),
    ],
)
def test_a_wrong_or_missing_tag_tells_all_that_there_are(args_type, raw, problem):
    assert problems_of(args_type, raw) == [problem]


def test_a_tag_that_is_a_number_may_come_as_text():
    args, notes = read_input(Versions, {"items": [{"version": "2", "new": "y"}]})

    assert args.items == [Two(new="y")]
    assert notes == ['items[0].version: read "2" as 2']


@pytest.mark.parametrize("field", ["count", "mode", "edits", "-i", "limit", "shape", "level"])
def test_null_for_a_field_with_a_default_counts_as_absent(field):
    args, notes = read(**{field: None})

    assert (args, notes) == (Everything(file_path="a"), [])


def test_a_text_field_keeps_what_looks_like_something_else():
    for text in ("3", " true ", "[1]", '{"a": 1}', "null", "", "\0"):
        args, notes = read_input(Everything, {"file_path": text, "count": "1"})
        assert args.file_path == text
        assert notes == ['count: read "1" as 1']


def test_all_problems_are_told_at_once_with_their_places():
    raw = {
        "file_pth": "a",
        "replace_all": "yes",
        "limit": 0,
        "mode": "contents",
        "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": 1, "new": "c"}],
    }

    assert problems_of(Everything, raw) == [
        "The required parameter `file_path` is missing",
        "An unexpected parameter `file_pth` was provided; did you mean `file_path`?",
        "The parameter `replace_all` type is expected as `boolean` but provided as `string`",
        "The parameter `limit` must be at least 1 but was provided as 0",
        (
            'The parameter `mode` must be one of "content", "files_with_matches", "count" '
            'but was provided as "contents"; did you mean "content"?'
        ),
        "The required parameter `edits[1].new_string` is missing",
        (
            "The parameter `edits[1].old_string` type is expected as `string` "
            "but provided as `integer`"
        ),
        "An unexpected parameter `edits[1].new` was provided; did you mean `new_string`?",
    ]


def test_a_renamed_field_is_known_by_the_name_the_model_was_told():
    assert problem_of(ignore_case=True) == (
        "An unexpected parameter `ignore_case` was provided; did you mean `-i`?"
    )


@pytest.mark.parametrize(
    ("field", "sent", "expected", "provided"),
    [
        ("file_path", 3, "string", "integer"),
        ("file_path", None, "string", "null"),
        ("count", True, "integer", "boolean"),
        ("count", "3.5", "integer", "string"),
        ("count", 3.5, "integer", "number"),
        ("count", "1_000", "integer", "string"),
        ("count", "٣", "integer", "string"),
        ("ratio", "nan", "number", "string"),
        ("ratio", "inf", "number", "string"),
        ("replace_all", 1, "boolean", "integer"),
        ("replace_all", "1", "boolean", "string"),
        ("tags", "a, b", "array", "string"),
        ("tags", '{"a": 1}', "array", "string"),
        ("sizes", "[1]", "object", "string"),
        ("text_or_number", [], "integer or string", "array"),
        ("limit", "many", "integer", "string"),
    ],
)
def test_what_may_mean_something_else_is_refused(field, sent, expected, provided):
    assert problem_of(**{field: sent}) == (
        f"The parameter `{field}` type is expected as `{expected}` but provided as `{provided}`"
    )


@pytest.mark.parametrize(
    ("raw", "name"),
    [([], "array"), (None, "null"), ("x", "string"), ("[1]", "string"), (3, "integer")],
)
def test_an_input_that_is_no_object_is_one_problem(raw, name):
    wanted = "is expected as `object` with named parameters"
    assert problems_of(Everything, raw) == [f"The input {wanted} but provided as `{name}`"]


def test_a_whole_input_sent_as_text_is_read_and_noted():
    args, notes = read_input(Change, ' {"old_string": "a", "new_string": "b"}')

    assert args == Change(old_string="a", new_string="b")
    assert notes == ["input: read a JSON object sent as text"]


def test_a_lone_surrogate_is_a_problem_wherever_it_is():
    words = "contains a lone surrogate (U+D800), which no text file can hold"

    assert problem_of(file_path="x\ud800") == f"The parameter `file_path` {words}"
    assert problem_of(anything=[{"k": "\ud800"}]) == f"The parameter `anything[0].k` {words}"
    assert problem_of(anything={"\ud800": 1}) == f"The parameter `anything.\\ud800` {words}"
    assert read(anything="😀")[0].anything == "😀"


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 1 << 20_000, str(2**64)], ids=lambda _: "")
def test_a_number_beyond_64_bits_is_a_problem(value):
    assert problem_of(count=value) == "The parameter `count` is a number beyond 64 bits"


def test_a_number_of_thousands_of_digits_sent_as_text_is_a_problem():
    assert "type is expected as `integer`" in problem_of(count="9" * 5000)


@pytest.mark.parametrize("field", ["ratio", "anything"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_a_problem(field, value):
    assert problem_of(**{field: value}) == (
        f"The parameter `{field}` is {value}, which JSON cannot hold"
    )


def test_ten_thousand_levels_are_one_problem():
    deep_tree: dict[str, Any] = {"name": "leaf"}
    for _ in range(10_000):
        deep_tree = {"name": "x", "children": [deep_tree]}
    cycle: list[Any] = []
    cycle += [cycle, cycle]

    too_deep = "is nested more than 100 levels deep"
    assert problem_of(anything=nested_list(10_000)) == f"The parameter `anything` {too_deep}"
    assert problem_of(anything=cycle) == f"The parameter `anything` {too_deep}"
    assert problems_of(Tree, deep_tree) == [f"The parameter `children` {too_deep}"]
    assert "expected as `array`" in problem_of(tags="[" * 10_000)
    assert "levels deep" in problem_of(tags="[" * 500 + "]" * 500)


def test_text_nested_in_text_ends_at_the_same_depth():
    tree: Any = {"name": "leaf"}
    for _ in range(6):
        for _ in range(10):
            tree = {"name": "x", "children": [tree]}
        tree = {"name": "x", "children": json.dumps([tree])}

    (problem,) = problems_of(Tree, tree)
    assert "is nested more than 100 levels deep" in problem


def test_ninety_levels_are_fine():
    tree: dict[str, Any] = {"name": "leaf"}
    for _ in range(45):
        tree = {"name": "x", "children": [tree]}

    assert read_input(Tree, tree)[1] == []
    assert read_input(Tree, {**tree, "children": json.dumps(tree["children"])})[1] != []


def test_huge_texts_are_read_and_never_quoted_in_full():
    text = "ä" * 10_000_000

    assert read(anything=text)[0].anything is text
    assert len(problem_of(count=text)) < 200
    assert len(problem_of(mode=text)) < 300
    assert len("".join(problems_of(Everything, {text: 1, "file_path": "a"}))) < 600


def test_hundreds_of_problems_are_counted_not_listed():
    problems = problems_of(Everything, {"file_path": "a"} | {f"x{n}y": n for n in range(30_000)})

    assert len(problems) == 26
    assert problems[-1] == "... and 29,975 more problems"


def test_python_values_that_are_not_json_are_refused():
    assert problems_of(Everything, {"file_path": b"a"})[0] == (
        "The parameter `file_path` is a Python `bytes`, which is not a JSON value"
    )
    assert problems_of(Everything, {"file_path": "a", 1: 2})[0].startswith(
        "An unexpected parameter `1` was provided"
    )


def test_unknown_fields_are_refused_even_where_the_type_would_ignore_them():
    assert problems_of(Lax, {"path": "a", "inner": {"sise": 1}}) == [
        "An unexpected parameter `inner.sise` was provided; did you mean `size`?"
    ]
    assert read_input(Lax, {"path": "a", "inner": {"size": "2"}})[0] == Lax("a", LaxInner(2))


def test_a_tool_without_parameters_says_so():
    assert problems_of(ToolArgs, {"x": 1}) == [
        "An unexpected parameter `x` was provided; there are no parameters"
    ]


class Checked(ToolArgs):
    first: int
    last: int

    def __post_init__(self):
        if self.last < self.first:
            raise ValueError("last comes before first")


def test_a_check_of_the_type_itself_becomes_a_problem():
    assert problems_of(Checked, {"first": 2, "last": "1"}) == ["last comes before first"]


def test_a_pydantic_model_is_read_by_the_same_rules():
    raw = {"path": "a", "limit": "5", "edits": '[{"old_string": "x", "times": "2"}]'}
    args, notes = read_input(Model, raw)

    assert args == Model(path="a", limit=5, edits=[ModelEdit(old_string="x", times=2)])
    assert notes[0] == 'limit: read "5" as 5'
    assert problems_of(Model, {"pth": "a", "edits": [{"old_string": 1, "times": 0}]}) == [
        "The required parameter `path` is missing",
        "An unexpected parameter `pth` was provided; did you mean `path`?",
        (
            "The parameter `edits[0].old_string` type is expected as `string` "
            "but provided as `integer`"
        ),
        "The parameter `edits[0].times` must be at least 1 but was provided as 0",
    ]


@pytest.mark.parametrize(
    ("sent", "near"),
    [
        ("filePath", "file_path"),
        ("file-path", "file_path"),
        ("path", "file_path"),
        ("file_pth", "file_path"),
        ("ofset", "offset"),
        ("OFFSET", "offset"),
        ("query", None),
        ("", None),
        ("x" * 1000, None),
    ],
)
def test_the_nearest_name_is_found_or_none(sent, near):
    assert find_closest_name(sent, ["file_path", "offset", "limit", "-i"]) == near


class Even(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def is_even(cls, value):
        if value % 2:
            raise ValueError("odd")
        return value


def test_a_check_of_a_pydantic_model_becomes_a_problem():
    assert problems_of(Even, {"number": 3}) == [
        "The parameter `number` is not valid: Value error, odd"
    ]


plain_text = st.text(st.characters(codec="utf-8"), max_size=30)
int64 = st.integers(-(2**63), 2**64 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
changes = st.fixed_dictionaries(
    {"old_string": plain_text, "new_string": plain_text}, optional={"replace_all": st.booleans()}
)
fitting = st.fixed_dictionaries(
    {"file_path": plain_text},
    optional={
        "count": int64,
        "ratio": finite,
        "replace_all": st.booleans(),
        "limit": st.integers(1, 100),
        "mode": st.sampled_from(["content", "files_with_matches", "count"]),
        "level": st.sampled_from([1, 2, 3]),
        "colour": st.sampled_from(["red", "blue"]),
        "-i": st.booleans(),
        "tags": st.lists(plain_text, max_size=4),
        "numbers": st.lists(int64, max_size=4),
        "edits": st.lists(changes, max_size=3),
        "sizes": st.dictionaries(plain_text, int64, max_size=3),
        "pair": st.tuples(int64, st.booleans()).map(list),
        "text_or_number": plain_text | int64,
        "auto_or_number": st.just("auto") | int64,
        "shape": st.fixed_dictionaries({"shape": st.just("square"), "side": int64}),
    },
)


def as_text(value, field=""):
    """The same value with every scalar sent as text, where its field takes no text."""
    if field == "text_or_number":
        return value
    if isinstance(value, dict):
        return {key: as_text(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    return value if isinstance(value, str) else json.dumps(value)


@given(fitting)
def test_every_scalar_sent_as_text_gives_the_same_input(raw):
    assert read_input(Everything, as_text(raw))[0] == read_input(Everything, raw)[0]


@given(fitting)
def test_every_list_and_object_sent_as_text_gives_the_same_input(raw):
    sent = {
        key: json.dumps(item) if isinstance(item, list | dict) else item
        for key, item in raw.items()
    }
    assert read_input(Everything, sent)[0] == read_input(Everything, raw)[0]


@given(fitting)
def test_what_is_read_without_a_note_fits_the_schema(raw):
    args, notes = read_input(Everything, raw)

    assert notes == []
    jsonschema.Draft202012Validator(build_input_schema(Everything)).validate(raw)
    assert read_input(Everything, msgspec.to_builtins(args))[0] == args


@given(st.text(), st.sampled_from(["3", "x", 7, None]))
def test_no_text_field_is_ever_changed(text, other):
    try:
        args, _ = read_input(Everything, {"file_path": text, "tags": [text], "count": other})
    except InputProblems:
        return
    assert (args.file_path, args.tags) == (text, [text])


wild = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)
names = st.sampled_from([*Everything.__struct_encode_fields__, "file_pth", "\ud800", ""])


@settings(max_examples=300)
@given(st.dictionaries(names, wild, max_size=6) | wild | wild.map(repr))
def test_no_input_raises_anything_but_its_problems(raw):
    for args_type in (Everything, Tree, Lax, Model):
        try:
            args, said = read_input(args_type, raw)
        except InputProblems as caught:
            args, said = None, caught.problems
        assert args is None or isinstance(args, args_type)
        assert all(sentence.encode() for sentence in said)
        assert said or args is not None


class Named(ToolArgs):
    sizes: dict[Colour, int]
    numbers: dict[int, str] = msgspec.field(default_factory=dict)


def test_names_of_a_dict_that_are_none_are_told_with_those_there_are():
    args, _ = read_input(Named, {"sizes": {"red": "1"}, "numbers": {"7": "x"}})
    assert args == Named(sizes={Colour.RED: 1}, numbers={7: "x"})

    assert problems_of(Named, {"sizes": {"read": 1, "x": "y"}}) == [
        "An unexpected parameter `sizes.read` was provided; did you mean `red`?",
        "An unexpected parameter `sizes.x` was provided; the parameters are `red`, `blue`",
    ]
    assert problems_of(Named, {"sizes": {}, "numbers": {"seven": "x"}}) == [
        "The parameter `numbers` is not valid: Expected `int`, got `str`"
    ]


class array:  # noqa: N801 - called as a type of JSON is
    pass


@pytest.mark.parametrize("odd", [object(), array(), type("string", (), {})()])
def test_what_is_called_like_a_type_of_json_is_none(odd):
    (problem,) = problems_of(Everything, odd)
    assert f"provided as `Python {type(odd).__name__}`" in problem
    problems = problems_of(Everything, {"file_path": "a", "tags": odd, "count": "1"})
    assert "is not a JSON value" in problems[0]


class Dated(ToolArgs):
    at: datetime.datetime
    ident: uuid.UUID
    count: int = 0
    days: tuple[datetime.date, ...] = ()


@pytest.mark.proves("TC-5")
@pytest.mark.parametrize("count", [{}, {"count": "many"}, {"count": 1, "counts": 2}])
def test_what_only_the_types_know_is_told_with_everything_else(count):
    raw = {"at": "noon", "ident": "me", "days": ["2026-01-01", "soon"], **count}
    with pytest.raises(InputProblems) as refused:
        read_input(Dated, raw)
    problems = refused.value.problems
    assert len(problems) == 3 + (count != {})
    assert [problem.split("`")[1] for problem in problems[-3:]] == ["at", "ident", "days[1]"]
