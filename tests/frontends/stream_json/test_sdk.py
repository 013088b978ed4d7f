"""The open-source agent SDK drives handaxe: its parser, its client, its callbacks."""

from pathlib import Path

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from claude_agent_sdk.types import SyncHookJSONOutput
from tests.expected_types import expect_type, require


@pytest.fixture
def options(cli: Path, project: Path):
    def make(model: str, **more) -> ClaudeAgentOptions:
        return ClaudeAgentOptions(cli_path=cli, cwd=project, model=model, **more)

    return make


async def all_of(messages) -> list:
    return [message async for message in messages]


def of_type(messages, kind):
    return [message for message in messages if isinstance(message, kind)]


WRITE = {"call": [{"tool": "Write", "input": {"file_path": "a.txt", "content": "hi\n"}}]}


async def test_a_query_gets_its_answer(options, script, project):
    (project / "a.py").write_text("x = 1\n")
    model = script(
        {"text": "I look.", "call": [{"tool": "Read", "input": {"file_path": "a.py"}}]},
        {"expect": "x = 1", "text": "It is 1."},
    )
    messages = await all_of(query(prompt="what is x?", options=options(model)))
    init, result = messages[0], messages[-1]
    assert isinstance(init, SystemMessage)
    assert init.subtype == "init"
    assert "Read" in init.data["tools"]
    assert isinstance(result, ResultMessage)
    assert (result.subtype, result.result, result.is_error) == ("success", "It is 1.", False)
    assert result.num_turns == 2
    assert require(result.usage)["output_tokens"] > 0
    first, last = of_type(messages, AssistantMessage)
    assert isinstance(first.content[0], TextBlock)
    assert isinstance(first.content[1], ToolUseBlock)
    assert expect_type(TextBlock, last.content[0]).text == "It is 1."
    (answer,) = of_type(messages, UserMessage)
    assert isinstance(answer.content[0], ToolResultBlock)
    assert "x = 1" in require(answer.content[0].content)
    assert require(answer.tool_use_result)["file"]["content"] == "x = 1"
    assert messages.index(first) < messages.index(answer) < messages.index(last)


async def test_partial_messages_are_events_of_the_api(options, script):
    model = script({"thinking": "Hm.", "text": "One two three four five."})
    wanted = options(model, include_partial_messages=True)
    messages = await all_of(query(prompt="count", options=wanted))
    raw = [event.event for event in of_type(messages, StreamEvent)]
    kinds = [event["type"] for event in raw]
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 2
    deltas = [event["delta"] for event in raw if event["type"] == "content_block_delta"]
    text = "".join(d["text"] for d in deltas if d["type"] == "text_delta")
    assert text == "One two three four five."
    (answer,) = of_type(messages, AssistantMessage)
    assert raw[0]["message"]["id"] == answer.message_id


@pytest.mark.parametrize("text", ["hi\n", "changed\n"])
async def test_a_callback_allows_and_may_change_the_input(options, script, project, text):
    asked = []

    async def may(tool, given, context):
        asked.append((tool, context.tool_use_id, context.suggestions))
        return PermissionResultAllow(updated_input={**given, "content": text})

    model = script(WRITE, {"text": "Written."})
    async with ClaudeSDKClient(options(model, can_use_tool=may)) as client:
        await client.query("write")
        messages = await all_of(client.receive_response())
    assert (project / "a.txt").read_text() == text
    assert [tool for tool, *_ in asked] == ["Write"]
    assert asked[0][1]
    assert (asked[0][2][0].type, asked[0][2][0].mode) == ("setMode", "acceptEdits")
    assert asked[0][2][1].rules[0].tool_name == "Edit"
    assert messages[-1].result == "Written."


