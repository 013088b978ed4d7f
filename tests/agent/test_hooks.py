"""Hooks around an agent's run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from players import Player, calls, says
from tests.expected_types import get_text

from handaxe import Agent, Allow, PermissionRequest, Session


class Hook:
    """Keeps the events that it gets; answers with what `answer` says."""

    def __init__(self, answer: Callable[[], dict[str, Any]]) -> None:
        self.heard: list[dict[str, Any]] = []
        self._answer = answer

    async def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        self.heard.append(event)
        return self._answer()


def answering(**answer: Any) -> Hook:
    return Hook(lambda: answer)


async def test_a_prompt_can_be_refused(project: Path):
    hook = answering(decision="block", reason="No secrets, please.")
    async with Session(project, hooks={"UserPromptSubmit": [hook]}) as session:
        model = Player(says("Hi."))
        agent = Agent(model, session)
        final = await agent.ask("My key is 123.")
    assert (final.is_error, final.result) == (True, "No secrets, please.")
    assert agent.messages == ()
    assert model.requests == []


async def test_a_prompt_gets_what_hooks_add(project: Path):
    said = {"hookEventName": "UserPromptSubmit", "additionalContext": "It is Monday."}
    started = {"hookEventName": "SessionStart", "additionalContext": "Be kind."}
    hooks = {
        "UserPromptSubmit": [answering(hookSpecificOutput=said)],
        "SessionStart": [answering(hookSpecificOutput=started)],
    }
    async with Session(project, hooks=hooks) as session:
        model = Player(says("Hi."))
        await Agent(model, session).ask("Hello.")
    texts = [get_text(block) for block in model.requests[0].messages[0].content]
    assert "Be kind." in texts[0]
    assert texts[1] == "Hello."
    assert texts[2] == "<system-reminder>\nIt is Monday.\n</system-reminder>"


async def test_a_stop_hook_makes_the_model_go_on_but_not_for_ever(project: Path):
    hook = answering(decision="block", reason="Run the tests.")
    async with Session(project, hooks={"Stop": [hook]}) as session:
        model = Player(*[says(f"Done {i}.") for i in range(12)])
        final = await Agent(model, session).ask("Go.")
    assert len(hook.heard) == 9
    assert [event["stop_hook_active"] for event in hook.heard[:2]] == [False, True]
    assert hook.heard[0]["last_assistant_message"] == "Done 0."
    assert final.result == "Done 8."
    assert "Run the tests." in str(model.requests[1].messages[-1])


def gives(number: int) -> list[Any]:
    return calls((f"c{number}", "StructuredOutput", {"n": number}))


async def test_stop_hooks_hear_a_structured_answer_before_it_is_accepted(project: Path):
    async def tests_pass(event: dict[str, Any]) -> dict[str, Any]:
        heard.append(event)
        return {} if (project / "fixed").exists() else {"decision": "block", "reason": "Red."}

    heard: list[dict[str, Any]] = []
    hooks = {"Stop": [tests_pass]}
    async with Session(project, hooks=hooks, permission_mode="bypassPermissions") as session:
        fix = calls(("w", "Write", {"file_path": "fixed", "content": "x"}))
        model = Player(gives(1), fix, gives(2), gives(3), gives(4), fix, says("Done."), gives(5))
        agent = Agent(model, session, output_schema={"type": "object"})
        final = await agent.ask("Go.")
        (project / "fixed").unlink()
        again = await agent.ask("Once more.")
    assert (final.subtype, final.structured_output) == ("success", {"n": 2})
    assert [event["last_assistant_message"] for event in heard[:2]] == ['{"n":1}', '{"n":2}']
    assert [event["stop_hook_active"] for event in heard[:3]] == [False, True, False]
    told = str(model.requests[1].messages[-2:])
    assert "Red." in told
    assert "not accepted yet" in told
    assert (again.structured_output, len(heard)) == ({"n": 5}, 5)


async def test_stop_hooks_refuse_structured_answers_but_not_for_ever(project: Path):
    hook = answering(decision="block", reason="Run the tests.")
    async with Session(project, hooks={"Stop": [hook]}) as session:
        model = Player(*[gives(i) for i in range(12)])
        final = await Agent(model, session, output_schema={"type": "object"}).ask("Go.")
    assert len(hook.heard) == 9
    assert (final.subtype, final.structured_output) == ("success", {"n": 8})


async def test_a_stop_hook_that_ends_the_work_lets_a_structured_answer_count(project: Path):
    hook = answering(**{"continue": False, "decision": "block", "reason": "No."})
    async with Session(project, hooks={"Stop": [hook]}) as session:
        model = Player(gives(1), gives(2))
        final = await Agent(model, session, output_schema={"type": "object"}).ask("Go.")
    assert final.structured_output == {"n": 1}


async def test_a_hook_after_a_call_can_stop_the_work(project: Path):
    hook = answering(**{"continue": False, "stopReason": "Enough."})
    async with Session(project, hooks={"PostToolUse": [hook]}) as session:
        model = Player(calls(("c1", "Glob", {"pattern": "*"})), says("More."))
        final = await Agent(model, session).ask("Go.")
    assert (final.terminal_reason, final.result) == ("hook_stopped", "Enough.")
    assert len(model.requests) == 1


async def test_a_hook_before_a_call_can_stop_the_work(project: Path):
    hook = answering(**{"continue": False, "stopReason": "Not this."})
    async with Session(project, hooks={"PreToolUse": [hook]}) as session:
        model = Player(calls(("c1", "Glob", {"pattern": "*"})), says("More."))
        final = await Agent(model, session).ask("Go.")
    assert final.terminal_reason == "hook_stopped"


async def test_hooks_are_told_when_a_person_is_asked(project: Path):
    hook = answering()

    async def on_ask(request: PermissionRequest) -> Allow:
        return Allow()

    async with Session(project, hooks={"Notification": [hook]}, on_ask=on_ask) as session:
        model = Player(calls(("c1", "Write", {"file_path": "a", "content": "x"})), says("Done."))
        await Agent(model, session).ask("Go.")
    assert hook.heard[0]["notification_type"] == "permission_prompt"


async def test_a_person_who_says_no_to_everything_stops_the_run(project: Path):
    from handaxe import Deny

    async def on_ask(request: PermissionRequest) -> Deny:
        return Deny("Stop it.", interrupt=True)

    async with Session(project, on_ask=on_ask) as session:
        model = Player(calls(("c1", "Write", {"file_path": "a", "content": "x"})), says("More."))
        final = await Agent(model, session).ask("Go.")
    assert final.terminal_reason == "hook_stopped"
    assert [denied.tool for denied in final.denials] == ["Write"]
    assert len(model.requests) == 1


async def test_agents_hear_what_hooks_add_at_their_start(project: Path):
    said = {"hookEventName": "SubagentStart", "additionalContext": "Mind the gap."}
    hook = answering(hookSpecificOutput=said)
    async with Session(project, hooks={"SubagentStart": [hook]}) as session:
        task = ("t1", "Agent", {"description": "x", "prompt": "Do it."})
        model = Player(calls(task), says("a"), says("b"))
        await Agent(model, session).ask("Go.")
    assert "Mind the gap." in str(model.requests[1].messages[0])
    assert hook.heard[0]["agent_type"] == "general-purpose"


def putting_off() -> Hook:
    answers = iter(("defer", "allow"))

    def answer() -> dict[str, Any]:
        said = {"hookEventName": "PreToolUse", "permissionDecision": next(answers, "allow")}
        return {"hookSpecificOutput": said}

    return Hook(answer)


WRITE = ("c1", "Write", {"file_path": "a", "content": "x"})


async def test_the_last_event_holds_the_call_that_a_hook_put_off(project: Path):
    hook = putting_off()
    async with Session(project, hooks={"PreToolUse": [hook]}) as session:
        model = Player(calls(WRITE), says("Done."))
        agent = Agent(model, session)
        final = await agent.ask("Go.")
        assert (final.terminal_reason, final.is_error) == ("tool_deferred", False)
        assert final.deferred_call is not None
        assert (final.deferred_call.id, final.deferred_call.tool) == ("c1", "Write")
        assert not (project / "a").exists()
        final = await agent.ask("Go on.")
    assert (final.result, final.deferred_call) == ("Done.", None)
    assert (project / "a").read_text() == "x"
    *_, last = model.requests[1].messages
    assert [type(block).__name__ for block in last.content] == ["ToolResultBlock", "TextBlock"]


async def test_where_nobody_can_go_on_later_a_put_off_call_is_a_question(project: Path):
    asked: list[PermissionRequest] = []

    async def on_ask(request: PermissionRequest) -> Allow:
        asked.append(request)
        return Allow()

    hooks = {"PreToolUse": [putting_off()]}
    async with Session(project, hooks=hooks, on_ask=on_ask) as session:
        model = Player(calls(WRITE), says("Done."))
        final = await Agent(model, session, defer_calls=False).ask("Go.")
    assert (final.result, len(asked)) == ("Done.", 1)
    assert "deferred this call" in asked[0].reason
    async with Session(project, permission_mode="bypassPermissions",
                       hooks={"PreToolUse": [putting_off()]}) as session:  # fmt: skip
        agent = Agent(Player(), session)
        result = await session.call("Write", file_path="b", content="x")
        assert (result.ok, result.code) == (False, "permission.asked")
        await agent.close()
    assert not (project / "b").exists()


async def test_a_call_of_a_sub_agent_is_not_put_off(project: Path):
    hooks = {"PreToolUse": [{"matcher": "Write", "hooks": [putting_off()]}]}
    async with Session(project, hooks=hooks, permission_mode="bypassPermissions") as session:
        task = ("t1", "Agent", {"description": "x", "prompt": "Do it."})
        model = Player(calls(task), calls(WRITE), says("a"), says("b"))
        final = await Agent(model, session).ask("Go.")
    assert final.result == "b"
    assert "single call" in str(model.requests[2].messages[-1])
    assert not (project / "a").exists()
