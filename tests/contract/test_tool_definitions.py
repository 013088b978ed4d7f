"""Mistakes in own tools are told where they are made, and by `problems_of`."""

import functools
import importlib.util
import sys
from typing import Annotated, Any

import pytest
from tests.expected_types import require

from handaxe import (
    Effects,
    Session,
    SetupError,
    State,
    Tool,
    ToolArgs,
    ToolContext,
    ToolResult,
    tool,
)
from handaxe.contract.content import ImageBlock
from handaxe.contract.display import Table
from handaxe.testing.conformance import problems_of


def put_off(function):
    """A decorator whose wrapper is no coroutine function itself."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    "name", ["validate", "decide", "situate", "preview", "call", "recheck", "for_observers"]
)
def test_a_method_that_is_not_async_is_refused_where_it_is_defined(name):
    with pytest.raises(TypeError, match=f"`{name}` is not an async function"):
        type("Bad", (Tool,), {name: lambda self, *_: None})

    async def fine(self, *_):
        return None

    type("Good", (Tool,), {name: fine})
    type("Wrapped", (Tool,), {name: put_off(fine)})


@pytest.mark.parametrize(
    ("fact", "value", "wanted"),
    [
        ("name", 5, "a text"),
        ("aliases", ("a", 5), "a tuple of names"),
        ("uses", State, "a tuple of types"),
        ("may_use", ("Files",), "a tuple of types"),
        ("search_hint", None, "a text"),
        ("input_examples", ({"a": 1}, 5), "a tuple of inputs"),
        ("defer", "yes", "None, True or False"),
        ("always_load", 1, "True or False"),
        ("replaces_builtin", None, "True or False"),
        ("prompt_file", 5, "the name of a file"),
    ],
)
def test_a_wrong_fact_is_refused_where_it_is_defined(fact, value, wanted):
    with pytest.raises(TypeError, match=f"`{fact}` is {wanted}"):
        type("Bad", (Tool,), {fact: value})

    async def function() -> str:
        return ""

    with pytest.raises(TypeError, match=wanted):
        tool(**{fact: value})(function)


def test_malformed_blocks_are_refused_where_they_are_made():
    raw: Any = b"\x89PNG"
    nothing: Any = None
    number: Any = 1
    text_row: Any = "ab"
    with pytest.raises(TypeError, match="base64 text"):
        ImageBlock("image/png", raw)
    with pytest.raises(TypeError, match="media_type"):
        ImageBlock(nothing, "")
    with pytest.raises(ValueError, match="base64 text alone"):
        ImageBlock("image/png", "data:image/png;base64,YWJj")
    assert ImageBlock.from_bytes(b"abc") == ImageBlock("image/png", "YWJj")
    assert ImageBlock("image/png", "YWJj\r\nYWJj\n").data
    with pytest.raises(TypeError, match="one cell for each column"):
        Table(("a", "b"), (("1",),))
    with pytest.raises(TypeError, match="a cell that is not a text"):
        Table(("a",), ((number,),))
    with pytest.raises(TypeError, match="'ab' is not a tuple of cells"):
        Table(("a", "b"), (text_row,))


MODULE = """
from handaxe import Tool, ToolArgs, tool

class Notes(Tool[ToolArgs]):
    "From the docstring."

class Told(Tool[ToolArgs]):
    prompt_file = "notes.md"

@tool(prompt_file="notes.md")
async def told() -> str:
    return ""

class Missing(Tool[ToolArgs]):
    prompt_file = "none.md"
"""


def test_a_file_beside_a_module_is_the_prompt_only_when_asked_for(tmp_path, project):
    (tmp_path / "notes.py").write_text(MODULE)
    (tmp_path / "notes.md").write_text("# About this folder\n")
    spec = require(importlib.util.spec_from_file_location("notes", tmp_path / "notes.py"))
    module = sys.modules["notes"] = importlib.util.module_from_spec(spec)
    require(spec.loader).exec_module(module)
    below = type("Below", (module.Told,), {"__module__": __name__})
    assert module.Notes().prompt() == "From the docstring."
    for made in (module.Told(), module.told, below()):
        assert made.prompt() == "# About this folder"
    with pytest.raises(SetupError, match=r"none\.md"):
        Session(project, tools=[module.Missing()])


class Visits(State):
    count: int = 0


@tool(effects=Effects.pure(), search_hint="count the visits so far")
async def visit(page: Annotated[str, "Which page."], visits: Visits) -> int:
    """Count a visit."""
    visits.count += 1
    return visits.count


def make_bad(**members) -> Tool:
    async def call(self, args: ToolArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult("x", data={"total": "none"})

    facts = {"call": call, "search_hint": "do nothing at all", "__doc__": "x"}
    return type("Bad", (Tool,), {"args_type": ToolArgs, **facts, **members})()


async def test_problems_of_calls_the_tool():
    assert problems_of(visit) == []

    @tool(effects=Effects.pure(), uses=(dict,), search_hint="uses what is not there")
    async def lonely(given: dict) -> str:
        """Use what is not there."""
        return str(given)

    (problem,) = problems_of(lonely)
    assert "It uses dict, which nothing provides" in problem
    assert problems_of(lonely, provide=[{"a": 1}]) == []

    async def crash(self, args, ctx):
        raise KeyError("x")

    class Total(ToolArgs):
        total: int

    for members, sentence in [
        ({"call": crash}, "KeyError"),
        ({"output_type": Total}, "does not fit its output type: the field `total` is string"),
        ({"summary": lambda *_: None}, "`summary` gave None, not a text"),
        ({"show": lambda *_: 1 / 0}, "`show` failed: ZeroDivisionError"),
    ]:
        (problem,) = problems_of(make_bad(**members))
        assert problem.startswith("called with {}: ")
        assert sentence in problem
        assert problems_of(make_bad(**members), calls=False) == []


def test_problems_are_told_of_names_and_prompts_that_fail():
    class Odd(Tool[ToolArgs]):
        """Do nothing at all here."""

        search_hint = "do nothing at all"
        effects = Effects.pure()

        def user_facing_name(self, args: ToolArgs | None = None) -> str:
            return 5 if args else "Odd"  # type: ignore[return-value]

        def prompt_for(self, session: object) -> str:
            raise ValueError("boom")

        async def call(self, args: ToolArgs, ctx: ToolContext) -> ToolResult:
            return ToolResult("done")

    found = "\n".join(problems_of(Odd()))
    assert "`user_facing_name` gave 5, not a text" in found
    assert "`prompt_for` of the tool 'Odd' failed (ValueError: boom)" in found


def test_problems_of_takes_a_class_and_names_what_is_no_tool():
    class Echo(Tool[ToolArgs]):
        """Says what it was told."""

        search_hint = "say again what was told"
        effects = Effects.pure()

        async def call(self, args: ToolArgs, ctx: ToolContext) -> ToolResult:
            return ToolResult("told")

    assert problems_of(Echo) == problems_of(Echo()) == []
    not_tools: list[Any] = [None, 5, "Read", object]
    for wrong in not_tools:
        with pytest.raises(TypeError, match="needs a tool; got"):
            problems_of(wrong)
