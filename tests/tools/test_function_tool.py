"""A typed async function as a tool."""

import dataclasses
import functools
import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Dict, List, Literal, NewType, NotRequired, TypedDict, cast  # noqa: UP035

import jsonschema
import msgspec
import pydantic
import pytest

from handaxe import Session, SetupError, ToolFault
from handaxe.app.session import get_parts
from handaxe.contract import Effects, Tool, ToolArgs, ToolContext, ToolResult
from handaxe.contract.ports.files import Files
from handaxe.schema.tool_schema import build_input_schema
from handaxe.schema.validate import InputProblems, read_input
from handaxe.tools.function_tool import tool


class Answer(msgspec.Struct):
    total: int


@tool
async def add_numbers(
    a: Annotated[int, "The first."], b: Annotated[int, "The second."] = 1
) -> Answer:
    """Add two whole numbers.

    Negative ones too.
    """
    return Answer(a + b)


def context(call_id="c1", **ports):
    reports: list[str] = []
    return ToolContext(call_id, {}, frozenset(), reports.append), reports


async def result_of(made, **raw):
    args, _ = read_input(made.args_type, raw)
    return await made.call(args, context()[0])


def test_everything_is_taken_from_the_function():
    assert isinstance(add_numbers, Tool)
    assert add_numbers.name == "add_numbers"
    assert add_numbers.prompt() == "Add two whole numbers.\n\nNegative ones too."
    assert add_numbers.search_hint == "Add two whole numbers"
    assert add_numbers.output_type is Answer
    assert build_input_schema(add_numbers.args_type) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first."},
            "b": {"type": "integer", "description": "The second.", "default": 1},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_without_a_word_about_effects_the_worst_is_assumed():
    args, _ = read_input(add_numbers.args_type, {"a": 1})

    assert add_numbers.effects_of(args) == Effects.unknown()


async def test_data_comes_back_as_data_and_as_text():
    result = await result_of(add_numbers, a="3", b=4)

    assert (result.text, result.data) == ('{"total":7}', {"total": 7})


async def test_the_function_can_still_be_called_as_such():
    assert await add_numbers(2, b=3) == Answer(5)


def test_unknown_input_is_refused():
    with pytest.raises(InputProblems):
        read_input(add_numbers.args_type, {"a": 1, "c": 2})


async def test_options_and_context_are_passed_through():
    @tool(
        name="Peek",
        effects=lambda args: Effects.reading(args.path),
        search_hint="look into a file",
        uses=(Files,),
        timeout_s=3.0,
    )
    async def peek(path: str, ctx: ToolContext, how: Literal["a", "b"] = "a") -> str:
        ctx.report("peeking")
        return f"{path} {how} {ctx.call_id}"

    ctx, reports = context("c7")
    args, _ = read_input(peek.args_type, {"path": "x"})

    assert (await peek.call(args, ctx)) == ToolResult("x a c7")
    assert reports == ["peeking"]
    assert (peek.name, peek.uses, peek.timeout_s) == ("Peek", (Files,), 3.0)
    assert peek.effects_of(args) == Effects.reading("x")
    assert peek.search_hint == "look into a file"
    assert list(build_input_schema(peek.args_type)["properties"]) == ["path", "how"]


class Model(pydantic.BaseModel):
    size: int = 1


@pytest.mark.parametrize(
    ("value", "text", "data"),
    [
        ("plain", "plain", None),
        (None, "Done.", None),
        ([1, "a"], '[1,"a"]', [1, "a"]),
        ({"a": None}, '{"a":null}', {"a": None}),
        (Model(), '{"size":1}', {"size": 1}),
        (3, "3", 3),
        (False, "false", False),
    ],
)
async def test_any_json_able_value_may_be_returned(value, text, data):
    @tool(effects=Effects.none())
    async def give() -> Any:
        return value

    result = await result_of(give)
    assert (result.text, result.data, result.ok) == (text, data, True)
    assert give.effects == Effects.none()


async def test_a_finished_result_is_left_alone():
    finished = ToolResult("x", notes=("n",))

    @tool
    async def give() -> ToolResult:
        return finished

    assert await result_of(give) is finished
    assert give.output_type is None


async def test_a_mutable_default_is_not_shared_between_calls():
    @tool
    async def collect(items: list[str] = ["a"]) -> list[str]:  # noqa: B006
        items.append("b")
        return items

    assert (await result_of(collect)).data == ["a", "b"]
    assert (await result_of(collect)).data == ["a", "b"]