async def test_a_callback_denies(options, script, project):
    async def may(_tool, _given, _context):
        return PermissionResultDeny(message="Not today.")

    model = script(WRITE, {"expect": "Not today.", "text": "Then not."})
    async with ClaudeSDKClient(options(model, can_use_tool=may)) as client:
        await client.query("write")
        messages = await all_of(client.receive_response())
    assert not (project / "a.txt").exists()
    result = messages[-1]
    assert result.result == "Then not."
    assert result.permission_denials[0]["tool_name"] == "Write"
    assert result.permission_denials[0]["tool_input"]["content"] == "hi\n"
    assert any(m.subtype == "permission_denied" for m in of_type(messages, SystemMessage))


async def test_a_denial_can_stop_the_turn(options, script):
    async def may(_tool, _given, _context):
        return PermissionResultDeny(message="Stop it.", interrupt=True)

    model = script(WRITE, {"text": "never said"})
    async with ClaudeSDKClient(options(model, can_use_tool=may)) as client:
        await client.query("write")
        messages = await all_of(client.receive_response())
    assert messages[-1].terminal_reason == "hook_stopped"
    assert "never said" not in str(messages)


async def test_an_answer_can_change_permissions(options, script, project):
    from claude_agent_sdk import PermissionUpdate

    asked = []

    async def may(tool, _given, _context):
        asked.append(tool)
        mode = PermissionUpdate(type="setMode", mode="acceptEdits", destination="session")
        return PermissionResultAllow(updated_permissions=[mode])

    second = {"call": [{"tool": "Write", "input": {"file_path": "b.txt", "content": "b"}}]}
    model = script(WRITE, second, {"text": "Both."})
    async with ClaudeSDKClient(options(model, can_use_tool=may)) as client:
        await client.query("write")
        await all_of(client.receive_response())
    assert asked == ["Write"]
    assert (project / "b.txt").read_text() == "b"


async def test_hooks_of_the_client_are_called_and_count(options, script, project):
    seen = []

    async def before(given, tool_use_id, _context) -> SyncHookJSONOutput:
        seen.append((given["tool_name"], tool_use_id == given["tool_use_id"]))
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "the hook says no",
            }
        }

    hooks = {"PreToolUse": [HookMatcher(matcher="Write", hooks=[before])]}
    model = script(WRITE, {"expect": "the hook says no", "text": "Fine."})
    wanted = options(model, hooks=hooks, permission_mode="acceptEdits")
    async with ClaudeSDKClient(wanted) as client:
        await client.query("write")
        messages = await all_of(client.receive_response())
    assert seen == [("Write", True)]
    assert not (project / "a.txt").exists()
    assert messages[-1].result == "Fine."


async def test_an_interrupt_ends_the_turn_and_the_next_one_works(options, script):
    model = script({"text": "long " * 200, "delay_ms": 50}, {"text": "Here again."})
    wanted = options(model, include_partial_messages=True)
    async with ClaudeSDKClient(wanted) as client:
        await client.query("talk")
        async for message in client.receive_messages():
            if isinstance(message, StreamEvent):
                await client.interrupt()
                break
        ended = await all_of(client.receive_response())
        await client.query("again")
        messages = await all_of(client.receive_response())
    assert ended[-1].subtype == "error_during_execution"
    assert ended[-1].terminal_reason == "aborted_streaming"
    assert messages[-1].result == "Here again."


async def test_the_limit_of_turns_is_an_error(options, script):
    again = {"call": [{"tool": "Glob", "input": {"pattern": "*"}}]}
    model = script(again, {**again}, {"text": "never"})
    found = []

    async def collect():
        async for message in query(prompt="go", options=options(model, max_turns=1)):
            found.append(message)

    with pytest.raises(ResultError):
        await collect()
    assert found[-1].subtype == "error_max_turns"
    assert found[-1].is_error


