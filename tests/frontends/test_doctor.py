"""`handaxe doctor` says what works here, for people and for programs."""

import json
import os
import sys
from pathlib import Path

import pytest

from handaxe.app.doctor.checks import EXTRAS
from handaxe.app.doctor.system_info import find_overlay_problem, find_program
from handaxe.frontends.cli.main import run
from handaxe.shell.sandbox.probe import DIMENSIONS

KEYS = {
    "handaxe.version", "python.version", "shell.bash", "shell.zsh", "shell.shfmt", "git.version",
    "shell.removed_variables",
    "search.rg", "sandbox.enabled", "sandbox.means", "sandbox.bubblewrap", "sandbox.landlock",
    "sandbox.user_namespaces", "sandbox.overlay", "limits.cgroup", "limits.files", "limits.processes",
    "limits.inotify_watches", "disk.home", "disk.undo", "disk.undo_records", "disk.free", "disk.writable",
    "mcp.servers", "encoding.file_names", "encoding.output", "encoding.commands", "web.browser", "web.search",
}  # fmt: skip


def test_variables_that_commands_do_not_get_are_named(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    monkeypatch.setenv("ZZ_API_TOKEN", "abc")
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["shell.removed_variables"]
    assert "ZZ_API_TOKEN (`shell.pass_variables` passes them)" in found["value"]


@pytest.mark.proves("SH-7")
def test_the_keys_are_stable(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == (
        KEYS | {f"sandbox.{name}" for name in DIMENSIONS} | {f"extra.{name}" for name in EXTRAS}
    )
    for facts in found.values():
        assert set(facts) == {"standing", "value", "advice"}
        assert facts["standing"] in {"ok", "weak", "no"}
        assert facts["value"]


@pytest.mark.parametrize(
    ("locale", "standing", "value"),
    [("C.UTF-8", "ok", "UTF-8 (locale C.UTF-8)"), ("C", "weak", "not UTF-8 (locale C)")],
)
def test_the_encoding_that_commands_have_is_tried(
    project, monkeypatch, capsys, locale, standing, value
):
    monkeypatch.chdir(project)
    monkeypatch.setenv("LC_ALL", locale)
    run(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)["encoding.commands"]
    assert (found["standing"], found["value"]) == (standing, value)
    assert bool(found["advice"]) == (standing == "weak")


def test_a_sandbox_below_the_least_that_counts_is_said(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    sandbox = {"enabled": True, "bwrapPath": "/bin/false", "failIfWeak": True}
    settings = Path(os.environ["HANDAXE_CONFIG_HOME"], "settings.json")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"sandbox": sandbox}))
    run(["doctor", "--json"])
    enabled = json.loads(capsys.readouterr().out)["sandbox.enabled"]
    assert enabled["standing"] == "no"
    assert enabled["value"].startswith("no command runs")


