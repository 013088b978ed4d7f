"""Hooks around an agent's run."""

from pathlib import Path
from typing import Any

from players import Player, calls, says

from handaxe import Agent, Allow, PermissionRequest, Session


def answering(**answer: Any):
    async def hook(event: dict[str, Any]) -> dict[str, Any]:
        hook.heard.append(event)
        return answer

    hook.heard = []
    return hook


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
    texts = [block.text for block in model.requests[0].messages[0].content]
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
