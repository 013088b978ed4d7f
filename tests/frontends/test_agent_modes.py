"""`--bare`, `--safe-mode` and other flags that say how much a run looks for, as real processes."""

import json
import os
import subprocess
import sys

import pytest


def run(*words, cwd, home, env=None):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLAUDE")}
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        stdin=subprocess.DEVNULL, capture_output=True, cwd=cwd, timeout=60, check=False,
        env={**kept, "HOME": str(home), **(env or {})},
    )  # fmt: skip


@pytest.fixture
def customized(project, tmp_path):
    """A project and a home full of what a run would find by itself; the home, and a trace of hooks."""
    home = tmp_path / "person"
    trace = tmp_path / "trace"
    hook = {"hooks": [{"type": "command", "command": f"echo ran >> {trace}"}]}
    files = {
        project / "CLAUDE.md": "The word is APRICOT.",
        home / ".claude" / "CLAUDE.md": "The word is CHERRY.",
        home / ".claude" / "settings.json": json.dumps(
            {"hooks": {"UserPromptSubmit": [hook]}, "permissions": {"allow": ["Bash(touch *)"]}}
        ),
        home / ".claude" / "skills" / "bake" / "SKILL.md": "Bake a cake.",
        project / ".claude" / "agents" / "cook.md": "---\nname: cook\ndescription: cooks\n---\nx",
        project / "more" / ".claude" / "skills" / "fry" / "SKILL.md": "Fry an egg.",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return home, trace


def witness(script, *turns):
    """A model that says which instructions it was sent; `turns` come first."""
    fruits = ("APRICOT.*CHERRY|CHERRY.*APRICOT", "APRICOT|CHERRY")
    agents = {str(len(fruits) - at): {"system": f"/(?s){f}/"} for at, f in enumerate(fruits)}
    lines = [{"text": f"{name} words", "agent": name} for name in agents]
    return script(*turns, *lines, {"text": "0 words"}, agents=agents)


def facts_of(project, home, model, *words, env=None):
    out = run(
        "-p", "hello", "--model", model, "--output-format", "stream-json", *words,
        cwd=project, home=home, env=env,
    )  # fmt: skip
    messages = [json.loads(line) for line in out.stdout.splitlines()]
    assert messages, out.stderr
    return messages[0], messages[-1]["result"]


def test_without_a_mode_everything_is_found(customized, project, script):
    home, trace = customized
    init, said = facts_of(project, home, witness(script))
    assert "Write" in init["tools"]
    assert "bake" in init["skills"]
    assert "cook" in init["agents"]
    assert trace.exists()
    assert said == "2 words"


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_a_bare_run_uses_only_what_it_is_given(customized, project, script, how):
    home, trace = customized
    words = ("--bare",) if how == "flag" else ()
    env = {} if how == "flag" else {"CLAUDE_CODE_SIMPLE": "1"}
    model = witness(script)
    init, said = facts_of(project, home, model, *words, "--add-dir", "more", env=env)
    assert sorted(init["tools"]) == ["Bash", "Edit", "Read"]
    assert init["skills"] == ["fry"]
    assert "cook" not in init["agents"]
    assert not trace.exists()
    assert said == "0 words"


def test_a_bare_run_takes_settings_agents_and_tools_from_its_flags(customized, project, script):
    home, trace = customized
    hook = {"hooks": [{"type": "command", "command": f"echo given >> {trace}"}]}
    init, _ = facts_of(
        project, home, script({"text": "x"}), "--bare", "--tools", "Read,Write",
        "--settings", json.dumps({"hooks": {"UserPromptSubmit": [hook]}}),
        "--agents", json.dumps({"baker": {"description": "bakes", "prompt": "Bake."}}),
    )  # fmt: skip
    assert sorted(init["tools"]) == ["Read", "Write"]
    assert "baker" in init["agents"]
    assert trace.read_text() == "given\n"


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_safe_mode_keeps_settings_and_tools_and_nothing_else(customized, project, script, how):
    home, trace = customized
    words = ("--safe-mode",) if how == "flag" else ()
    env = {} if how == "flag" else {"CLAUDE_CODE_SAFE_MODE": "1"}
    server = json.dumps({"mcpServers": {"s": {"command": "false"}}})
    (project / ".mcp.json").write_text(server)
    call = {"tool": "Bash", "input": {"command": "touch notes.txt"}}
    model = witness(script, {"call": [call]})
    init, said = facts_of(project, home, model, *words, "--add-dir", "more", env=env)
    assert "Write" in init["tools"]
    assert (init["skills"], init["mcp_servers"]) == ([], [])
    assert "cook" not in init["agents"]
    assert not trace.exists()
    assert said == "0 words"
    assert (project / "notes.txt").exists()


def test_slash_commands_that_are_switched_off_are_plain_text(customized, project, script):
    home, _ = customized
    model = script({"text": "{{last.text}}"})
    out = run("-p", "/bake now", "--disable-slash-commands", "--model", model,
              cwd=project, home=home)  # fmt: skip
    assert out.stdout == b"/bake now\n"
    init, _ = facts_of(project, home, model, "--disable-slash-commands")
    assert init["skills"] == []


def test_a_debug_file_gets_the_log(project, script, tmp_path):
    log = tmp_path / "log"
    out = run("-p", "hi", "--model", script({"text": "Hi."}), "--debug-file", str(log),
              cwd=project, home=tmp_path)  # fmt: skip
    assert (out.stdout, out.stderr) == (b"Hi.\n", b"")
    assert "DEBUG" in log.read_text()


def test_files_are_put_back_from_the_command_line(project, script, tmp_path):
    write = {"tool": "Write", "input": {"file_path": "a.txt", "content": "hi\n"}}
    words = ("-p", "write", "--model", script({"call": [write]}, {"text": "Done."}),
             "--permission-mode", "acceptEdits", "--output-format", "stream-json")  # fmt: skip
    out = run(*words, "--replay-user-messages", cwd=project, home=tmp_path)
    messages = [json.loads(line) for line in out.stdout.splitlines()]
    prompt = next(message for message in messages if message.get("isReplay"))
    assert (project / "a.txt").exists()
    out = run("-p", "--resume", prompt["session_id"], "--rewind-files", prompt["uuid"],
              cwd=project, home=tmp_path)  # fmt: skip
    assert (out.stdout.strip(), out.returncode) == (str(project / "a.txt").encode(), 0), out.stderr
    assert not (project / "a.txt").exists()
    out = run("-p", "--resume", prompt["session_id"], "--rewind-files", "nothing",
              cwd=project, home=tmp_path)  # fmt: skip
    assert out.returncode == 2
    assert b"has no message 'nothing'" in out.stderr
