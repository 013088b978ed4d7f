"""`handaxe mcp list`, `get`, `add`, `remove`: the servers that sessions use."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from handaxe.frontends.mcp_server.config_edit import drop_json, put_json

THIN = str(Path(__file__).parents[1] / "mcp" / "thin_server.py")


@pytest.fixture
def mcp(project):
    """Runs `handaxe mcp` with these words."""

    def run(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "handaxe", "mcp", *words],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout or done.stderr

    return run


def shared() -> dict:
    return json.loads((Path(os.environ["CLAUDE_CONFIG_DIR"]) / ".claude.json").read_text())


@pytest.mark.proves("AR-2")
def test_servers_are_added_listed_and_removed_in_every_scope(mcp, project):
    Path(os.environ["CLAUDE_CONFIG_DIR"]).mkdir()
    mcp("add", "files", "--env", "A=1=2", "--", "npx", "-y", "server", ".")
    mcp("add", "--scope", "project", "web", "https://x.example/mcp", "--header", "X-Key: a: b")
    mcp("add-json", "me", '{"command": "python"}', "-s", "user")
    files = {"type": "stdio", "command": "npx", "args": ["-y", "server", "."], "env": {"A": "1=2"}}
    assert shared() == {
        "projects": {str(project): {"mcpServers": {"files": files}}},
        "mcpServers": {"me": {"command": "python"}},
    }
    web = {"type": "http", "url": "https://x.example/mcp", "headers": {"X-Key": "a: b"}}
    assert json.loads((project / ".mcp.json").read_text()) == {"mcpServers": {"web": web}}
    rows = {row["name"]: row for row in json.loads(mcp("list", "--json"))}
    assert [rows[name]["scope"] for name in ("files", "me", "web")] == ["local", "user", "project"]
    assert rows["files"]["config"]["args"] == ["-y", "server", "."]
    assert "X-Key" not in json.dumps(rows)
    assert rows["web"]["status"] == "disabled"
    assert "may start" in mcp("get", "files")
    for name in rows:
        mcp("remove", name)
    assert json.loads(mcp("list", "--json")) == []


@pytest.mark.proves("AR-2")
def test_a_check_connects_and_tells_what_it_found(mcp):
    good = json.dumps({"command": sys.executable, "args": [THIN]})
    mcp("add-json", "good", good, "-s", "user")
    told = mcp("get", "good", "--check")
    assert "connected" in told
    assert "echo" in told
    mcp("add", "bad", "-s", "user", "--", sys.executable, "-c", "raise SystemExit(3)")
    rows = {row["name"]: row for row in json.loads(mcp("list", "--check", "--json", code=1))}
    assert rows["good"]["status"] == "connected"
    assert rows["bad"]["status"] == "failed"
    assert "3" in rows["bad"]["error"]


@pytest.mark.parametrize(
    "words",
    [
        ("get", "nobody"),
        ("get",),
        ("remove", "nobody"),
        ("remove", "nobody", "--scope", "user"),
        ("add", "bad name", "x"),
        ("add", "x"),
        ("add", "x", "https://x.example", "argument"),
        ("add", "x", "ftp://x.example", "--transport", "http"),
        ("add", "x", "y", "--env", "novalue"),
        ("add-json", "x", "{"),
        ("add-json", "x", '{"url": "https://x.example"}'),
        ("serve", "something"),
        ("install", "cursor", "zed"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(mcp, project, words):
    assert mcp(*words, code=2).startswith("handaxe: ")
    assert not (project / ".mcp.json").exists()
    assert not Path(os.environ["CLAUDE_CONFIG_DIR"]).exists()


def test_a_name_in_two_scopes_is_removed_from_the_one_that_is_chosen(mcp):
    for scope in ("user", "project"):
        mcp("add", "twice", "x", "-s", scope)
    assert "--scope" in mcp("remove", "twice", code=2)
    mcp("remove", "twice", "-s", "project")
    assert "mcpServers" in shared()
    assert [row["scope"] for row in json.loads(mcp("list", "--json"))] == ["user"]


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_taking_one_member_out_leaves_the_others_and_the_comments(name):
    text = '{\n  // mine\n  "s": {\n    "a": {"x": 1}, // first\n    "b": [1, 2],\n    "c": "}"\n  }\n}\n'
    left = drop_json(text, ("s", name))
    assert "// mine" in left
    plain = "\n".join(
        line.partition(" //")[0] for line in left.splitlines() if "// mine" not in line
    )
    whole = {"a": {"x": 1}, "b": [1, 2], "c": "}"}
    del whole[name]
    assert json.loads(plain) == {"s": whole}
    assert drop_json(left, ("s", name)) == left
    assert drop_json(left, ("t", name)) == left
    assert drop_json("", ("s", name)) == ""


def test_what_was_put_in_comes_out_again():
    text = '{\n  "s": {}\n}\n'
    assert json.loads(drop_json(put_json(text, ("s", "a"), {"x": 1}), ("s", "a"))) == {"s": {}}
