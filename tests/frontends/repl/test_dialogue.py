"""The agent at a real pseudo-terminal: somebody types, a script answers."""

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.frontends.terminals import PATIENT, Terminal
from tests.waiting import blocked_until

THIN_SERVER = Path(__file__).parents[2] / "mcp" / "thin_server.py"
WRITE = {"text": "I write it.\n\n",
         "call": [{"tool": "Write", "input": {"file_path": "a.txt", "content": "hi\n"}}]}  # fmt: skip


@pytest.fixture
def terminal(project):
    opened = []

    def open_terminal(*words, **options):
        opened.append(Terminal(*words, cwd=project, **options))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


@pytest.mark.parametrize("kind", ["xterm-256color", "dumb"])
def test_a_question_a_permission_and_an_undo(terminal, script, project, kind):
    enter = "\n" if kind == "dumb" else "\r"
    me = terminal("--model", script(WRITE, {"text": "Done with **it**."}), TERM=kind)
    me.wait_for("›")
    me.type(f"write it{enter}")
    me.wait_for("● Write(a.txt)")
    me.wait_for("Allow?")
    me.type("y\n")
    me.wait_for("✓ File created")
    me.wait_for("Done with")
    me.wait_for("›")
    assert (project / "a.txt").read_text() == "hi\n"
    me.type(f"/undo{enter}")
    me.wait_for("removed:")
    me.wait_for("›")
    assert not (project / "a.txt").exists()
    me.type("\x04")
    assert me.end() == 0
    assert ("**it**" in me.shown) == (kind == "dumb")
    assert ("\x1b[" in me.raw) == (kind != "dumb")


def test_no_color_is_honoured(terminal, script):
    me = terminal("--model", script({"text": "**Bold** words."}), "hello", NO_COLOR="1")
    me.wait_for("**Bold** words.")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0
    assert not re.search(r"\x1b\[3[0-7]m", me.raw)


@pytest.mark.parametrize("key", ["\x03", "\x1b"])
def test_a_key_stops_the_turn_and_the_conversation_goes_on(terminal, script, key):
    model = script({"text": "word\n\n" * 300, "delay_ms": 50}, {"text": "Here again."})
    me = terminal("--model", model, "talk")
    me.wait_for("word")
    me.type(key)
    me.wait_for("[Request interrupted by user]")
    me.wait_for("›")
    me.type("again\r")
    me.wait_for("Here again.")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0


def test_ctrl_c_twice_leaves(terminal, script):
    me = terminal("--model", script({"text": "x"}), program=PATIENT)
    me.wait_for("›")
    me.type("\x03")
    me.wait_for("again to leave")
    me.wait_for("›")
    me.type("\x03")
    assert me.end() == 130


def test_a_permission_question_can_be_left_with_ctrl_c(terminal, script, project):
    me = terminal("--model", script(WRITE, {"text": "Other things."}), "write")
    me.wait_for("Allow?")
    me.type("\x03")
    me.wait_for("interrupted by user")
    me.wait_for("›")
    me.type("go on\r")
    me.wait_for("Other things.")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0
    assert not (project / "a.txt").exists()


@pytest.mark.parametrize("keys", ["\x1b", "no\x1b", "\x1b[A\x1b"])
def test_esc_at_a_permission_question_is_a_no_at_once(terminal, script, project, keys):
    me = terminal("--model", script(WRITE, {"text": "Other things."}), "write")
    me.wait_for("Allow?")
    me.type(keys)
    me.wait_for("was not run")
    me.wait_for("›")
    me.type("go on\r")
    me.wait_for("Other things.")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0
    assert not (project / "a.txt").exists()


def test_an_arrow_key_is_no_answer_to_a_permission_question(terminal, script, project):
    me = terminal("--model", script(WRITE, {"text": "Done."}), "write")
    me.wait_for("Allow?")
    me.type("\x1b[A\x1bOBy\n")
    me.wait_for("Done.")
    assert (project / "a.txt").exists()


