"""`handaxe mcp install`: the right entry in the right file, and nothing else touched."""

import json
import subprocess
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.frontends.mcp_server.client_configs import CLIENTS
from handaxe.frontends.mcp_server.config_edit import ConfigEditError, put_json, put_toml


def install(project, home, *words):
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(
        [sys.executable, "-m", "handaxe", "mcp", "install", *words],
        capture_output=True,
        text=True,
        cwd=project,
        env=env,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_gets_an_entry_once_and_keeps_what_it_had(project, tmp_path, client):
    home = tmp_path / "home"
    home.mkdir()
    shown = install(project, home, client)
    assert shown.returncode == 0
    file = shown.stderr.partition(", in ")[2].partition(" (--write")[0]
    is_toml = file.endswith(".toml")
    read = tomllib.loads if is_toml else json.loads
    entry = next(iter(read(shown.stdout)[CLIENTS[client].section].values()))
    assert entry["command"]
    assert "mcp" in entry["args"]
    assert ("--root" in entry["args"]) is (client in {"claude-desktop", "windsurf"})
    first = install(project, home, client, "--write")
    assert first.returncode == 0, first.stderr
    with open(file, encoding="utf-8") as written:
        once = written.read()
    assert read(once) == read(shown.stdout)
    assert "already up to date" in install(project, home, client, "--write").stdout
    other = install(project, home, client, "--write", "--name", "second", "--tools", "read-only")
    assert other.returncode == 0, other.stderr
    with open(file, encoding="utf-8") as written:
        servers = read(written.read())[CLIENTS[client].section]
    assert servers["handaxe"] == entry
    assert servers["second"]["args"][-2:] == ["--tools", "read-only"]


def test_an_unknown_client_is_told_with_a_guess(project, tmp_path):
    out = install(project, tmp_path, "cursr")
    assert out.returncode == 2
    assert "'cursor'" in out.stderr


def test_a_broken_file_is_left_alone(project, tmp_path):
    (project / ".mcp.json").write_text('{"mcpServers": ')
    out = install(project, tmp_path, "claude-code", "--write")
    assert out.returncode == 2
    assert (project / ".mcp.json").read_text() == '{"mcpServers": '


JSONC = """// Zed settings
{
    "theme": "dark", // mine
    /* servers */
    "context_servers": {
        "other": { "command": "x", "args": ["a, b", "}"] }, // keep
    },
    "last": [1, 2,],
}
"""


def test_comments_and_commas_of_editors_stay():
    once = put_json(JSONC, ("context_servers", "handaxe"), {"command": "h"})
    assert once == JSONC.replace(
        '["a, b", "}"] },',
        '["a, b", "}"] },\n        "handaxe": {\n            "command": "h"\n        }',
    )
    assert put_json(once, ("context_servers", "handaxe"), {"command": "h"}) == once
    changed = put_json(once, ("context_servers", "handaxe"), {"command": "i"})
    assert changed == once.replace('"h"', '"i"')


@pytest.mark.parametrize("text", ["[]", "7", '{"a" 1}', '{"a": }', '{"s": 1', '{"s": []}', "{'s': 1}", '{"s": {"x": 1 2}}'])  # fmt: skip
def test_a_text_that_is_no_object_of_objects_is_refused(text):
    with pytest.raises(ConfigEditError):
        put_json(text, ("s", "x", "y"), {})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    before=st.dictionaries(st.text(), json_values, max_size=4),
    held=st.dictionaries(st.text(), json_values, max_size=3),
    indent=st.sampled_from([None, 2, 4, "\t"]),
    name=st.text(),
    value=st.dictionaries(st.text(), json_values, max_size=3),
)
def test_a_value_is_put_where_it_belongs_in_any_json(before, held, indent, name, value):
    document = {**before, "servers": held}
    text = json.dumps(document, indent=indent)
    changed = put_json(text, ("servers", name), value)
    assert json.loads(changed) == {**document, "servers": {**held, name: value}}
    assert put_json(changed, ("servers", name), value) == changed
    made = put_json(json.dumps(before, indent=indent), ("new one", name), value)
    if "new one" not in before:
        assert json.loads(made) == {**before, "new one": {name: value}}


TOML = """model = "gpt"  # mine

[mcp_servers.other]
command = "x"

[mcp_servers.handaxe]
args = ["old"]
command = "old" # old one
startup_timeout_sec = 20

[mcp_servers.handaxe.env]
A = "1"
"""


def test_a_toml_table_is_changed_in_place():
    once = put_toml(TOML, ("mcp_servers", "handaxe"), {"command": "h", "args": ["mcp"]})
    read = tomllib.loads(once)
    assert read["mcp_servers"]["handaxe"] == {
        "command": "h",
        "args": ["mcp"],
        "startup_timeout_sec": 20,
        "env": {"A": "1"},
    }
    assert read["mcp_servers"]["other"] == {"command": "x"}
    assert "# mine" in once
    assert put_toml(once, ("mcp_servers", "handaxe"), {"command": "h", "args": ["mcp"]}) == once
    assert tomllib.loads(put_toml("", ("a", "b c"), {"x": "é"})) == {"a": {"b c": {"x": "é"}}}
