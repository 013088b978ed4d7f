"""Each model of a session is shown the edit format that it knows."""

from pathlib import Path

import pytest
from players import Player, calls, says

from handaxe import Agent, Session
from handaxe.contract.ports.model import ModelRequest
from handaxe.text.line_tags import make_line_ref

FORMATS = {"Edit", "MultiEdit", "ApplyPatch", "EditLines"}


def shown(request: ModelRequest) -> set[str]:
    return {spec.name for spec in request.tools} & FORMATS


@pytest.mark.proves("RG-7")
async def test_an_agent_shows_its_model_what_it_knows(session: Session, project: Path):
    (project / "a.txt").write_text("one\n")
    text = "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** End Patch"
    model = Player(
        calls(("c1", "Read", {"file_path": "a.txt"})),
        calls(("c2", "ApplyPatch", {"input": text})),
        says("Done."),
        name="gpt-5",
    )
    async with Agent(model, session) as agent:
        await agent.ask("Change it.")
        assert [shown(request) for request in model.requests] == [{"ApplyPatch"}] * 3
        assert (project / "a.txt").read_text() == "two\n"
        other = Player(says("Hello."), name="claude-sonnet-4-5")
        agent.set_model(other)
        await agent.ask("Hello?")
        assert shown(other.requests[0]) == {"Edit"}


@pytest.mark.proves("RG-7")
@pytest.mark.parametrize("tools", ["", "tools: Read, Edit", "tools: Read, MultiEdit"])
async def test_an_agent_with_a_model_of_its_own_gets_that_models_format(
    session: Session, project: Path, tools: str
):
    folder = project / ".claude/agents"
    folder.mkdir(parents=True)
    (folder / "helper.md").write_text(
        f"---\nname: helper\ndescription: Helps.\nmodel: gpt-5\n{tools}\n---\nHelp."
    )
    helper = Player(says("Helped."), name="gpt-5")
    task = {"description": "x", "prompt": "y", "subagent_type": "helper"}
    main = Player(calls(("t1", "Agent", task)), says("Done."), name="claude-sonnet-4-5")
    async with Agent(
        main, session, open_model=lambda name: helper if name == "gpt-5" else main
    ) as agent:
        await agent.ask("Go.")
    assert [shown(request) for request in main.requests] == [{"Edit"}] * 2
    assert shown(helper.requests[0]) == {"ApplyPatch"}


@pytest.mark.proves("RG-7", "FT-19")
async def test_only_the_agent_that_edits_by_tags_is_shown_tags(project: Path):
    (project / "a.txt").write_text("one\n")
    folder = project / ".claude/agents"
    folder.mkdir(parents=True)
    (folder / "helper.md").write_text(
        "---\nname: helper\ndescription: Helps.\nmodel: tagger\n---\nHelp."
    )
    reads = calls(("c1", "Read", {"file_path": "a.txt"}))
    helper = Player(reads, says("Helped."), name="tagger")
    task = {"description": "x", "prompt": "y", "subagent_type": "helper"}
    main = Player(
        calls(("c0", "Read", {"file_path": "a.txt"})),
        calls(("t1", "Agent", task)),
        says("Done."),
        name="plain",
    )
    settings = {"edit": {"formats": {"tagger": "lines"}}}
    async with (
        Session(project, settings=settings, trusted=True) as session,
        Agent(main, session, open_model=lambda name: helper if name == "tagger" else main) as agent,
    ):
        await agent.ask("Go.")
        assert [shown(request) for request in main.requests] == [{"Edit"}] * 3
        assert shown(helper.requests[0]) == {"EditLines"}
        tagged = f"     {make_line_ref(1, 'one')}→one"
        assert tagged in str(helper.requests[1].messages)
        assert "     1→one" in str(main.requests[1].messages)
        assert tagged not in str(main.requests[-1].messages)
        # The model is exchanged, and what it reads with it.
        other = Player(reads, says("Done."), name="tagger")
        agent.set_model(other)
        await agent.ask("Again.")
        assert shown(other.requests[0]) == {"EditLines"}
        assert tagged in str(other.requests[1].messages)


@pytest.mark.parametrize("name", sorted(FORMATS))
async def test_an_agent_that_may_not_edit_may_not_in_any_format(
    session: Session, project: Path, name: str
):
    folder = project / ".claude/agents"
    folder.mkdir(parents=True)
    (folder / "helper.md").write_text(
        f"---\nname: helper\ndescription: Helps.\ndisallowedTools: {name}\n---\nHelp."
    )
    text = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch"
    model = Player(
        calls(("t1", "Agent", {"description": "x", "prompt": "y", "subagent_type": "helper"})),
        calls(("c1", "ApplyPatch", {"input": text})),
        says("Failed."),
        says("Done."),
        name="gpt-5",
    )
    async with Agent(model, session) as agent:
        await agent.ask("Go.")
    assert shown(model.requests[0]) == {"ApplyPatch"}
    assert shown(model.requests[1]) == set()
    assert not (project / "a.txt").exists()
