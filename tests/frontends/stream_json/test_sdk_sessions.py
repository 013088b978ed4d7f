"""Sessions as the open-source agent SDK knows them: messages keep their names, and one can go back."""

from pathlib import Path

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ProcessError,
    ResultMessage,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TextBlock,
    UserMessage,
    query,
)
from tests.expected_types import expect_type, require

from handaxe import Agent, Session
from handaxe.contract.messages import ToolResultBlock, ToolUseBlock


@pytest.fixture
def options(cli: Path, project: Path):
    def make(model: str, **more) -> ClaudeAgentOptions:
        return ClaudeAgentOptions(cli_path=cli, cwd=project, model=model, **more)

    return make


async def all_of(messages) -> list:
    return [message async for message in messages]


def of_type(messages, kind):
    return [message for message in messages if isinstance(message, kind)]


async def said(client, text, uuid):
    async def one():
        yield {
            "type": "user",
            "message": {"role": "user", "content": text},
            "parent_tool_use_id": None,
            "session_id": "default",
            "uuid": uuid,
        }

    await client.query(one())
    return await all_of(client.receive_response())


def write(name, content):
    return {"call": [{"tool": "Write", "input": {"file_path": name, "content": content}}]}


FIRST, SECOND = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
async def two_turns(options, script):
    """A conversation of two turns: its id, and the messages of each."""
    model = script(
        write("a.txt", "one\n"),
        {"text": "First done."},
        write("a.txt", "two\n"),
        {"text": "Second done."},
    )
    wanted = options(
        model,
        permission_mode="acceptEdits",
        extra_args={"replay-user-messages": None},
        enable_file_checkpointing=True,
    )
    async with ClaudeSDKClient(wanted) as client:
        first = await said(client, "the first thing", FIRST)
        second = await said(client, "the second thing", SECOND)
    return first[-1].session_id, first, second


async def blocks_of(options, model, session):
    """Every block that a model would be sent if the conversation went on."""
    async with Session(options.cwd, session_id=session) as resumed:
        return [b for m in Agent(model, resumed, memory=False).messages for b in m.content]


async def test_a_prompt_keeps_the_name_its_client_gave_it(two_turns):
    _, first, second = two_turns
    assert of_type(first, UserMessage)[0].uuid == FIRST
    assert of_type(second, UserMessage)[0].uuid == SECOND
    names = [m.uuid for m in (*first, *second) if isinstance(m, AssistantMessage | UserMessage)]
    assert len(set(names)) == len(names)


async def test_a_conversation_goes_on_from_an_earlier_message(two_turns, options, script):
    session, first, _ = two_turns
    last_of_first = of_type(first, AssistantMessage)[-1]
    model = script({}, {}, {"expect": "/^instead$/", "text": "Other."})
    wanted = options(
        model, resume=session, resume_session_at=last_of_first.uuid, resume_drops_turn=SECOND
    )
    messages = await all_of(query(prompt="instead", options=wanted))
    assert messages[-1].result == "Other."
    assert messages[-1].session_id == session
    texts = [getattr(b, "text", "") for b in await blocks_of(wanted, model, session)]
    assert "the first thing" in texts
    assert "First done." in texts
    assert "instead" in texts
    assert "Other." in texts
    assert not {"the second thing", "Second done."} & set(texts)


@pytest.mark.parametrize("kind", ["call", "result", "prompt"])
async def test_every_kind_of_message_can_be_gone_back_to(two_turns, options, script, kind):
    session, _, second = two_turns
    point = {
        "call": of_type(second, AssistantMessage)[0],
        "result": of_type(second, UserMessage)[1],
        "prompt": of_type(second, UserMessage)[0],
    }[kind]
    model = script(*[{"text": "Fine."}] * 4)
    wanted = options(model, resume=session, resume_session_at=point.uuid, fork_session=True)
    messages = await all_of(query(prompt="go on", options=wanted))
    assert messages[-1].result == "Fine."
    assert messages[-1].session_id != session
    blocks = await blocks_of(wanted, model, messages[-1].session_id)
    texts = [getattr(block, "text", "") for block in blocks]
    assert any("the second thing" in text for text in texts)
    assert "Second done." not in texts
    calls = [block.id for block in blocks if isinstance(block, ToolUseBlock)]
    results = [block.tool_use_id for block in blocks if isinstance(block, ToolResultBlock)]
    assert sorted(calls) == sorted(results)
    assert len(calls) == (1 if kind == "prompt" else 2)


