"""The command line, as a person and a script use it: real processes, real pipes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.expected_types import require
from tests.waiting import HANG_S, blocked_until

import handaxe
from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import read_events
from handaxe.tools import BUILTIN


def run(*words, stdin=None, cwd=None, **options):
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        timeout=60,
        check=False,
        **options,
    )


def lines_of(out: bytes) -> list[dict]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("flag", ["--version", "-v"])
def test_version_starts_with_the_number(flag):
    out = run(flag)
    assert out.stdout.decode().startswith(handaxe.__version__)
    assert out.returncode == 0


def test_call_prints_the_rendered_result(project):
    (project / "a.py").write_text("x = 1\n")
    out = run("call", "Read", "file_path=a.py", "--root", str(project))
    assert out.stdout.decode() == "     1→x = 1\n"
    assert (out.returncode, out.stderr) == (0, b"")


def test_call_takes_json_and_prints_the_result_object(project):
    (project / "a.py").write_text("x = 1\n")
    out = run("call", "Read", '{"file_path": "a.py"}', "limit=1", "--json", cwd=project)
    result = json.loads(out.stdout)
    assert result["ok"] is True
    assert result["text"] == "     1→x = 1"
    # A pair can only be text; a JSON value that is text was meant as one.
    assert result["notes"] == []
    out = run("call", "Read", '{"file_path": "a.py", "limit": "1"}', "--json", cwd=project)
    assert json.loads(out.stdout)["notes"] == ['limit: read "1" as 1']


@pytest.mark.parametrize("option", ["--root", "--add-dir"])
def test_a_directory_that_is_not_there_is_refused(project, option):
    missing = str(project / "missing")
    out = run("call", "Bash", "command=pwd", option, missing, cwd=project)
    assert (out.returncode, out.stdout) == (2, b"")
    assert f"{option}: {missing} is not a directory." in out.stderr.decode()


def test_a_mode_that_asks_nobody_is_named_as_who_decided(project):
    out = run(
        "call", "Bash", "command=curl x", "--permission-mode", "dontAsk", "--json", cwd=project
    )
    decision = json.loads(out.stdout)["decision"]
    assert (decision["verdict"], decision["by"], decision["rule"]) == ("deny", "mode", None)
    assert decision["parts"][0]["by"] == "mode"


def test_a_line_is_one_call_or_a_batch(project):
    both = b'{"id": 5, "tool": "Read", "input": {}, "batch": []}\n'
    (result,) = lines_of(run("run", stdin=both, cwd=project).stdout)
    assert (result["id"], result["code"]) == ("5", "call.bad_line")


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        (["Glob"], 0),
        (["Glob", "Read"], 1),
        (["Write", "Glob"], 3),
        (["Read", "Write", "Glob"], 3),
    ],
)
def test_one_refused_call_of_many_is_the_exit_code(project, tools, code):
    inputs = {
        "Glob": {"pattern": "*"},
        "Read": {"file_path": "missing"},
        "Write": {"file_path": "a", "content": "x"},
    }
    lines = "".join(json.dumps({"tool": tool, "input": inputs[tool]}) + "\n" for tool in tools)
    assert run("run", stdin=lines.encode(), cwd=project).returncode == code


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["call", "Read", "file_path=missing"], 1),
        (["call", "Nope"], 1),
        (["call", "Write", "file_path=a", "content=x"], 3),
        (["call", "Write", "file_path=a", "content=x", "--permission-mode", "acceptEdits"], 0),
        (["call", "Write", "file_path=a", "content=x", "--allowedTools", "Edit(/a)"], 0),
        (["call", "Read", "file_path=/etc/hostname", "--disallowed-tools", "Read"], 3),
        (["call", "Read", "nonsense"], 2),
        (["call", "Read", "{bad json"], 2),
        (["call"], 2),
        (["nope"], 2),
        ([], 2),
        (["call", "Read", "--permission-mode", "everything"], 2),
        (["call", "Read", "--settings", "{"], 2),
        (["call", "Read", "--settings", "no-such-file.json"], 2),
        (["call", "Read", "--settings", '{"reed": {}}'], 2),
        (["call", "Read", "--tools", "Reed"], 2),
        (["call", "Read", "--root", "no-such-directory"], 2),
        (["call", "Read", "--session-id", "../x"], 2),
        (["tools", "Nope"], 2),
        (["tools", "--json", "--provider", "nobody"], 2),
        (["sessions", "show"], 2),
        (["sessions", "show", "nope"], 2),
        (["run", "no-such-file"], 2),
    ],
)
def test_exit_codes_tell_the_truth(project, words, code):
    out = run(*words, cwd=project)
    assert out.returncode == code, out.stderr.decode()
    if code == 2:
        assert out.stdout == b""
        assert out.stderr
        assert b"Traceback" not in out.stderr


def test_a_session_id_joins_calls_of_several_processes(project):
    (project / "a.py").write_text("x = 1\n")
    options = ["--session-id", "joined", "--permission-mode", "acceptEdits"]
    assert run("call", "Read", "file_path=a.py", *options, cwd=project).returncode == 0
    out = run(
        "call", "Edit", "file_path=a.py", "old_string=1", "new_string=2", *options, cwd=project
    )
    assert out.returncode == 0, out.stdout.decode()
    assert (project / "a.py").read_text() == "x = 2\n"
    shown = run("sessions", "show", "joined").stdout.decode()
    assert "session_resumed" in shown
    assert run("sessions", "delete", "joined").returncode == 0
    assert run("sessions", "show", "joined").returncode == 2


BAD_LINES = [
    b"garbage",
    b"",
    b"[]",
    b"null",
    b"7",
    b'"text"',
    b"{}",
    b'{"tool": 5}',
    b'{"id": {}, "tool": "Read"}',
    b'{"batch": 5}',
    b'{"batch": [], "stop_on_error": "maybe"}',
    b"\xff\xfe",
    b'{"id": "x", "tool": "Read", "input": {"file_path": "a"',
    b"[" * 100_000,
]


def test_a_bad_line_is_answered_and_the_session_goes_on(project):
    (project / "a.txt").write_text("x\n")
    good = b'{"id": "last", "tool": "Read", "input": {"file_path": "a.txt"}}'
    out = run("run", "--root", str(project), stdin=b"\n".join([*BAD_LINES, good]) + b"\n")
    results = lines_of(out.stdout)
    assert [r["code"] for r in results[:-1]] == ["call.bad_line"] * len(BAD_LINES)
    assert results[-1]["ok"]
    assert results[-1]["id"] == "last"
    assert out.returncode == 1


@pytest.mark.parametrize(
    ("call_input", "code"),
    [
        ("null", "call.bad_input"),
        ("[]", "call.bad_input"),
        ('"x"', "call.bad_input"),
        ('{"file_path": 5}', "call.bad_input"),
        ('{"file_path": null}', "call.bad_input"),
        ('{"file_path": ["a"]}', "call.bad_input"),
        ('{"file_path": "\\ud800"}', "call.bad_input"),
        ('{"file_path": "a", "offset": 1e400}', "call.bad_input"),
        ('{"file_path": "a", "offset": NaN}', "call.bad_input"),
        ('{"file_path": "a", "limit": {}}', "call.bad_input"),
        ('{"file_path": "a", "limit": 99999999999999999999999}', "call.bad_input"),
        ('{"file_path": "a\\u0000b"}', "file.bad_path"),
        ('{"file_path": ""}', "file.bad_path"),
        ('{"file_path": "~root/x"}', "file.bad_path"),
        ('{"file_path": "' + "a/" * 3000 + '"}', "file.bad_path"),
        ('{"file_path": "' + "a" * 10_000_000 + '"}', "file.bad_path"),
        ('{"file_path": "' + "a" * 300 + '"}', "file.bad_path"),
        ('{"file_path": "missing/../missing"}', "file.not_found"),
        ('{"file_path": "a.txt/x"}', "file.not_found"),
        ('{"file_path": "."}', "file.is_directory"),
        ("{" * 5000 + "}" * 5000, None),
    ],
)
def test_malformed_calls_get_a_code_and_change_nothing(project, call_input, code):
    (project / "a.txt").write_text("x\n")
    line = '{"id": "1", "tool": "Read", "input": ' + call_input + "}\n"
    out = run("run", "--root", str(project), stdin=line.encode())
    [result] = lines_of(out.stdout)
    assert result["ok"] is False
    assert result["code"] == (code or "call.bad_line")
    assert result["text"]
    assert sorted(p.name for p in project.iterdir()) == ["a.txt"]


def test_batches_answer_in_order_with_bad_members_in_their_place(project):
    (project / "a.txt").write_text("x\n")
    batch = [
        {"id": "1", "tool": "Read", "input": {"file_path": "a.txt"}},
        "nonsense",
        {
            "id": "3",
            "tool": "Edit",
            "input": {"file_path": "a.txt", "old_string": "x", "new_string": "y"},
        },
        {"id": "4", "tool": "Read", "input": {"file_path": "a.txt"}},
    ]
    out = run(
        "run", "--root", str(project), "--permission-mode", "acceptEdits",
        stdin=json.dumps({"batch": batch}).encode(),
    )  # fmt: skip
    results = lines_of(out.stdout)
    assert [r["ok"] for r in results] == [True, False, True, True]
    assert [r["text"] for r in results[::3]] == ["     1→x", "     1→y"]


@pytest.mark.proves("EX-3")
@pytest.mark.parametrize(("stops", "made"), [(True, False), (False, True)])
def test_a_batch_may_stop_at_its_first_error(project, stops, made):
    fails = {"id": "1", "tool": "Bash", "input": {"command": "exit 3"}}
    later = {"id": "2", "tool": "Bash", "input": {"command": "touch made"}}
    out = run(
        "run", "--root", str(project), "--permission-mode", "bypassPermissions",
        stdin=json.dumps({"batch": [fails, later], "stop_on_error": stops}).encode(),
    )  # fmt: skip
    codes = [result["code"] for result in lines_of(out.stdout)]
    assert codes == ["shell.failed", None if made else "call.cancelled"]
    assert (project / "made").exists() is made


@pytest.mark.parametrize("bad", [5, {"id": "2"}, {"id": "2", "tool": 7}])
@pytest.mark.parametrize("stops", [True, False])
def test_an_item_of_a_batch_that_is_no_call_stops_what_comes_after_it(project, bad, stops):
    one, two = (
        {"id": name, "tool": "Bash", "input": {"command": f"touch {name}"}} for name in ("a", "b")
    )
    out = run(
        "run", "--root", str(project), "--permission-mode", "bypassPermissions",
        stdin=json.dumps({"batch": [one, bad, two, bad], "stop_on_error": stops}).encode(),
    )  # fmt: skip
    results = lines_of(out.stdout)
    last = "call.cancelled" if stops else None
    assert [r["code"] for r in results] == [None, "call.bad_line", last, "call.bad_line"]
    assert (results[2]["id"], results[2]["tool"]) == ("b", "Bash")
    assert (project / "a").exists()
    assert (project / "b").exists() is not stops


def test_results_are_flushed_line_by_line(project):
    (project / "a.txt").write_text("x\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "handaxe", "run", "--root", str(project)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    pipe, output = require(process.stdin), require(process.stdout)
    for number in range(3):
        call = {"id": str(number), "tool": "Read", "input": {"file_path": "a.txt"}}
        pipe.write(json.dumps(call).encode() + b"\n")
        pipe.flush()
        assert json.loads(output.readline())["id"] == str(number)
    pipe.close()
    assert process.wait(HANG_S) == 0
    output.close()


def test_the_same_id_is_replayed_in_a_run(project):
    line = b'{"id": "w", "tool": "Write", "input": {"file_path": "a.txt", "content": "x"}}\n'
    out = run("run", "--root", str(project), "--permission-mode", "acceptEdits", stdin=line * 2)
    first, second = lines_of(out.stdout)
    assert first == second


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_signals_end_a_waiting_run_with_their_code(project, number, code):
    process = subprocess.Popen(
        [sys.executable, "-m", "handaxe", "run", "--root", str(project)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pipe = require(process.stdin)
    pipe.write(b"nonsense\n")
    pipe.flush()
    require(process.stdout).readline()
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == code
    assert b"Traceback" not in err


def _start_sleeping(project: Path, *before: str) -> "subprocess.Popen[bytes]":
    """A command of ours in the middle of a call."""
    words = "call", "Bash", "command=touch begun; sleep 30; touch done", "--session-id", "s"
    process = subprocess.Popen(
        [
            *before,
            sys.executable,
            "-m",
            "handaxe",
            *words,
            "--permission-mode",
            "bypassPermissions",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=project,
    )
    blocked_until((project / "begun").exists)
    return process


def test_a_terminal_that_goes_away_ends_the_call_and_its_processes(project):
    with _start_sleeping(project) as process:
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=HANG_S)
    assert process.returncode == 129
    told = [type(event).__name__ for event in read_events(find_data_home(), "s")]
    assert told.count("CallStarted") == told.count("CallFinished") == 1


def test_whoever_ignores_the_loss_of_the_terminal_goes_on(project):
    with _start_sleeping(project, "nohup") as process:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.terminate()
        process.communicate(timeout=HANG_S)
    assert process.returncode == 143


def test_a_closed_pipe_ends_quietly(project):
    (project / "a.txt").write_text("x\n" * 5000)
    shell = f"{sys.executable} -m handaxe call Read file_path=a.txt limit=5000 | head -1"
    out = subprocess.run(shell, shell=True, capture_output=True, cwd=project, check=False)
    assert b"Traceback" not in out.stderr
    assert b"Exception" not in out.stderr


def test_a_pipe_gets_plain_text_and_a_diff(project):
    (project / "a.txt").write_text("one\n")
    calls = ["--session-id", "d", "--permission-mode", "acceptEdits"]
    run("call", "Read", "file_path=a.txt", *calls, cwd=project)
    out = run(
        "call", "Edit", "file_path=a.txt", "old_string=one", "new_string=two", *calls, cwd=project
    )
    shown = out.stdout.decode()
    assert "-one\n+two\n" in shown
    assert "\x1b" not in shown


def test_control_characters_of_a_file_cannot_steer_the_terminal(project):
    (project / "a.txt").write_text("safe\x1b[31mred\x1b]0;title\x07\n")
    out = run("call", "Read", "file_path=a.txt", cwd=project)
    assert b"\x1b" not in out.stdout
    assert b"\\x1b[31m" in out.stdout
    (project / "a.txt").write_text("a\u202eb\n")
    assert "a<U+202E>b" in run("call", "Read", "file_path=a.txt", cwd=project).stdout.decode()


def test_every_built_in_tool_is_listed_with_its_schema_or_what_withholds_it(project):
    (project / ".claude").mkdir()
    rules = '{"permissions": {\n"deny": ["Grep"]}}'
    (project / ".claude" / "settings.json").write_text(rules)
    options = ["--permission-mode", "plan"]
    shown = json.loads(run("tools", "--json", *options, cwd=project).stdout)
    by_name = {tool["name"]: tool for tool in shown}
    assert by_name.keys() >= BUILTIN.keys()
    assert all(tool["inputSchema"]["type"] == "object" for tool in shown)
    withheld = {name: tool["withheld"] for name, tool in by_name.items() if "withheld" in tool}
    assert "Read" not in withheld
    assert "settings.json" in withheld["Grep"]
    assert "plan mode" in withheld["Write"]
    assert "an agent runs" in withheld["Agent"]
    text = run("tools", *options, cwd=project).stdout.decode()
    offered, _, others = text.partition("\nNot offered here:\n")
    assert {line.split()[0] for line in others.splitlines()} == withheld.keys()
    assert {line.split()[0] for line in offered.splitlines()} == by_name.keys() - withheld.keys()
    sent = json.loads(run("tools", "--json", "--provider", "openai", *options, cwd=project).stdout)
    assert len(sent) == len(by_name) - len(withheld)


@pytest.mark.parametrize(
    ("options", "variables", "words"),
    [
        (["--tools", "Read"], {}, "The selection of tools"),
        ([], {"HANDAXE_SIMPLE": "1"}, "The variable HANDAXE_SIMPLE excludes it."),
        (["--disallowedTools", "Grep"], {}, "The deny rule Grep (flags) covers this tool"),
    ],
)
def test_a_call_of_a_withheld_tool_says_what_withholds_it(project, options, variables, words):
    out = run("call", "Grep", "pattern=x", *options, cwd=project, env={**os.environ, **variables})
    assert words in out.stdout.decode()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--disallowedTools", "Edit"], "The deny rule Edit (flags) hides it"),
        (["--disallowedTools", "*"], "The deny rule * (flags) hides it"),
        (["--permission-mode", "plan"], "It is hidden while the session is in plan mode."),
        (["--disallowedTools", "Edit(a.txt)"], "It can be called; the model is shown Edit instead"),
        (["--tools", "Read"], "The selection of tools (`--tools`, `--bare`, `tools=`) excludes it"),
    ],
)
def test_a_tool_that_is_hidden_is_shown_with_what_hides_it(project, options, words):
    shown = run("tools", "MultiEdit", *options, cwd=project)
    assert shown.returncode == 0
    assert shown.stdout.decode().partition("\n\n")[2].startswith(words)
    data = run("tools", "MultiEdit", "--json", *options, cwd=project)
    assert json.loads(data.stdout)["name"] == "MultiEdit"
    assert data.stderr.decode().startswith(f"MultiEdit: {words}")


def test_tools_lists_what_is_on_offer(project):
    out = run("tools", "--json", "--provider", "anthropic", cwd=project)
    names = [tool["name"] for tool in json.loads(out.stdout)]
    assert names == sorted(names)
    assert {"Read", "Write", "Edit"} <= set(names)
    shown = run("tools", "Edit", cwd=project).stdout.decode()
    assert "old_string" in shown
    for name, where in (
        ("Agent", "an agent runs"),
        ("Task", "an agent runs"),
        ("AskUserQuestion", "a user can answer"),
        ("ListMcpResources", "a session has MCP servers"),
        ("StructuredOutput", "a final answer must match a schema"),
    ):
        elsewhere = run("tools", name, cwd=project)
        assert elsewhere.returncode == 0, elsewhere.stderr
        assert f"It is offered where {where}" in elsewhere.stdout.decode()
        assert b"Input schema:" in elsewhere.stdout
    assert json.loads(run("tools", "Agent", "--json", cwd=project).stdout)["name"] == "Agent"
    assert run("tools", "NoSuchTool", cwd=project).returncode == 2
    wrong = run("tools", "--provider", "nope", cwd=project)
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert b"nope" in wrong.stderr


@pytest.mark.proves("SS-3")
def test_a_fork_knows_what_the_original_knew_and_goes_its_own_way(project):
    (project / "a.py").write_text("x = 1\n")
    mode = ["--permission-mode", "acceptEdits"]
    run("call", "Read", "file_path=a.py", "--session-id", "trunk", cwd=project)
    fork = run("sessions", "fork", "trunk").stdout.decode().strip()
    edit = ["call", "Edit", "file_path=a.py", "old_string=1", "new_string=2", *mode]
    assert run(*edit, "--session-id", fork, cwd=project).returncode == 0
    again = ["call", "Edit", "file_path=a.py", "old_string=2", "new_string=3", "--json", *mode]
    other = run(*again, "--session-id", "trunk", cwd=project)
    assert json.loads(other.stdout)["code"] == "file.changed"
    assert run("sessions", "fork", "nope").returncode == 2


@pytest.mark.parametrize(
    "words",
    [
        ("Bash", "--json", "command=pwd"),
        ("Bash", "command=pwd", "--json"),
        ("--json", "Bash", "command=pwd"),
        ("Bash", "--permission-mode", "default", "--json", "command=pwd", "description=where"),
    ],
)
def test_options_of_a_call_may_stand_anywhere(project, words):
    done = run("call", *words, "--root", str(project))
    assert json.loads(done.stdout)["ok"] is True, done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_lead_nowhere(project, closed):
    (project / "a.py").write_text("x = 1\n")
    command = f'exec "$0" -m handaxe call Read file_path=a.py {closed}'
    out = subprocess.run(
        ["bash", "-c", command, sys.executable], cwd=project, capture_output=True, check=False
    )
    assert (out.returncode, out.stderr) == (0, b"")


@pytest.mark.parametrize("words", [["call", "Read", "file_path=a.py"], ["tools"]])
def test_output_that_cannot_be_written_is_said(project, words):
    (project / "a.py").write_text("x = 1\n")
    with open("/dev/full", "wb") as full:
        out = subprocess.run(
            [sys.executable, "-m", "handaxe", *words],
            cwd=project, stdout=full, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert out.returncode == 1
    assert out.stderr == (b"handaxe: Cannot write standard output (No space left on device).\n")


@pytest.mark.parametrize("word", ['{"file_path": "a.py", "file_path": "b.py"}'])
def test_a_name_that_stands_twice_is_refused(project, word):
    (project / "a.py").write_text("x = 1\n")
    out = run("call", "Read", word, cwd=project)
    assert out.returncode == 2
    assert b"the name 'file_path' twice" in out.stderr
    line = f'{{"id": "1", "tool": "Read", "input": {word}}}\n'
    out = run("run", stdin=line.encode(), cwd=project)
    assert lines_of(out.stdout)[0]["code"] == "call.bad_line"


def test_a_number_of_endless_digits_is_told_in_plain_words(project):
    line = '{"tool": "Read", "input": {"file_path": "a", "limit": %s}}\n' % ("9" * 10_000)
    result = lines_of(run("run", stdin=line.encode(), cwd=project).stdout)[0]
    assert result["code"] == "call.bad_line"
    assert "too many digits" in result["text"]


def test_a_log_that_cannot_be_written_is_said_with_the_first_result(project):
    (project / "a.py").write_text("x = 1\n")
    nowhere = {"env": {**os.environ, "HANDAXE_HOME": "/dev/null"}}
    out = run("call", "Read", "file_path=a.py", "--json", cwd=project, **nowhere)
    assert "event log could not be written" in json.loads(out.stdout)["notes"][0]
    line = b'{"tool": "Read", "input": {"file_path": "a.py"}}\n'
    out = run("run", stdin=line, cwd=project, **nowhere)
    assert "event log could not be written" in lines_of(out.stdout)[0]["notes"][0]


def test_what_cannot_be_read_of_a_log_is_said(project):
    (project / "a.py").write_text("x = 1\n")
    run("call", "Read", "file_path=a.py", "--session-id", "s", cwd=project)
    log = find_data_home() / "sessions" / "s" / "events.jsonl"
    content = log.read_bytes()
    log.write_bytes(content.replace(b'"tool":"Read"', b'"tool":"Raed"', 1))
    out = run("sessions", "show", "s", cwd=project)
    assert out.returncode == 0
    assert b"warning: the log is damaged: line 2" in out.stderr
    assert b"(damaged: 1 place)" in run("sessions", cwd=project).stdout


def test_being_told_to_end_while_a_tool_computes_is_no_failure_of_the_tool(project):
    # The signal comes from the tool's own frame, where a slow machine may have it come too.
    (project / "a.py").write_text("x = 1\n")
    program = """
import os, signal, sys
from handaxe.tools.files.read import Read
from handaxe.frontends.cli.main import run
async def call(self, args, ctx):
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(10_000_000):
        pass
Read.call = call
sys.exit(run(["run"]))
"""
    line = b'{"tool": "Read", "input": {"file_path": "a.py"}}\n'
    out = subprocess.run(
        [sys.executable, "-c", program], input=line * 2, capture_output=True, cwd=project,
        timeout=HANG_S, check=False,
    )  # fmt: skip
    assert (out.returncode, out.stdout, out.stderr) == (143, b"", b"")


def test_an_input_that_begins_with_a_dash_is_shown_where_it_stands(project):
    out = run("call", "Grep", "-i=true", "pattern=x", cwd=project)
    assert out.returncode == 2
    assert b"-- -i=true" in out.stderr
    assert run("call", "Grep", "pattern=x", "--", "-i=true", cwd=project).returncode == 0