async def test_a_conversation_is_resumed(options, script):
    first = await all_of(query(prompt="my name is Ada", options=options(script({"text": "Hi."}))))
    session_id = first[-1].session_id
    model = script({"text": "Hi."}, {"text": "You are {{first.text}}"})
    second = await all_of(query(prompt="who?", options=options(model, resume=session_id)))
    assert second[-1].session_id == session_id
    assert "my name is Ada" in second[-1].result
    model = script({"text": "Hi."}, {"text": "You."}, {"text": "forked"})
    wanted = options(model, resume=session_id, fork_session=True)
    third = await all_of(query(prompt="and?", options=wanted))
    assert third[-1].session_id != session_id


async def test_the_mode_and_the_model_change_between_turns(options, script, project, tmp_path):
    model = script({"text": "First."}, WRITE, {"text": "Written."})
    async with ClaudeSDKClient(options(model)) as client:
        await client.query("hello")
        await all_of(client.receive_response())
        await client.set_permission_mode("acceptEdits")
        await client.query("write")
        messages = await all_of(client.receive_response())
        assert (project / "a.txt").exists()
        assert messages[-1].result == "Written."
        other = tmp_path / "other.toml"
        other.write_text('name = "other"\n' + '[[turn]]\ntext = "Another one."\n' * 9)
        await client.set_model(f"scripted:{other}")
        await client.query("who are you?")
        messages = await all_of(client.receive_response())
        assert of_type(messages, AssistantMessage)[-1].model == "other"
        usage = await client.get_context_usage()
        assert usage["model"] == "other"
        assert usage["totalTokens"] > 0
        assert await client.get_mcp_status() == {"mcpServers": []}


async def test_sub_agents_speak_under_the_call_that_started_them(options, script, project):
    (project / "a.py").write_text("x = 1\n")
    task = {"description": "look", "prompt": "look at a.py", "subagent_type": "reader"}
    turns = [
        {"call": [{"tool": "Agent", "input": task}]},
        {"text": "It is done."},
        {"agent": "reader", "call": [{"tool": "Read", "input": {"file_path": "a.py"}}]},
        {"agent": "reader", "text": "x is 1."},
    ]
    model = script(*turns, agents={"reader": {"match": "look at a.py"}})
    from claude_agent_sdk import AgentDefinition

    reader = AgentDefinition(description="reads", prompt="You read.", tools=["Read"])
    messages = await all_of(
        query(prompt="delegate", options=options(model, agents={"reader": reader}))
    )
    assert messages[-1].result == "It is done."
    call = next(b for m in of_type(messages, AssistantMessage) for b in m.content
                if isinstance(b, ToolUseBlock))  # fmt: skip
    inner = [m for m in messages if getattr(m, "parent_tool_use_id", None) == call.id]
    assert [type(m).__name__ for m in inner] == ["AssistantMessage", "UserMessage"]
    kinds = [m.subtype for m in of_type(messages, SystemMessage)]
    assert kinds.index("task_started") < kinds.index("task_notification")


async def test_a_structured_answer_fits_its_schema(options, script):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    model = script({"call": [{"tool": "StructuredOutput", "input": {"n": 3}}]})
    wanted = options(model, output_format={"type": "json_schema", "schema": schema})
    messages = await all_of(query(prompt="n?", options=wanted))
    assert messages[-1].structured_output == {"n": 3}


async def test_a_server_of_the_client_that_cannot_be_used_is_named(options, script):
    broken = {"type": "sdk", "name": "mine", "instance": None}
    model = script({"text": "Hi."})
    async with ClaudeSDKClient(options(model, mcp_servers={"mine": broken})) as me:
        await me.query("hello")
        messages = await all_of(me.receive_response())
        (status,) = (await me.get_mcp_status())["mcpServers"]
    assert messages[0].data["mcp_servers"] == [{"name": "mine", "status": "failed"}]
    assert (status["name"], status["status"]) == ("mine", "failed")
    assert status.get("error")
    assert messages[-1].result == "Hi."


# Whether tools are loaded at once is another matter than whether they work.
AT_ONCE = {"ENABLE_TOOL_SEARCH": "false"}


