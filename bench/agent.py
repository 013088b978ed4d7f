"""What the agent itself costs: start of a call, calls side by side, a turn, a resume, a crowd.

The model is a script, so everything measured is ours. Goals stand beside the numbers; nothing is
judged here.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from measure import resident_mb

from handaxe import Agent, Effects, Session, tool
from handaxe.agent.conversation import AgentConversation
from handaxe.agent.events import ToolAnswered
from handaxe.agent.subagents.registry import SpawnLimits
from handaxe.app.session import get_parts
from handaxe.contract.messages import TokenUsage
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolEnded,
    ToolStarted,
)

Answer = Callable[[ModelRequest], Sequence[ModelEvent]]


class Script(Model):
    """Answers by a function, without a pause."""

    name = "script"

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.said_at = 0.0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """One answer."""
        for event in self._answer(request):
            self.said_at = time.perf_counter()
            yield event


def calling(*calls: tuple[str, str, dict[str, Any]]) -> list[ModelEvent]:
    """An answer that asks for calls."""
    events: list[ModelEvent] = []
    for call_id, name, call_input in calls:
        events += (ToolStarted(call_id, name), ToolEnded(call_id, name, call_input))
    return [*events, MessageEnded("tool_use", TokenUsage(input_tokens=1))]


def saying(text: str) -> list[ModelEvent]:
    """An answer of words."""
    return [TextDelta(text), MessageEnded("end_turn", TokenUsage(input_tokens=1))]


def line(name: str, value: str, goal: str) -> None:
    """One line of the table."""
    sys.stdout.write(f"{name:52} {value:>14}   {goal}\n")
    sys.stdout.flush()


async def to_the_start_of_a_call(root: str) -> None:
    """From the last piece of a call to the first line of its tool."""
    starts: list[float] = []

    @tool(effects=Effects.none())
    async def now(number: int) -> str:
        """The time."""
        starts.append(time.perf_counter() - model.said_at)
        return str(number)

    turns = iter(range(200))

    def answer(_: ModelRequest) -> list[ModelEvent]:
        number = next(turns, None)
        return saying("x") if number is None else calling((f"c{number}", "now", {"number": number}))

    model = Script(answer)
    async with Session(root, tools=[now]) as session:
        await Agent(model, session, memory=False).ask("Go.")
    value = f"{statistics.median(starts) * 1000:.3f} ms"
    line("end of tool_use to start of tool, median", value, "< 2 ms")
    line("end of tool_use to start of tool, 95 %", f"{sorted(starts)[189] * 1000:.3f} ms", "< 2 ms")


async def ten_naps(root: str) -> None:
    """Ten looking calls of 100 ms in one message."""

    @tool(effects=Effects.none())
    async def nap(number: int) -> str:
        """Sleep."""
        await asyncio.sleep(0.1)
        return str(number)

    async with Session(root, tools=[nap]) as session:
        for _ in range(3):
            calls = [(get_parts(session).new_call_id(), "nap", {"number": n}) for n in range(10)]
            agent = Agent(
                Script(lambda r: saying("x") if len(r.messages) > 1 else calling(*calls)),  # noqa: B023
                session,
                memory=False,
            )
            agent.loop.conversation.replace(())
            began = time.perf_counter()
            async for event in agent.run("Go."):
                if isinstance(event, ToolAnswered):
                    took = time.perf_counter() - began
    line("ten calls of 100 ms in one message", f"{took * 1000:.1f} ms", "< 160 ms")


async def a_turn(root: str) -> None:
    """A turn with one empty call, beside the same call alone."""

    @tool(effects=Effects.pure())
    async def nothing(number: int) -> str:
        """Nothing."""
        return str(number)

    count = 500
    turns = iter(range(count))

    def answer(_: ModelRequest) -> list[ModelEvent]:
        number = next(turns, None)
        return saying("x") if number is None else calling((f"c{number}", "nothing", {"number": 1}))

    async with Session(root, tools=[nothing]) as session:
        # Time of this process only: what others do on the machine is not the loop's.
        began = time.process_time()
        for number in range(count):
            await session.call("nothing", number=number)
        alone = (time.process_time() - began) / count
        began = time.process_time()
        await Agent(Script(answer), session, memory=False, stop_after_nudges=None).ask("Go.")
        whole = (time.process_time() - began) / count
    line("one empty call alone", f"{alone * 1000:.3f} ms", "")
    line("one turn beside its call", f"{(whole - alone) * 1000:.3f} ms", "< 1 ms")


async def a_resume(root: str) -> None:
    """Open a session whose log has ten thousand events."""
    turns = iter(range(2400))

    @tool(effects=Effects.pure())
    async def nothing(number: int) -> str:
        """Nothing."""
        return "x" * 200

    def answer(_: ModelRequest) -> list[ModelEvent]:
        number = next(turns, None)
        return saying("x") if number is None else calling((f"c{number}", "nothing", {"number": 1}))

    async with Session(root, tools=[nothing]) as session:
        await Agent(Script(answer), session, memory=False, stop_after_nudges=None).ask("Go.")
    times: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        resumed = Session(root, tools=[nothing], session_id=session.id)
        conversation = AgentConversation.from_events(
            get_parts(resumed).history.said, get_parts(resumed).recorder.result_of
        )
        times.append(time.perf_counter() - began)
        assert len(conversation.messages) == 4802
        await resumed.close()
    line("resume of 10,000 events", f"{statistics.median(times) * 1000:.0f} ms", "< 500 ms")


async def a_crowd(root: str) -> None:
    """A hundred agents at once in one process."""
    (Path(root) / "a.txt").write_text("one\n")
    peak = [0.0]

    def answer(request: ModelRequest) -> list[ModelEvent]:
        first = request.messages[0].content[0].text
        peak[0] = max(peak[0], resident_mb())
        if first.startswith("Task"):
            if len(request.messages) == 1:
                return calling(("r" + first[5:], "Read", {"file_path": "a.txt"}))
            return saying("done")
        if len(request.messages) > 1:
            return saying("all done")
        return calling(
            *((f"t{n}", "Agent", {"description": "x", "prompt": f"Task {n}"}) for n in range(100))
        )

    settings = {"max_parallel_calls": 100}
    async with Session(root, settings=settings) as session:
        before = resident_mb()
        began = time.perf_counter()
        agent = Agent(Script(answer), session, agent_limits=SpawnLimits(max_running=100))
        await agent.ask("Go.")
        took = time.perf_counter() - began
    line("100 agents in one process, resident", f"{peak[0]:.0f} MB", "< 300 MB")
    line("100 agents, what they add", f"{peak[0] - before:.0f} MB in {took:.2f} s", "")


async def main() -> None:
    """Every line in a project of its own."""
    for measured in (to_the_start_of_a_call, ten_naps, a_turn, a_resume, a_crowd):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory) / "project"
            root.mkdir()
            os.environ["HANDAXE_HOME"] = f"{directory}/home"
            await measured(str(root))


if __name__ == "__main__":
    asyncio.run(main())
