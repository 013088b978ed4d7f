"""What a skill can ask for, how an agent can be told to talk, and which agent leads a session."""

from pathlib import Path

import pytest
from players import Player, calls, says
from tests.expected_types import expect_type, get_result_text, get_text

from handaxe import Agent, Session
from handaxe.agent.events import Told, ToolAnswered
from handaxe.app.slash_commands import expand_prompt, list_slash_commands
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import ToolResultBlock
from handaxe.contract.ports.model import ModelRequest


@pytest.fixture
async def session(project: Path):
    """A session in which skills may be run."""
    async with Session(project, permission_mode="acceptEdits", allow=["Skill"]) as opened:
        yield opened


def write_skill(project: Path, name: str, head: str, body: str = "Sweep $ARGUMENTS.") -> None:
    path = project / f".claude/skills/{name}/SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\ndescription: Tidies.\n{head}\n---\n{body}\n")


def run(name: str, args: str = "", call_id: str = "s1"):
    return call_id, "Skill", {"skill": name, "args": args}


def said(request: ModelRequest, index: int = 0) -> str:
    return get_text(request.messages[index].content[0])


def system(request: ModelRequest) -> str:
    return "\n".join(request.system)


@pytest.mark.proves("BT-18")
async def test_a_skill_that_forks_is_the_task_of_an_agent(session: Session, project: Path):
    write_skill(project, "tidy", "context: fork\nagent: Explore\nmodel: small\neffort: low")
    small = Player(says("Swept."), name="small")
    model = Player(calls(run("tidy", "the hall")), says("Done."))
    agent = Agent(model, session, open_model=lambda name: small if name == "small" else model)
    seen = [event async for event in agent.run("Go.")]
    assert said(small.requests[0]) == "Sweep the hall."
    assert small.requests[0].effort == "low"
    assert "Write" not in {spec.name for spec in small.requests[0].tools}
    result = next(event.result for event in seen if isinstance(event, ToolAnswered))
    assert "Swept." in result.text
    assert result.data["status"] == "forked"
    assert "Sweep the hall." not in str(model.requests[-1].messages)


@pytest.mark.proves("BT-18")
async def test_what_was_invoked_survives_a_restart_and_a_summary(project: Path):
    write_skill(project, "tidy", "", "Sweep $ARGUMENTS.")
    write_skill(project, "dust", "", "Dust $ARGUMENTS.")
    async with Session(project, allow=["Skill"]) as first:
        model = Player(calls(run("tidy", "the hall")), says("Swept."), says("Dusted."))
        agent = Agent(model, first, memory=False)
        await agent.ask("Go.")
        await agent.ask(await expand_prompt(first, "/dust the shelf"))
    write_skill(project, "tidy", "", "Something else entirely.")
    for summary in ("ONE", "TWO"):
        async with Session(project, allow=["Skill"], session_id=first.id) as again:
            agent = Agent(Player(says(summary)), again, memory=False)
            assert await agent.compact() is not None
            kept = str(agent.messages)
        assert "Sweep the hall." in kept
        assert "Dust the shelf." in kept
        assert "Swept." not in kept


async def test_a_woken_agent_knows_what_it_invoked(project: Path):
    write_skill(project, "tidy", "", "Sweep it.")
    asked = {"description": "x", "prompt": "y", "name": "maid", "subagent_type": "general-purpose"}
    async with Session(project, allow=["Skill"]) as first:
        model = Player(
            calls(("t1", "Agent", asked)), calls(run("tidy")), says("Swept."), says("Done.")
        )
        await Agent(model, first).ask("Go.")
    async with Session(project, allow=["Skill"], session_id=first.id) as second:

        def answer(request: ModelRequest):
            if "Again!" in str(request.messages[-1].content):
                return calls(run("tidy", call_id="s2"))
            return says("Fine.")

        model = Player(
            calls(("m1", "SendMessage", {"to": "maid", "message": "Again!"})), *[answer] * 5
        )
        await Agent(model, second).ask("Wake it.")
        told = [str(request.messages[-1]) for request in model.requests]
    assert any("The skill tidy is already loaded" in text for text in told)


