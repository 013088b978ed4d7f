"""An agent of the OpenAI Agents SDK with a session's tools and a scripted model."""

import json
from typing import Any

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed (group frameworks)")

from agents import Agent, FunctionTool, RunConfig, Runner, RunResult, RunState
from agents.testing import ScriptedModel, assistant_message, function_call
from tests.expected_types import expect_type

from handaxe import Session
from handaxe.adapters.openai_agents import tools_for


def input_items(run: RunResult) -> list[dict[str, Any]]:
    """What the next run would get, as JSON."""
    return [dict(item) for item in run.to_input_list()]


async def outputs_of(session, steps, **options) -> list:
    calls = [[function_call(tool, sent, call_id=call_id)] for call_id, tool, sent in steps]
    model = ScriptedModel([*calls, [assistant_message("done")]])
    agent = Agent(name="Tester", model=model, tools=tools_for(session, **options))
    run = await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))
    assert run.final_output == "done"
    items = [item for item in input_items(run) if item.get("type") == "function_call_output"]
    return [item["output"] for item in items]


@pytest.mark.proves("AR-1")
async def test_an_agent_reads_edits_and_survives_refusals(session, project, script):
    outputs = await outputs_of(session, script)
    assert (project / "a.py").read_text() == "x = 2\n"
    assert outputs[0] == "     1→x = 1"
    assert not outputs[1].startswith("Error: ")
    assert all(output.startswith("Error: ") for output in outputs[2:])
    assert "outside" in outputs[2]


@pytest.mark.proves("AR-1")
async def test_a_conversation_that_is_run_again_changes_nothing_twice(
    session, project, script, started, settled
):
    first = await outputs_of(session, script)
    (project / "a.py").write_text("x = 1\n")
    again = await outputs_of(session, script)
    await settled()
    assert started == ["one", "two", "three", "four", "five"]
    assert again == first
    assert (project / "a.py").read_text() == "x = 1\n"


async def test_the_model_gets_a_picture(session, picture):
    (output,) = await outputs_of(session, [("one", "Read", {"file_path": picture})])
    assert [part["type"] for part in output] == ["input_text", "input_image"]
    assert output[1]["image_url"].startswith("data:image/png;base64,")


@pytest.mark.parametrize("sent", ["{not json", "[]", ""])
async def test_arguments_that_are_no_object_are_an_answer_to_the_model(session, sent):
    (output,) = await outputs_of(session, [("one", "Read", sent)])
    assert output.startswith("Error: ")


async def test_the_model_is_offered_our_schemas_as_they_are(session, offered):
    tools = [expect_type(FunctionTool, tool) for tool in tools_for(session)]
    assert [
        (tool.name, tool.description, json.dumps(tool.params_json_schema, sort_keys=True))
        for tool in tools
    ] == offered
    assert not any(tool.strict_json_schema for tool in tools)


def test_the_example_writes_its_file(run_example, capsys):
    assert run_example("openai_agents_agent") == "Hello!\n"
    assert capsys.readouterr().out == "Written; I may not read elsewhere.\n"


async def go_on(project, steps, stored=None, answers=None, **options):
    """A run, or what follows on answers, in a session object of its own.

    Gives its end, its state as text, what waits, and the outputs by the ids of the calls.
    """
    calls = [function_call(tool, sent, call_id=call_id) for call_id, tool, sent in steps]
    turns = [calls] if stored is None else []
    model = ScriptedModel([*turns, [assistant_message("done")]])
    async with Session(project, session_id="s", **options) as session:
        agent = Agent(name="Tester", model=model, tools=tools_for(session, approvals=True))
        begun = "go" if stored is None else await RunState.from_string(agent, stored)
        if isinstance(begun, RunState):
            for item in begun.get_interruptions():
                said = (answers or {}).get(item.call_id)
                if said is True:
                    begun.approve(item)
                elif said is not None:
                    begun.reject(item, rejection_message=said)
        run = await Runner.run(agent, begun, run_config=RunConfig(tracing_disabled=True))
        items = [item for item in input_items(run) if item.get("type", "").endswith("_output")]
        outputs = {item["call_id"]: item["output"] for item in items}
        pending = [request.call_id for request in session.pending]
        return run.final_output, run.to_state().to_string(), pending, outputs


@pytest.mark.proves("AR-1")
async def test_a_call_that_needs_a_yes_interrupts_the_run_and_is_made_once(project, writes):
    (project / "seen.py").write_text("x = 1\n")
    steps = [*writes, ("d", "Read", {"file_path": "seen.py"})]
    final, stored, pending, _ = await go_on(project, steps)
    assert (final, pending) == (None, ["a", "b", "c"])
    assert not list(project.glob("*.txt"))
    final, stored, pending, _ = await go_on(project, steps, stored, {"b": True})
    assert (final, pending) == (None, ["a", "c"])
    (project / "b.txt").unlink()
    answers = {"a": True, "c": "Not this one."}
    for _ in range(2):
        final, _, pending, outputs = await go_on(project, steps, stored, answers)
        assert (final, pending) == ("done", [])
        assert outputs["c"] == "Not this one."
        assert outputs["d"] == "     1→x = 1"
        assert outputs["a"].startswith("File created")
        assert {path.name for path in project.glob("*.txt")} <= {"a.txt"}
        for path in project.glob("*.txt"):
            path.unlink()


async def test_an_approved_call_that_has_changed_is_refused(project, moving_link):
    step, move, has_arrived = moving_link
    _, stored, pending, _ = await go_on(project, [step])
    assert pending == ["moved"]
    move()
    final, _, pending, outputs = await go_on(project, [step], stored, {"moved": True})
    assert (final, pending) == ("done", [])
    assert "changed after the approval" in outputs["moved"]
    assert not has_arrived()


async def test_a_hook_that_asks_interrupts_the_run(project):
    async def ask(_event):
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}

    (project / "a.py").write_text("x = 1\n")
    steps = [("one", "Read", {"file_path": "a.py"})]
    hooks = {"PreToolUse": [ask]}
    final, stored, pending, _ = await go_on(project, steps, hooks=hooks)
    assert (final, pending) == (None, ["one"])
    final, _, pending, outputs = await go_on(project, steps, stored, {"one": True}, hooks=hooks)
    assert (final, pending, outputs["one"]) == ("done", [], "     1→x = 1")


def test_the_example_of_approvals_shows_the_reason_and_writes_its_file(run_example, capsys):
    assert run_example("openai_agents_approval") == "Hello!\n"
    said = capsys.readouterr().out
    assert "needs permission in default mode" in said
    assert said.endswith("\nWritten.\n")
