"""Sub-agents: what they get, what they may, how they are found again."""

import asyncio
import re
from pathlib import Path

import pytest
from pairing import complaints
from players import Player, call, calls, ended, says
from tests.expected_types import expect_type, get_result_text, get_text
from tests.waiting import until

from handaxe import Agent, Allow, Deny, Effects, PermissionRequest, Session, ToolContext, tool
from handaxe.agent.events import FromAgent, Nudged, RunFinished, Told, ToolAnswered
from handaxe.agent.subagents.registry import SpawnLimits
from handaxe.app.session import get_parts
from handaxe.contract.faults.agent import AgentNotFound, AgentsTooDeep, AgentStoppedByUser
from handaxe.contract.messages import ToolResultBlock
from handaxe.contract.ports.agents import AgentRequest, AgentState, to_job_state
from handaxe.contract.ports.model import ModelFailed, ModelRequest
from handaxe.session.jobs import summarize_job
from handaxe.session.todos import Todos
from handaxe.session.workdir import Workdir
from handaxe.storage.agent_files import AgentFiles


def task(call_id: str = "t1", prompt: str = "Do it.", **more: object):
    return call_id, "Agent", {"description": "A task", "prompt": prompt, **more}


def last_result(model: Player, index: int = -1) -> ToolResultBlock:
    return expect_type(ToolResultBlock, model.requests[index].messages[-1].content[0])


def tools_of(request: ModelRequest) -> list[str]:
    return [spec.name for spec in request.tools]


@pytest.mark.proves("BT-12")
async def test_an_agent_works_with_tools_of_its_own_and_reports(session: Session, project: Path):
    (project / "a.txt").write_text("one\n")
    model = Player(
        calls(task(prompt="What does a.txt say?")),
        calls(("c1", "Read", {"file_path": "a.txt"})),
        says("It says one."),
        says("The agent found: one."),
    )
    agent = Agent(model, session)
    seen = [event async for event in agent.run("Ask somebody.")]
    assert expect_type(RunFinished, seen[-1]).result == "The agent found: one."
    child = model.requests[1]
    assert get_text(child.messages[0].content[0]) == "What does a.txt say?"
    assert "AskUserQuestion" not in tools_of(child)
    text = get_result_text(last_result(model))
    assert text.startswith("It says one.")
    assert "agentId: " in text
    data = next(e.result.data for e in seen if isinstance(e, ToolAnswered))
    assert data["status"] == "completed"
    assert data["totalToolUseCount"] == 1
    assert "used: 1 tool call, " in text
    assert any(isinstance(event, FromAgent) for event in seen)
    assert complaints(agent.messages) == []


async def test_the_old_name_works_and_any_case_of_a_type(session: Session):
    model = Player(
        calls(("t1", "Task", {"description": "x", "prompt": "y", "subagent_type": "explore"})),
        says("Seen."),
        says("Done."),
    )
    await Agent(model, session).ask("Go.")
    given = set(tools_of(model.requests[1]))
    assert {"Glob", "Grep", "Read"} <= given
    assert given.isdisjoint({"Agent", "Edit", "Write", "TodoWrite"})
    assert get_result_text(last_result(model)).startswith("Seen.")


async def test_an_unknown_type_is_answered_with_the_known_ones(session: Session):
    model = Player(calls(task(subagent_type="explorer")), says("Oh."))
    await Agent(model, session).ask("Go.")
    text = get_result_text(last_result(model))
    assert "Did you mean 'Explore'?" in text
    assert "general-purpose" in text


async def test_isolation_that_cannot_be_had_starts_nothing(session: Session):
    model = Player(calls(task(isolation="worktree")), says("Oh."))
    await Agent(model, session).ask("Go.")
    assert last_result(model).is_error
    assert "cannot start here" in get_result_text(last_result(model))


async def test_a_type_without_usable_tools_is_refused(session: Session, project: Path):
    agents = {"odd": {"description": "Has nothing.", "tools": "Nonesuch"}}
    model = Player(calls(task(subagent_type="odd")), says("Oh."))
    await Agent(model, session, agents=agents).ask("Go.")
    assert "would be spawned with zero tools — refusing." in get_result_text(last_result(model))