async def test_a_command_that_nobody_knows_is_no_prompt(session: Session, project: Path):
    write_skill(project, "tidy", "")
    with pytest.raises(SetupError, match="There is no command /nonsense"):
        await expand_prompt(session, "/nonsense")
    with pytest.raises(SetupError, match="Did you mean /tidy"):
        await expand_prompt(session, "/tidi the hall")
    with pytest.raises(SetupError, match=r"Commands: .*/tidy"):
        await expand_prompt(session, "/nonsense is what I heard")
    for text in ("/tmp", "/tmp is full", "/nonsense/at/all", "Run /nonsense", '"/nonsense" it is'):
        assert await expand_prompt(session, text) == text


async def test_an_unknown_agent_of_a_skill_is_named(session: Session, project: Path):
    write_skill(project, "tidy", "context: fork\nagent: Explorer")
    model = Player(calls(run("tidy")), says("Oh."))
    await Agent(model, session).ask("Go.")
    assert "Did you mean 'Explore'?" in get_result_text(model.requests[-1].messages[-1].content[0])


async def test_a_skill_of_a_forked_skill_runs_too(session: Session, project: Path):
    write_skill(project, "outer", "context: fork", "Run the other.")
    write_skill(project, "inner", "", "Inner text.")
    model = Player(calls(run("outer")), calls(run("inner")), says("a"), says("b"))
    final = await Agent(model, session).ask("Go.")
    assert final.result == "b"
    assert "Inner text." in str(model.requests[2].messages)


async def test_a_typed_skill_forks_as_well(session: Session, project: Path):
    write_skill(project, "tidy", "context: fork\ndisable-model-invocation: true")
    model = Player(says("Swept."), says("Done."))
    async with Agent(model, session) as agent:
        prompt = await expand_prompt(session, "/tidy the hall")
        await agent.ask(prompt)
    assert said(model.requests[0]) == "Sweep the hall."
    assert "Swept." in said(model.requests[1])


async def test_a_skill_chooses_model_and_effort_for_its_turn_only(session: Session, project: Path):
    write_skill(project, "tidy", "model: small\neffort: high")
    small = Player(says("a"), name="small")
    model = Player(calls(run("tidy")), says("b"))
    agent = Agent(model, session, open_model=lambda name: small if name == "small" else model)
    await agent.ask("Go.")
    assert (len(small.requests), small.requests[0].effort) == (1, "high")
    await agent.ask("Again.")
    assert model.requests[-1].effort is None
    assert agent.model is model


@pytest.mark.parametrize("wanted", ["openai/gpt", "http://x"])
async def test_a_projects_skill_chooses_no_vendor(session: Session, project: Path, wanted: str):
    write_skill(project, "tidy", f"model: {wanted}")
    model = Player(calls(run("tidy")), says("b"))
    asked: list[str | None] = []
    agent = Agent(model, session, open_model=lambda name: asked.append(name) or model)
    await agent.ask("Go.")
    assert asked == []


async def test_tools_are_allowed_and_forbidden_for_the_turn(project: Path):
    write_skill(project, "tidy", "allowed-tools: Write\ndisallowed-tools: Read")
    (project / "a.txt").write_text("x")
    write = ("w1", "Write", {"file_path": "n.txt", "content": "x"})
    read = ("r1", "Read", {"file_path": "a.txt"})
    async with Session(project, allow=["Skill"], trusted=True) as session:
        model = Player(calls(run("tidy")), calls(write, read), says("a"))
        agent = Agent(model, session)
        await agent.ask("Go.")
        first, second = model.requests[-1].messages[-1].content[:2]
        assert not expect_type(ToolResultBlock, first).is_error
        assert expect_type(ToolResultBlock, second).is_error
        model._turns += [
            calls(("w2", "Write", {"file_path": "m.txt", "content": "x"})),
            calls(("r2", "Read", {"file_path": "a.txt"})),
            says("b"),
        ]
        await agent.ask("Again.")
        assert expect_type(ToolResultBlock, model.requests[-2].messages[-1].content[0]).is_error
        assert not expect_type(ToolResultBlock, model.requests[-1].messages[-1].content[0]).is_error


