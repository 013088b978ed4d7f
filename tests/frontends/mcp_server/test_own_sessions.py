"""`handaxe.serve_mcp`: a program serves its own session; forms of its tools go to the client."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import msgspec
import pytest
from mcp import Client, StdioServerParameters
from tests.expected_types import expect_type
from tests.frontends.mcp_server.raw_client import ENVELOPE, FORMS, RawClient

from handaxe import (
    Allow,
    Effects,
    ElicitationForm,
    PermissionRequest,
    Session,
    SetupError,
    ToolContext,
    serve_mcp,
    tool,
)

PROGRAM = """
import asyncio
import msgspec
from handaxe import Effects, Session, ToolContext, serve_mcp, tool


class Shop:
    name = "corner shop"


class Order(msgspec.Struct):
    count: int
    gift: bool = False


@tool(effects=Effects.pure(), uses=(Shop,))
async def order(what: str, shop: Shop, ctx: ToolContext) -> str:
    "Order something in the shop."
    print("on standard output")
    filled = await ctx.elicit("How many?", Order)
    ctx.progress({"done": 1, "total": 1})
    return f"{filled.count} {what} from the {shop.name}"


async def main() -> None:
    async with Session(".", tools=["Read", order], provide=[Shop()]) as session:
        await serve_mcp(session)
        assert (await session.call("Read", file_path="a.txt")).ok


asyncio.run(main())
"""


class Order(msgspec.Struct):
    count: int


@tool(effects=Effects.pure())
async def order(ctx: ToolContext) -> str:
    """Order something."""
    return f"ordered {(await ctx.elicit('How many?', Order)).count}"


@tool(effects=Effects.unknown())
async def ship() -> str:
    """Send it away."""
    return "sent"


@pytest.fixture
def client():
    return RawClient


def text_of(result: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in result["content"])


@pytest.mark.proves("RG-9")
async def test_the_official_client_uses_the_tools_and_objects_of_a_program(project: Path):
    (project / "a.txt").write_text("x")
    (project / "program.py").write_text(PROGRAM)
    env = {name: os.environ[name] for name in os.environ if "HANDAXE" in name or "CLAUDE" in name}
    program = StdioServerParameters(
        command=sys.executable, args=["program.py"], cwd=project, env=env
    )
    told: list[Any] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async def fill_in(context: object, params: Any) -> Any:
        assert params.message == "How many?"
        assert set(params.requested_schema["properties"]) == {"count", "gift"}
        return types.ElicitResult(action="accept", content={"count": 3})

    async with Client(program, elicitation_callback=fill_in, mode="legacy") as client:
        listed = {one.name for one in (await client.list_tools()).tools}
        assert listed == {"Read", "order"}
        result = await client.call_tool("order", {"what": "apples"}, progress_callback=report)
    assert expect_type(types.TextContent, result.content[0]).text == "3 apples from the corner shop"
    assert told == ["done: 1, total: 1"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"action": "accept", "content": {"count": 2}}, "ordered 2"),
        ({"action": "accept", "content": {"count": "two"}}, "does not fit the form"),
        ({"action": "decline"}, "did not fill in the form"),
        ({"action": "cancel"}, "did not fill in the form"),
        ("nonsense", "did not fill in the form"),
    ],
)
async def test_what_a_client_answers_to_a_form(project, client, answer, text):
    async with Session(project, tools=[order]) as session:
        me = client(session)
        await me.open(**FORMS)
        me.answers["elicitation/create"] = lambda _: answer
        assert text in text_of(await me.call("order"))
        await me.close()


async def test_a_client_without_forms_is_told_so_by_the_code(project, client):
    async with Session(project, tools=[order, ship]) as session:
        me = client(session)
        await me.open()
        refused = await me.call("order")
        assert refused["_meta"]["handaxe/code"] == "elicitation.unavailable"
        assert (await me.call("ship"))["_meta"]["handaxe/code"] == "permission.asked"
        await me.close()


async def test_a_client_of_the_newest_revision_answers_and_calls_again(project, client):
    async with Session(project, tools=[order]) as session:
        me = client(session)
        meta = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": FORMS}
        asked = (await me.ask("tools/call", name="order", arguments={}, _meta=meta))["result"]
        assert asked["resultType"] == "input_required"
        (question,) = asked["inputRequests"]
        again = await me.ask(
            "tools/call", name="order", arguments={}, _meta=meta,
            requestState=asked["requestState"],
            inputResponses={question: {"action": "accept", "content": {"count": 5}}},
        )  # fmt: skip
        assert text_of(again["result"]) == "ordered 5"
        await me.close()


async def test_the_session_stays_open_for_the_program_and_for_the_next_client(project, client):
    async with Session(project, tools=[order, ship]) as session:
        for count in (1, 2):
            me = client(session)
            await me.open(**FORMS)
            me.answers["elicitation/create"] = lambda params, n=count: {
                "action": "accept",
                "content": {"count": n, "answer": "once"},
            }
            assert text_of(await me.call("order")) == f"ordered {count}"
            assert text_of(await me.call("ship")) == "sent"
            await me.close()
            assert (await session.call("order")).code == "elicitation.unavailable"
            assert (await session.call("ship")).code == "permission.asked"


async def test_who_the_program_names_is_asked_before_the_client(project, client):
    async def on_ask(_: PermissionRequest) -> Allow:
        return Allow()

    async def on_elicit(_: ElicitationForm) -> dict[str, int]:
        return {"count": 9}

    async with Session(project, tools=[order, ship], on_ask=on_ask, on_elicit=on_elicit) as session:
        me = client(session)
        await me.open()
        assert text_of(await me.call("order")) == "ordered 9"
        assert text_of(await me.call("ship")) == "sent"
        await me.close()


async def test_a_client_that_goes_stops_its_calls_and_no_other(project, client):
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool(effects=Effects.none())
    async def wait() -> str:
        """Wait for long."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    async with Session(project, tools=[wait]) as session:
        me = client(session)
        await me.open()
        me.start("tools/call", name="wait", arguments={})
        await started.wait()
        await me.close()
        await stopped.wait()
        assert not session.permissions.never_prompt


async def test_what_cannot_be_served_is_said(project):
    session = Session(project)
    with pytest.raises(SetupError, match="both `source` and `sink`"):
        await serve_mcp(session, source=0)
    await session.close()
    with pytest.raises(SetupError, match="closed"):
        await serve_mcp(session)
