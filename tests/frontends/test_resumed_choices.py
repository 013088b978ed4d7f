"""What a resumed conversation goes on with: its model, its type of agent, its mode."""

import json
import subprocess
import sys

import pytest


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


@pytest.fixture
def begun(run, project, script):
    agents = project / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "guide.md").write_text("---\nname: guide\ndescription: d\ntools: Read\n---\nLead.\n")
    turns = [{"text": f"turn {number}"} for number in range(6)]
    model = script(*turns)
    run("-p", "go", "--agent", "guide", "--model", model, "--permission-mode", "acceptEdits")
    return model


def init_of(out) -> dict:
    lines = [json.loads(line) for line in out.stdout.splitlines()]
    return next(line for line in lines if line.get("subtype") == "init")


STREAM = ("--output-format", "stream-json", "--verbose")


def test_model_agent_and_mode_are_as_before(begun, run):
    out = run("-p", "on", "--continue", *STREAM)
    assert init_of(out)["permissionMode"] == "acceptEdits"
    assert init_of(out)["tools"] == ["Read"]
    assert json.loads(out.stdout.splitlines()[-1])["result"] == "turn 1"


def test_what_is_given_now_counts_now_and_later(begun, run, project):
    (project / ".claude" / "agents" / "other.md").write_text(
        "---\nname: other\ndescription: d\ntools: Glob\n---\nLook.\n"
    )
    words = ("--permission-mode", "default", "--agent", "other")
    assert init_of(run("-p", "on", "--continue", *words, *STREAM))["tools"] == ["Glob"]
    init = init_of(run("-p", "on", "--continue", *STREAM))
    assert (init["permissionMode"], init["tools"]) == ("default", ["Glob"])


@pytest.mark.parametrize("mode", ["plan", "bypassPermissions"])
def test_the_widest_mode_and_plan_mode_end_with_their_run(begun, run, mode):
    run("-p", "on", "--continue", "--permission-mode", mode)
    assert init_of(run("-p", "on", "--continue", *STREAM))["permissionMode"] == "default"


def test_what_is_gone_is_not_missed(begun, run, project, tmp_path):
    (project / ".claude" / "agents" / "guide.md").unlink()
    assert len(init_of(run("-p", "on", "--continue", *STREAM))["tools"]) > 5
    (tmp_path / "script.jsonl").unlink()
    other = tmp_path / "other.jsonl"
    other.write_text('{"text": "a"}\n{"text": "b"}\n{"text": "other"}\n')
    settings = json.dumps({"model": f"scripted:{other}"})
    assert run("-p", "on", "--continue", "--settings", settings).stdout == "other\n"