async def test_agents_are_nested_only_so_deep(session: Session):
    model = Player(calls(task("t1")), calls(task("t2")), says("a"), says("b"), says("c"))
    await Agent(model, session, agent_limits=SpawnLimits(max_depth=1)).ask("Go.")
    assert "Agent" not in tools_of(model.requests[1])
    assert "There is no tool named 'Agent'" in get_result_text(last_result(model, 2))
    assert "This agent's type, or the agent that started it, excludes the tool." in get_result_text(
        last_result(model, 2)
    )


async def test_only_so_many_agents_work_at_once(session: Session):
    model = Player(calls(task("t1"), task("t2", "Other.")), says("a"), says("b"), says("c"))
    await Agent(model, session, agent_limits=SpawnLimits(max_running=1)).ask("Go.")
    texts = [get_result_text(block) for block in model.requests[-1].messages[-1].content]
    assert sum("Concurrent subagent limit reached" in text for text in texts) == 1


@pytest.mark.proves("PM-4")
async def test_an_agents_question_reaches_the_same_human_and_says_who_asks(project: Path):
    asked: list[PermissionRequest] = []

    async def on_ask(request: PermissionRequest) -> Allow | Deny:
        asked.append(request)
        return Allow()

    async with Session(project, on_ask=on_ask) as session:
        model = Player(
            calls(task()),
            calls(("w1", "Write", {"file_path": "a.txt", "content": "x"})),
            says("Written."),
            says("Done."),
        )
        agent = Agent(model, session)
        await agent.ask("Go.")
    assert (project / "a.txt").read_text() == "x"
    assert asked[0].agent_type == "general-purpose"
    assert asked[0].agent_id


async def test_headless_an_agents_question_is_a_refusal(project: Path):
    async with Session(project) as session:
        model = Player(
            calls(task()),
            calls(("w1", "Write", {"file_path": "a.txt", "content": "x"})),
            says("Could not."),
            says("Done."),
        )
        final = await Agent(model, session).ask("Go.")
    assert not (project / "a.txt").exists()
    assert [(denied.tool, denied.id) for denied in final.denials] == [("Write", "w1")]


async def test_a_run_counts_refusals_of_agents_at_any_depth_and_of_no_other_run(project: Path):
    async with Session(project) as session:
        model = Player(
            calls(task()),
            calls(task("t2", "Ask another.")),
            calls(("w1", "Write", {"file_path": "a.txt", "content": "x"})),
            says("Could not."),
            calls(("w2", "Write", {"file_path": "b.txt", "content": "x"})),
            says("Neither could I."),
            calls(("w3", "Write", {"file_path": "c.txt", "content": "x"})),
            says("Done."),
            says("Nothing to do."),
        )
        agent = Agent(model, session)
        final = await agent.ask("Go.")
        assert [denied.id for denied in final.denials] == ["w1", "w2", "w3"]
        assert (await agent.ask("Again.")).denials == ()


async def test_a_run_counts_what_agents_in_the_background_were_refused(project: Path):

    def answer(request: ModelRequest):
        if get_text(request.messages[0].content[0]) == "Do it." and len(request.messages) == 1:
            return calls(("w1", "Write", {"file_path": "a.txt", "content": "x"}))
        return says("Done.")

    async with Session(project) as session:
        model = Player(calls(task(run_in_background=True)), *[answer] * 4)
        final = await Agent(model, session).ask("Go.")
    assert [denied.id for denied in final.denials] == ["w1"]


@pytest.mark.parametrize("wanted", ["bypassPermissions", "acceptEdits", "auto"])
async def test_a_type_cannot_ask_for_more_than_its_parent_may(project: Path, wanted: str):
    agents = {"bold": {"description": "Bold.", "permissionMode": wanted}}
    async with Session(project) as session:
        model = Player(
            calls(task(subagent_type="bold")),
            calls(("w1", "Write", {"file_path": "a.txt", "content": "x"})),
            says("Could not."),
            says("Done."),
        )
        await Agent(model, session, agents=agents).ask("Go.")
    assert not (project / "a.txt").exists()


