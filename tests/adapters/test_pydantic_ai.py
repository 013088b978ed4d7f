"""A pydantic-ai agent with a session's tools and a scripted model."""

import json

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed (group frameworks)")

from pydantic_ai import (
    Agent,
    BinaryContent,
    DeferredToolRequests,
    DeferredToolResults,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from tests.expected_types import expect_type

from handaxe import Session, SetupError
from handaxe.adapters.pydantic_ai import tools_for


def agent_that_says(session, steps, **options):
    calls = [ToolCallPart(tool, arguments, call_id) for call_id, tool, arguments in steps]

    def answer(messages, _):
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse([calls[turn] if turn < len(calls) else TextPart("done")])

    return Agent(FunctionModel(answer), tools=tools_for(session, **options))


def returned(run) -> list[ToolReturnPart]:
    requests = [message for message in run.all_messages() if isinstance(message, ModelRequest)]
    return [part for each in requests for part in each.parts if isinstance(part, ToolReturnPart)]


@pytest.mark.proves("AR-1")
async def test_an_agent_reads_edits_and_survives_refusals(session, project, script):
    run = await agent_that_says(session, script).run("go")
    parts = returned(run)
    assert run.output == "done"
    assert (project / "a.py").read_text() == "x = 2\n"
    assert [part.outcome for part in parts] == ["success", "success", "failed", "failed", "failed"]
    assert parts[0].content == "     1→x = 1"
    assert "outside" in str(parts[2].content)
    assert parts[1].metadata["id"] == "two"
    assert parts[1].metadata["decision"]["verdict"] == "allow"


@pytest.mark.proves("AR-1")
async def test_a_conversation_that_is_run_again_changes_nothing_twice(
    session, project, script, started, settled
):
    first = await agent_that_says(session, script).run("go")
    (project / "a.py").write_text("x = 1\n")
    again = await agent_that_says(session, script).run("go")
    await settled()
    assert started == ["one", "two", "three", "four", "five"]
    assert [part.content for part in returned(again)] == [part.content for part in returned(first)]
    assert (project / "a.py").read_text() == "x = 1\n"


async def test_fresh_ids_make_every_call_a_new_one(session, project, script, started, settled):
    for text in ("x = 1", "x = 5"):
        (project / "a.py").write_text(f"{text}\n")
        run = await agent_that_says(session, script[:1], fresh_ids=True).run("go")
        assert returned(run)[0].content == f"     1→{text}"
    await settled()
    assert len(set(started)) == 2


async def test_the_model_gets_a_picture(session, picture):
    steps = [("one", "Read", {"file_path": picture})]
    (part,) = returned(await agent_that_says(session, steps).run("go"))
    assert isinstance(part.content, list)
    assert isinstance(part.content[-1], BinaryContent)
    assert part.content[-1].media_type == "image/png"


async def test_the_model_is_offered_our_schemas_as_they_are(session, offered):
    heard = []

    def look(_, info):
        heard.extend(info.function_tools)
        return ModelResponse([TextPart("done")])

    await Agent(FunctionModel(look), tools=tools_for(session)).run("go")
    assert [
        (tool.name, tool.description, json.dumps(tool.parameters_json_schema, sort_keys=True))
        for tool in heard
    ] == offered
    assert all(tool.strict is False for tool in heard)


def test_the_example_writes_its_file(run_example, capsys):
    assert run_example("pydantic_ai_agent") == "Hello!\n"
    assert capsys.readouterr().out == "Written; I may not read elsewhere.\n"


def put_off(run) -> DeferredToolRequests:
    """What a run ended with that waits for answers."""
    return expect_type(DeferredToolRequests, run.output)


async def go_on(project, steps, *, history=None, approvals=None, **options):
    """A run, or what follows on answers, in a session object of its own; what waits, too."""
    calls = [ToolCallPart(tool, arguments, call_id) for call_id, tool, arguments in steps]

    def answer(messages, _):
        is_new = not any(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(calls if is_new else [TextPart("done")])

    async with Session(project, session_id="s", **options) as session:
        tools = tools_for(session, approvals=True)
        agent = Agent(FunctionModel(answer), tools=tools, output_type=[str, DeferredToolRequests])
        given = None if approvals is None else DeferredToolResults(approvals=approvals)
        run = await agent.run(
            "go" if history is None else None, message_history=history, deferred_tool_results=given
        )
        return run, [request.call_id for request in session.pending]


@pytest.mark.proves("AR-1")
async def test_a_call_that_needs_a_yes_waits_for_the_approval_and_is_made_once(project, writes):
    first, pending = await go_on(project, writes)
    assert [call.tool_call_id for call in put_off(first).approvals] == pending == ["a", "b", "c"]
    shown = json.loads(json.dumps(put_off(first).metadata["a"]))
    assert (shown["tool"], shown["input"]["content"]) == ("Write", "a\n")
    other = {"file_path": "other.txt", "content": "mine\n"}
    answers = {"a": True, "b": ToolDenied("Not this one."), "c": ToolApproved(override_args=other)}
    for _ in range(2):
        last, pending = await go_on(
            project, writes, history=first.all_messages(), approvals=answers
        )
        assert (last.output, pending) == ("done", [])
        said = {part.tool_call_id: part for part in returned(last)}
        assert [said[name].outcome for name in "abc"] == ["success", "denied", "success"]
        assert said["b"].content == "Not this one."
        assert {path.name for path in project.glob("*.txt")} <= {"a.txt", "other.txt"}
        for path in project.glob("*.txt"):
            path.unlink()


async def test_an_approved_call_that_has_changed_is_asked_about_again(project, moving_link):
    step, move, has_arrived = moving_link
    run, _ = await go_on(project, [step])
    move()
    run, pending = await go_on(
        project, [step], history=run.all_messages(), approvals={"moved": True}
    )
    assert pending == ["moved"]
    assert "no longer applies" in put_off(run).metadata["moved"]["reason"]
    assert not has_arrived()
    run, pending = await go_on(
        project, [step], history=run.all_messages(), approvals={"moved": True}
    )
    assert (run.output, pending) == ("done", [])
    assert has_arrived()


async def test_other_arguments_are_judged_as_well(project, writes):
    run, _ = await go_on(project, writes[:1])
    beyond = ToolApproved(override_args={"file_path": "secret.txt", "content": "x"})
    run, pending = await go_on(
        project,
        writes[:1],
        history=run.all_messages(),
        approvals={"a": beyond},
        deny="Edit(secret.txt)",
    )
    assert pending == []
    assert returned(run)[0].outcome == "failed"
    assert not list(project.glob("*.txt"))


async def test_an_approval_that_the_session_does_not_know_is_no_yes(project, writes):
    run, _ = await go_on(project, writes[:1])
    async with Session(project, session_id="other") as session:
        agent = Agent(
            FunctionModel(lambda *_: ModelResponse([TextPart("done")])),
            tools=tools_for(session, approvals=True),
            output_type=[str, DeferredToolRequests],
        )
        last = await agent.run(
            message_history=run.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={"a": True}),
        )
    assert [call.tool_call_id for call in put_off(last).approvals] == ["a"]
    assert not list(project.glob("*.txt"))


def test_approvals_and_fresh_ids_exclude_each_other(project):
    with pytest.raises(SetupError, match="fresh_ids"):
        tools_for(Session(project), fresh_ids=True, approvals=True)


def test_the_example_of_approvals_shows_the_reason_and_writes_its_file(run_example, capsys):
    assert run_example("pydantic_ai_approval") == "Hello!\n"
    said = capsys.readouterr().out
    assert "needs permission in default mode" in said
    assert said.endswith("\nWritten.\n")