def test_a_shell_that_nothing_runs_in_is_not_missed(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", "/nowhere")
    run(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    # Commands run in the bash of the usual places, wherever `PATH` leads.
    assert (found["shell.bash"]["standing"], found["encoding.commands"]["standing"]) == ("ok", "ok")
    zsh = found["shell.zsh"]
    assert zsh == {
        "standing": "ok",
        "value": "not found",
        "advice": "Not needed: commands run in bash.",
    }


def test_the_bash_that_was_chosen_is_the_one_that_is_looked_at(
    project, tmp_path, monkeypatch, capsys
):
    own = tmp_path / "own" / "bash"
    own.parent.mkdir()
    own.write_text('#!/bin/sh\nexport LC_ALL=C\nexec /bin/bash "$@"\n')
    own.chmod(0o755)
    monkeypatch.chdir(project)
    monkeypatch.setenv("CLAUDE_CODE_SHELL", str(own))
    run(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert str(own) in found["shell.bash"]["value"]
    assert found["encoding.commands"]["standing"] == "weak"


def test_people_get_an_aligned_list(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    assert run(["doctor"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert any(line.startswith("ok    handaxe.version") for line in lines)
    assert (
        len(
            {
                line.index("  ", 6)
                for line in lines
                if line.startswith("ok    sandbox.protected_files")
            }
        )
        == 1
    )


def test_servers_are_spoken_to_where_that_is_wanted(project, monkeypatch, capsys):
    thin = Path(__file__).parents[1] / "mcp" / "thin_server.py"
    servers = {
        "good": {"command": sys.executable, "args": [str(thin)]},
        "ends": {"command": "true"},
    }
    settings = Path(os.environ["HANDAXE_CONFIG_HOME"], "settings.json")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"mcpServers": servers}))
    monkeypatch.chdir(project)
    run(["doctor", "--json"])
    unasked = json.loads(capsys.readouterr().out)
    assert {unasked[f"mcp.server.{name}"]["standing"] for name in servers} == {"ok"}
    assert run(["doctor", "--check", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mcp.server.good"]["standing"] == "ok"
    assert "; connected, " in found["mcp.server.good"]["value"]
    assert found["mcp.server.ends"]["standing"] == "no"
    assert "; failed: " in found["mcp.server.ends"]["value"]
    assert found["mcp.server.ends"]["advice"]
    assert found.keys() == unasked.keys()


def test_every_server_is_listed_and_none_is_started(project, monkeypatch, capsys, tmp_path):
    started = tmp_path / "started"
    program = project / "server"
    program.write_text(f"#!/bin/sh\ntouch {started}\n")
    program.chmod(0o755)
    servers = {
        "here": {"command": "./server"},
        "missing": {"command": "no-such-program-anywhere"},
        "far": {"type": "http", "url": "https://user:key@mcp.example.com:8443/v1?token=SECRET"},
        "wrong": {"command": 7},
    }
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    settings = {"enabledMcpjsonServers": ["here", "missing"]}
    home = tmp_path / "settings"
    home.mkdir()
    (home / "settings.json").write_text(json.dumps(settings))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    monkeypatch.chdir(project)
    assert run(["doctor", "--json"]) == 0
    said = capsys.readouterr().out
    found = json.loads(said)
    assert found["mcp.servers"]["value"] == "3 configured"
    assert (found["mcp.server.here"]["standing"], found["mcp.server.here"]["value"]) == (
        "ok",
        "stdio, ./server (project)",
    )
    assert found["mcp.server.missing"]["standing"] == "no"
    assert "the program does not exist" in found["mcp.server.missing"]["value"]
    assert found["mcp.server.far"]["standing"] == "weak"
    assert "http, https://mcp.example.com:8443 (project)" in found["mcp.server.far"]["value"]
    assert "wrong" in found["mcp.problem.1"]["value"]
    assert "SECRET" not in said
    assert not started.exists()


def test_settings_that_cannot_be_honoured_are_listed(project, monkeypatch, capsys, tmp_path):
    home = tmp_path / "settings"
    home.mkdir()
    (home / "settings.json").write_text(
        json.dumps({"sandbox": {"enabled": True, "network": {"httpProxyPort": 1}}})
    )
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    monkeypatch.chdir(project)
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "httpProxyPort" in found["sandbox.setting.1"]["value"]
    assert found["sandbox.enabled"]["value"] == "commands run in it"


def test_a_program_that_does_not_run_is_not_found(tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("not a program")
    assert find_program("broken", path=str(broken)) is None
    assert find_program("surely-not-there-1234") is None


def test_no_bubblewrap_means_no_layers(tmp_path):
    assert find_overlay_problem(None) == "bubblewrap is not installed"
    assert find_overlay_problem(str(tmp_path / "missing")) is not None


def test_it_looks_at_everything_that_can_be_looked_at(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    settings = Path(os.environ["HANDAXE_CONFIG_HOME"], "settings.json")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("{")
    monkeypatch.setenv("HANDAXE_HOME", "/dev/null/handaxe")
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["disk.writable"]["standing"] == "no"
    assert "HANDAXE_HOME" in found["disk.writable"]["advice"]
    assert set(found) >= KEYS
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["problem.directory"]["standing"] == "no"
