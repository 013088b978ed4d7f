"""An agent of the OpenAI Agents SDK with a session's tools and a scripted model."""

import json

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed (group frameworks)")

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message, function_call

from handaxe.adapters.openai_agents import tools_for


async def outputs_of(session, steps, **options) -> list:
    calls = [[function_call(tool, sent, call_id=call_id)] for call_id, tool, sent in steps]
    model = ScriptedModel([*calls, [assistant_message("done")]])
    agent = Agent(name="Tester", model=model, tools=tools_for(session, **options))
    run = await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))
    assert run.final_output == "done"
    items = [item for item in run.to_input_list() if item.get("type") == "function_call_output"]
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
    tools = tools_for(session)
    assert [
        (tool.name, tool.description, json.dumps(tool.params_json_schema, sort_keys=True))
        for tool in tools
    ] == offered
    assert not any(tool.strict_json_schema for tool in tools)


def test_the_example_writes_its_file(run_example, capsys):
    assert run_example("openai_agents_agent") == "Hello!\n"
    assert capsys.readouterr().out == "Written; I may not read elsewhere.\n"