def test_esc_stops_a_turn_whatever_keys_come_with_it(terminal, script, project):
    model = script({"text": "word\n\n" * 300, "delay_ms": 50}, {"expect": "ab", "text": "Here."})
    me = terminal("--model", model, "talk")
    me.wait_for("word")
    me.type("a\x1b[A\x1bb")
    me.wait_for("interrupted by user")
    me.wait_for("›")
    me.wait_for("ab")
    me.type("\r")
    me.wait_for("Here.")


@pytest.mark.parametrize(("answer", "goes_on"), [("n", False), ("n use another name", True)])
def test_a_no_stops_and_a_no_with_a_word_goes_on(terminal, script, project, answer, goes_on):
    turns = [WRITE, {"text": "Something else then."}]
    me = terminal("--model", script(*turns), "write", TERM="dumb")
    me.wait_for("Allow?")
    me.type(f"{answer}\n")
    me.wait_for("was not run")
    if goes_on:
        me.wait_for("Something else then.")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0
    assert ("Something else then." in me.shown) is goes_on
    assert "\x1b[3" not in me.raw
    assert not (project / "a.txt").exists()


def test_a_question_of_the_model_is_a_menu(terminal, script):
    question = {"question": "Which way?", "header": "Way",
                "options": [{"label": "Left", "description": "over the hill"},
                            {"label": "Right"}]}  # fmt: skip
    turn = {"call": [{"tool": "AskUserQuestion", "input": {"questions": [question]}}]}
    me = terminal("--model", script(turn, {"expect": "Right", "text": "To the right."}), "go")
    me.wait_for("1. Left: over the hill")
    me.wait_for("own words:")
    me.type("2\n")
    me.wait_for("To the right.")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0


def test_the_commands_of_the_terminal(terminal, script, project, tmp_path):
    command = project / ".claude" / "commands" / "review.md"
    command.parent.mkdir(parents=True)
    command.write_text("---\ndescription: looks closely\n---\nReview $ARGUMENTS.\n")
    other = tmp_path / "other.toml"
    other.write_text('name = "another"\n[[turn]]\ntext = "x"\n')
    model = script({"text": "Hello."}, {"expect": "Review b.", "text": "Reviewed."})
    me = terminal("--model", model, "hello")
    me.wait_for("Hello.")
    for keys, said in (
        ("/help", "/compact"),
        ("/tools", "NotebookEdit"),
        ("/permissions plan", "Mode: plan"),
        ("/permissions wild", "not a permission mode"),
        ("/permissions default", "Mode: default"),
        ("/permissions revoke Bash(x)", "No settings file allows Bash(x)."),
        ("/skills", "looks closely"),
        ("/tasks", "This session has no background work"),
        ("/agents", "general-purpose"),
        ("/hooks", "No settings file has a hook."),
        ("/mcp", "There are no MCP servers here."),
        ("/mcp reconnect a", "Use /mcp, or /mcp reconnect NAME"),
        ("/styles", "Explanatory"),
        ("/hepl", "Did you mean /help"),
        ("/cost", "tokens in"),
        ("/undo", "undo"),
        ("/revew", "Did you mean /review"),
        ("/review b", "Reviewed."),
        (f"/model scripted:{other}", "Model: another."),
        ("/model nobody/x", "Unknown model"),
        ("/clear", "Started a new conversation."),
        ("/resume", "hello"),
    ):
        me.wait_for("›")
        me.type(keys + "\r")
        me.wait_for(said)
    me.wait_for("Which one?")
    me.type("1\n")
    me.wait_for("4 messages")
    me.wait_for("›")
    me.type("/exit\r")
    assert me.end() == 0


def test_a_server_is_connected_anew_from_the_terminal(terminal, script, project):
    servers = {
        "a": {"command": sys.executable, "args": [str(THIN_SERVER)]},
        "b": {"command": "/no/such/program"},
    }
    me = terminal(
        "--model", script({"text": "x"}), "--mcp-config", json.dumps({"mcpServers": servers})
    )
    for keys, said in (
        ("/mcp reconnect a", "Connected to the MCP server 'a'."),
        ("/mcp reconnect b", "could not be started"),
        ("/mcp reconnect c", "There is no MCP server named 'c'"),
    ):
        me.wait_for("›")
        me.type(keys + "\r")
        me.wait_for(said)
    me.wait_for("›")
    me.type("/exit\r")
    assert me.end() == 0


