"""Hooks in a session: for every call, whatever the tool and however it is called."""

import asyncio
import json
from typing import Any

import pytest
from tests.expected_types import require
from tests.waiting import is_alive, number_in, until

from handaxe import Allow, Deny, Effects, Session, SetupError, ToolCall, tool
from handaxe.contract.events import CallAsked, HookRan, SessionClosed, SessionStarted
from handaxe.storage.sessions import read_events


def shell(line, **more):
    return {"type": "command", "command": line, **more}


def group(*lines, matcher=""):
    return {"matcher": matcher, "hooks": [shell(line) for line in lines]}


def says(**answer):
    return f"printf %s '{json.dumps(answer)}'"


INPUTS = {
    "Read": {"file_path": "a.txt"},
    "Write": {"file_path": "new.txt", "content": "x\n"},
    "Edit": {"file_path": "a.txt", "old_string": "one", "new_string": "two"},
    "Glob": {"pattern": "*.txt"},
    "Grep": {"pattern": "one"},
}


async def one_call(session, tool, call_input):
    return await session.call(tool, call_input)


async def in_a_batch(session, tool, call_input):
    results = await session.call_many([(tool, call_input), ("Read", {"file_path": "b.txt"})])
    return results[0]


async def under_an_id(session, tool, call_input):
    return await session.run(ToolCall("mine", tool, call_input))


@pytest.mark.proves("HK-2")
@pytest.mark.parametrize("way", [one_call, in_a_batch, under_an_id])
@pytest.mark.parametrize("tool", INPUTS)
async def test_hooks_are_the_same_for_every_tool_and_every_way_to_call_it(project, tool, way):
    (project / "a.txt").write_text("one\n")
    (project / "b.txt").write_text("b\n")
    story = []

    async def before(event):
        story.append((event["hook_event_name"], event["tool_name"]))
        if "deny" in wanted:
            return {"hookSpecificOutput": {"permissionDecision": "deny"}}
        return {"hookSpecificOutput": {"additionalContext": "before"}}

    async def after(event):
        story.append((event["hook_event_name"], event["tool_name"]))
        return {"hookSpecificOutput": {"additionalContext": "after"}}

    hooks = {
        "PreToolUse": [{"matcher": tool, "hooks": [before]}],
        "PostToolUse": [{"matcher": tool, "hooks": [after]}],
    }
    wanted = {"deny"}
    async with Session(project, permission_mode="acceptEdits", hooks=hooks) as session:
        await session.call("Read", file_path="a.txt")
        story.clear()
        result = await way(session, tool, INPUTS[tool])
        assert (result.code, result.decision.by) == ("permission.denied", "hook")
        assert story[0] == ("PreToolUse", tool)
        assert ("PostToolUse", tool) not in story
    wanted = set()
    async with Session(project, permission_mode="acceptEdits", hooks=hooks) as session:
        await session.call("Read", file_path="a.txt")
        story.clear()
        result = await way(session, tool, INPUTS[tool])
        assert result.ok, result.text
        assert result.messages == ("before", "after")
        assert story[0] == ("PreToolUse", tool)
        assert ("PostToolUse", tool) in story


@pytest.mark.proves("HK-1")
async def test_a_program_is_told_everything_about_a_call(project, tmp_path):
    seen = tmp_path / "seen"
    (project / "a.txt").write_text("one\n")
    hooks = {
        name: [group(f"cat >> {seen}; echo >> {seen}")] for name in ("PreToolUse", "PostToolUse")
    }
    async with Session(project, hooks=hooks) as session:
        result = await session.call("Read", file_path="./a.txt")
        assert result.ok
    before, after = (json.loads(line) for line in seen.read_text().splitlines())
    assert before == {
        "session_id": session.id,
        "transcript_path": before["transcript_path"],
        "cwd": str(project),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": str(project / "a.txt")},
        "tool_use_id": result.id,
    }
    assert before["transcript_path"].endswith(f"{session.id}/events.jsonl")
    assert after["tool_response"]["text"] == result.text
    assert after["duration_ms"] > 0


