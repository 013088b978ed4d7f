"""`--init`, `--init-only`, `--maintenance`, and what hooks may say to the start of a session."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import list_sessions
from handaxe.undo.journal_files.journal_scan import find_damage

TELL = f"{sys.executable} -c \"import sys; open('heard.jsonl','a').write(sys.stdin.read()+'\\n')\""


def says(**specific) -> str:
    return f"printf %s '{json.dumps({'hookSpecificOutput': specific})}'"


def settings(**hooks: Iterable[str]) -> str:
    groups = {
        event: [{"hooks": [{"type": "command", "command": c} for c in commands]}]
        for event, commands in hooks.items()
    }
    return json.dumps({"hooks": groups})


def heard(project: Path) -> list[dict]:
    return [json.loads(line) for line in (project / "heard.jsonl").read_text().splitlines()]


@pytest.fixture
def run(project: Path):
    def go(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        out = subprocess.run(
            [sys.executable, "-m", "handaxe", *words], stdin=subprocess.DEVNULL,
            capture_output=True, cwd=project, timeout=60, check=False, text=True,
            env={**os.environ},
        )  # fmt: skip
        assert out.returncode == code, (out.stdout, out.stderr)
        return out

    return go


@pytest.mark.parametrize("trigger", ["init", "maintenance"])
def test_setup_comes_before_the_start_and_reaches_the_model(project, script, run, trigger):
    prepare = 'echo "export PREPARED=yes" >> "$CLAUDE_ENV_FILE"; ' + says(
        hookEventName="Setup", additionalContext="Dependencies are there."
    )
    given = settings(Setup=[TELL, prepare], SessionStart=[TELL])
    model = script(
        {"expect": "/./", "call": [{"tool": "Bash", "input": {"command": "echo got $PREPARED"}}]},
        {"expect": "/got yes/", "text": "{{first.text}}"},
    )
    out = run("-p", "go", f"--{trigger}", "--model", model, "--settings", given,
              "--allowedTools", "Bash")  # fmt: skip
    assert "Dependencies are there." in out.stdout
    told = heard(project)
    assert [event["hook_event_name"] for event in told] == ["Setup", "SessionStart"]
    assert told[0]["trigger"] == trigger
    assert told[1]["source"] == "startup"


def test_nothing_is_set_up_unless_asked_for(project, script, run):
    run("-p", "go", "--model", script({"text": "Hi."}), "--settings", settings(Setup=[TELL]))
    assert not (project / "heard.jsonl").exists()


def test_init_only_runs_the_hooks_and_ends_without_a_model(project, run, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    given = settings(Setup=[TELL, "echo fine"], SessionStart=[TELL])
    out = run("--init-only", "--settings", given)
    assert (out.stdout, out.stderr) == ("", "")
    assert [e["hook_event_name"] for e in heard(project)] == ["Setup", "SessionStart"]
    assert heard(project)[0]["trigger"] == "init"
    assert "Setup hook 'echo fine'" in run("--init-only", "--verbose", "--settings", given).stderr


@pytest.mark.parametrize("code", [1, 2])
@pytest.mark.parametrize("event", ["Setup", "SessionStart"])
def test_a_failing_setup_is_told_and_init_only_fails(project, script, run, event, code):
    given = settings(**{event: [f"echo oops >&2; exit {code}"]}, SessionEnd=["true"])
    out = run("--init-only", "--settings", given, code=1)
    assert out.stdout == ""
    assert f"{event} hook error: " in out.stderr
    assert "oops" in out.stderr
    out = run("-p", "go", "--init", "--model", script({"text": "Hi."}), "--settings", given)
    assert out.stdout == "Hi.\n"
    assert out.stderr.count("oops") == 2, "the program's own line, and in the command's name"


def test_a_server_is_not_asked_at_the_start(project, script, run):
    hook = {"type": "http", "url": "http://127.0.0.1:9/"}
    given = json.dumps({"hooks": {"Setup": [{"hooks": [hook]}]}})
    out = run("-p", "go", "--init", "--model", script({"text": "Hi."}), "--settings", given)
    assert "servers are not called at Setup" in out.stderr


def test_the_start_can_name_the_session_and_knows_its_name(project, script, run):
    given = settings(SessionStart=[TELL, says(hookEventName="SessionStart", sessionTitle="spring")])
    run("-p", "go", "--model", script({"text": "Hi."}), "--settings", given)
    assert [one.name for one in list_sessions(find_data_home(), find_damage)] == ["spring"]
    model = script({"text": "Hi."}, {"text": "Again."})
    out = run("-p", "more", "--resume", "spring", "--model", model, "--settings", given)
    assert out.stdout == "Again.\n"
    run("-p", "more", "--resume", "spring", "--fork-session", "--model",
        script({"text": "Hi."}, {"text": "A."}, {"text": "B."}), "--settings", given)  # fmt: skip
    told = [(event["source"], event.get("session_title")) for event in heard(project)]
    assert told == [("startup", None), ("resume", "spring"), ("fork", None)]


def test_a_prompt_can_name_the_session(project, script, run):
    name = says(hookEventName="UserPromptSubmit", sessionTitle="  a\n  long story ")
    given = settings(UserPromptSubmit=[name, TELL])
    run("-p", "go", "--model", script({"text": "Hi."}), "--settings", given)
    assert [one.name for one in list_sessions(find_data_home(), find_damage)] == ["a long story"]
    run("-p", "go", "--continue", "--model", script({"text": "Hi."}, {"text": "x"}),
        "--settings", given)  # fmt: skip
    first, second = heard(project)
    assert "session_title" not in first
    assert second["session_title"] == "a long story"
    assert first["prompt_id"] != second["prompt_id"]


def test_the_start_can_have_the_first_words(project, script, run):
    given = settings(SessionStart=[says(hookEventName="SessionStart", initialUserMessage="Begin.")])
    model = script({"expect": "/^Begin/", "text": "One."}, {"expect": "/^Then/", "text": "Two."})
    assert run("-p", "--model", model, "--settings", given).stdout == "One.\n"
    assert run("-p", "Then.", "--model", model, "--settings", given).stdout == "Two.\n"
    assert "Give a prompt: -p PROMPT." in run("-p", "--model", model, "--settings",
                                   settings(SessionStart=["true"]), code=2).stderr  # fmt: skip


def test_skills_that_the_start_installs_are_there_for_the_first_prompt(project, script, run):
    make = "mkdir -p .claude/skills/fresh && printf -- '---\\ndescription: New one.\\n---\\nDo.' > "
    install = f"{make} .claude/skills/fresh/SKILL.md"
    reload = says(hookEventName="SessionStart", reloadSkills=True)
    given = settings(SessionStart=[f"{install}; {reload}"])
    model = script(
        {"call": [{"tool": "Skill", "input": {"skill": "fresh"}}]}, {"expect": "/Do/", "text": "x"}
    )
    out = run("-p", "go", "--model", model, "--settings", given, "--output-format", "stream-json",
              "--allowedTools", "Skill")  # fmt: skip
    init = next(json.loads(line) for line in out.stdout.splitlines() if '"init"' in line)
    assert "fresh" in init["skills"]
