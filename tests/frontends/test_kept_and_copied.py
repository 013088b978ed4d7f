"""Conversations that are resumed, copied or not kept, and what goes along with them."""

import json
import subprocess
import sys

import pytest

from handaxe.storage.home import find_data_home

TASK = {"call": [{"tool": "TaskCreate", "input": {"subject": "paint", "description": "it"}}]}
LISTED = {"call": [{"tool": "TaskList", "input": {}}]}
PLAN = {"call": [{"tool": "EnterPlanMode", "input": {}}]}
PLANNED = {"call": [{"tool": "ExitPlanMode", "input": {}}]}
TOUCH = {"call": [{"tool": "Bash", "input": {"command": "touch made"}}]}


@pytest.fixture
def run(project):
    def go(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        out = subprocess.run(
            [sys.executable, "-m", "handaxe", *words], stdin=subprocess.DEVNULL,
            capture_output=True, cwd=project, timeout=60, check=False, text=True,
        )  # fmt: skip
        assert out.returncode == code, (out.stdout, out.stderr)
        return out

    return go


def test_a_copy_has_its_own_list_of_tasks(run, script):
    model = script(TASK, {"text": "ok"}, LISTED, {"text": "{{last.text}}"})
    run("-p", "go", "--session-id", "mine", "--model", model)
    out = run("-p", "on", "--resume", "mine", "--fork-session", "--session-id", "copy")
    assert "paint" in out.stdout
    assert (find_data_home() / "tasks" / "copy").exists()


def test_an_id_beside_a_resumed_conversation_is_not_passed_over(run, script):
    model = script({"text": "one"}, {"text": "two"})
    run("-p", "go", "--session-id", "mine", "--model", model)
    out = run("-p", "on", "--resume", "mine", "--session-id", "other", code=2)
    assert "--fork-session" in out.stderr
    run("-p", "on", "--resume", "mine", "--session-id", "mine")


def test_a_run_that_is_not_kept_goes_on_from_a_copy(run, script):
    model = script({"text": "one"}, {"text": "{{first.text}} again"})
    run("-p", "Ada", "--session-id", "mine", "--model", model)
    for words in (("--resume", "mine"), ("--continue",), ("--continue", "--fork-session")):
        out = run("-p", "who?", *words, "--no-session-persistence")
        assert out.stdout == "Ada again\n"
    assert [place.name for place in (find_data_home() / "sessions").iterdir()] == ["mine"]


def test_trust_counts_where_the_run_is_not_kept(run, script, project):
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"permissions": {"allow": ["Bash(touch *)"]}}))
    words = ("-p", "go", "--no-session-persistence", "--model", script(TOUCH, {"text": "ok"}))
    run(*words, code=3)
    run("trust", str(project))
    run(*words)
    assert (project / "made").exists()


@pytest.mark.parametrize(
    ("turns", "code"),
    [
        ([LISTED, TOUCH, {"text": "I could not."}], 3),
        ([TOUCH, LISTED, {"text": "Another way."}], 3),
        ([{"call": [*TOUCH["call"], *LISTED["call"]]}, {"text": "In part."}], 3),
        ([PLAN, LISTED, PLANNED, {"text": "The plan."}], 0),
        ([PLAN, LISTED, PLANNED, TOUCH, {"text": "Too early."}], 3),
    ],
)
def test_a_refused_call_is_the_exit_code_whatever_was_done_beside_it(run, script, turns, code):
    run("-p", "go", "--model", script(*turns), code=code)


def test_a_conversation_is_made_shorter_from_the_command_line(run, script):
    model = script({"text": "one"}, {"text": "A summary."})
    run("-p", "go", "--session-id", "mine", "--model", model)
    out = run("-p", "/compact the names", "--resume", "mine", "--output-format", "stream-json")
    messages = [json.loads(line) for line in out.stdout.splitlines()]
    assert [m["subtype"] for m in messages] == ["compact_boundary", "success"]
    assert run("-p", "/compact", "--model", model, code=1).stderr == ""


def test_a_command_in_the_background_may_come_to_its_end_when_that_is_near(run, script, project):
    command = "sleep 1; touch made"
    start = {"call": [{"tool": "Bash", "input": {"command": command, "run_in_background": True}}]}
    words = ("--output-format", "stream-json", "--allowedTools", "Bash")
    out = run("-p", "go", "--model", script(start, {"text": "bye"}, {"text": "done"}), *words)
    assert (project / "made").exists()
    messages = [json.loads(line) for line in out.stdout.splitlines()]
    assert [m["status"] for m in messages if m.get("subtype") == "task_notification"] == [
        "completed"
    ]
