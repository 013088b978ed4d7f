"""What was sent once is sent again byte by byte, whatever servers do meanwhile."""

import random

import msgspec
import pytest

from handaxe import Agent, Session
from handaxe.app.session import get_parts
from handaxe.contract.messages import TokenUsage
from handaxe.contract.ports.model import MessageEnded, Model, TextDelta, ToolEnded, ToolStarted
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs

TURNS = 200


class Args(ToolArgs, kw_only=True):
    text: str


def remote(server: str, number: int) -> Tool:
    async def call(_self, args, _ctx):
        return ToolResult(args.text)

    name = f"mcp__{server}__tool_{number}"
    fields = {"name": name, "__doc__": "Does a thing. " * 40, "args_type": Args, "call": call}
    return type("Remote", (Tool,), fields)()


class Remembering(Model):
    """Keeps every request as bytes, and now and then loads a tool."""

    name = "remembering"
    context_tokens = 10_000_000

    def __init__(self) -> None:
        self.sent = []

    async def stream(self, request):
        self.sent.append(
            (
                msgspec.json.encode(request.system),
                [msgspec.json.encode(tool) for tool in request.tools],
                [msgspec.json.encode(message) for message in request.messages],
            )
        )
        number = len(self.sent)
        if number % 10 == 0:
            query = {"query": f"select:mcp__s{number % 3}__tool_{number % 7}"}
            yield ToolStarted(f"t{number}", "ToolSearch")
            yield ToolEnded(f"t{number}", "ToolSearch", query)
            yield MessageEnded("tool_use", TokenUsage())
        else:
            yield TextDelta(f"Answer {number}.")
            yield MessageEnded("end_turn", TokenUsage())


@pytest.mark.proves("RG-3", "RG-5")
async def test_two_hundred_turns_with_servers_that_come_and_go(project):
    dice = random.Random(5)
    model = Remembering()
    async with Session(project) as session, Agent(model, session, stop_after_nudges=None) as agent:
        for turn in range(TURNS):
            if turn % 3 == 0:
                server = f"s{dice.randrange(3)}"
                tools = [remote(server, n) for n in range(dice.choice((0, 5, 30)))]
                get_parts(session).catalog.replace_external(server, tools)
            await agent.ask(f"Question {turn}.")
    assert len(model.sent) > TURNS
    builtin = [tool for tool in model.sent[0][1] if b'"name":"mcp__' not in tool]
    for (system, tools, messages), (next_system, next_tools, next_messages) in zip(
        model.sent, model.sent[1:], strict=False
    ):
        assert next_system == system
        assert next_tools[: len(builtin)] == tools[: len(builtin)] == builtin
        assert next_messages[: len(messages)] == messages