async def test_the_response_of_any_tool_says_which_call_it_belongs_to(project, tmp_path):
    seen = tmp_path / "seen"

    @tool(effects=Effects.pure())
    async def count() -> dict[str, int]:
        """Count."""
        return {"total": 3}

    hooks = {"PostToolUse": [group(f"cat >> {seen}; echo >> {seen}")]}
    async with Session(project, hooks=hooks, tools=["Glob", count]) as session:
        results = [await session.call("count"), await session.call("Glob", pattern="*")]
    for result, line in zip(results, seen.read_text().splitlines(), strict=True):
        event = json.loads(line)
        response = event["tool_response"]
        assert (response["id"], response["tool"]) == (result.id, result.tool)
        # Zero is what a result says that has not been timed.
        assert response["duration_ms"] > 0
        assert response["data"] == result.data


@pytest.mark.proves("HK-1")
async def test_a_failed_call_has_its_own_event(project):
    seen = []

    async def look(event):
        seen.append((event["hook_event_name"], event["error"]))

    hooks = {"PostToolUseFailure": [look], "PostToolUse": [look]}
    async with Session(project, hooks=hooks) as session:
        result = await session.call("Read", file_path="gone.txt")
        unknown = await session.call("Nope")
    assert not unknown.ok
    # What fails in validation never ran; only what ran and failed is told.
    assert seen in ([], [("PostToolUseFailure", result.text)])


@pytest.mark.proves("HK-1")
async def test_exit_code_2_blocks_and_the_model_hears_why(project):
    (project / "a.txt").write_text("one\n")
    hooks = {"PreToolUse": [group("echo 'not this file' >&2; exit 2", matcher="Read")]}
    async with Session(project, hooks=hooks) as session:
        result = await session.call("Read", file_path="a.txt")
    assert result.code == "hook.blocked"
    assert "not this file" in result.text
    assert (require(result.decision).verdict, require(result.decision).by) == ("deny", "hook")


@pytest.mark.proves("PL-3", "HK-1")
async def test_a_rewritten_input_is_judged_again_whoever_rewrote_it(project):
    (project / "secret.txt").write_text("s\n")
    (project / "open.txt").write_text("o\n")
    changed = {"file_path": str(project / "secret.txt")}
    answer = says(hookSpecificOutput={"permissionDecision": "allow", "updatedInput": changed})
    hooks = {"PreToolUse": [group(answer)]}
    async with Session(project, hooks=hooks, deny="Read(/secret.txt)") as session:
        result = await session.call("Read", file_path="open.txt")
    assert (result.code, require(result.decision).rule) == (
        "permission.denied",
        "Read(/secret.txt)",
    )
    changed = {"file_path": str(project / "open.txt")}
    hooks = {"PreToolUse": [group(says(hookSpecificOutput={"updatedInput": changed}))]}
    async with Session(project, hooks=hooks) as session:
        result = await session.call("Read", file_path="secret.txt")
        assert "o" in result.text
    ran = [e for e in read_events(session_home(session), session.id) if isinstance(e, HookRan)]
    assert ran[0].input == changed


def session_home(session):
    from handaxe.storage.home import find_data_home

    return find_data_home(None)


def permits(behavior, **more):
    return says(hookSpecificOutput={"decision": {"behavior": behavior, **more}})


@pytest.mark.proves("HK-1")
async def test_a_hook_may_answer_a_permission_request_before_a_person_does(project):
    asked = []

    async def on_ask(request):
        asked.append(request.tool)
        return Deny("person")

    write = {"file_path": "new.txt", "content": "x\n"}
    hooks = {"PermissionRequest": [group(permits("allow"), matcher="Write")]}
    async with Session(project, hooks=hooks, on_ask=on_ask) as session:
        result = await session.call("Write", write)
    assert result.ok
    assert (require(result.decision).verdict, require(result.decision).by) == ("allow", "hook")
    assert asked == []
    hooks = {"PermissionRequest": [group(permits("deny", message="not now"))]}
    async with Session(project, hooks=hooks, on_ask=on_ask) as session:
        result = await session.call("Write", {**write, "file_path": "new2.txt"})
    assert (result.code, asked) == ("permission.denied", [])
    assert "not now" in result.text
    hooks = {"PermissionRequest": [group("exit 2", "exit 1")]}
    async with Session(project, hooks=hooks, on_ask=on_ask) as session:
        result = await session.call("Write", {**write, "file_path": "new3.txt"})
    assert (result.code, asked) == ("permission.denied", ["Write"])


