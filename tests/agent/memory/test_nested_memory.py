"""Instructions near a file count once it was read, for the main agent and for sub-agents."""

from pathlib import Path

import pytest
from players import Player, calls, says
from tests.expected_types import get_text

from handaxe import Agent, Allow, Deny, PermissionRequest, Session
from handaxe.agent.events import Told
from handaxe.contract.ports.model import ModelRequest


def texts(request: ModelRequest) -> str:
    return "\n".join(
        get_text(block)
        for message in request.messages
        for block in message.content
        if hasattr(block, "text")
    )


@pytest.fixture
def nested(project: Path) -> Path:
    (project / "a").mkdir()
    (project / "a/CLAUDE.md").write_text("Tabs only.")
    (project / "a/x.txt").write_text("x\n")
    return project


READ = ("r1", "Read", {"file_path": "a/x.txt"})


@pytest.mark.proves("AR-4")
async def test_a_file_near_what_was_read_comes_as_a_message(session: Session, nested: Path):
    model = Player(
        calls(READ), calls(("r2", "Read", {"file_path": "a/x.txt", "offset": 1})), says("Done.")
    )
    await Agent(model, session).ask("Go.")
    first, second, third = model.requests
    assert "Tabs only." not in texts(first)
    assert "Tabs only." in texts(second)
    assert texts(third).count("Tabs only.") == 1
    # What was sent before is sent again byte for byte.
    assert second.system == first.system
    assert second.messages[: len(first.messages)] == first.messages
    assert third.messages[: len(second.messages)] == second.messages


async def test_a_resumed_session_does_not_hear_it_twice(nested: Path):
    async with Session(nested) as session:
        await Agent(Player(calls(READ), says("Done.")), session).ask("Go.")
        session_id = session.id
    async with Session(nested, session_id=session_id) as session:
        model = Player(calls(("r9", "Read", {"file_path": "a/x.txt"})), says("Done."))
        await Agent(model, session).ask("Again.")
    assert texts(model.requests[-1]).count("Tabs only.") == 1


@pytest.mark.parametrize("is_resumed", [False, True])
async def test_it_survives_a_summary(nested: Path, *, is_resumed: bool):
    async with Session(nested) as session:
        agent = Agent(Player(calls(READ), says("Done."), says("Summary.")), session)
        await agent.ask("Go.")
        if not is_resumed:
            await agent.compact()
        session_id = session.id
    async with Session(nested, session_id=session_id) as session:
        model = Player(says("Summary."), says("Done.")) if is_resumed else Player(says("Done."))
        agent = Agent(model, session)
        if is_resumed:
            await agent.compact()
        await agent.ask("Go on.")
    assert texts(model.requests[-1]).count("Tabs only.") == 1


async def test_sub_agents_hear_it_themselves(session: Session, nested: Path):
    task = ("t1", "Agent", {"description": "x", "prompt": "y"})
    model = Player(calls(task), calls(READ), says("a"), calls(READ), says("b"))
    await Agent(model, session).ask("Go.")
    assert "Tabs only." in texts(model.requests[2])
    assert "Tabs only." not in texts(model.requests[3])
    assert "Tabs only." in texts(model.requests[4])


async def test_lean_types_hear_nothing(session: Session, nested: Path):
    task = ("t1", "Agent", {"description": "x", "prompt": "y", "subagent_type": "Explore"})
    model = Player(calls(task), calls(READ), says("a"), says("b"))
    await Agent(model, session).ask("Go.")
    assert "Tabs only." not in texts(model.requests[2])


@pytest.fixture
def importing(project: Path, tmp_path: Path) -> Path:
    (tmp_path / "outside.md").write_text("From outside.")
    (project / "CLAUDE.md").write_text("@../outside.md\nInside.")
    return project


async def test_without_anybody_to_ask_an_import_from_outside_is_left_out(importing: Path):
    async with Session(importing) as session:
        model = Player(says("x"))
        events = [event async for event in Agent(model, session).run("Go.")]
    told = [event.sentence for event in events if isinstance(event, Told)]
    assert any("outside the project: skipped" in sentence for sentence in told)
    system = "\n".join(model.requests[0].system)
    assert "Inside." in system
    assert "From outside." not in system


@pytest.mark.parametrize(
    ("answer", "is_in", "asks"),
    [(Allow(remember="always"), True, 1), (Allow(), True, 2), (Deny("no"), False, 2)],
)
async def test_a_person_decides_about_an_import(
    importing: Path, answer: Allow | Deny, asks: int, *, is_in: bool
):
    asked: list[PermissionRequest] = []

    async def on_ask(request: PermissionRequest) -> Allow | Deny:
        asked.append(request)
        return answer

    for _ in range(2):
        async with Session(importing, on_ask=on_ask) as session:
            model = Player(says("x"))
            await Agent(model, session).ask("Go.")
        assert ("From outside." in "\n".join(model.requests[0].system)) is is_in
    assert len(asked) == asks


async def test_an_import_that_was_approved_and_has_changed_is_asked_about_again(importing: Path):
    asked: list[PermissionRequest] = []

    async def on_ask(request: PermissionRequest) -> Allow | Deny:
        asked.append(request)
        return Allow(remember="always")

    counts: list[int] = []
    for text in ("From outside.", "From outside.", "Something else.", "Something else."):
        (importing.parent / "outside.md").write_text(text)
        async with Session(importing, on_ask=on_ask) as session:
            await Agent(Player(says("x")), session).ask("Go.")
        counts.append(len(asked))
    assert counts == [1, 1, 2, 2]


async def test_the_setting_keeps_files_out(nested: Path):
    settings = {"claudeMdExcludes": ["**/a/CLAUDE.md"]}
    async with Session(nested, settings=settings) as session:
        model = Player(calls(READ), says("Done."))
        await Agent(model, session).ask("Go.")
    assert "Tabs only." not in texts(model.requests[-1])
