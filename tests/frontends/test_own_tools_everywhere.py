"""The same own tools in every interface: called, refused, with state, progress and forms."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.expected_types import expect_type
from tests.frontends.terminals import Terminal

from handaxe import Session
from handaxe.app.services.tool_files import load_tools
from handaxe.frontends.cli.terminal_prompts import read_field

pytestmark = pytest.mark.proves("RG-9")

TOOLS = '''
from typing import Literal

import msgspec

from handaxe import Effects, State, ToolContext, ToolFault, tool
from handaxe.contract.content import ImageBlock
from handaxe.contract.display import Table
from handaxe import ToolResult


class Orders(State):
    names: list[str] = []


class Choice(msgspec.Struct):
    color: Literal["red", "blue"]
    count: int = 1
    gift: bool | None = None


class Nothing(ToolFault):
    code = "shop.nothing"


@tool(effects=Effects.pure())
async def order(what: str, orders: Orders, ctx: ToolContext) -> ToolResult:
    """Order one thing in the shop."""
    if not what:
        raise Nothing("Say what to order.")
    ctx.progress({"done": 1, "total": 1})
    orders.names.append(what)
    rows = tuple((name,) for name in orders.names)
    return ToolResult(f"ordered {len(rows)}: {what}", display=(Table(("name",), rows),))


@tool(effects=Effects.pure())
async def choose(ctx: ToolContext) -> str:
    """Let the person choose."""
    choice = await ctx.elicit("Which one?", Choice)
    return f"chosen {choice.color} {choice.count} {choice.gift}"


@tool(effects=Effects.unknown())
async def ship(where: str) -> str:
    """Send it somewhere."""
    return f"sent to {where}"
'''
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("order", {"what": "apple"}), ("order", {"what": "pear"}), ("order", {"what": ""}),
    ("choose", {}), ("ship", {"where": "home"}),
]  # fmt: skip
FILLED = {"color": "blue", "count": 2}
PERSON = ["ordered 1: apple", "ordered 2: pear", "Say what to order.", "chosen blue 2 None",
          "sent to home"]  # fmt: skip
NOBODY = [*PERSON[:3], "this run cannot ask one", "This run cannot prompt"]


class Place:
    """What an interface needs."""

    def __init__(self, project: Path, tools: Path, script: Any, connect: Any) -> None:
        self.project, self.tools = project, tools
        self.script, self.connect = script, connect

    def run(self, *words: str, stdin: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "handaxe", *words, "--tools-from", str(self.tools)],
            cwd=self.project, env={**os.environ}, input=stdin, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip
        return done.stdout + done.stderr

    @property
    def model(self) -> str:
        calls = [{"call": [{"tool": name, "input": given}]} for name, given in CALLS]
        return self.script(*calls, {"text": "Done."})


async def in_library(place: Place) -> str:
    async def yes(_: object) -> Any:
        from handaxe import Allow

        return Allow()

    async def fill(_: object) -> dict[str, Any]:
        return FILLED

    own = load_tools(str(place.tools))
    async with Session(place.project, tools=own, on_ask=yes, on_elicit=fill) as session:
        return "\n".join([(await session.call(name, given)).text for name, given in CALLS])


async def in_call(place: Place) -> str:
    words = ["--json", "--session-id", "11111111-1111-4111-8111-111111111111"]
    return "\n".join([place.run("call", name, json.dumps(given), *words) for name, given in CALLS])


async def in_run(place: Place) -> str:
    lines = [json.dumps({"tool": name, "input": given}) for name, given in CALLS]
    return place.run("run", stdin="\n".join(lines))


async def in_print(place: Place) -> str:
    return place.run(
        "-p", "x", "--model", place.model, "--output-format", "stream-json", "--verbose"
    )


async def in_stream(place: Place) -> str:
    client = place.connect(
        "--model", place.model, "--tools-from", str(place.tools),
        "--permission-prompt-tool", "stdio",
    )  # fmt: skip
    client.say("go")
    form = client.until("control_request")
    assert form["request"]["subtype"] == "elicitation"
    assert form["request"]["requested_schema"]["required"] == ["color"]
    client.answer(form, {"action": "accept", "content": FILLED})
    asked = client.until("control_request")
    assert asked["request"]["tool_name"] == "ship"
    client.answer(asked, {"behavior": "allow", "updatedInput": {"where": "home"}})
    client.until("result")
    client.close()
    told = [m["data"] for m in client.seen if m["type"] == "tool_progress" and "data" in m]
    assert told == [{"done": 1, "total": 1}] * 2
    return json.dumps(client.seen)


async def in_terminal(place: Place) -> str:
    me = Terminal(
        "--model", place.model, "--tools-from", str(place.tools), "go", cwd=place.project,
        columns=200,
    )  # fmt: skip
    try:
        me.wait_for("choose asks: Which one?")
        me.wait_for("2. blue")
        me.type("purple\n")
        me.wait_for("Answer with one of the choices")
        me.wait_for(": ")
        me.type("2\n")
        me.wait_for("Enter: 1]: ")
        me.type("2\n")
        me.wait_for("Enter: skip]: ")
        me.type("\n")
        me.wait_for("Allow?")
        me.type("y\n")
        me.wait_for("Done.")
        me.wait_for("›")
        me.type("\x04")
        assert me.end() == 0
        return me.shown
    finally:
        me.close()


async def in_mcp(place: Place) -> str:
    from mcp import Client, StdioServerParameters, types

    env = {name: os.environ[name] for name in os.environ if "HANDAXE" in name or "CLAUDE" in name}
    words = ["-m", "handaxe", "mcp", "--tools-from", str(place.tools)]
    server = StdioServerParameters(command=sys.executable, args=words, cwd=place.project, env=env)

    async def answer(context: object, params: Any) -> Any:
        given: Any = FILLED if params.message == "Which one?" else {"answer": "once"}
        return types.ElicitResult(action="accept", content=given)

    async with Client(server, elicitation_callback=answer) as client:
        results = [await client.call_tool(name, given) for name, given in CALLS]
    return "\n".join(expect_type(types.TextContent, result.content[0]).text for result in results)


@pytest.mark.parametrize(
    ("interface", "expected"),
    [
        (in_library, PERSON), (in_stream, PERSON), (in_terminal, PERSON), (in_mcp, PERSON),
        (in_call, NOBODY), (in_run, NOBODY), (in_print, NOBODY),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)  # fmt: skip
async def test_own_tools_work_the_same_everywhere(
    project, tmp_path, script, connect, interface, expected
):
    tools = tmp_path / "shop_tools.py"
    tools.write_text(TOOLS)
    shown = await interface(Place(project, tools, script, connect))
    assert [sentence for sentence in expected if sentence not in shown] == [], shown


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ({"type": "string"}, "x y", "x y"),
        ({"type": "string", "maxLength": 2}, "abc", None),
        ({"type": "integer", "minimum": 2}, "3", 3),
        ({"type": "integer", "minimum": 2}, "1", None),
        ({"type": "integer"}, "1.5", None),
        ({"type": "number", "maximum": 1}, "0.5", 0.5),
        ({"type": "number", "maximum": 1}, "nan", None),
        ({"type": "boolean"}, "Y", True),
        ({"type": "boolean"}, "no", False),
        ({"type": "boolean"}, "maybe", None),
        ({"type": "string", "enum": ["a", "b"]}, "2", "b"),
        ({"type": "string", "enum": ["a", "b"]}, "3", None),
        ({"type": "string", "enum": ["a"], "enumNames": ["The A"]}, "The A", "a"),
        ({"type": "string", "enum": ["2", "1"]}, "2", "2"),
    ],
)
def test_a_typed_text_is_read_as_its_field_says(field, text, value):
    if value is None:
        with pytest.raises(ValueError, match=r"\.$"):
            read_field(field, text)
        return
    assert read_field(field, text) == value