async def test_a_hooks_yes_answers_no_ask_rule_and_no_protected_path(project):
    hooks = {"PermissionRequest": [group(permits("allow"))]}
    async with Session(project, hooks=hooks, ask="Write(/new.txt)") as session:
        result = await session.call("Write", file_path="new.txt", content="x\n")
        assert result.code == "permission.asked"
        result = await session.call("Write", file_path=".git/config", content="x\n")
        assert result.code == "permission.asked"
    assert list(project.iterdir()) == []


@pytest.mark.proves("PL-3")
async def test_an_input_that_comes_with_the_yes_is_judged_too(project):
    def to(name):
        return {"updatedInput": {"file_path": str(project / name), "content": "other\n"}}

    write = {"file_path": "new.txt", "content": "x\n"}
    hooks = {"PermissionRequest": [group(permits("allow", **to("free.txt")))]}
    async with Session(project, hooks=hooks) as session:
        assert (await session.call("Write", write)).ok
    assert [p.name for p in project.iterdir()] == ["free.txt"]
    for name, code in (("denied.txt", "permission.denied"), ("asked.txt", "permission.asked")):
        hooks = {"PermissionRequest": [group(permits("allow", **to(name)))]}
        rules: dict[str, Any] = {"deny": "Edit(/denied.txt)", "ask": "Edit(/asked.txt)"}
        async with Session(project, hooks=hooks, **rules) as session:
            assert (await session.call("Write", write)).code == code


async def test_a_person_is_still_asked_if_no_hook_answers(project):
    async def on_ask(request):
        return Allow()

    hooks = {"PermissionRequest": [group("true", matcher="Edit")]}
    async with Session(project, hooks=hooks, on_ask=on_ask) as session:
        heard = []
        session.subscribe(heard.append)
        assert (await session.call("Write", file_path="n.txt", content="x\n")).ok
        await asyncio.sleep(0)
    assert any(isinstance(event, CallAsked) for event in heard)


@pytest.mark.proves("HK-1")
async def test_the_start_is_told_once_before_the_first_call_and_the_end_at_the_close(
    project, tmp_path
):
    log = tmp_path / "log"
    hooks = {
        "SessionStart": [
            group(f"sleep 0.1; echo start >> {log}; echo context"),
            {"matcher": "resume", "hooks": [shell(f"echo again >> {log}")]},
        ],
        "PreToolUse": [group(f"echo call >> {log}")],
        "SessionEnd": [group(f"cat >> {log}")],
    }
    (project / "a.txt").write_text("one\n")
    async with Session(project, hooks=hooks) as session:
        results = await session.call_many(
            [("Read", {"file_path": "a.txt"}), ("Glob", {"pattern": "*"})]
        )
        assert sorted(m for r in results for m in r.messages) == ["context"]
    *lines, last = log.read_text().splitlines()
    assert lines == ["start", "call", "call"]
    assert json.loads(last)["reason"] == "other"
    events = list(read_events(session_home(session), session.id))
    assert isinstance(events[0], SessionStarted)
    assert isinstance(events[-1], SessionClosed)
    assert [e.event for e in events if isinstance(e, HookRan)] == [
        "SessionStart",
        "PreToolUse",
        "PreToolUse",
        "SessionEnd",
    ]
    log.unlink()
    async with Session(project, hooks=hooks, session_id=session.id) as session:
        await session.call("Read", file_path="a.txt")
    assert sorted(log.read_text().splitlines()[:2]) == ["again", "start"]


async def test_a_session_that_made_no_call_tells_nobody(project, tmp_path):
    hooks = {name: [group(f"touch {tmp_path}/ran")] for name in ("SessionStart", "SessionEnd")}
    async with Session(project, hooks=hooks):
        pass
    assert not (tmp_path / "ran").exists()


async def test_a_call_can_be_cancelled_while_the_start_is_told(project, tmp_path):
    hooks = {"SessionStart": [group(f"echo $$ > {tmp_path}/pid; exec sleep 600")]}
    (project / "a.txt").write_text("one\n")
    async with Session(project, hooks=hooks) as session:
        running = asyncio.create_task(session.call("Read", file_path="a.txt"))
        pid = await number_in(tmp_path / "pid")
        assert session.cancel() == 1
        assert (await running).code == "call.cancelled"
    assert not is_alive(pid)