def test_two_tools_of_one_module_do_not_mix():
    @tool(effects=Effects.none())
    async def first() -> str:
        """One."""
        return ""

    @tool
    async def second(x: int) -> str:
        """Two."""
        return ""

    assert (first.prompt(), second.prompt()) == ("One.", "Two.")
    assert first.args_type is not second.args_type
    assert second.effects == Effects.unknown()


def plain(a: int) -> int:
    return a


async def untyped(a, b: int):
    return a


async def many(*parts: int):
    return parts


async def named(**parts: int):
    return parts


async def positional(a: int, /):
    return a


async def formless(b: "Missing"):  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
    return b


class Formless:
    pass


async def strange(a: Formless):
    return a


async def yielding(a: int):
    yield a


async def hidden(*, __a: int):
    return __a


async def half(a: str = "\ud800"):
    return a


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (plain, "plain is not async. Write `async def`."),
        (untyped, "untyped has no annotation for the parameter 'a'"),
        (many, r"many takes \*parts: int"),
        (named, r"named takes \*\*parts: int"),
        (positional, "positional takes a: int"),
        (formless, "an annotation that cannot be resolved"),
        (strange, "a parameter without a JSON form: .*Formless.* has no form in JSON"),
        (functools.partial(untyped, b=1), "is not async"),
        (staticmethod(untyped), "is not async"),
        (yielding, "yielding uses yield. Return the result"),
        (hidden, "a parameter '__a'"),
        (half, "a parameter without a JSON form"),
    ],
)
def test_what_cannot_become_a_tool_is_refused_with_the_reason(function, words):
    with pytest.raises(TypeError, match=words):
        tool(function)


def test_an_option_nobody_knows_is_refused():
    with pytest.raises(TypeError, match="'efects'"):
        tool(efects=Effects.none())(add_numbers.function)


def test_a_name_no_provider_takes_is_refused():
    with pytest.raises(ValueError, match="is not a tool name"):
        tool(name="my tool")(add_numbers.function)


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"aliases": "abc"}, "aliases"),
        ({"timeout_s": "5"}, "timeout_s"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"max_result_chars": -1}, "max_result_chars"),
        ({"interrupt": "maybe"}, "interrupt"),
        ({"effects": 5}, "effects"),
        ({"effects": Effects}, "effects"),
        ({"effects": Effects.unknown}, "effects"),
        ({"effects": Effects.pure}, "effects"),
    ],
)
def test_a_fact_of_the_wrong_kind_is_refused_where_the_tool_is_written(facts, word):
    async def function() -> str:
        return ""

    with pytest.raises(TypeError, match=word):
        tool(**facts)(function)
    with pytest.raises(TypeError, match=word):
        type("Written", (Tool,), facts)


def test_what_is_no_function_or_has_no_name_is_refused():
    async def function() -> str:
        return ""

    with pytest.raises(TypeError, match="not async"):
        tool(cast("Any", 5))
    with pytest.raises(ValueError, match="not a tool name"):
        tool(name="")(function)


def test_a_default_that_does_not_fit_its_type_is_refused():
    async def function(number: int = cast("Any", "many")) -> str:
        return ""

    with pytest.raises(TypeError, match=r"default of 'number'.*Expected `int`"):
        tool(function)


async def test_no_call_sees_what_another_did_to_a_default():
    @tool
    async def grow(rows: list[list[int]] = [[1]]) -> str:  # noqa: B006 - what is tested
        rows[0].append(2)
        return f"{rows}"

    assert (await result_of(grow)).text == (await result_of(grow)).text == "[[1, 2]]"


@pytest.mark.parametrize(
    ("given", "text", "data"),
    [
        ({"n": float("nan")}, '{"n":null}', {"n": None}),
        ({"name": "a\udcff"}, '{"name":"a\\\\udcff"}', {"name": "a\\udcff"}),
    ],
)
async def test_text_and_data_agree_on_what_json_cannot_hold(given, text, data):
    @tool
    async def give() -> Any:
        return given

    result = await result_of(give)
    assert (result.text, result.data) == (text, data)


def test_any_data_of_a_tool_has_a_json_form():
    result = ToolResult("x", data={"path": Path("/a"), 1: {2}})
    assert json.loads(json.dumps(result.to_json()))["data"]["path"] == "/a"


def test_mutable_defaults_are_told_to_the_model():
    @tool
    async def pick(numbers: list[int] = [1, 2], where: dict[str, str] = {"a": "b"}) -> str:  # noqa: B006
        """Pick some of them."""
        return f"{numbers} {where}"

    fields = build_input_schema(pick.args_type)["properties"]
    assert (fields["numbers"]["default"], fields["where"]["default"]) == ([1, 2], {"a": "b"})


