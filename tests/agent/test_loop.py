"""The loop: what it asks, runs, says and leaves behind."""

import asyncio
from pathlib import Path

import pytest
from pairing import complaints
from players import Player, call, calls, ended, says
from tests.expected_types import get_result_text, get_text

from handaxe import Agent, Effects, Session, SetupError, tool
from handaxe.agent.events import RunFinished, ToolAnswered, ToolCalled
from handaxe.app.session import get_parts
from handaxe.contract.messages import AssistantMessage, ToolResultBlock, UserMessage
from handaxe.contract.ports.model import ModelFailed, TextDelta


@pytest.fixture
async def session(project: Path):
    async with Session(project, permission_mode="acceptEdits") as opened:
        yield opened


@pytest.mark.proves("AR-5")
async def test_an_agent_calls_tools_until_it_has_nothing_left_to_do(
    session: Session, project: Path
):
    (project / "a.txt").write_text("one\n")
    model = Player(
        calls(("c1", "Read", {"file_path": "a.txt"}), text="Let me look."),
        calls(("c2", "Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
        says("Done."),
    )
    final = await Agent(model, session).ask("Change one to two.")
    assert (final.subtype, final.result, final.turns) == ("success", "Done.", 2)
    assert (project / "a.txt").read_text() == "two\n"
    assert complaints(model.requests[-1].messages) == []


async def test_a_call_starts_while_the_model_still_talks(session: Session, project: Path):
    (project / "a.txt").write_text("one\n")
    gate = asyncio.Event()
    model = Player(
        [*call("c1", "Read", {"file_path": "a.txt"}), gate, TextDelta(" more"), ended("tool_use")],
        says("Done."),
    )
    story: list[str] = []
    async for event in Agent(model, session).run("Look."):
        story.append(type(event).__name__)
        if isinstance(event, ToolAnswered):
            gate.set()
    assert story.index("ToolAnswered") < story.index("TextDelta")


async def test_a_broken_input_is_answered_with_what_is_broken(session: Session):
    model = Player([*call("c1", "Read", None, '{"file_path": "a'), ended("tool_use")], says("Oh."))
    final = await Agent(model, session).ask("Look.")
    block = model.requests[1].messages[-1].content[0]
    assert isinstance(block, ToolResultBlock)
    assert block.is_error
    assert "ends unexpectedly after 16 characters" in get_result_text(block)
    assert final.result == "Oh."


async def test_an_id_that_a_model_uses_twice_becomes_one_of_ours(session: Session, project: Path):
    (project / "a.txt").write_text("one\n")
    (project / "b.txt").write_text("two\n")
    model = Player(
        calls(("call_0", "Read", {"file_path": "a.txt"})),
        calls(("call_0", "Read", {"file_path": "b.txt"})),
        says("Done."),
    )
    await Agent(model, session).ask("Look.")
    assert complaints(model.requests[-1].messages) == []
    assert "two" in get_result_text(model.requests[-1].messages[-1].content[0])


async def test_an_interrupt_keeps_what_was_said_and_answers_every_call(session: Session):
    started = asyncio.Event()

    @tool(effects=Effects.none())
    async def linger() -> str:
        """Wait for ever."""
        started.set()
        await asyncio.sleep(60)
        return "never"

    get_parts(session).catalog.add(linger)
    model = Player([TextDelta("Wait"), *call("c1", "linger", {}), ended("tool_use")], says("Hi."))
    agent = Agent(model, session)

    async def stop() -> None:
        await started.wait()
        agent.interrupt()

    stopping = asyncio.ensure_future(stop())
    final = await agent.ask("Do.")
    await stopping
    assert final.terminal_reason == "aborted_tools"
    assert complaints(agent.messages) == []
    last = agent.messages[-1]
    assert isinstance(last, UserMessage)
    assert "[Request interrupted by user for tool use]" in get_text(last.content[-1])
    assert (await agent.ask("Again.")).result == "Hi."
    assert complaints(model.requests[-1].messages) == []


async def test_partial_words_survive_an_interrupt(session: Session):
    never = asyncio.Event()
    model = Player([TextDelta("Half a "), never, ended()], says("Hi."))
    agent = Agent(model, session)
    async for event in agent.run("Say something."):
        if isinstance(event, TextDelta):
            agent.interrupt()
        if isinstance(event, RunFinished):
            assert event.terminal_reason == "aborted_streaming"
    said = agent.messages[1]
    assert isinstance(said, AssistantMessage)
    assert (get_text(said.content[0]), said.stop_reason) == ("Half a ", "aborted")


async def test_an_interrupt_before_anything_happened_ends_the_run(session: Session):
    model = Player(says("Hi."))
    agent = Agent(model, session)
    last = None
    async for event in agent.run("Go."):
        agent.interrupt()
        last = event
    assert isinstance(last, RunFinished)
    assert complaints(agent.messages) == []


async def test_turns_are_limited(session: Session, project: Path):
    (project / "a.txt").write_text("one\n")
    model = Player(*[calls((f"c{i}", "Read", {"file_path": "a.txt"})) for i in range(5)])
    final = await Agent(model, session, max_turns=2).ask("Look.")
    assert (final.subtype, final.is_error, final.turns) == ("error_max_turns", True, 2)
    assert len(model.requests) == 2


async def test_a_failing_model_ends_the_run_with_its_sentence(session: Session):
    model = Player([ModelFailed("authentication", "The key is wrong.", status=401)])
    final = await Agent(model, session).ask("Go.")
    assert (final.is_error, final.terminal_reason) == (True, "model_error")
    assert final.result == "The key is wrong."


async def test_an_answer_that_breaks_off_is_gone_on_with(session: Session, project: Path):
    (project / "a.txt").write_text("one\n")
    model = Player(
        [
            TextDelta("Look"),
            *call("c1", "Read", {"file_path": "a.txt"}),
            ModelFailed("broken_stream", "The stream broke off."),
        ],
        says("Done."),
    )
    final = await Agent(model, session).ask("Go.")
    assert final.result == "Done."
    assert complaints(model.requests[1].messages) == []


async def test_a_resumed_session_goes_on_with_its_conversation(project: Path):
    (project / "a.txt").write_text("one\n")
    async with Session(project) as first:
        model = Player(calls(("c1", "Read", {"file_path": "a.txt"})), says("It says one."))
        agent = Agent(model, first)
        await agent.ask("What does it say?")
        before = agent.messages
    async with Session(project, session_id=first.id) as second:
        agent = Agent(Player(says("Unchanged.")), second)
        assert agent.messages == before
        await agent.ask("And now?")
        assert complaints(agent.messages) == []


async def test_what_is_said_meanwhile_is_heard_after_the_calls(session: Session, project: Path):
    (project / "a.txt").write_text("one\n")
    model = Player(calls(("c1", "Read", {"file_path": "a.txt"})), says("Done."))
    agent = Agent(model, session)
    async for event in agent.run("Look."):
        if isinstance(event, ToolCalled):
            agent.send("Hurry up.")
    texts = [getattr(block, "text", "") for block in model.requests[1].messages[-1].content]
    assert "Hurry up." in texts


@pytest.mark.proves("BT-24")
async def test_structured_output_ends_the_run_when_it_fits(session: Session):
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer", "minimum": 1}},
        "required": ["count"],
    }
    model = Player(
        says("It is three."),
        calls(("c1", "StructuredOutput", {"count": 0})),
        calls(("c2", "SyntheticOutput", {"count": 3})),
    )
    final = await Agent(model, session, output_schema=schema).ask("How many?")
    assert (final.subtype, final.structured_output) == ("success", {"count": 3})
    assert complaints(model.requests[-1].messages) == []


async def test_structured_output_gives_up_in_the_end(session: Session):
    model = Player(*[says("No.") for _ in range(8)])
    final = await Agent(model, session, output_schema={"type": "array"}).ask("List.")
    assert final.subtype == "error_max_structured_output_retries"


@pytest.mark.parametrize(
    "wrong",
    [{"n": "three"}, {"n": 0}, {"m": 1}, {}],
    ids=["type", "value", "name", "nothing"],
)
async def test_structured_output_is_not_tried_for_ever(session: Session, wrong: dict):
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
    }
    model = Player(*[calls((f"c{at}", "StructuredOutput", wrong)) for at in range(8)])
    final = await Agent(model, session, output_schema=schema).ask("How many?")
    assert final.subtype == "error_max_structured_output_retries"
    assert len(model.requests) == 5


async def test_a_prompt_that_says_nothing_is_refused(session: Session):
    agent = Agent(Player(says("Hi.")), session)
    for prompt in ("", " \n", ()):
        with pytest.raises(SetupError, match="empty"):
            await agent.ask(prompt)
        with pytest.raises(SetupError, match="empty"):
            agent.send(prompt)
    assert (await agent.ask("Go.")).result == "Hi."


async def test_a_run_whose_events_are_left_is_over_before_the_next(session: Session):
    model = Player(calls(("c", "Bash", {"command": "sleep 60"})), says("Next."))
    agent = Agent(model, session)
    async for event in agent.run("Go."):
        if isinstance(event, ToolCalled):
            break
    assert (await agent.ask("Something else.")).result == "Next."
    assert complaints(model.requests[-1].messages) == []


async def test_a_run_that_goes_on_is_not_stopped_by_another(session: Session):
    go_on = asyncio.Event()
    agent = Agent(Player([TextDelta("One, "), go_on, *says("two.")]), session)
    running = asyncio.ensure_future(agent.ask("Go."))
    await asyncio.sleep(0.05)
    with pytest.raises(RuntimeError, match="already running"):
        await agent.ask("Me too.")
    go_on.set()
    assert (await running).result == "One, two."