async def test_going_back_is_refused_where_more_would_be_lost(two_turns, options, script):
    session, first, _ = two_turns
    call = of_type(first, AssistantMessage)[0]
    wanted = options(
        script({"text": "x"}), resume=session, resume_session_at=call.uuid, resume_drops_turn=SECOND
    )
    errors = []
    wanted.stderr = errors.append
    with pytest.raises(ProcessError):
        await all_of(query(prompt="go on", options=wanted))
    assert "Resume rejected by --resume-drops-turn:" in "\n".join(errors)


async def test_a_message_that_nobody_said_cannot_be_gone_back_to(two_turns, options, script):
    session, *_ = two_turns
    errors = []
    wanted = options(
        script({"text": "x"}), resume=session, resume_session_at=FIRST[::-1], stderr=errors.append
    )
    with pytest.raises(ProcessError):
        await all_of(query(prompt="go on", options=wanted))
    assert "No message found" in "\n".join(errors)


async def test_files_go_back_in_a_later_run_by_the_name_the_client_gave(
    two_turns, options, script, project
):
    session, *_ = two_turns
    assert (project / "a.txt").read_text() == "two\n"
    async with ClaudeSDKClient(options(script({"text": "x"}), resume=session)) as client:
        await client.rewind_files(SECOND)
        assert (project / "a.txt").read_text() == "one\n"
        await client.rewind_files(FIRST)
    assert not (project / "a.txt").exists()


async def test_a_client_asks_for_all_it_can_ask(options, script, project):
    model = script({"text": "Hi."}, {"text": "Again."})
    async with ClaudeSDKClient(options(model)) as client:
        info = await client.get_server_info()
        assert {"commands", "output_style"} <= set(require(info))
        await client.query("hello")
        assert of_type(await all_of(client.receive_response()), ResultMessage)
        usage = await client.get_context_usage()
        assert usage["totalTokens"] > 0
        assert (await client.get_mcp_status())["mcpServers"] == []
        await client.set_permission_mode("acceptEdits")
        await client.set_model(model)
        await client.interrupt()
        for wrong in (
            client.reconnect_mcp_server("none"),
            client.toggle_mcp_server("none", enabled=True),
            client.stop_task("none"),
            client.rewind_files("none"),
        ):
            with pytest.raises(Exception, match="none"):
                await wrong
        await client.query("once more")
        messages = await all_of(client.receive_response())
    assert of_type(messages, SystemMessage)[0].data["permissionMode"] == "acceptEdits"
    assert of_type(messages, ResultMessage)


async def test_a_command_in_the_background_is_stopped_by_its_client(options, script):
    call = {"tool": "Bash", "input": {"command": "sleep 60", "run_in_background": True}}
    model = script({"call": [call]}, {"text": "It runs."})
    async with ClaudeSDKClient(options(model, allowed_tools=["Bash"])) as client:
        await client.query("run it")
        messages = await all_of(client.receive_response())
        started = of_type(messages, TaskStartedMessage)
        await client.stop_task(started[0].task_id)
        ended = None
        async for message in client.receive_messages():
            if isinstance(message, TaskNotificationMessage):
                ended = message
                break
    assert ended is not None
    assert (ended.task_id, ended.status) == (started[0].task_id, "stopped")


async def test_a_client_says_which_skills_count(options, script, project):
    for name in ("wanted", "other"):
        path = project / ".claude" / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"The {name} text.")
    call = {"tool": "Skill", "input": {"skill": "other"}}
    model = script({"call": [call]}, {"expect": "no skill", "text": "Not there."})
    messages = await all_of(query(prompt="go", options=options(model, skills=["wanted"])))
    assert messages[0].data["skills"] == ["wanted"]
    assert messages[-1].result == "Not there."


@pytest.mark.parametrize("how", ["option", "variable", "not"])
async def test_a_client_may_hear_what_sub_agents_say(options, script, how):
    call = {"tool": "Agent", "input": {"description": "look", "prompt": "look around"}}
    turns = [{"call": [call]}, {"text": "Done."}, {"text": "I looked.", "agent": "looker"}]
    model = script(*turns, agents={"looker": {"match": "look around"}})
    more = {"forward_subagent_text": True} if how == "option" else {}
    if how == "variable":
        more = {"env": {"CLAUDE_CODE_FORWARD_SUBAGENT_TEXT": "1"}}
    messages = await all_of(query(prompt="go", options=options(model, **more)))
    inner = [m for m in of_type(messages, AssistantMessage) if m.parent_tool_use_id]
    assert [expect_type(TextBlock, block).text for m in inner for block in m.content] == (
        [] if how == "not" else ["I looked."]
    )