async def test_the_context_may_be_documented_or_optional():
    @tool
    async def look(
        a: int, first: Annotated[ToolContext, "ours"], second: ToolContext | None = None
    ) -> str:
        """Look at both."""
        return f"{a} {first is second}"

    assert list(build_input_schema(look.args_type)["properties"]) == ["a"]
    assert (await result_of(look, a=1)).text == "1 True"


def test_a_return_type_that_json_does_not_know_promises_nothing():
    @tool
    async def count() -> Iterator[int]:
        """Count up."""
        return iter([1])

    assert count.output_type is None


def test_a_docstring_with_half_a_character_is_told_all_the_same():
    async def odd() -> str:
        return ""

    odd.__doc__ = "Half: \ud800."
    assert tool(odd).prompt() == "Half: \\ud800."


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"text": 5}, "ToolResult.text must be a text, not 5"),
        ({"text": None}, "ToolResult.text must be a text, not None"),
        ({"ok": "yes"}, "ToolResult.ok must be true or false, not 'yes'"),
        ({"notes": (1,)}, "ToolResult.notes must be a tuple of texts, not (1,)"),
        ({"notes": "abc"}, "ToolResult.notes must be a tuple of texts, not 'abc'"),
        ({"messages": [None]}, "ToolResult.messages must be a tuple of texts, not [None]"),
        (
            {"content": ("a",)},
            "ToolResult.content must be a tuple of TextBlock or ImageBlock, not ('a',)",
        ),
        ({"display": object()}, "ToolResult.display must be a tuple of Text or Code or"),
    ],
)
async def test_a_result_with_wrong_parts_is_a_bug_of_its_tool(project, given, words):
    @tool(effects=Effects.none())
    async def give() -> ToolResult:
        return ToolResult(**{"text": "x", **given})

    async with Session(project, tools=[give]) as session:
        result = await session.call("give")
        assert get_parts(session).recorder.result_of(result.id) == result
    assert (result.ok, result.code) == (False, "internal.error")
    assert words in result.text


async def test_notes_and_messages_may_be_lists_and_hold_half_a_character(project):
    @tool(effects=Effects.none())
    async def give() -> ToolResult:
        notes, messages = cast("Any", (["a \ud800"], ["b"]))
        return ToolResult("x", notes=notes, messages=messages)

    async with Session(project, tools=[give]) as session:
        result = await session.call("give")
    assert (result.notes, result.messages) == (("a \\ud800",), ("b",))


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("planned")


def ring():
    made: list[Any] = []
    made += [made, made]
    return made


def tower():
    made: list[Any] = []
    for _ in range(5_000):
        made = [made]
    return made


@pytest.mark.parametrize(
    "data",
    [
        {("a", "b"): object(), "half": "\ud800"},
        {"mute": Mute()},
        {Mute(): 1},
        {"ring": ring()},
        ring(),
        {"deep": tower()},
        {None: 1, True: 2},
        {"nan": float("nan"), "big": 10**400},
        object(),
        b"\xff",
    ],
    ids=lambda data: type(data).__name__,
)
async def test_whatever_a_tool_gives_as_data_breaks_nothing(project, data):
    @tool(effects=Effects.none())
    async def give() -> ToolResult:
        return ToolResult("x", data=data)

    async with Session(project, tools=[give]) as session:
        result = await session.call("give")
        assert (result.ok, result.text) == (True, "x")
        json.dumps(result.to_json())
        for provider in ("anthropic", "openai", "gemini", "json-schema"):
            msgspec.json.encode(session.tool_result(result, provider))
        stored = get_parts(session).recorder.result_of(result.id)
        assert stored is not None
        assert (stored.text, stored.id) == ("x", result.id)


class NoArgs(ToolArgs):
    pass


def spoilt(**members):
    async def call(self, args, ctx):
        return ToolResult("x")

    return type("Spoilt", (Tool,), {"args_type": NoArgs, "call": call, **members})


def fails(self):
    raise ValueError("planned")


Unresolved = msgspec.defstruct("Unresolved", [("x", cast("Any", "Nowhere"))], bases=(ToolArgs,))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"prompt": fails}, "The prompt or an example of Spoilt failed: ValueError: planned"),
        ({"prompt": lambda _: None}, "`prompt` of Spoilt must return a string; got None"),
        ({"input_examples": ({"x": object()},)}, "The prompt or an example of Spoilt failed"),
        ({"args_type": Unresolved}, "The input of Spoilt has no schema: name 'Nowhere'"),
    ],
)
def test_a_tool_that_cannot_be_told_to_a_model_is_refused_with_the_session(project, members, words):
    with pytest.raises(SetupError, match=words):
        Session(project, tools=[spoilt(**members)])