async def test_a_narrow_agents_own_agents_stay_narrow(session: Session, project: Path):
    agents = {"careful": {"description": "Careful.", "permissionMode": "plan"}}
    model = Player(
        calls(task("t1", subagent_type="careful")),
        calls(task("t2")),
        calls(("w1", "Write", {"file_path": "a.txt", "content": "x"})),
        says("Could not."),
        says("Back."),
        says("Done."),
    )
    await Agent(model, session, agents=agents).ask("Go.")
    assert not (project / "a.txt").exists()


async def test_a_mode_that_narrows_meanwhile_narrows_agents(session: Session, project: Path):
    gate = asyncio.Event()
    model = Player(
        calls(task()),
        [gate, *call("w1", "Write", {"file_path": "a.txt", "content": "x"}), ended("tool_use")],
        says("Could not."),
        says("Done."),
    )
    agent = Agent(model, session)
    running = asyncio.ensure_future(agent.ask("Go."))
    await until(lambda: len(model.requests) == 2)
    session.set_mode("plan")
    gate.set()
    await running
    assert not (project / "a.txt").exists()


async def test_hooks_hear_who_makes_a_call(project: Path):
    heard: list[dict[str, object]] = []

    async def hook(event: dict[str, object]) -> None:
        heard.append(event)

    (project / "a.txt").write_text("one\n")
    async with Session(
        project, hooks={"PreToolUse": [hook], "SubagentStop": [hook], "Stop": [hook]}
    ) as session:
        model = Player(
            calls(task()), calls(("c1", "Read", {"file_path": "a.txt"})), says("a"), says("b")
        )
        await Agent(model, session).ask("Go.")
    names = [(e["hook_event_name"], e.get("tool_name"), e.get("agent_type")) for e in heard]
    assert names == [
        ("PreToolUse", "Agent", None),
        ("PreToolUse", "Read", "general-purpose"),
        ("SubagentStop", None, "general-purpose"),
        ("Stop", None, None),
    ]


async def test_an_agent_in_the_background_is_waited_for_and_told(session: Session):

    def answer(request: ModelRequest):
        if get_text(request.messages[0].content[0]) == "Do it.":
            return says("Found.")
        return says("It found something." if "<result>" in str(request.messages) else "I go on.")

    model = Player(calls(task(run_in_background=True)), *[answer] * 3)
    final = await Agent(model, session).ask("Go.")
    assert final.result == "It found something."
    told = "".join(getattr(b, "text", "") for b in model.requests[-1].messages[-1].content)
    assert "<status>completed</status>" in told
    assert "<result>" in told


async def test_an_agent_that_takes_too_long_goes_to_the_background(session: Session):
    gate = asyncio.Event()
    model = Player(
        calls(task()),
        [gate, *says("Late.")],
        lambda _: (gate.set(), says("Meanwhile."))[1],
        says("All done."),
    )
    limits = SpawnLimits(auto_background_s=0.01)
    final = await Agent(model, session, agent_limits=limits).ask("Go.")
    assert final.result == "All done."
    assert "too long to wait for" in get_result_text(model.requests[2].messages[-1].content[0])


async def test_stopping_the_parent_stops_its_agents(session: Session):
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool(effects=Effects.none())
    async def linger() -> str:
        """Wait for ever."""
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return "never"

    get_parts(session).catalog.add(linger)
    model = Player(calls(task()), calls(("c1", "linger", {})))
    agent = Agent(model, session)
    running = asyncio.ensure_future(agent.ask("Go."))
    await started.wait()
    agent.interrupt()
    assert (await running).terminal_reason == "aborted_tools"
    assert stopped.is_set()
    assert [state.status for state in agent.agents.listed()] == ["killed"]
    assert complaints(agent.messages) == []