async def test_cancelling_a_call_ends_its_hooks_even_if_they_are_deaf(project, tmp_path):
    hooks = {"PreToolUse": [group(f"trap '' TERM; echo $$ > {tmp_path}/pid; sleep 600; sleep 600")]}
    (project / "a.txt").write_text("one\n")
    async with Session(project, hooks=hooks) as session:
        running = asyncio.create_task(session.call("Read", file_path="a.txt"))
        pid = await number_in(tmp_path / "pid")
        session.cancel()
        assert (await running).code == "call.cancelled"
        await until(lambda: not is_alive(pid))


@pytest.mark.proves("HK-1")
async def test_after_a_batch_hooks_hear_of_all_its_calls_once(project, tmp_path):
    seen = tmp_path / "seen"
    (project / "a.txt").write_text("one\n")
    answer = says(hookSpecificOutput={"additionalContext": "all done"})
    hooks = {"PostToolBatch": [group(f"cat >> {seen}; {answer}")]}
    async with Session(project, hooks=hooks) as session:
        calls = [("Read", {"file_path": "a.txt"}), ("Nope", {}), ("Read", {"file_path": "a.txt"})]
        results = await session.call_many(calls)
        await session.call("Read", file_path="a.txt")
    assert [r.messages for r in results] == [(), (), ("all done",)]
    told = json.loads(seen.read_text())["tool_calls"]
    assert [call["tool_name"] for call in told] == ["Read", "Nope", "Read"]
    assert told[0]["tool_input"] == {"file_path": str(project / "a.txt")}
    assert told[0]["tool_response"] == results[0].text


async def test_cancelling_while_a_batch_is_told_keeps_its_results(project, tmp_path):
    (project / "a.txt").write_text("one\n")
    hooks = {"PostToolBatch": [group(f"touch {tmp_path}/on; sleep 600")]}
    async with Session(project, hooks=hooks) as session:
        running = asyncio.create_task(session.call_many([("Read", {"file_path": "a.txt"})]))
        await until((tmp_path / "on").exists)
        session.cancel()
        assert [result.ok for result in await running] == [True]
        (tmp_path / "on").unlink()
        running = asyncio.create_task(session.call_many([("Glob", {"pattern": "*"})]))
        await until((tmp_path / "on").exists)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_what_hooks_add_is_told_even_if_the_call_is_refused(project):
    async def add(event):
        return {"hookSpecificOutput": {"additionalContext": "why not ask first"}}

    async with Session(project, hooks={"PreToolUse": [add]}) as session:
        result = await session.call("Write", file_path="n.txt", content="x\n")
    assert result.code == "permission.asked"
    assert result.messages == ("why not ask first",)


async def test_after_a_call_a_hook_may_replace_what_the_model_reads(project):
    (project / "a.txt").write_text("one\n")

    def giving(output):
        return {"PostToolUse": [group(says(hookSpecificOutput={"updatedToolOutput": output}))]}

    for output, text in (("short", "short"), ({"text": "t", "data": {"a": 1}}, "t")):
        async with Session(project, hooks=giving(output)) as session:
            result = await session.call("Read", file_path="a.txt")
            assert (result.ok, result.text) == (True, text)
    for output in (3, {"other": 1}, {"text": 3}):
        async with Session(project, hooks=giving(output)) as session:
            result = await session.call("Read", file_path="a.txt")
            assert "one" in result.text
            assert "another shape" in result.notes[-1]


async def test_a_complaint_after_a_call_reaches_the_model(project):
    (project / "a.txt").write_text("one\n")
    hooks = {"PostToolUse": [group("echo 'run the linter' >&2; exit 2")]}
    async with Session(project, hooks=hooks) as session:
        result = await session.call("Read", file_path="a.txt")
    assert result.ok
    assert result.messages == ("run the linter",)


async def test_an_agent_that_should_stop_is_told_so(project):
    (project / "a.txt").write_text("one\n")
    stop = says(**{"continue": False, "stopReason": "budget is gone"})
    async with Session(project, hooks={"PreToolUse": [group(stop)]}) as session:
        result = await session.call("Read", file_path="a.txt")
    assert result.code == "hook.blocked"
    assert "budget is gone" in result.text
    async with Session(project, hooks={"PostToolUse": [group(stop)]}) as session:
        result = await session.call("Read", file_path="a.txt")
    assert result.ok
    assert "budget is gone" in result.notes[-1]


