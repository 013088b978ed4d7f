"""`--permission-prompt-tool mcp__server__tool`: a server's tool answers in a person's place."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.proves("PM-4")

THIN = str(Path(__file__).parents[1] / "mcp" / "thin_server.py")
WRITE = {
    "call": [{"tool": "Write", "id": "w1", "input": {"file_path": "a.txt", "content": "hi\n"}}]
}
AGAIN = {"call": [{"tool": "Write", "input": {"file_path": "b.txt", "content": "b\n"}}]}


@pytest.fixture
def run(project, tmp_path, script):
    """A headless run with a permission tool that always answers the same."""

    def running(answer, *turns, words=(), tool="mcp__gate__permit"):
        env = {"PERMIT_ANSWER": answer, "PERMIT_LOG": str(tmp_path / "asked.jsonl")}
        server = {"command": sys.executable, "args": [THIN, "permit"], "env": env}
        config = json.dumps({"mcpServers": {"gate": server}})
        model = script(*turns, {"text": "done"})
        return subprocess.run(
            [sys.executable, "-m", "handaxe", "-p", "go", "--model", model, "--mcp-config", config,
             "--permission-prompt-tool", tool, "--output-format", "json", *words],
            cwd=project, capture_output=True, timeout=60, check=False,
        )  # fmt: skip

    return running


@pytest.fixture
def asked(tmp_path):
    def read():
        file = tmp_path / "asked.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    return read


def test_a_yes_lets_the_call_run_and_the_tool_knows_what_it_was_asked(run, asked, project):
    out = run('{"behavior": "allow"}', WRITE)
    assert json.loads(out.stdout)["permission_denials"] == [], out.stderr
    assert (project / "a.txt").read_text() == "hi\n"
    (question,) = asked()
    assert (question["tool_name"], question["tool_use_id"]) == ("Write", "w1")
    assert question["input"]["content"] == "hi\n"


def test_a_changed_input_is_what_runs(run, project):
    changed = {"file_path": str(project / "a.txt"), "content": "other\n"}
    run(json.dumps({"behavior": "allow", "updatedInput": changed}), WRITE)
    assert (project / "a.txt").read_text() == "other\n"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"behavior": "deny", "message": "not today"}', "not today"),
        ('{"behavior": "maybe"}', "refused"),
        ("{}", "refused"),
        ("yes", "must answer with a JSON object"),
        ('["allow"]', "must answer with a JSON object"),
        ('{"behavior": "allow", "updatedInput": "all"}', "Invalid answer"),
        ("fail", "failed: fail"),
    ],
)
def test_everything_but_a_clear_yes_refuses(run, project, answer, reason):
    out = run(answer, WRITE)
    denied = json.loads(out.stdout)["permission_denials"]
    assert [(d["tool_name"], d["tool_use_id"]) for d in denied] == [("Write", "w1")]
    assert reason in out.stderr.decode()
    assert not (project / "a.txt").exists()
    assert out.returncode == 3


def test_an_interrupting_no_ends_the_run(run):
    out = run('{"behavior": "deny", "message": "stop", "interrupt": true}', WRITE, AGAIN)
    assert json.loads(out.stdout)["result"] != "done"


def test_rules_that_come_with_the_yes_hold(run, asked, project):
    update = {"type": "addRules", "rules": [{"toolName": "Edit"}], "behavior": "allow",
              "destination": "session"}  # fmt: skip
    run(json.dumps({"behavior": "allow", "updatedPermissions": [update]}), WRITE, AGAIN)
    assert (project / "b.txt").exists()
    assert len(asked()) == 1


def test_rules_are_heard_before_the_tool(run, asked, project):
    out = run('{"behavior": "allow"}', WRITE, AGAIN,
              words=("--disallowedTools", "Edit(/a.txt)", "--allowedTools", "Edit(/b.txt)"))  # fmt: skip
    assert len(json.loads(out.stdout)["permission_denials"]) == 1
    assert (project / "b.txt").exists()
    assert asked() == []


def test_no_tool_answers_where_a_server_wants_a_person(run, asked):
    turn = {"call": [{"tool": "mcp__gate__ask_me", "input": {}}]}
    out = run('{"behavior": "allow"}', turn)
    assert "requires user interaction; not supported via --permission-prompt-tool" in str(
        out.stderr
    )
    assert len(asked()) == 1


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("mcp__gate__nothing", b"there is no MCP tool"),
        ("mcp__nobody__permit", b"there is no MCP tool"),
        ("permit", b"must be mcp__SERVER__TOOL"),
    ],
)
def test_a_tool_that_is_not_there_is_told_before_anything_is_done(run, tool, said):
    out = run('{"behavior": "allow"}', WRITE, tool=tool)
    assert out.returncode == 2
    assert said in out.stderr


def test_a_program_on_the_stream_may_name_a_tool_too(connect, script, project, tmp_path):
    env = {"PERMIT_ANSWER": '{"behavior": "allow"}', "PERMIT_LOG": str(tmp_path / "asked.jsonl")}
    server = {"command": sys.executable, "args": [THIN, "permit"], "env": env}
    config = json.dumps({"mcpServers": {"gate": server}})
    client = connect("--model", script(WRITE, {"text": "done"}), "--mcp-config", config,
                     "--permission-prompt-tool", "mcp__gate__permit")  # fmt: skip
    client.say("go")
    assert client.until("result")["permission_denials"] == []
    client.close()
    assert (project / "a.txt").exists()
