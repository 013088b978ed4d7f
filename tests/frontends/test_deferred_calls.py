"""`permissionDecision: "defer"`: a headless run stops before a call, and `--resume` makes it."""

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from claude_agent_sdk import ResultMessage
from claude_agent_sdk._internal.message_parser import parse_message
from tests.expected_types import expect_type, require

from handaxe.contract.events import CallDeferred, CallFinished, CallStarted
from handaxe.storage.event_log import EventLog
from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import read_events

WRITE = {"tool": "Write", "input": {"file_path": "a.txt", "content": "hi\n"}}
READ = {"tool": "Glob", "input": {"pattern": "*"}}
HOOK = """import json, pathlib, sys
event = json.load(sys.stdin)
with open("heard.jsonl", "a") as heard:
    heard.write(json.dumps(event) + "\\n")
answer = pathlib.Path("answer.json")
if event["tool_name"] == "Write" and answer.exists():
    print(answer.read_text())
"""


ASKED = {"text": "I write.", "call": [WRITE]}


def decides(project: Path, decision: str, **more) -> None:
    said = {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}
    (project / "answer.json").write_text(json.dumps({"hookSpecificOutput": said}))


def heard(project: Path) -> list[dict]:
    lines = (project / "heard.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture
def settings(project: Path) -> str:
    """A hook that says what a file says."""
    (project / "hook.py").write_text(HOOK)
    hook = {"type": "command", "command": f"{sys.executable} hook.py"}
    return json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}})


class Runner:
    """Runs `handaxe -p` and keeps the lines of its last output."""

    def __init__(self, project: Path, settings: str) -> None:
        self.lines: list[dict] = []
        self._project = project
        self._settings = settings

    def __call__(self, *words: str, code: int = 0, form: str = "json") -> dict:
        """The last message of the output."""
        out = subprocess.run(
            [sys.executable, "-m", "handaxe", "-p", *words, "--settings", self._settings,
             "--output-format", form],
            stdin=subprocess.DEVNULL, capture_output=True, cwd=self._project, timeout=60,
            check=False, env={**os.environ},
        )  # fmt: skip
        assert out.returncode == code, (out.stdout.decode(), out.stderr)
        self.lines = [json.loads(line) for line in out.stdout.splitlines()]
        return self.lines[-1]


@pytest.fixture
def ask(project: Path, settings: str) -> Runner:
    return Runner(project, settings)


def test_a_call_is_put_off_and_made_when_the_run_is_resumed(project, script, ask):
    decides(project, "defer", updatedInput={"file_path": "b.txt", "content": "no\n"})
    model = script(ASKED)
    first = ask("go", "--model", model)
    assert (first["subtype"], first["is_error"]) == ("success", False)
    assert (first["stop_reason"], first["terminal_reason"]) == ("tool_deferred", "tool_deferred")
    put_off = first["deferred_tool_use"]
    assert (put_off["name"], put_off["input"]) == ("Write", WRITE["input"])
    assert not (project / "a.txt").exists()

    again = ask("--resume", first["session_id"], "--model", script(ASKED, {"text": "Never said."}))
    assert again["deferred_tool_use"] == put_off
    assert again["num_turns"] == 0

    decides(project, "allow")
    model = script(ASKED, {"expect": "/a.txt/", "text": "Done."})
    last = ask("--resume", first["session_id"], "--model", model)
    assert (last["result"], last["stop_reason"]) == ("Done.", "end_turn")
    assert "deferred_tool_use" not in last
    assert (project / "a.txt").read_text() == "hi\n"
    assert [event["tool_use_id"] for event in heard(project)] == [put_off["id"]] * 3

    events = list(read_events(find_data_home(), first["session_id"]))
    kinds = (CallStarted, CallDeferred, CallFinished)
    assert [type(e) for e in events if isinstance(e, kinds)] == [
        CallStarted, CallDeferred, CallStarted, CallDeferred, CallStarted, CallFinished,
    ]  # fmt: skip
    after = ask(
        "more",
        "--resume",
        first["session_id"],
        "--model",
        script(ASKED, {"text": ""}, {"text": "Fine."}),
    )
    assert after["result"] == "Fine."


def test_a_refusal_after_the_wait_reaches_the_model(project, script, ask):
    decides(project, "defer")
    first = ask("go", "--model", script(ASKED))
    decides(project, "deny", permissionDecisionReason="The owner said no.")
    model = script(ASKED, {"expect": "/The owner said no/", "text": "I see."})
    last = ask("--resume", first["session_id"], "--model", model, code=3)
    assert last["result"] == "I see."
    assert not (project / "a.txt").exists()


def test_a_prompt_comes_after_the_call_that_waits(project, script, ask):
    decides(project, "defer")
    first = ask("go", "--model", script(ASKED))
    decides(project, "allow")
    model = script(ASKED, {"expect": "/^And now/", "text": "Both."})
    last = ask("And now?", "--resume", first["session_id"], "--model", model)
    assert last["result"] == "Both."
    assert (project / "a.txt").exists()


def test_one_of_several_calls_is_refused_with_the_reason_and_never_run(project, script, ask):
    decides(project, "defer")
    model = script({"call": [WRITE, READ]}, {"expect": "/single call/", "text": "Alone."})
    last = ask("go", "--model", model, "--permission-mode", "bypassPermissions", code=3)
    assert last["result"] == "Alone."
    assert last["permission_denials"][0]["tool_name"] == "Write"
    assert not (project / "a.txt").exists()


