"""A pydantic-ai agent with a session's tools and a scripted model."""

import json

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed (group frameworks)")

from pydantic_ai import Agent, BinaryContent
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

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