def test_shift_tab_changes_the_mode_and_the_prompt_shows_it(terminal, script):
    me = terminal("--model", script({"text": "x"}))
    me.wait_for("›")
    me.type("\x1b[Z")
    me.wait_for("acceptEdits")
    me.type("\x1b[Z")
    me.wait_for("plan")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0


def test_pasted_lines_are_one_prompt(terminal, script):
    me = terminal("--model", script({"expect": "one\ntwo\nthree", "text": "Got it."}))
    me.wait_for("›")
    me.type("\x1b[200~one\ntwo\nthree\x1b[201~")
    me.wait_for("three")
    me.type("\r")
    me.wait_for("Got it.")


def test_pasted_lines_are_one_prompt_without_the_extra(terminal, script):
    me = terminal("--model", script({"expect": "one\ntwo", "text": "Got it."}), TERM="dumb")
    me.wait_for("›")
    me.type("one\ntwo\n")
    me.wait_for("Got it.")


def test_what_is_typed_during_a_turn_is_the_next_prompt(terminal, script):
    slow = {"text": "slow\n\n" * 20, "delay_ms": 50}
    me = terminal("--model", script(slow, {"expect": "and now", "text": "Second."}), "talk")
    me.wait_for("slow")
    me.type("and now\r")
    me.wait_for("Second.")


def test_control_characters_of_the_model_cannot_steer_the_terminal(terminal, script):
    evil = "\x1b]0;title\x07 \x1b[2J gone"
    for kind in ("xterm-256color", "dumb"):
        me = terminal("--model", script({"text": evil}), "hi", TERM=kind)
        me.wait_for("gone")
        assert "\x1b[2J" not in me.raw
        assert "\x1b]0;title" not in me.raw


def test_a_narrow_terminal_is_enough(terminal, script):
    model = script({"text": "A line of words that is much longer than the terminal is wide.\n"})
    me = terminal("--model", model, "hi", columns=24)
    me.wait_for("A line of words")
    me.wait_for("is wide.")
    answer = me.shown[me.shown.index("A line of words") :].splitlines()[:3]
    assert all(len(line.rstrip()) <= 24 for line in answer), answer


def test_esc_at_a_question_of_the_model_gives_no_answer(terminal, script):
    question = {"question": "Which way?", "header": "Way",
                "options": [{"label": "Left"}, {"label": "Right"}]}  # fmt: skip
    turn = {"call": [{"tool": "AskUserQuestion", "input": {"questions": [question]}}]}
    me = terminal("--model", script(turn, {"text": "As you like."}), "go")
    me.wait_for("own words:")
    me.type("\x1b")
    me.wait_for("As you like.")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_termination_is_clean(terminal, script, number, code):
    me = terminal("--model", script({"text": "word\n\n" * 300, "delay_ms": 50}), "talk")
    me.wait_for("word")
    me.process.send_signal(number)
    assert me.end() == code


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_a_sign_shows_something(terminal, script, encoding):
    me = terminal(
        "--model", script({"text": "Snow \u2603 man."}), PYTHONIOENCODING=encoding, TERM="dumb"
    )
    me.wait_for("\n> ")
    me.type("hello\n")
    me.wait_for("man.")
    me.wait_for("\n> ")
    me.type("\x04")
    assert me.end() == 0
    assert "Traceback" not in me.shown


def test_a_window_can_change_its_size(terminal, script):
    words = " ".join(f"word{number}" for number in range(60))
    me = terminal("--model", script({"text": "One."}, {"text": words}), "hello")
    me.wait_for("One.")
    me.wait_for("›")
    fcntl.ioctl(me.main, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    os.killpg(me.process.pid, signal.SIGWINCH)
    me.type("more\r")
    me.wait_for("word59")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0


def test_a_skill_that_forks_can_be_stopped(terminal, script, project):
    skill = project / ".claude/skills/slow/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ncontext: fork\n---\nWait.\n")
    wait = {"text": "word\n\n" * 300, "delay_ms": 50}
    me = terminal("--model", script(wait, {"text": "Here again."}))
    me.wait_for("›")
    me.type("/slow\r")
    home = Path(os.environ["HANDAXE_HOME"])

    def is_at_work() -> bool:
        me._read(0.05)
        return any(home.rglob("states.jsonl"))

    blocked_until(is_at_work, lambda: me.shown)
    me.type("\x03")
    me.wait_for("Stopping")
    me.wait_for("›")
    me.type("go\r")
    me.wait_for("Here again.")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0