@pytest.fixture
def calculator():
    """A server in the client's own process, and what its tools were called with."""
    seen: list[dict] = []

    @tool("add", "Adds two numbers.", {"a": float, "b": float})
    async def add(given):
        seen.append(given)
        return {"content": [{"type": "text", "text": f"the sum is {given['a'] + given['b']:g}"}]}

    @tool("fail", "Fails.", {})
    async def fail(given):
        raise RuntimeError("this tool is broken")

    return create_sdk_mcp_server("calc", tools=[add, fail]), seen


@pytest.mark.proves("AR-2")
async def test_servers_in_the_clients_own_process_are_used(options, script, calculator):
    server, seen = calculator
    model = script(
        {"call": [{"tool": "mcp__calc__add", "input": {"a": 2, "b": 3}}]},
        {"expect": "the sum is 5", "call": [{"tool": "mcp__calc__fail", "input": {}}]},
        {"expect": "this tool is broken", "text": "Five, and one is broken."},
    )
    wanted = options(model, mcp_servers={"calc": server}, allowed_tools=["mcp__calc"], env=AT_ONCE)
    messages = await all_of(query(prompt="add", options=wanted))
    init, result = messages[0], messages[-1]
    assert {"name": "calc", "status": "connected"} in init.data["mcp_servers"]
    assert {"mcp__calc__add", "mcp__calc__fail"} <= set(init.data["tools"])
    assert seen == [{"a": 2, "b": 3}]
    assert result.result == "Five, and one is broken."


async def test_a_clients_server_asks_like_any_other(options, script, calculator):
    server, seen = calculator
    asked = []

    async def may(name, given, context):
        asked.append(name)
        return PermissionResultDeny(message="Not today.")

    model = script(
        {"call": [{"tool": "mcp__calc__add", "input": {"a": 2, "b": 3}}]},
        {"expect": "Not today.", "text": "Then not."},
    )
    wanted = options(model, mcp_servers={"calc": server}, can_use_tool=may, env=AT_ONCE)
    async with ClaudeSDKClient(wanted) as client:
        await client.query("add")
        messages = await all_of(client.receive_response())
    assert asked == ["mcp__calc__add"]
    assert seen == []
    assert messages[-1].result == "Then not."


async def test_a_client_switches_its_server_off_and_on(options, script, calculator):
    server, seen = calculator
    call = {"call": [{"tool": "mcp__calc__add", "input": {"a": 1, "b": 1}}]}
    model = script({"text": "Ready."}, call, {"expect": "mcp__calc__add", "text": "Gone."}, call,
                   {"expect": "the sum is 2", "text": "Back."})  # fmt: skip

    async def ask(text):
        await client.query(text)
        return (await all_of(client.receive_response()))[-1].result

    async def status():
        (row,) = (await client.get_mcp_status())["mcpServers"]
        return row["status"]

    wanted = options(model, mcp_servers={"calc": server}, allowed_tools=["mcp__calc"], env=AT_ONCE)
    async with ClaudeSDKClient(wanted) as client:
        assert await ask("hello") == "Ready."
        assert await status() == "connected"
        await client.toggle_mcp_server("calc", enabled=False)
        assert await status() == "disabled"
        assert await ask("add") == "Gone."
        assert seen == []
        await client.toggle_mcp_server("calc", enabled=True)
        await client.reconnect_mcp_server("calc")
        assert await status() == "connected"
        assert await ask("add") == "Back."
        with pytest.raises(Exception, match="nobody"):
            await client.reconnect_mcp_server("nobody")


async def test_a_client_can_have_its_context_in_the_first_message(options, script, project):
    model = script({"text": "{{last.text}}"})
    preset = {"type": "preset", "preset": "claude_code", "exclude_dynamic_sections": True}
    messages = await all_of(query(prompt="hello", options=options(model, system_prompt=preset)))
    assert f"Working directory: {project}" in messages[-1].result
    assert messages[-1].result.endswith("hello")
