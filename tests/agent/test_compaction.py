"""A conversation gets shorter before it no longer fits."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairing import complaints
from players import Player, calls, says
from tests.expected_types import expect_type

from handaxe import Agent, Session
from handaxe.agent.events import RunFinished
from handaxe.agent.truncation import select_newest, shorten_results
from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.events import Compacted
from handaxe.contract.messages import (
    AssistantMessage,
    Message,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from handaxe.contract.ports.model import ModelFailed


def conversation(kinds: list[str]) -> list[Message]:
    """A valid one: `t` is a word of the person's, `c` a call with its result."""
    messages: list[Message] = [UserMessage((TextBlock("Begin."),))]
    for number, kind in enumerate(kinds):
        if kind == "t":
            messages.append(AssistantMessage((TextBlock("Yes."),)))
            messages.append(UserMessage((TextBlock(f"Word {number}."),)))
        else:
            messages.append(AssistantMessage((ToolUseBlock(f"c{number}", "Read", {}),)))
            content = (TextBlock("x" * 3000), ImageBlock("image/png", "AAAA"))
            messages.append(UserMessage((ToolResultBlock(f"c{number}", content),)))
    return messages


@given(st.lists(st.sampled_from("tc")), st.integers(0, 8), st.integers(0, 4000))
def test_shortening_and_cutting_never_break_pairs(kinds: list[str], keep: int, limit: int):
    messages = conversation(kinds)
    assert complaints(messages) == []
    shorter = shorten_results(messages, keep=keep, max_chars=100)
    assert complaints(shorter) == []
    assert complaints(select_newest(messages, limit)) == []
    assert shorter[len(messages) - keep :] == tuple(messages[len(messages) - keep :])


def reading(count: int):
    return [calls((f"c{i}", "Read", {"file_path": f"f{i}.txt"})) for i in range(count)]


@pytest.fixture
async def session(project: Path):
    async with Session(project, tools="read-only") as opened:
        yield opened


@pytest.fixture
def files(project: Path) -> Path:
    for number in range(12):
        (project / f"f{number}.txt").write_text(f"{number} some words here\n" * 200)
    return project


async def test_old_results_go_first(session: Session, files: Path):
    model = Player(*reading(8), says("Done."), context_tokens=14_000)
    agent = Agent(model, session, memory=False)
    events = [event async for event in agent.run("Read all.")]
    shorter = [event for event in events if isinstance(event, Compacted)]
    assert shorter[0].method == "shortened"
    assert shorter[0].tokens_after < shorter[0].tokens_before
    assert expect_type(RunFinished, events[-1]).result == "Done."
    assert complaints(agent.messages) == []


async def test_the_model_sums_up_what_does_not_fit(files: Path):
    async with Session(files, tools="read-only") as session:
        model = Player(
            *reading(3),
            says("SUMMARY OF IT ALL"),
            says("Done."),
            context_tokens=7_000,
        )
        agent = Agent(model, session, memory=False)
        events = [event async for event in agent.run("Read all.")]
        assert [e.method for e in events if isinstance(e, Compacted)] == ["summarized"]
        assert model.requests[3].tool_choice == "none"
        assert "SUMMARY OF IT ALL" in str(agent.messages[0])
        assert "f0.txt" in str(agent.messages[0])
        assert complaints(agent.messages) == []
        live = agent.messages
    async with Session(files, session_id=session.id) as again:
        assert Agent(Player(), again, memory=False).messages == live


async def test_a_conversation_that_a_server_refuses_is_made_shorter_once(
    session: Session, files: Path
):
    too_long = ModelFailed("too_long", "The prompt is too long.", status=400)
    model = Player(*reading(2), [too_long], says("SUMMARY"), says("Done."))
    final = await Agent(model, session, memory=False).ask("Read.")
    assert final.result == "Done."
    model = Player([too_long], says("SUMMARY"), [too_long])
    final = await Agent(model, session, memory=False).ask("Read.")
    assert (final.is_error, final.terminal_reason) == (True, "prompt_too_long")


async def test_without_a_summary_an_outline_stands_in(session: Session, files: Path):
    failing = [ModelFailed("overloaded", "No.")]
    too_long = [ModelFailed("too_long", "Too long.")]
    model = Player(*reading(2), too_long, failing, says("Done."))
    agent = Agent(model, session, memory=False)
    assert (await agent.ask("Read them.")).result == "Done."
    assert "called Read" in str(agent.messages[0])
    assert complaints(agent.messages) == []


async def test_a_hook_can_forbid_it_and_a_person_can_ask_for_it(project: Path):
    async def no(event: dict[str, object]) -> dict[str, object]:
        return {"decision": "block", "reason": "Not now."}

    async with Session(project, hooks={"PreCompact": [no]}) as session:
        agent = Agent(Player(says("Hi."), says("SUMMARY")), session)
        await agent.ask("Hello.")
        assert await agent.compact() is None
    async with Session(project) as session:
        model = Player(says("Hi."), says("SUMMARY"), says("Yes."))
        agent = Agent(model, session)
        await agent.ask("Hello.")
        done = await agent.compact("Keep the names.")
        assert done is not None
        assert "Keep the names." in str(model.requests[1].messages[-1])
        assert (await agent.ask("Still there?")).result == "Yes."
        assert complaints(agent.messages) == []


async def test_lists_are_told_again_after_a_summary(project: Path):
    todo = {"content": "Run the tests", "status": "pending", "activeForm": "Running the tests"}
    async with Session(project) as session:
        model = Player(
            calls(("c1", "TodoWrite", {"todos": [todo]})), says("Noted."), says("SUMMARY")
        )
        agent = Agent(model, session, memory=False)
        await agent.ask("Write it down.")
        await agent.compact()
        assert "[pending] Run the tests" in str(agent.messages[0])
