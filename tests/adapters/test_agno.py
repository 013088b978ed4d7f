"""An Agno agent with a session's tools and a scripted model."""

import json

import pytest

pytest.importorskip("agno", reason="agno is not installed (group frameworks)")

from agno.agent import Agent
from agno.models.message import Message
from agno.models.response import ModelResponse

from handaxe.adapters.agno import tools_for


@pytest.fixture
def heard_in(load_example):
    example = load_example("agno_agent")

    async def run(session, steps, **options) -> list[Message]:
        calls = [example["says"](each, name, json.dumps(sent)) for each, name, sent in steps]
        model = example["Scripted"]([*calls, ModelResponse(role="assistant", content="done")])
        agent = Agent(model=model, tools=tools_for(session, **options), telemetry=False)
        assert (await agent.arun("go")).content == "done"
        return model.heard

    return run


def of_tools(messages: list[Message]) -> list[Message]:
    return [message for message in messages if message.role == "tool"]


@pytest.mark.proves("AR-1")
async def test_an_agent_reads_edits_and_survives_refusals(session, project, script, heard_in):
    answers = of_tools(await heard_in(session, script))
    assert (project / "a.py").read_text() == "x = 2\n"
    assert [bool(each.tool_call_error) for each in answers] == [False, False, True, True, True]
    assert [each.tool_call_id for each in answers] == ["one", "two", "three", "four", "five"]
    assert answers[0].content == "     1→x = 1"
    assert "outside" in str(answers[2].content)


@pytest.mark.proves("AR-1")
async def test_a_conversation_that_is_run_again_changes_nothing_twice(
    session, project, script, heard_in, started, settled
):
    first = of_tools(await heard_in(session, script))
    (project / "a.py").write_text("x = 1\n")
    again = of_tools(await heard_in(session, script))
    await settled()
    assert started == ["one", "two", "three", "four", "five"]
    assert [each.content for each in again] == [each.content for each in first]
    assert (project / "a.py").read_text() == "x = 1\n"


async def test_the_model_gets_a_picture(session, picture, heard_in):
    # Agno sends what a tool attached in a message after the tool's own.
    heard = await heard_in(session, [("one", "Read", {"file_path": picture})])
    (image,) = heard[-1].images
    assert image.mime_type == "image/png"
    assert image.content.startswith(b"\x89PNG")


async def test_the_model_is_offered_our_schemas_as_they_are(session, offered):
    functions = [each.to_dict() for each in tools_for(session)]
    assert [
        (each["name"], each["description"], json.dumps(each["parameters"], sort_keys=True))
        for each in functions
    ] == offered


def test_the_example_writes_its_file(run_example, capsys):
    assert run_example("agno_agent") == "Hello!\n"
    assert capsys.readouterr().out == "Written; I may not read elsewhere.\n"
