"""Servers on the command line."""

import json
import subprocess
import sys
from pathlib import Path

THIN = str(Path(__file__).parents[1] / "mcp" / "thin_server.py")
SERVER = {"command": sys.executable, "args": [THIN]}


def handaxe(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_call_reaches_a_server_that_an_option_names(project):
    config = json.dumps({"mcpServers": {"a": SERVER}})
    done = handaxe(
        "call",
        "mcp__a__echo",
        "text=hello",
        "--mcp-config",
        config,
        "--allowedTools",
        "mcp__a",
        cwd=project,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "hello"), done.stderr


def test_a_wrong_option_is_told_before_anything_runs(project):
    done = handaxe(
        "call", "Glob", "pattern=*", "--mcp-config", '{"a": {"url": "https://x"}}', cwd=project
    )
    assert done.returncode == 2
    assert 'add "type": "http"' in done.stderr


def test_trust_shows_the_servers_of_a_folder_and_lets_them_start(project):
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": SERVER}}))
    waiting = handaxe("call", "mcp__a__echo", "text=x", "--allowedTools", "mcp__a", cwd=project)
    assert waiting.returncode != 0
    assert "wait for approval" in waiting.stderr
    trusted = handaxe("trust", cwd=project)
    assert "server:a = " in trusted.stderr
    assert THIN in trusted.stderr
    done = handaxe("call", "mcp__a__echo", "text=x", "--allowedTools", "mcp__a", cwd=project)
    assert (done.returncode, done.stdout.strip()) == (0, "x"), done.stderr
    assert handaxe("trust", "--revoke", cwd=project).returncode == 0
    assert (
        handaxe(
            "call", "mcp__a__echo", "text=x", "--allowedTools", "mcp__a", cwd=project
        ).returncode
        != 0
    )


def test_a_stream_names_the_entries_that_were_left_out(project, script):
    wrong = {
        "no-type": {"url": "https://x"},
        "odd": {"type": "carrier-pigeon", "url": "https://x"},
        "empty": {"command": ""},
    }
    config = json.dumps({"mcpServers": {"a": SERVER, **wrong}})
    done = handaxe(
        "-p", "go", "--model", script({"text": "ok"}), "--mcp-config", config,
        "--output-format", "stream-json", "--verbose", cwd=project,
    )  # fmt: skip
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    (init,) = [message for message in messages if message.get("subtype") == "init"]
    assert [server["name"] for server in init["mcp_servers"]] == ["a"]
    told = {error["name"]: error["type"] for error in init["mcp_server_errors"]}
    assert told == {
        "no-type": "url_missing_type", "odd": "unknown_type", "empty": "invalid_config",
    }  # fmt: skip
    assert 'add "type": "http"' in init["mcp_server_errors"][0]["message"]
    assert messages[-1]["result"] == "ok"
    assert "Task" in init["tools"]
    assert "Agent" not in init["tools"]


def test_a_headless_run_begins_with_the_tools_of_its_servers(project, script):
    missing = {"command": "no-such-program"}
    config = json.dumps({"mcpServers": {"a": SERVER, "b": missing}})
    call = {"call": [{"tool": "mcp__a__echo", "input": {"text": "heard"}}]}
    done = handaxe(
        "-p", "go", "--model", script(call, {"text": "{{last.text}}"}), "--mcp-config", config,
        "--allowedTools", "mcp__a", "--output-format", "stream-json", "--verbose",
        "--settings", '{"tool_search": {"when": "never"}}', cwd=project,
    )  # fmt: skip
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    (init,) = [message for message in messages if message.get("subtype") == "init"]
    status = {server["name"]: server["status"] for server in init["mcp_servers"]}
    assert status == {"a": "connected", "b": "failed"}
    assert "mcp__a__echo" in init["tools"]
    assert messages[-1]["result"] == "heard"