async def test_an_agents_directory_is_its_own(session: Session, project: Path):
    (project / "sub").mkdir()

    @tool(effects=Effects.on_state("cwd"), uses=(Workdir,))
    async def go(ctx: ToolContext, path: str) -> str:
        """Work elsewhere."""
        ctx[Workdir].move(ctx[Workdir].resolve(path))
        return ctx[Workdir].current

    get_parts(session).catalog.add(go)
    session.permissions.grant(["go"])
    model = Player(calls(task()), calls(("g1", "go", {"path": "sub"})), says("a"), says("b"))
    await Agent(model, session).ask("Go.")
    assert get_result_text(last_result(model, 2)) == str(project / "sub")
    assert session.workdir.current == str(project)


@pytest.mark.proves("BT-15")
async def test_an_agent_is_found_after_a_restart_and_goes_on(project: Path):
    (project / "a.txt").write_text("one\n")
    async with Session(project) as first:
        model = Player(
            calls(task(name="reader")),
            calls(("c1", "Read", {"file_path": "a.txt"})),
            says("It says one."),
            says("Done."),
        )
        await Agent(model, first).ask("Go.")
    async with Session(project, session_id=first.id) as second:

        def answer(request: ModelRequest):
            if "And now?" in str(request.messages[-1].content):
                return says("Still one.")
            is_told = "<result>Still one.</result>" in str(request.messages)
            return says("It still says one." if is_told else "Waiting.")

        sent = calls(("s1", "SendMessage", {"to": "reader", "message": "And now?"}))
        model = Player(sent, *[answer] * 3)
        agent = Agent(model, second)
        assert [(s.name, s.status) for s in agent.agents.listed()] == [("reader", "completed")]
        final = await agent.ask("Ask again.")
        assert final.result == "It still says one."
        asked = next(r for r in model.requests if "And now?" in str(r.messages[-1].content))
        assert "It says one." in str(asked.messages)
        assert complaints(asked.messages) == []


@pytest.mark.proves("BT-14")
async def test_tasks_know_agents_of_earlier_runs_by_id_and_name(project: Path):
    asked = ("c1", "TaskOutput", {"task_id": "reader"})
    async with Session(project) as first:
        model = Player(
            calls(task(name="reader")), says("It says one."), calls(asked), says("Done.")
        )
        agent = Agent(model, first)
        await agent.ask("Go.")
        assert "<result>\nIt says one.\n</result>" in get_result_text(last_result(model))
        (state,) = agent.agents.listed()
    # A session without an agent of its own knows them too.
    async with Session(project, session_id=first.id) as second:
        for who in ("reader", state.agent_id):
            found = await second.call("TaskOutput", task_id=who)
            assert found.data["task"]["task_id"] == state.agent_id
            assert "<result>\nIt says one.\n</result>" in found.text
            stopped = await second.call("TaskStop", task_id=who)
            assert stopped.code == "task.not_running"
        everything = await second.call("TaskOutput")
        assert everything.text == f"{state.agent_id} (reader): local_agent, completed: A task"
        assert [each["name"] for each in everything.data["tasks"]] == ["reader"]


@pytest.mark.proves("BT-14")
async def test_an_agent_that_was_woken_after_a_restart_is_stopped_by_its_name(project: Path):
    async with Session(project) as first:
        model = Player(calls(task(name="reader")), says("It says one."), says("Done."))
        await Agent(model, first).ask("Go.")
    async with Session(project, session_id=first.id) as second:
        never = asyncio.Event()
        agent = Agent(Player([never]), second)
        woken = await agent.agents.send("reader", "And now?")
        stopped = await second.call("TaskStop", task_id="reader")
        assert stopped.data["task_id"] == woken.agent_id
        after = await second.call("TaskOutput", task_id="reader")
        assert after.data["task"]["status"] == "killed"