def test_a_no_is_stronger_than_a_put_off_and_that_than_a_question(project, script, ask, settings):
    held = json.loads(settings)
    groups = held["hooks"]["PreToolUse"]

    def says(decision: str) -> dict:
        said = {"hookEventName": "PreToolUse", "permissionDecision": decision}
        line = json.dumps({"hookSpecificOutput": said})
        return {"hooks": [{"type": "command", "command": f"echo '{line}'"}]}

    decides(project, "defer")
    for decision, reason in (("ask", "tool_deferred"), ("deny", "end_turn")):
        more = json.dumps({"hooks": {"PreToolUse": [*groups, says(decision)]}})
        out = subprocess.run(
            [sys.executable, "-m", "handaxe", "-p", "go", "--output-format", "json",
             "--model", script({"call": [WRITE]}, {"text": "x"}), "--settings", more],
            stdin=subprocess.DEVNULL, capture_output=True, cwd=project, timeout=60, check=False,
        )  # fmt: skip
        assert json.loads(out.stdout)["stop_reason"] == reason, out


def test_a_tool_that_is_gone_is_named_and_the_call_waits_on(project, script, ask):
    decides(project, "defer")
    first = ask("go", "--model", script(ASKED))
    before = len(heard(project))
    gone = ask("--resume", first["session_id"], "--tools", "Read", "--model",
               script(ASKED), code=1)  # fmt: skip
    assert (gone["stop_reason"], gone["is_error"]) == ("tool_deferred_unavailable", True)
    assert gone["deferred_tool_use"] == first["deferred_tool_use"]
    assert len(heard(project)) == before
    decides(project, "allow")
    last = ask("--resume", first["session_id"], "--model", script(ASKED, {"text": "Back."}))
    assert last["result"] == "Back."
    assert (project / "a.txt").exists()


def test_the_sdk_reads_every_line(project, script, ask):
    decides(project, "defer")
    ask("go", "--model", script(ASKED), form="stream-json")
    read = [parse_message(line) for line in ask.lines]
    last = expect_type(ResultMessage, read[-1])
    assert last.stop_reason == "tool_deferred"
    assert require(last.deferred_tool_use).name == "Write"
    assert not any(line["type"] == "user" for line in ask.lines)


def test_a_run_that_died_while_it_made_the_call_is_not_repeated(project, script, ask):
    decides(project, "defer")
    first = ask("go", "--model", script(ASKED))
    log = find_data_home() / "sessions" / first["session_id"] / "events.jsonl"
    events = list(read_events(find_data_home(), first["session_id"]))
    started = next(e for e in events if isinstance(e, CallStarted))
    crashed = EventLog(log)
    crashed.append(started)
    crashed.flush()
    del crashed
    gc.collect()  # A killed process holds no lock of the log either.
    model = script(ASKED, {"expect": "/had already started/", "text": "I look."})
    last = ask("--resume", first["session_id"], "--model", model)
    assert last["result"] == "I look."
    assert len(heard(project)) == 1


QUESTION = {
    "question": "Which one?", "header": "Choice", "multiSelect": False,
    "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}],
}  # fmt: skip


def test_a_question_is_answered_by_whoever_calls_us(project, script):
    def run(answer: dict, *words: str) -> dict:
        said = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **answer}}
        hook = {"type": "command", "command": f"printf %s '{json.dumps(said)}'"}
        group = {"matcher": "AskUserQuestion", "hooks": [hook]}
        given = json.dumps({"hooks": {"PreToolUse": [group]}})
        out = subprocess.run(
            [sys.executable, "-m", "handaxe", "-p", *words, "--settings", given,
             "--output-format", "json"],
            stdin=subprocess.DEVNULL, capture_output=True, cwd=project, timeout=60, check=False,
        )  # fmt: skip
        return json.loads(out.stdout)

    asked = {"call": [{"tool": "AskUserQuestion", "input": {"questions": [QUESTION]}}]}
    first = run({"permissionDecision": "defer"}, "go", "--model", script(asked))
    put_off = first["deferred_tool_use"]
    assert put_off["name"] == "AskUserQuestion"
    resume = ("--resume", first["session_id"], "--model")
    filled = {**put_off["input"], "answers": {"Which one?": "Blue"}}
    model = script(asked, {"expect": "/Blue/", "text": "Blue it is."})
    last = run({"permissionDecision": "allow", "updatedInput": filled}, *resume, model)
    assert last["result"] == "Blue it is."


def test_a_yes_without_an_answer_is_none(project, script):
    plan = {"call": [{"tool": "ExitPlanMode", "input": {"plan": "Do it."}}]}

    def run(*more: dict, words: tuple[str, ...]) -> str:
        said = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        for each in more:
            said |= each
        hook = {"type": "command",
                "command": f"printf %s '{json.dumps({'hookSpecificOutput': said})}'"}  # fmt: skip
        given = json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}})
        out = subprocess.run(
            [sys.executable, "-m", "handaxe", "-p", "go", *words, "--settings", given,
             "--permission-mode", "plan"],
            stdin=subprocess.DEVNULL, capture_output=True, cwd=project, timeout=60, check=False,
        )  # fmt: skip
        return out.stdout.decode()

    model = script(plan, {"expect": "/work starts when you approve/", "text": "Refused."})
    assert run(words=("--model", model)) == "Refused.\n"
    model = script(plan, {"expect": "/approved the plan/", "text": "Off we go."})
    assert run({"updatedInput": {"plan": "Do it."}}, words=("--model", model)) == "Off we go.\n"
