"""`handaxe config` and `handaxe trust`, as a person uses them: real processes, real files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.expected_types import require

from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.commands import config
from handaxe.frontends.cli.main import parse_command


def run(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def configured(*words) -> int:
    """`handaxe config` without a process of its own."""
    return config.run(parse_command("config", words))


def write(path: Path, data) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


@pytest.fixture
def own() -> Path:
    return Path(os.environ["HANDAXE_CONFIG_HOME"], "settings.json")


def test_set_get_unset_and_path(project, own):
    here = ("--root", str(project))
    done = run("config", "set", "read.line_format", "tab", *here)
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(own.read_text()) == {"read": {"line_format": "tab"}}
    got = run("config", "get", "read.line_format", *here)
    assert (got.stdout, got.stderr) == ('"tab"\n', f"  {own}:3\n")
    assert json.loads(run("config", "get", "read", "--json", *here).stdout)["value"] == {
        "line_format": "tab"
    }
    assert run("config", "path", "--scope", "user", *here).stdout == f"{own}\n"
    assert run("config", "unset", "read.line_format", *here).returncode == 0
    assert json.loads(own.read_text()) == {}


def test_list_shows_every_value_with_file_and_line(project, own):
    write(own, '{\n "permissions": {\n  "deny": ["A"]},\n "theme": "dark"}')
    file = project / ".claude" / "settings.json"
    write(file, {"permissions": {"deny": ["B"], "allow": ["C"]}})
    listed = run("config", "--root", str(project))
    assert listed.stdout.splitlines() == [
        f'permissions.deny += "A"  ({own}:3)',
        f'permissions.deny += "B"  ({file}:1)',
        f'theme = "dark"  ({own}:4)  (not used by handaxe)',
    ]
    assert "this workspace has not been trusted" in listed.stderr
    as_json = json.loads(run("config", "list", "--json", "--root", str(project)).stdout)
    assert [setting["key"] for setting in as_json["settings"]] == ["permissions.deny", "theme"]
    assert as_json["trusted"] is False


@pytest.mark.proves("ST-2")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["set", "read.line_fromat", "tab"], "`read.line_format`"),
        (["set", "read.line_format", "tabb"], "`tab`"),
        (["set", "max_parallel_calls", "many"], "whole number"),
        (["set", "permissions.allow", "Bash"], "must be a list"),
        (["set", "permissions.allow", '["Bash("]'], "')'"),
        (["set", "permissions", "x"], "is a group"),
        (["set", "model"], "required: VALUE"),
        (["set"], "required: KEY"),
        (["get", "nope"], "There is no setting"),
        (["list", "--setting-sources", "usr"], "'user'"),
        (["list", "--root", "no-such-directory"], "not a directory"),
    ],
)
def test_nonsense_is_refused_with_what_was_meant(project, own, monkeypatch, words, told):
    monkeypatch.chdir(project)
    with pytest.raises(SetupError) as refused:
        configured(*words)
    assert told in str(refused.value)
    assert not own.exists()


def test_a_refusal_ends_with_the_code_for_wrong_usage(project):
    refused = run("config", "set", "read.line_fromat", "tab", cwd=project)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Did you mean `read.line_format`?" in refused.stderr


@pytest.mark.parametrize(
    ("key", "word", "value"),
    [
        ("max_parallel_calls", "4", 4),
        ("model", "4", "4"),
        ("model", "claude-x", "claude-x"),
        ("env.A", "1", "1"),
        ("permissions.deny", '["Bash"]', ["Bash"]),
        ("sandbox.enabled", "true", True),
        ("theme", "dark", "dark"),
    ],
)
def test_words_are_read_as_the_setting_wants_them(project, monkeypatch, capsys, key, word, value):
    monkeypatch.chdir(project)
    assert configured("set", key, word, "--json") == 0
    assert json.loads(capsys.readouterr().out)["value"] == value


def test_a_value_that_another_layer_overrules_is_said(project):
    run("config", "set", "model", "mine", "--scope", "user", cwd=project)
    given = ("--settings", '{"model": "theirs"}')
    told = run("config", "set", "model", "other", "--scope", "user", *given, cwd=project).stderr
    assert "has no effect here: flags" in told
    told = run("config", "set", "max_parallel_calls", "3", "--scope", "project", cwd=project).stderr
    assert "has not been trusted" in told


@pytest.mark.proves("ST-2")
def test_trust_lets_the_projects_files_allow_and_can_be_taken_back(project):
    write(project / ".claude/settings.json", {"permissions": {"allow": ["Write"]}})
    call = ("call", "Write", "file_path=a", "content=x", "--root", str(project))
    first = run(*call)
    assert first.returncode == 3
    assert f"run `handaxe trust {project}`" in first.stderr
    trusted = run("trust", cwd=project)
    assert trusted.returncode == 0
    assert f'permissions.allow = "Write"  ({project}/.claude/settings.json:1)' in trusted.stderr
    assert json.loads(run("trust", "--list", "--json").stdout)[0]["path"] == str(project)
    second = run(*call)
    assert (second.returncode, second.stderr) == (0, "")
    assert run("trust", str(project), "--revoke").returncode == 0
    assert run("trust", str(project), "--revoke").returncode == 1
    assert run(*call[:2], "file_path=b", *call[3:]).returncode == 3
    assert run("trust", "--list").stdout == ""
    assert run("trust", "no-such-directory", cwd=project).returncode == 2


@pytest.mark.proves("ST-2")
def test_every_command_says_what_is_wrong_with_the_files(project, own):
    write(own, '{"permisions": {}}')
    write(project / "a", "x\n")
    read = ("call", "Read", "file_path=a", "--root", str(project))
    said = run(*read)
    assert (said.returncode, said.stdout) == (0, "     1→x\n")
    assert said.stderr == (
        f"handaxe: warning: {own}:1: there is no setting `permisions`; "
        "did you mean `permissions`?\n"
    )
    assert run(*read, "--setting-sources", "").stderr == ""


@pytest.mark.proves("ST-2")
def test_settings_of_a_run_name_file_and_line_of_a_mistake(project, tmp_path):
    file = tmp_path / "s.json"
    write(file, '{\n "read": {\n  "line_fromat": "tab"}}')
    refused = run("call", "Read", "file_path=a", "--settings", str(file), cwd=project)
    assert refused.returncode == 2
    assert f"{file}:3: there is no setting `read.line_fromat`" in refused.stderr
    inline = run("call", "Read", "file_path=a", "--settings", '{"a"}', cwd=project)
    assert "line 1: a colon is missing" in inline.stderr


def test_names_from_files_cannot_steer_the_terminal(project):
    write(
        project / ".claude/settings.json",
        {"\u001b[2Jx": 1, "permissions": {"deny": ["\u001b]0;x"]}},
    )
    listed = run("config", "--root", str(project))
    assert "\x1b" not in listed.stdout + listed.stderr


def test_a_running_session_tells_of_a_file_that_breaks(project):
    file = project / ".claude" / "settings.json"
    write(file, {"permissions": {"deny": ["Read(/a)"]}})
    write(project / "a", "x\n")
    words = [sys.executable, "-m", "handaxe", "run", "--root", str(project)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = json.dumps({"tool": "Read", "input": {"file_path": "a"}}) + "\n"
        pipe = require(process.stdin)
        pipe.write(line)
        pipe.flush()
        assert json.loads(require(process.stdout).readline())["code"] == "permission.denied"
        write(file, "{")
        out, errors = process.communicate(line, timeout=60)
    assert json.loads(out)["code"] == "permission.denied"
    assert "still apply" in errors