async def test_an_agent_that_the_end_of_the_process_cut_off_says_what_it_had(project: Path):
    async with Session(project) as first:
        pass
    files = AgentFiles(get_parts(first).session_context.session_directory / "agents")
    files.keep(
        AgentState(agent_id="a1", agent_type="x", description="d", status="running", result="Half.")
    )
    async with Session(project, session_id=first.id) as second:
        found = await second.call("TaskOutput", task_id="a1")
        assert found.data["task"]["status"] == "killed"
        assert found.data["task"]["ended_by"] == "host_ended"
        assert found.data["task"]["output"] == "Half."


async def test_a_message_to_nobody_names_who_is_there(session: Session):
    model = Player(calls(("s1", "SendMessage", {"to": "bob", "message": "Hi"})), says("Oh."))
    await Agent(model, session).ask("Go.")
    assert "There is no agent 'bob'" in get_result_text(last_result(model))


async def test_two_agents_cannot_have_one_name(session: Session):
    model = Player(
        calls(task("t1", name="bob")), says("a"), calls(task("t2", name="bob")), says("b")
    )
    await Agent(model, session).ask("Go.")
    assert "already has the name 'bob'" in get_result_text(last_result(model))


async def test_what_an_agent_changed_can_be_undone(session: Session, project: Path):
    model = Player(
        calls(task()),
        calls(("w1", "Write", {"file_path": "a.txt", "content": "x"})),
        says("Written."),
        says("Done."),
    )
    await Agent(model, session).ask("Go.")
    assert (project / "a.txt").exists()
    assert (await session.undo()).ok
    assert not (project / "a.txt").exists()


async def test_types_come_from_files_and_bad_files_are_loud(session: Session, project: Path):
    folder = project / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "good.md").write_text(
        "---\nname: reviewer\ndescription: Reviews code.\ntools: Read, Grep\nmaxTurns: 2\n---\n"
        "You review."
    )
    (folder / "bad.md").write_text("---\nname: [broken\n---\nx")
    (folder / "nameless.md").write_text("---\ndescription: x\n---\nx")
    model = Player(calls(task(subagent_type="reviewer")), says("Fine."), says("Done."))
    agent = Agent(model, session)
    told = [e.sentence async for e in agent.run("Go.") if isinstance(e, Nudged | Told)]
    assert sum("bad.md" in text for text in told) == 1
    assert sum("`name` is missing" in text for text in told) == 1
    assert tools_of(model.requests[1]) == ["Grep", "Read"]
    assert model.requests[1].system[0] == "You review."
    assert any("reviewer: Reviews code." in part for part in model.requests[0].system)


async def test_a_hundred_agents_work_in_one_process(session: Session, project: Path):
    (project / "a.txt").write_text("one\n")
    wanted = [task(f"t{i}", f"Task {i}.") for i in range(100)]

    def answer(request: ModelRequest):
        first = get_text(request.messages[0].content[0])
        if first.startswith("Task"):
            if len(request.messages) == 1:
                return calls((f"r{first}".replace(" ", "_")[:-1], "Read", {"file_path": "a.txt"}))
            return says(f"{first} done")
        return calls(*wanted) if len(request.messages) == 1 else says("All done.")

    limits = SpawnLimits(max_running=100)
    model = Player(*[answer] * 300)
    final = await Agent(model, session, agent_limits=limits).ask("Go.")
    assert final.result == "All done."
    results = model.requests[-1].messages[-1].content
    assert [get_result_text(b).splitlines()[0] for b in results] == [
        f"Task {i}. done" for i in range(100)
    ]


async def test_the_port_itself_refuses_what_is_too_deep(session: Session):
    agent = Agent(Player(), session, agent_limits=SpawnLimits(max_depth=0))
    with pytest.raises(AgentsTooDeep, match="nested 0 deep"):
        await agent.agents.start(AgentRequest(description="x", prompt="y"), lambda _: None)


