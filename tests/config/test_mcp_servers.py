"""Definitions of MCP servers: places, precedence, variables, mistakes."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.expected_types import expect_type

from handaxe.config import mcp_definitions as mcp_servers
from handaxe.config.mcp_definitions import RemoteConfig, StdioConfig, read_definitions
from handaxe.contract.faults import SetupError


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home"))
    monkeypatch.setattr(mcp_servers, "MANAGED_DIRECTORIES", (str(tmp_path / "managed"),))
    for name in ("home", "project", "managed"):
        (tmp_path / name).mkdir()
    return tmp_path


def write(path: Path, servers: Any, **more: Any) -> None:
    path.write_text(json.dumps({"mcpServers": servers, **more}))


def one(definition: Any, **environment: str):
    return read_definitions(
        "/nowhere", given=[{"s": definition}], is_strict=True, environment=environment
    )


def test_the_whole_entry_of_the_highest_scope_stands_first(home):
    root = str(home / "project")
    local = {"projects": {root: {"mcpServers": {"x": {"command": "local"}}}}}
    write(
        home / "home" / ".claude.json",
        {"x": {"command": "user"}, "y": {"command": "user"}},
        **local,
    )
    write(home / "project" / ".mcp.json", {"x": {"command": "project", "args": ["1"]}})
    found = read_definitions(
        root, given=[{"x": {"command": "flags"}}], settings={"z": {"command": "settings"}}
    ).found
    assert [(d.name, d.scope, expect_type(StdioConfig, d.config).command) for d in found] == [
        ("x", "flags", "flags"),
        ("x", "local", "local"),
        ("x", "project", "project"),
        ("x", "user", "user"),
        ("y", "user", "user"),
        ("z", "user", "settings"),
    ]


def test_strict_leaves_only_what_was_given(home):
    write(home / "project" / ".mcp.json", {"x": {"command": "project"}})
    found = read_definitions(
        str(home / "project"), given=['{"mcpServers": {"g": {"command": "c"}}}'], is_strict=True
    )
    assert [d.name for d in found.found] == ["g"]


def test_managed_servers_stand_alone(home):
    write(home / "managed" / "managed-mcp.json", {"m": {"command": "managed"}})
    write(home / "project" / ".mcp.json", {"x": {"command": "project"}})
    found = read_definitions(str(home / "project"), given=[{"g": {"command": "c"}}])
    assert [(d.name, d.scope) for d in found.found] == [("m", "managed")]
    assert found.is_exclusive


@pytest.mark.parametrize(
    ("definition", "kind"),
    [
        ({"command": "a"}, "stdio"),
        ({"type": "stdio", "command": "a", "args": ["-x"], "env": {"PORT": 80}}, "stdio"),
        ({"type": "http", "url": "https://a/mcp", "headers": {"A": "b"}}, "http"),
        ({"type": "streamable-http", "url": "http://127.0.0.1:1/"}, "http"),
        ({"type": "sse", "url": "http://a/sse"}, "sse"),
    ],
)
def test_kinds_of_servers(definition, kind):
    (found,) = one(definition).found
    assert (found.config.kind if isinstance(found.config, RemoteConfig) else "stdio") == kind
    if isinstance(found.config, StdioConfig) and found.config.env:
        assert found.config.env == {"PORT": "80"}


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({"url": "https://a"}, 'add "type": "http"'),
        ({}, "command"),
        ({"command": ""}, "`command` is empty"),
        ({"command": 5}, "Expected `str`, got `int` - at `command`"),
        ({"command": "a", "args": "b"}, "args"),
        ({"command": "a\0b"}, "NUL"),
        ({"type": "http"}, "url"),
        ({"type": "http", "url": "ftp://a"}, "http or https address"),
        ({"type": "ws", "url": "ws://a"}, "web sockets"),
        ({"type": "sdk", "name": "x"}, "host program"),
        ({"type": "carrier pigeon"}, "`type` must be stdio, http or sse"),
        ({"command": "a", "timeout": "soon"}, "milliseconds"),
        ("a string", "an object is expected"),
    ],
)
def test_a_wrong_entry_is_named_and_only_itself_left_out(home, definition, reason):
    write(home / "project" / ".mcp.json", {"bad": definition, "good": {"command": "ok"}})
    found = read_definitions(str(home / "project"))
    assert [d.name for d in found.found] == ["good"]
    (problem,) = found.problems
    assert problem.startswith(f"{home}/project/.mcp.json: the MCP server 'bad' is left out: ")
    assert reason in problem
    with pytest.raises(SetupError, match="The MCP servers of this session are wrong"):
        one(definition)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"mcpServers": 5}', b"\xff\xfe", b"[" * 5000])
def test_a_file_that_is_no_such_object_is_a_problem_and_no_end(home, content):
    (home / "project" / ".mcp.json").write_bytes(content)
    found = read_definitions(str(home / "project"))
    assert found.found == []
    assert len(found.problems) == 1


def test_variables_are_filled_in_everywhere():
    definition = {
        "command": "${PROGRAM}",
        "args": ["--key=${KEY:-none}", "${EMPTY:-}x"],
        "env": {"A": "${PROGRAM}${PROGRAM}"},
    }
    (found,) = one(definition, PROGRAM="run").found
    assert found.config == StdioConfig(command="run", args=("--key=none", "x"), env={"A": "runrun"})
    (found,) = one(
        {"type": "http", "url": "https://${HOST}/mcp", "headers": {"K": "${KEY}"}},
        HOST="h",
        KEY="k",
    ).found
    assert found.config == RemoteConfig(url="https://h/mcp", headers={"K": "k"})


def test_a_variable_that_is_not_set_stays_and_is_told():
    found = one({"command": "a", "args": ["${NOT_SET}"]})
    assert expect_type(StdioConfig, found.found[0].config).args == ("${NOT_SET}",)
    assert found.unset == [
        "the session's arguments: the MCP server 's' names the variable NOT_SET, which is not set and has no default."
    ]


def test_a_definition_is_known_by_what_it_says_and_not_by_values_of_variables():
    first = one({"command": "${X}"}, X="1").found[0].digest
    assert one({"command": "${X}"}, X="2").found[0].digest == first
    assert one({"command": "${X}", "args": []}, X="1").found[0].digest != first


def test_a_missing_file_that_was_named_is_an_error(tmp_path):
    with pytest.raises(SetupError, match="is not there"):
        read_definitions("/nowhere", given=[str(tmp_path / "no.json")])
    with pytest.raises(SetupError, match="is not JSON"):
        read_definitions("/nowhere", given=["{nonsense"])