async def test_who_may_run_a_skill(session: Session, project: Path):
    write_skill(project, "mine", "disable-model-invocation: true\nargument-hint: '[where]'")
    write_skill(project, "yours", "user-invocable: false")
    model = Player(calls(run("mine")), says("Oh."))
    await Agent(model, session).ask("Go.")
    listed = system(model.requests[0])
    assert "yours" in listed
    assert "mine" not in listed
    assert expect_type(ToolResultBlock, model.requests[-1].messages[-1].content[0]).is_error
    typed = {skill.name: skill.argument_hint for skill in list_slash_commands(session)}
    assert typed == {"mine": "[where]"}


@pytest.mark.proves("AR-4")
@pytest.mark.parametrize("name", ["concise", "Explanatory", "LEARNING", "proactive"])
async def test_built_in_styles_are_added_to_the_rules(project: Path, name: str):
    async with Session(project, settings={"outputStyle": name}) as session:
        model = Player(says("x"))
        agent = Agent(model, session)
        await agent.ask("Go.")
        assert agent.output_style.name.casefold() == name.casefold()
    assert "# Style" in system(model.requests[0])
    assert "# How to work" in system(model.requests[0])


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_style_of_ones_own(session: Session, project: Path, *, keeps: bool):
    folder = project / ".claude/output-styles"
    folder.mkdir(parents=True)
    (folder / "pirate.md").write_text(
        f"---\nname: Pirate\nkeep-coding-instructions: {str(keeps).lower()}\n---\nSay arr.\n"
    )
    model = Player(
        calls(("t1", "Agent", {"description": "x", "prompt": "y"})), says("a"), says("b")
    )
    agent = Agent(model, session, output_style="pirate")
    await agent.ask("Go.")
    first, sub = system(model.requests[0]), system(model.requests[1])
    assert "Say arr." in first
    assert ("# How to work" in first) is keeps
    assert "only the user gives instructions" in first
    assert "Say arr." not in sub
    assert model.requests[0].system == model.requests[2].system
    assert "Pirate" in agent.styles.names()


async def test_an_unknown_style_is_named_and_nothing_else_changes(session: Session):
    model = Player(says("x"))
    agent = Agent(model, session, output_style="Concize")
    told = [event.sentence async for event in agent.run("Go.") if isinstance(event, Told)]
    assert "Unknown output style 'Concize'. Did you mean 'Concise'?" in told
    assert "# Style" not in system(model.requests[0])


async def test_a_type_can_lead_the_session(project: Path):
    folder = project / ".claude/agents"
    folder.mkdir(parents=True)
    (folder / "lead.md").write_text(
        "---\nname: lead\ndescription: Leads.\ntools: Read, Grep\nmemory: project\n"
        "permissionMode: plan\nmaxTurns: 7\neffort: high\ninitialPrompt: Look around.\n---\nLead on.\n"
    )
    async with Session(project, trusted=True) as session:
        model = Player(says("x"), says("y"))
        agent = Agent(model, session, agent="lead")
        await agent.ask("Go.")
        await agent.ask("More.")
        assert session.permissions.mode == "plan"
        assert agent.meter.limits.max_turns == 7
    first = model.requests[0]
    assert system(first).startswith("Lead on.")
    assert "# Your memory" in system(first)
    assert {spec.name for spec in first.tools} <= {"Read", "Grep", "Write", "Edit"}
    assert first.effort == "high"
    assert said(first) == "Look around.\n\nGo."
    assert "Look around." not in str(model.requests[1].messages[-1])


async def test_a_leading_type_that_is_not_there_is_named(session: Session):
    with pytest.raises(SetupError, match="Did you mean 'Explore'"):
        Agent(Player(), session, agent="Explorer")


async def test_a_project_cannot_lead_into_a_wider_mode(project: Path):
    folder = project / ".claude/agents"
    folder.mkdir(parents=True)
    (folder / "lead.md").write_text(
        "---\nname: lead\ndescription: d\npermissionMode: bypassPermissions\n---\nx\n"
    )
    async with Session(project) as session:
        Agent(Player(), session, agent="lead")
        assert session.permissions.mode == "default"