async def test_an_agent_that_a_person_stopped_is_not_woken_by_a_message(session: Session):
    gate = asyncio.Event()
    model = Player([gate])
    agent = Agent(model, session)
    request = AgentRequest(description="x", prompt="y", name="bob", in_background=True)
    await agent.agents.start(request, lambda _: None)
    await until(lambda: model.requests)
    stopped = await agent.agents.stop("bob")
    assert (stopped.status, stopped.ended_by) == ("killed", "user")
    assert stopped.result == "[Request interrupted by user]"
    with pytest.raises(AgentStoppedByUser):
        await agent.agents.send("bob", "Wake up.")
    with pytest.raises(AgentNotFound):
        await agent.agents.stop("bob")


async def stop_by_parent(agent: Agent) -> None:
    (state,) = agent.agents.listed()
    assert (await agent.session.call("TaskStop", task_id=state.agent_id)).ok


async def stop_by_session(agent: Agent) -> None:
    await agent.session.close()


@pytest.mark.parametrize(
    ("stop", "by", "said", "summary"),
    [
        (stop_by_parent, "parent", "[Stopped by the agent that", "was stopped by the agent that"),
        (stop_by_session, "session", "[Stopped because the session ended]",
         "was stopped because the session ended"),
    ],
)  # fmt: skip
async def test_an_agent_that_was_ended_says_by_whom(project: Path, stop, by, said, summary):
    model = Player([asyncio.Event()])
    agent = Agent(model, root=project)
    jobs = agent.session.jobs
    request = AgentRequest(description="x", prompt="y", in_background=True)
    await agent.agents.start(request, lambda _: None)
    await until(lambda: model.requests)
    await stop(agent)
    (state,) = agent.agents.listed()
    assert (state.status, state.ended_by) == ("killed", by)
    assert state.result.startswith(said)
    (job,) = jobs.listed()
    assert job.ended_by == by
    assert summary in summarize_job(job)
    await agent.close()
    await agent.session.close()


async def test_an_agent_that_reached_its_limit_says_so(session: Session, project: Path):
    agents = {"short": {"description": "d", "prompt": "p", "maxTurns": 1}}
    read = ("1", "Glob", {"pattern": "*"})
    model = Player(calls(task(subagent_type="short")), calls(read), calls(read), says("Oh."))
    agent = Agent(model, session, agents=agents)
    await agent.ask("Go.")
    (state,) = agent.agents.listed()
    assert (state.status, state.ended_by) == ("failed", "limit")
    assert "limit" in summarize_job(to_job_state(state, ""))


async def test_an_agent_ends_with_the_call_that_started_it(session: Session):
    gate = asyncio.Event()
    model = Player(calls(task("t1")), [gate])
    agent = Agent(model, session)
    working = asyncio.ensure_future(agent.ask("Go."))
    await until(lambda: len(model.requests) == 2)
    agent.interrupt()
    await working
    (state,) = agent.agents.listed()
    assert (state.status, state.ended_by) == ("killed", "call")
    assert "by user" not in state.result


async def test_an_agents_long_report_is_cut_and_kept_whole(session: Session):
    model = Player(calls(task()), says("word " * 10_000), says("Done."))
    agent = Agent(model, session)
    await agent.ask("Go.")
    text = get_result_text(last_result(model))
    assert len(text) < 33_000
    assert "50,000 characters" in text or "49,999 characters" in text
    output = Path(agent.agents.listed()[0].output_file).read_text()
    assert output.count("word") == 10_000


async def test_what_an_agent_says_can_be_read_by_its_parent(session: Session):

    def answer(request: ModelRequest):
        is_child = get_text(request.messages[0].content[0]) == "Do it."
        return says("Found it.") if is_child else says("Waiting.")

    model = Player(calls(task(run_in_background=True)), *[answer] * 4)
    agent = Agent(model, session)
    await agent.ask("Go.")
    state = agent.agents.listed()[0]
    assert state.result == "Found it."
    result = await session.call("Read", file_path=state.output_file)
    assert result.ok
    assert "Found it." in result.text