async def test_a_tool_that_cannot_say_whether_it_is_enabled_is_not_on_offer(project):
    async with Session(project, tools=["Read", spoilt(enabled=fails)]) as session:
        assert [one["name"] for one in session.tools()] == ["Read"]
        assert (await session.call("Spoilt")).code == "call.unknown_tool"


class Told(pydantic.BaseModel):
    name: str
    at: Path


class Word(str):
    pass


@pytest.mark.proves("TC-12")
@pytest.mark.parametrize(
    ("given", "data"),
    [
        (Path("/a/b"), "/a/b"),
        ([Path("a"), {"b": Path("c")}], ["a", {"b": "c"}]),
        ([Told(name="x", at=Path("a"))], [{"name": "x", "at": "a"}]),
        ({"told": Told(name="x", at=Path("a"))}, {"told": {"name": "x", "at": "a"}}),
        (deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
        (MappingProxyType({"a": Word("é")}), {"a": "é"}),
        ({Word("é"): Word("é")}, {"é": "é"}),
    ],
    ids=str,
)
async def test_what_a_function_gives_has_the_form_json_has_for_it(project, given, data):
    @tool(effects=Effects.pure())
    async def give() -> Any:
        return given

    @tool(effects=Effects.pure())
    async def give_as_data() -> ToolResult:
        return ToolResult("given", data={"given": given})

    async with Session(project, tools=[give, give_as_data]) as session:
        result = await session.call("give")
        told = (await session.call("give_as_data")).to_json()["data"]
    assert (result.data, json.loads(result.text)) == (data, data)
    assert told == {"given": data}


async def test_odd_names_and_what_holds_itself_are_told_in_words():
    held: dict[Any, Any] = {None: 1, (1, 2): 2}
    held["self"] = held

    @tool(effects=Effects.pure())
    async def give() -> Any:
        return held

    assert (await result_of(give)).data == {"None": 1, "(1, 2)": 2, "self": "(holds itself)"}


class Careless(ToolFault):
    """Has no code of its own."""


class Silent(ToolFault):
    code = "tree.silent"

    def __init__(self) -> None:
        pass


@pytest.mark.proves("TC-4")
@pytest.mark.parametrize(
    ("fault", "code", "text"),
    [
        (ToolFault("There is no such tree."), "call.failed", "There is no such tree."),
        (Careless("There is no such tree."), "call.failed", "There is no such tree."),
        (Careless(""), "call.failed", "The tool failed and does not say why. Try another way."),
        (Silent(), "tree.silent", "The tool failed and does not say why. Try another way."),
    ],
)
async def test_a_fault_that_says_too_little_is_a_failure_all_the_same(project, fault, code, text):
    class Fell(Tool[ToolArgs]):
        """Fell it now."""

        effects = Effects.pure()

        async def call(self, args: ToolArgs, ctx: ToolContext) -> ToolResult:
            raise fault

    class Look(Fell):
        """Look at it first."""

        args_type = ToolArgs

        async def validate(self, args: ToolArgs, ctx: ToolContext) -> None:
            raise fault

    async with Session(project, tools=[Fell, Look]) as session:
        felled, looked = await session.call("Fell"), await session.call("Look")
    assert (felled.code, felled.text) == (looked.code, looked.text) == (code, text)


class Near(pydantic.BaseModel):
    """What lies near."""

    steps: int = pydantic.Field(ge=1, description="How far.")
    beyond: "Near | None" = None


@dataclasses.dataclass
class Look:
    at: Annotated[Path, "Where to look."]
    kinds: Annotated[Sequence[Literal["b", "a"]], "What to look for."] = ()


class Marks(TypedDict):
    z: Annotated[int, "The last."]
    a: NotRequired[Annotated[str, "The first."]]


Name = NewType("Name", str)


@tool(effects=Effects.pure())
async def survey(
    near: Annotated[Near, "The start."],
    look: Look,
    marks: Marks,
    others: list[Near] = [],  # noqa: B006 - fresh for every call
    names: Mapping[Name, Annotated[int, pydantic.Field(le=9)]] = {},
    to: Path = Path("here"),
) -> str:
    """Survey what is there."""
    return repr((near, look, marks, others, names, to))


@pytest.mark.proves("TC-12")
def test_the_words_about_every_part_of_an_input_are_told():
    told = build_input_schema(survey.args_type)
    fields = told["properties"]
    look, marks = fields["look"]["properties"], fields["marks"]["properties"]
    assert fields["near"] == {"$ref": "#/$defs/Near", "description": "The start."}
    assert told["$defs"]["Near"]["properties"]["steps"] == {
        "type": "integer", "description": "How far.", "minimum": 1
    }  # fmt: skip
    assert look["at"] == {"type": "string", "description": "Where to look."}
    assert look["kinds"]["items"] == {"type": "string", "enum": ["b", "a"]}
    assert [(name, field["description"]) for name, field in marks.items()] == [
        ("z", "The last."), ("a", "The first.")
    ]  # fmt: skip
    assert fields["to"] == {"type": "string", "default": "here"}
    jsonschema.Draft202012Validator.check_schema(told)


@pytest.mark.proves("TC-5")
async def test_models_and_paths_are_read_like_everything_else(project):
    given: dict[str, Any] = {
        "near": '{"steps": "2", "beyond": {"steps": 1}}',
        "look": {"at": "a/b", "kinds": ["a"]},
        "marks": {"z": "1"},
        "names": {"x": 3},
    }
    wrong = {**given, "near": {"step": 1}, "look": {"at": 5}, "others": [{"steps": 0}]}
    async with Session(project, tools=[survey]) as session:
        read = await session.call("survey", given)
        refused = await session.call("survey", wrong)
        bounded = await session.call("survey", {**given, "names": {"x": 10}})
    near = Near(steps=2, beyond=Near(steps=1))
    look = Look(Path("a/b"), ["a"])
    assert read.text == repr((near, look, {"z": 1}, [], {"x": 3}, Path("here")))
    assert read.notes[1] == 'near.steps: read "2" as 2'
    assert refused.data["problems"] == [
        "The required parameter `near.steps` is missing",
        "An unexpected parameter `near.step` was provided; did you mean `steps`?",
        "The parameter `look.at` type is expected as `string` but provided as `integer`",
        "The parameter `others[0].steps` must be at least 1 but was provided as 0",
    ]
    assert bounded.code == "call.bad_input"


async def test_a_path_of_its_own_class_is_judged_as_a_path(project):
    @tool(effects=Effects.none())
    async def peek(file_path: Path) -> str:
        """Peek into a file."""
        return file_path.name

    async with Session(project, tools=[peek], deny=["Read(secret)"]) as session:
        inside = await session.call("peek", file_path="a")
        outside = await session.call("peek", file_path="/etc/passwd")
        secret = await session.call("peek", file_path="secret")
    codes = (inside.code, outside.code, secret.code)
    assert codes == (None, "permission.asked", "permission.denied")


def test_two_types_of_one_name_have_two_schemas():
    def inputs_of(field: str) -> Any:
        return dataclasses.make_dataclass("Item", [(field, int)])

    first, second = inputs_of("a"), inputs_of("b")

    @tool
    async def join(one: first, two: second, more: list[first], rest: list[second]) -> str:  # type: ignore[valid-type]
        """Join what belongs together."""
        return f"{one}{two}{more}{rest}"

    told = build_input_schema(join.args_type)
    assert [list(part["properties"]) for part in told["$defs"].values()] == [["a"], ["b"]]


def test_bare_and_empty_collections_have_a_schema():
    @tool
    async def keep(a: Dict, b: List, c: tuple[()], d: Sequence) -> str:  # type: ignore[type-arg]  # noqa: UP006
        """Keep what is given."""
        return f"{a}{b}{c}{d}"

    kinds = build_input_schema(keep.args_type)["properties"]
    array = {"type": "array"}
    assert kinds == {"a": {"type": "object"}, "b": array, "c": {**array, "maxItems": 0}, "d": array}


@pytest.mark.proves("TC-7")
@pytest.mark.parametrize("text", ["a\0b\n" * 20, "é\u2028x\r\n" * 20, "\ud800z\n" * 20, "\0" * 50])
async def test_whatever_a_stored_result_holds_it_can_be_read_and_searched(project, text):
    @tool(effects=Effects.pure(), max_result_chars=10)
    async def speak() -> str:
        """Speak at great length."""
        return text

    async with Session(project, tools=[speak]) as session:
        spoken = await session.call("speak")
        path = re.search("saved to: (.*)", spoken.text)
        assert path is not None
        read = await session.call("Read", file_path=path[1])
        found = await session.call("Grep", pattern=".", path=path[1])
    assert (read.code, found.code) == (None, None)