@pytest.mark.proves("HK-1")
async def test_a_condition_is_a_permission_rule(project):
    (project / "a.py").write_text("one\n")
    (project / "a.txt").write_text("one\n")
    entry = {**shell("exit 2"), "if": "Read(*.py)"}
    async with Session(project, hooks={"PreToolUse": [{"hooks": [entry]}]}) as session:
        assert (await session.call("Read", file_path="a.py")).code == "hook.blocked"
        assert (await session.call("Read", file_path="a.txt")).ok


async def test_a_note_of_a_failing_program_is_in_the_result(project):
    (project / "a.txt").write_text("one\n")
    hooks = {"PreToolUse": [group("echo oops >&2; exit 1")]}
    async with Session(project, hooks=hooks) as session:
        result = await session.call("Read", file_path="a.txt")
    assert result.ok
    assert "oops" in result.notes[0]


async def test_late_words_come_with_a_later_result(project):
    (project / "a.txt").write_text("one\n")
    answer = says(hookSpecificOutput={"additionalContext": "by the way"})
    hooks = {"PostToolUse": [{"matcher": "Read", "hooks": [shell(answer, **{"async": True})]}]}
    async with Session(project, hooks=hooks) as session:
        assert (await session.call("Read", file_path="a.txt")).messages == ()

        async def added():
            return (await session.call("Glob", pattern="*")).messages

        assert await until(added) == ("by the way",)


@pytest.mark.proves("HK-1")
async def test_hooks_come_from_settings_and_follow_their_changes(project):
    (project / "a.txt").write_text("one\n")
    settings: dict[str, Any] = {
        "hooks": {"PreToolUse": [group("echo $MINE >&2; exit 2", matcher="Read")]}
    }
    settings["env"] = {"MINE": "from settings"}
    async with Session(project, settings=settings) as session:
        result = await session.call("Read", file_path="a.txt")
    assert "from settings" in result.text
    directory = project / ".claude"
    directory.mkdir()
    file = directory / "settings.json"
    file.write_text(
        json.dumps({"hooks": {"PreToolUse": [group("exit 2"), {"hooks": [{"type": "?"}]}]}})
    )
    async with Session(project, trusted=False) as session:
        assert (await session.call("Read", file_path="a.txt")).ok
    async with Session(project, trusted=True) as session:
        assert (await session.call("Read", file_path="a.txt")).code == "hook.blocked"
        assert any("is not a type of hook" in warning for warning in session.warnings)
        file.write_text("{}")
        await asyncio.sleep(0.02)
        assert (await session.call("Read", file_path="a.txt")).ok


async def test_hooks_of_the_settings_can_be_switched_off(project):
    (project / "a.txt").write_text("one\n")
    settings = {"hooks": {"PreToolUse": [group("exit 2")]}, "disableAllHooks": True}
    async with Session(project, settings=settings) as session:
        assert (await session.call("Read", file_path="a.txt")).ok


@pytest.mark.parametrize(
    "hooks",
    [
        {"PreTolUse": []},
        {"PreToolUse": [{"hooks": [{"type": "comand", "command": "x"}]}]},
        {"PreToolUse": [{"hooks": [{**shell("x"), "if": "Read("}]}]},
    ],
)
def test_a_mistake_in_the_arguments_is_an_error(project, hooks):
    with pytest.raises(SetupError, match="hooks"):
        Session(project, hooks=hooks)


@pytest.mark.proves("HK-1")
@pytest.mark.parametrize(
    ("event", "near"),
    [
        ("PreTolUse", "Did you mean 'PreToolUse'?"),
        ("sessionstart", "Did you mean 'SessionStart'?"),
        ("Zzzzzzzz", "is not a hook event."),
        ("PreToolUse", None),
    ],
)
async def test_an_event_that_is_none_is_named_even_without_hooks(project, event, near):
    place = project / ".handaxe" / "settings.json"
    place.parent.mkdir()
    place.write_text(json.dumps({"hooks": {event: []}}))
    async with Session(project, trusted=True) as session:
        told = [warning for warning in session.warnings if "hook event" in warning]
    if near is None:
        assert told == []
    else:
        (sentence,) = told
        assert sentence.startswith(f"{place}:1: {event!r} is not a hook event.")
        assert near in sentence