async def test_a_bug_in_an_agents_model_is_told_to_its_parent(session: Session):
    def broken(request: ModelRequest):
        raise ZeroDivisionError("planned")

    model = Player(calls(task()), broken, says("Oh."))
    final = await Agent(model, session).ask("Go.")
    assert final.result == "Oh."
    assert "ZeroDivisionError" in get_result_text(last_result(model))
    assert last_result(model).is_error


@pytest.mark.proves("BT-12")
async def test_an_agent_whose_model_failed_is_an_error_to_its_parent(session: Session):
    failing = [ModelFailed("authentication", "The key is wrong.", status=401)]
    model = Player(calls(task()), failing, says("Oh."))
    seen = [event async for event in Agent(model, session).run("Go.")]
    assert expect_type(RunFinished, seen[-1]).result == "Oh."
    told = last_result(model)
    assert expect_type(ToolResultBlock, told).is_error
    assert "The agent ended with an error: The key is wrong." in get_result_text(told)
    assert "agentId: " in get_result_text(told)
    answered = next(e.result for e in seen if isinstance(e, ToolAnswered))
    assert (answered.code, answered.data["status"]) == ("agent.failed", "failed")


async def test_an_agent_that_used_up_its_turns_is_no_error(session: Session, project: Path):
    kind = project / ".claude" / "agents" / "short.md"
    kind.parent.mkdir(parents=True)
    kind.write_text("---\nname: short\ndescription: d\nmaxTurns: 1\n---\nWork.\n")
    model = Player(
        calls(task(subagent_type="short")),
        calls(("c1", "Glob", {"pattern": "*"})),
        says("Oh."),
    )
    await Agent(model, session).ask("Go.")
    told = last_result(model)
    assert not expect_type(ToolResultBlock, told).is_error
    assert "The agent ended with an error: " in get_result_text(told)


async def test_background_work_without_a_listener_ends_with_the_agent(session: Session):
    gate = asyncio.Event()

    def answer(request: ModelRequest):
        return [gate] if get_text(request.messages[0].content[0]) == "Do it." else says("Going.")

    model = Player(calls(task(run_in_background=True)), answer, answer)
    agent = Agent(model, session, wait_for_agents_s=0)
    await agent.ask("Go.")
    await agent.close()
    assert [state.status for state in agent.agents.listed()] == ["killed"]


async def test_a_project_cannot_choose_another_vendor_for_its_agents(
    session: Session, project: Path
):
    folder = project / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "x.md").write_text(
        "---\nname: x\ndescription: X.\nmodel: openai/gpt:http://evil\n---\nX."
    )
    agent = Agent(Player(says("Hi.")), session)
    told = [event async for event in agent.run("Go.") if isinstance(event, Told)]
    assert "may not choose a vendor" in told[0].sentence
    assert next(kind for kind in agent.agents.kinds() if kind.name == "x").model is None


async def test_settings_say_how_many_agents_there_may_be(project: Path):
    async with Session(project, settings={"agents": {"max_running": 1}}) as session:
        model = Player(calls(task("t1"), task("t2", "Other.")), says("a"), says("b"), says("c"))
        await Agent(model, session).ask("Go.")
    assert "limit reached: 1 agent is at work" in str(model.requests[-1].messages[-1])


async def test_agents_in_the_background_are_jobs(session: Session):
    def answer(request: ModelRequest):
        if get_text(request.messages[0].content[0]) == "Do it.":
            return says("Found.")
        return says("Told." if "completed" in str(request.messages) else "Waiting.")

    model = Player(calls(task(run_in_background=True)), *[answer] * 3)
    agent = Agent(model, session)
    assert (await agent.ask("Go.")).result == "Told."
    (job,) = session.jobs.listed()
    assert (job.kind, job.status, job.result) == ("agent", "completed", "Found.")