def test_without_a_terminal_the_way_out_is_named(script, project):
    done = subprocess.run(
        [sys.executable, "-m", "handaxe", "--model", script({"text": "One."})],
        input=b"first\n", capture_output=True, cwd=project, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"handaxe -p PROMPT" in done.stderr
    assert b"Traceback" not in done.stderr


IMPATIENT = (
    "-c",
    (
        "import sys; from handaxe.frontends.cli.repl import repl; "
        "repl.IDLE_S = 0.2; from handaxe.__main__ import main; sys.exit(main())"
    ),
)


def notices(command: str) -> str:
    groups = [{"matcher": "idle_prompt", "hooks": [{"type": "command", "command": command}]}]
    return json.dumps({"hooks": {"Notification": groups}})


def test_hooks_hear_that_the_agent_waits_for_words(terminal, script, project):
    hook = notices("cat > idle.part; mv idle.part idle.json")
    me = terminal("--model", script({"text": "Hi."}), "--settings", hook, program=IMPATIENT)
    me.wait_for("›")
    me.type("hello\r")
    me.wait_for("Hi.")
    blocked_until((project / "idle.json").exists)
    told = json.loads((project / "idle.json").read_text())
    assert (told["notification_type"], told["hook_event_name"]) == ("idle_prompt", "Notification")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0


def test_a_hook_can_ring_the_bell_but_not_paint(terminal, script, project):
    said = json.dumps({"terminalSequence": "\x1b]777;notify;handaxe;look\x07"})
    (project / "said.json").write_text(said)
    (project / "bad.json").write_text(
        json.dumps({"terminalSequence": "\x1b[31m\x1b]52;c;eA==\x07"})
    )
    hooks = [{"hooks": [{"type": "command", "command": f"cat {name}.json"}]}
             for name in ("said", "bad")]  # fmt: skip
    given = json.dumps({"hooks": {"UserPromptSubmit": hooks}})
    me = terminal("--model", script({"text": "Hi."}), "--settings", given)
    me.wait_for("›")
    me.type("hello\r")
    me.wait_for("Hi.")
    me.wait_for("›")
    me.type("\x04")
    me.end()
    assert "\x1b]777;notify;handaxe;look\x07" in me.raw
    assert "\x1b]52" not in me.raw


def test_slow_and_failing_hooks_are_told_at_the_terminal(terminal, script):
    hooks = [{"hooks": [{"type": "command", "command": c} for c in ("sleep 1.1", "exit 1")]}]
    given = json.dumps({"hooks": {"UserPromptSubmit": hooks}})
    me = terminal("--model", script({"text": "Hi."}), "--settings", given)
    me.wait_for("›")
    me.type("hello\r")
    me.wait_for("UserPromptSubmit hook error: 'exit 1'")
    me.wait_for("Hi.")
    me.wait_for("›")
    me.type("\x04")
    me.end()
    assert "hook 'sleep 1.1' took 1." in " ".join(me.raw.split())


def test_an_answer_is_shown_line_by_line_as_a_hook_wants_it(terminal, script, project):
    (project / "show.py").write_text(
        "import json, sys\n"
        "event = json.load(sys.stdin)\n"
        "open('heard.jsonl', 'a').write(json.dumps(event) + '\\n')\n"
        "said = {'hookEventName': 'MessageDisplay',"
        " 'displayContent': event['delta'].replace('123', 'XXX')}\n"
        "print(json.dumps({'hookSpecificOutput': said}))\n"
    )
    hook = {"type": "command", "command": f"{sys.executable} show.py"}
    given = json.dumps({"hooks": {"MessageDisplay": [{"hooks": [hook]}]}})
    text = "The key is 123.\n\nReally 123, as I said"
    me = terminal("--model", script({"text": text}), "--settings", given)
    me.wait_for("›")
    me.type("hello\r")
    shown = me.wait_for("as I said")
    assert "The key is XXX." in shown
    assert "Really XXX" in shown
    me.wait_for("›")
    me.type("\x04")
    me.end()
    events = [json.loads(line) for line in (project / "heard.jsonl").read_text().splitlines()]
    assert "".join(event["delta"] for event in events) == text
    assert [event["index"] for event in events] == list(range(len(events)))
    assert [event["final"] for event in events] == [*[False] * (len(events) - 1), True]
    assert len({event["message_id"] for event in events}) == 1


def test_a_hook_wakes_an_agent_that_waits_for_words(terminal, script, project):
    command = "while [ ! -e go ]; do sleep 0.05; done; echo 'The build broke.' >&2; exit 2"
    hook = {"type": "command", "command": command, "asyncRewake": True}
    given = json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}})
    model = script({"text": "Hi."}, {"expect": "/The build broke/", "text": "I see."})
    me = terminal("--model", model, "--settings", given)
    me.wait_for("›")
    me.type("hello\r")
    me.wait_for("Hi.")
    me.wait_for("›")
    (project / "go").touch()
    me.wait_for("I see.")


