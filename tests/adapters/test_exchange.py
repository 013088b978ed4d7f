"""What all adapters share, without any framework."""

import pytest

from handaxe import Session
from handaxe.adapters.tool_conversion import SessionAdapter
from handaxe.hooks.outcome import Outcome


@pytest.mark.proves("AR-1")
async def test_hooks_apply_and_what_they_say_is_in_the_answer(project):
    async def after(event):
        return Outcome(messages=("Remember the tests.",))

    async def before(event):
        return Outcome(blocked="No secrets.") if "key" in str(event["tool_input"]) else None

    (project / "a.txt").write_text("hello\n")
    hooks = {"PreToolUse": [before], "PostToolUse": [after]}
    async with Session(project, hooks=hooks) as session:
        exchange = SessionAdapter(session, fresh_ids=False)
        read = await exchange.call("Read", {"file_path": "a.txt"}, None)
        blocked = await exchange.call("Read", {"file_path": "key.txt"}, None)
    assert read.text == (
        "     1→hello\n\n<system-reminder>\nRemember the tests.\n</system-reminder>"
    )
    assert blocked.is_failure
    assert blocked.result.code == "hook.blocked"
    assert "No secrets." in blocked.text


async def test_the_end_of_background_work_is_told_with_the_next_answer_once(project):
    async with Session(project, permission_mode="bypassPermissions") as session:
        exchange = SessionAdapter(session, fresh_ids=False)
        begun = await exchange.call("Bash", {"command": "true", "run_in_background": True}, None)
        job = begun.result.data["backgroundTaskId"]
        await session.jobs.news()
        first, second = [await exchange.call("Glob", {"pattern": "*"}, None) for _ in range(2)]
    assert f"<task-id>{job}</task-id>" in first.text
    assert "completed (exit code 0)" in first.text
    assert job not in second.text


async def test_what_was_read_leniently_is_noted(session, project):
    (project / "a.txt").write_text("hello\n")
    sent = {"file_path": "a.txt", "limit": "1"}
    answer = await SessionAdapter(session, fresh_ids=False).call("Read", sent, "one")
    assert "\n\nNote: " in answer.text


async def test_a_result_that_is_too_long_is_stored(session, project):
    (project / "a.py").write_text("".join(f"needle {number:040}\n" for number in range(3000)))
    sent = {"pattern": "needle", "output_mode": "content", "head_limit": 0}
    answer = await SessionAdapter(session, fresh_ids=False).call("Grep", sent, "one")
    assert answer.result.size_chars > 100_000
    assert len(answer.text) < 10_000


async def test_an_id_of_the_framework_is_kept_and_a_missing_one_is_made(session):
    exchange = SessionAdapter(session, fresh_ids=False)
    assert (await exchange.call("Glob", {"pattern": "*"}, "toolu_1")).result.id == "toolu_1"
    assert (await exchange.call("Glob", {"pattern": "*"}, None)).result.id.startswith("call_")
    assert (await exchange.call("Glob", {"pattern": "*"}, "")).result.id.startswith("call_")


async def test_an_id_that_comes_with_another_input_is_refused_unless_ids_are_fresh(session):
    repeated = SessionAdapter(session, fresh_ids=False)
    assert not (await repeated.call("Glob", {"pattern": "*"}, "call_0")).is_failure
    assert (await repeated.call("Glob", {"pattern": "*.py"}, "call_0")).is_failure
    fresh = SessionAdapter(session, fresh_ids=True)
    assert not (await fresh.call("Glob", {"pattern": "*.py"}, "call_0")).is_failure


async def test_a_closed_session_answers_and_does_not_raise(project):
    async with Session(project) as session:
        exchange = SessionAdapter(session, fresh_ids=False)
    answer = await exchange.call("Read", {"file_path": "a.txt"}, "one")
    assert answer.is_failure
    assert "closed" in answer.text


async def test_a_tool_that_is_denied_is_not_offered(project):
    async with Session(project, deny="Write") as session:
        names = [offer.name for offer in SessionAdapter(session, fresh_ids=False).offers()]
    assert "Read" in names
    assert "Write" not in names