async def test_how_long_an_agent_at_work_has_been_silent_is_told(session: Session):
    go_on = asyncio.Event()
    looked = []

    def answer(request: ModelRequest):
        if get_text(request.messages[0].content[0]) == "Do it.":
            return [go_on, *says("Found.")]
        if not looked:
            looked.append(request)
            return calls(
                ("l1", "TaskOutput", {}),
                ("l2", "TaskOutput", {"task_id": "reader", "block": False}),
            )
        go_on.set()
        return says("Told." if "completed" in str(request.messages) else "Waiting.")

    model = Player(calls(task(run_in_background=True, name="reader")), *[answer] * 4)
    await Agent(model, session).ask("Go.")
    told = next(r for r in model.requests if "l2" in str(r.messages[-1].content))
    listed, one = (get_result_text(block) for block in told.messages[-1].content[:2])
    assert re.search(r"\(reader\): local_agent, running \(last active \d+ s ago\): A task", listed)
    assert re.search(r"<status>running</status>\n<last_active>\d+ s ago</last_active>", one)
    assert "last active" not in (await session.call("TaskOutput")).text


async def test_each_agents_calls_have_ids_of_their_own(session: Session, project: Path):
    """Models count from one in every conversation; nothing may be taken for something else."""
    (project / "a.txt").write_text("one\n")
    (project / "b.txt").write_text("two\n")
    model = Player(
        calls(("1", "Read", {"file_path": "a.txt"})),
        calls(("2", "Agent", {"description": "x", "prompt": "y"})),
        calls(("1", "Read", {"file_path": "b.txt"})),
        calls(("2", "Write", {"file_path": "c.txt", "content": "x"})),
        says("Done."),
        says("All done."),
    )
    await Agent(model, session).ask("Go.")
    assert "two" in get_result_text(model.requests[3].messages[-1].content[0])
    assert (project / "c.txt").read_text() == "x"
    assert [change.call_id.partition(".")[2] for change in session.history()] == ["2"]


async def test_an_agents_todo_list_is_its_own(session: Session):
    todo = {"content": "Mine", "status": "pending", "activeForm": "Doing mine"}
    model = Player(
        calls(task()), calls(("c1", "TodoWrite", {"todos": [todo]})), says("a"), says("b")
    )
    await Agent(model, session).ask("Go.")
    assert not last_result(model, 2).is_error
    assert get_parts(session).pipeline_context.ports[Todos].items == ()


async def test_a_skills_commands_in_an_agent_have_the_agents_permissions(session: Session):
    """Calls that a tool makes go through the pipeline of whoever runs the tool."""
    from handaxe.contract.ports.tools import ToolCaller

    @tool(effects=Effects.none(), uses=(ToolCaller,))
    async def through(ctx: ToolContext) -> str:
        """Write through another tool."""
        written = await ctx[ToolCaller].call(
            ctx.call_id, "Write", {"file_path": "a.txt", "content": "x"}
        )
        return written.code or "written"

    get_parts(session).catalog.add(through)
    agents = {"careful": {"description": "Careful.", "permissionMode": "plan"}}
    model = Player(
        calls(task(subagent_type="careful")), calls(("c1", "through", {})), says("a"), says("b")
    )
    await Agent(model, session, agents=agents).ask("Go.")
    text = get_result_text(last_result(model, 2))
    assert text != "written"
    assert "permission" in text or "unknown" in text


async def test_an_agent_can_speak_to_the_sessions_own(session: Session):
    said = asyncio.Event()

    def answer(request: ModelRequest):
        if get_text(request.messages[0].content[0]) == "Do it.":
            if "gets the message when" in str(request.messages):
                said.set()
                return says("Done.")
            return calls(("m1", "SendMessage", {"to": "main", "message": "I found a bug."}))
        if "I found a bug." in str(request.messages):
            return says("I heard of the bug.")
        return [said, *calls(("g1", "Glob", {"pattern": "*"}))]

    model = Player(calls(task(run_in_background=True, name="scout")), *[answer] * 6)
    final = await Agent(model, session).ask("Go.")
    assert final.result == "I heard of the bug."
    heard = str([r for r in model.requests if "I found a bug." in str(r.messages)][-1].messages)
    assert "This message is not from the user. The agent scout (A task) says:" in heard
    alone = await session.call("SendMessage", to="main", message="Hello?")
    assert alone.code == "agent.not_found"