def test_whoever_is_new_in_a_project_is_told_what_may_be_touched(terminal, script, project):
    model = script({"text": "Hello."}, {"text": "Again."})
    me = terminal("--model", model, "hi")
    me.wait_for("Reads: ")
    me.wait_for("Changes: asks before each one")
    me.wait_for("Commands: with your rights, no sandbox")
    me.wait_for("Hello.")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0

    settings = project / ".handaxe" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"deny": ["Read(.env)"]}}')
    again = terminal("--model", model, "hi")
    again.wait_for("advisory")
    again.wait_for("Hello.")
    assert "Reads:" not in again.shown
    again.wait_for("›")
    again.type("\x04")
    assert again.end() == 0


def test_a_directory_is_added_and_hooks_hear_of_it(terminal, script, project, tmp_path):
    (tmp_path / "other").mkdir()
    hook = {"type": "command", "command": "cat > added.part; mv added.part added.json"}
    groups = [{"matcher": "slash_command", "hooks": [hook]}]
    given = json.dumps({"hooks": {"DirectoryAdded": groups}})
    me = terminal("--model", script({"text": "Hi."}), "--settings", given, columns=400)
    me.wait_for("›")
    me.type(f"/add-dir {tmp_path}/other\r")
    me.wait_for("Working directories")
    blocked_until((project / "added.json").exists)
    told = json.loads((project / "added.json").read_text())
    assert (told["directory"], told["source"]) == (str(tmp_path / "other"), "slash_command")
    me.type(f"/add-dir {tmp_path}/other\r")
    me.wait_for("already")
    me.wait_for("›")
    me.type("/add-dir nowhere\r")
    me.wait_for("is not a directory")
    me.wait_for("›")
    me.type("\x04")
    assert me.end() == 0


def test_what_changed_in_a_project_is_asked_about_before_the_session(terminal, script, project):
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"allow": ["Write"]}, "env": {"MODE": "a"}}')
    model = script(WRITE, {"text": "Done."})
    me = terminal("--model", model)
    shown = me.wait_for("Trust these files? [y/N]")
    assert '.claude/settings.json:env.MODE = "a"' in shown
    me.type("y\n")
    me.wait_for("›")
    me.type("/exit\r")
    me.end()
    again = terminal("--model", model)
    assert "Trust" not in again.wait_for("›")
    again.type("/exit\r")
    again.end()
    settings.write_text('{"permissions": {"allow": ["Write", "Bash"]}, "env": {"MODE": "b"}}')
    me = terminal("--model", model)
    shown = me.wait_for("Trust these files? [y/N]")
    assert '~ .claude/settings.json:env.MODE = "b"  (was "a")' in shown
    assert '+ .claude/settings.json:permissions.allow = "Bash"' in shown
    me.type("n\n")
    me.wait_for("what changed since this workspace was trusted does not count")
    me.wait_for("›")
