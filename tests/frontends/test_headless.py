"""`handaxe -p` as scripts use it: real processes, a scripted model, exit codes that tell the truth."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.expected_types import require

from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import read_events

WRITE = {"call": [{"tool": "Write", "input": {"file_path": "a.txt", "content": "hi\n"}}]}


def run(*words, stdin=b"", cwd=None, env=None):
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        input=stdin, capture_output=True, cwd=cwd, timeout=60, check=False,
        env={**os.environ, **(env or {})},
    )  # fmt: skip


def test_the_answer_is_on_standard_output_alone(project, script):
    out = run("-p", "hello", "--model", script({"text": "Hi."}), cwd=project)
    assert (out.stdout, out.stderr, out.returncode) == (b"Hi.\n", b"", 0)


@pytest.mark.parametrize(
    "words",
    [
        ["-p", "hello", "--model", "{model}"],
        ["--model={model}", "-p", "hello"],
        ["-p", "--model", "{model}", "hello"],
        ["--model", "{model}", "hello", "-p", "--verbose"],
        ["-p", "--output-format=text", "--debug=api", "--model={model}", "--", "hello"],
    ],
)
def test_flags_and_prompt_may_stand_in_any_order(project, script, words):
    model = script({"expect": "/^hello$/", "text": "Hi."})
    out = run(*(word.format(model=model) for word in words), cwd=project)
    assert (out.stdout, out.returncode) == (b"Hi.\n", 0), out.stderr


def test_piped_text_follows_the_prompt(project, script):
    model = script({"text": "{{first.text}}"})
    out = run("-p", "explain", "--model", model, stdin=b"an error\n", cwd=project)
    assert out.stdout == b"explain\n\nan error\n"
    out = run("-p", "--model", model, stdin=b"only piped\n", cwd=project)
    assert out.stdout == b"only piped\n"


def test_a_pipe_that_stays_silent_is_not_waited_for(project, script):
    read, write = os.pipe()
    words = [sys.executable, "-m", "handaxe", "-p", "hi", "--model", script({"text": "Hi."})]
    try:
        out = subprocess.run(
            words, stdin=read, capture_output=True, cwd=project, timeout=60, check=False
        )
    finally:
        os.close(read)
        os.close(write)
    assert out.stdout == b"Hi.\n"
    assert b"continuing without it" in out.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-p"], "Give a prompt"),
        (["-p", "hi", "--modle", "x"], "--model"),
        (["-p", "hi", "--max-turns", "many"], "expected a whole number"),
        (["-p", "hi"], "Choose one of these"),
        (["-p", "hi", "--model", "nobody/x"], "Unknown model"),
        (
            ["-p", "hi", "--model", "{model}", "--max-turns", "0"],
            "--max-turns must be at least 1",
        ),
        (["-p", "hi", "--model", "{model}", "--json-schema", "{"], "not JSON"),
        (["-p", "hi", "--model", "{model}", "--agents", "[]"], "JSON object"),
        (["-p", "hi", "--model", "{model}", "--system-prompt-file", "none"], "cannot read"),
        (["-p", "hi", "--model", "{model}", "--permission-mode", "x"], "permission mode"),
        (["-p", "hi", "--model", "{model}", "--max-budget-usd", "1"], "--prices"),
        (["-p", "hi", "--model", "{model}", "--prices", "{"], "--prices is not valid"),
        (["-p", "hi", "--model", "{model}", "--prices", "none.json"], "cannot read"),
        (["-p", "hi", "--model", "{model}", "--prices", '{"m": {"input": 1}}'], "output"),
        (
            ["-p", "hi", "--model", "{model}", "--prices", '{"m": {"input": 1, "output": -1}}'],
            "0 or more",
        ),
        (
            [
                "-p",
                "hi",
                "--model",
                "{model}",
                "--prices",
                '{"m": {"input": 1, "output": 1, "outptu": 1}}',
            ],
            "outptu",
        ),
        (
            ["-p", "hi", "--model", "{model}", "--max-total-tokens", "0"],
            "--max-total-tokens must be at",
        ),
        (["-p", "hi", "--input-format", "stream-json"], "stream-json"),
        (["-p", "hi", "--permission-prompt-tool", "stdio"], "stream-json"),
        (["-p", "hi", "--model", "{model}", "--settings", "{"], "--settings"),
        (["-p", "hi", "--resume", "--model", "{model}"], "--resume needs"),
        (["-p", "hi", "--resume-session-at=u"], "needs --resume or --continue"),
        (["-p", "hi", "--rewind-files=u"], "needs --resume or --continue"),
        (["-p", "hi", "--resume=x", "--resume-drops-turn=u"], "needs --resume-session-at"),
        (["-p", "hi", "--debug-file", "no/such/folder/log"], "--debug-file"),
        ([], "needs a terminal"),
        (["tols"], "Did you mean 'tools'"),
        (["-p", "/revew", "--model", "{model}"], "Did you mean /review"),
    ],
)
def test_wrong_usage_is_told_and_ends_with_two(project, script, words, said, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    command = project / ".claude" / "commands" / "review.md"
    command.parent.mkdir(parents=True)
    command.write_text("Review $ARGUMENTS.\n")
    model = script({"text": "Hi."})
    out = run(*(word.replace("{model}", model) for word in words), cwd=project)
    assert out.returncode == 2, out
    assert out.stdout == b""
    assert said in out.stderr.decode()


def test_more_than_ten_megabytes_are_refused(project, script):
    out = run("-p", "--model", script({"text": "x"}), stdin=b"x" * 10_000_001, cwd=project)
    assert out.returncode == 2
    assert b"10 MB" in out.stderr


def test_json_is_one_object_with_the_fields_of_the_last_message(project, script):
    model = script(WRITE, {"text": "No luck."}, name="tester")
    out = run("-p", "go", "--model", model, "--output-format", "json", cwd=project)
    result = json.loads(out.stdout)
    assert result["type"] == "result"
    assert result["subtype"] == "success"
    assert result["result"] == "No luck."
    assert result["permission_denials"] == [
        {"tool_name": "Write", "tool_use_id": result["permission_denials"][0]["tool_use_id"],
         "tool_input": WRITE["call"][0]["input"]}
    ]  # fmt: skip
    assert result["modelUsage"]["tester"]["outputTokens"] > 0
    assert {"duration_ms", "duration_api_ms", "num_turns", "session_id", "usage"} <= result.keys()


def test_what_sub_agents_were_refused_is_told_with_what_they_wanted(project, script):
    start = {"call": [{"tool": "Agent", "input": {"prompt": "write", "description": "a try"}}]}
    model = script(start, WRITE, {"text": "Refused."}, {"text": "No luck."})
    out = run("-p", "go", "--model", model, "--output-format", "json", cwd=project)
    (denied,) = json.loads(out.stdout)["permission_denials"]
    assert (denied["tool_name"], denied["tool_input"]) == ("Write", WRITE["call"][0]["input"])


LIST = {"call": [{"tool": "Glob", "input": {"pattern": "*"}}]}
PLAN = {"call": [{"tool": "ExitPlanMode", "input": {"plan": "Do it."}}]}
TASK = {"call": [{"tool": "Agent", "input": {"prompt": "write", "description": "a try"}}]}


@pytest.mark.parametrize(
    ("turns", "words", "code"),
    [
        ([{"text": "fine"}], [], 0),
        ([WRITE, {"text": "refused"}], [], 3),
        ([WRITE, LIST, {"text": "went on"}], [], 3),
        ([LIST, PLAN, {"text": "planned"}], ["--permission-mode", "plan"], 0),
        ([PLAN, {"text": "planned"}], ["--permission-mode", "plan"], 3),
        ([TASK, WRITE, {"text": "no"}, {"text": "well"}], [], 3),
        ([WRITE, {"fail": "overloaded"}], [], 1),
        ([WRITE, {"text": "done"}], ["--permission-mode", "acceptEdits"], 0),
        ([WRITE, {"text": "done"}], ["--dangerously-skip-permissions"], 0),
        ([WRITE, {"text": "done"}], ["--allowedTools", "Edit(/a.txt)"], 0),
        ([WRITE, {"text": "no"}], ["--disallowedTools", "Write", "--permission-mode",
                                  "acceptEdits"], 3),
        ([WRITE, {"text": "no"}], ["--permission-mode", "acceptEdits", "--max-turns", "1"], 1),
        ([{"fail": "overloaded"}], [], 1),
        ([{"call": [{"tool": "Nope", "input": {}}]}, {"text": "well"}], [], 0),
    ],
)  # fmt: skip
def test_the_exit_code_tells_the_truth(project, script, turns, words, code):
    out = run("-p", "go", "--model", script(*turns), *words, cwd=project)
    assert out.returncode == code, out


TWO = {"call": [WRITE["call"][0], {"tool": "Bash", "input": {"command": "python3 -c 'print(6)'"}}]}
ECHO = "Bash(python3 -c 'print(6)')"


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["-p", "go", "--allowedTools", "Edit(/a.txt)", ECHO], 0),
        (["-p", "--allowedTools", "Edit(/a.txt)", ECHO, "go"], 0),
        (["--allowedTools", f"Edit(/a.txt) {ECHO}", "-p", "go"], 0),
        (["--allowed-tools", f"{ECHO},Edit(/a.txt)", "go", "-p"], 0),
        (["-p", "--allowedTools", ECHO, "--", "go"], 1),
        (["-p", "--allowedTools", "Edit(/a.txt)", ECHO, "--disallowedTools", "Monitor", "Write",
          "go"], 1),
        (["-p", "--allowedTools", ECHO, "Edit(/a.txt)", "--disallowedTools", "mcp__x", "Bash*",
          "Edit", "go"], 2),
    ],
)  # fmt: skip
def test_rules_may_follow_each_other_and_the_prompt_is_no_rule(project, script, words, refused):
    model = script({**TWO, "expect": "/^go$/"}, {"text": "ok"})
    out = run(*words, "--model", model, "--output-format", "json", cwd=project)
    result = json.loads(out.stdout)
    assert result["result"] == "ok", out
    assert len(result["permission_denials"]) == refused, result["permission_denials"]


def test_a_prompt_that_begins_with_a_tool_is_a_prompt(project, script):
    model = script({"expect": "/^Read the page and Edit it$/", "text": "ok"})
    out = run("-p", "--allowedTools", "Read", "Grep", "Read the page and Edit it",
              "--model", model, cwd=project)  # fmt: skip
    assert (out.stdout, out.returncode) == (b"ok\n", 0), out.stderr


def test_a_slip_in_a_list_of_rules_does_not_become_part_of_the_prompt(project, script):
    out = run("-p", "go", "--disallowedTools", "Bash", "Wrte", "--model", script({"text": "ok"}),
              cwd=project)  # fmt: skip
    assert out.returncode == 2
    assert b"Did you mean 'Write'?" in out.stderr


def test_directories_servers_and_tools_may_follow_each_other(project, script, tmp_path):
    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        place.mkdir()
        (place / "f.txt").write_text("inside\n")
    servers = tmp_path / "servers.json"
    servers.write_text('{"mcpServers": {"a": {"command": "no-such-program-a"}}}')
    more = '{"mcpServers": {"b": {"command": "no-such-program-b"}}}'
    reads = [{"tool": "Read", "input": {"file_path": str(place / "f.txt")}} for place in places]
    model = script({"call": reads, "expect": "/^go$/"}, {"text": "ok"})
    out = run("-p", "--add-dir", *map(str, places), "--mcp-config", str(servers), more,
              "--tools", "Read", "Grep", "go", "--verbose", "--model", model,
              "--output-format", "stream-json", cwd=project)  # fmt: skip
    lines = [json.loads(line) for line in out.stdout.splitlines()]
    init = next(line for line in lines if line.get("subtype") == "init")
    assert init["tools"] == ["Grep", "Read"]
    assert {server["name"] for server in init["mcp_servers"]} == {"a", "b"}
    assert lines[-1]["permission_denials"] == []
    assert out.stdout.count(b"inside") >= 2


def test_prices_of_ones_own_are_what_a_run_costs_and_may_cost(project, script):
    prices = project / "prices.json"
    prices.write_text('{"tester": {"input": 1000, "output": 1000000}}')
    model = script(LIST, LIST, {"text": "done"}, name="tester")
    words = ["-p", "go", "--model", model, "--output-format", "json", "--prices"]
    result = json.loads(run(*words, str(prices), cwd=project).stdout)
    assert result["total_cost_usd"] > 0
    assert result["modelUsage"]["tester"]["costUSD"] == pytest.approx(result["total_cost_usd"])
    limited = run(*words, prices.read_text(), "--max-budget-usd", "0.01", cwd=project)
    assert limited.returncode == 1
    assert json.loads(limited.stdout)["subtype"] == "error_max_budget_usd"


def test_a_run_ends_at_its_limit_of_tokens(project, script):
    model = script(LIST, LIST, {"text": "done"})
    words = ["-p", "go", "--model", model, "--output-format", "json", "--max-total-tokens", "1"]
    out = run(*words, cwd=project)
    assert out.returncode == 1
    result = json.loads(out.stdout)
    assert result["num_turns"] == 1
    assert "limit of 1 tokens" in result["result"]


@pytest.mark.proves("TC-11")
def test_stream_json_tells_what_was_derived_from_inputs(project, script):
    (project / "a.txt").write_text("hello\n")
    asked = [
        {"tool": "Read", "input": {"file_path": "./a.txt"}},
        {"tool": "Read", "input": {"file_path": str(project / "a.txt")}},
        {"tool": "Bash", "input": {"command": "cat a.txt | wc -l"}},
    ]
    model = script(*({"call": [one]} for one in asked), {"text": "done"})
    words = ["-p", "go", "--model", model, "--output-format", "stream-json", "--verbose"]
    lines = [json.loads(line) for line in run(*words, cwd=project).stdout.splitlines()]
    answers = [line for line in lines if "tool_use_result" in line]
    assert [line.get("tool_derived") for line in answers] == [
        {"file_path": str(project / "a.txt")}, None, {"commands": ["cat a.txt", "wc -l"]},
    ]  # fmt: skip
    inputs = [
        block["input"]
        for line in lines
        if line["type"] == "assistant"
        for block in line["message"]["content"]
        if block["type"] == "tool_use"
    ]
    assert inputs == [one["input"] for one in asked]


def test_a_blocked_prompt_is_a_refusal(project, script):
    settings = {"hooks": {"UserPromptSubmit": [
        {"hooks": [{"type": "command", "command": "echo never >&2; exit 2"}]}]}}  # fmt: skip
    model = script({"text": "x"})
    out = run("-p", "go", "--model", model, "--settings", json.dumps(settings), cwd=project)
    assert out.returncode == 3
    assert b"never" in out.stdout


def test_a_command_of_the_project_runs_with_its_arguments(project, script):
    command = project / ".claude" / "commands" / "review.md"
    command.parent.mkdir(parents=True)
    command.write_text("---\nallowed-tools: Edit(/a.txt)\n---\nReview $ARGUMENTS carefully.\n")
    model = script({**WRITE, "expect": "Review the parser carefully."}, {"text": "ok"})
    words = ["-p", "/review the parser", "--trust-project", "--model", model]
    out = run(*words, cwd=project)
    assert (out.stdout, out.returncode) == (b"ok\n", 0), out.stderr
    assert (project / "a.txt").exists()
    model = script({"expect": "/^.review x$/", "text": "plain"})
    words = ["-p", "/review x", "--disable-slash-commands", "--model", model]
    assert run(*words, cwd=project).stdout == b"plain\n"
    model = script({"expect": "/etc/passwd", "text": "a path"})
    assert run("-p", "/etc/passwd?", "--model", model, cwd=project).stdout == b"a path\n"


def test_the_system_prompt_is_replaced_or_added_to(project, script, tmp_path):
    text = tmp_path / "more.md"
    text.write_text("Speak like a pirate.")
    agents = {"pirate": {"system": "Speak like a pirate."}}
    turns = [{"text": "no"}, {"agent": "pirate", "text": "Arr."}]
    for words in (["--append-system-prompt", "Speak like a pirate."],
                  ["--append-system-prompt-file", str(text)],
                  ["--system-prompt", "Speak like a pirate."],
                  ["--system-prompt-file", str(text)]):  # fmt: skip
        model = script(*turns, agents=agents)
        assert run("-p", "hi", "--model", model, *words, cwd=project).stdout == b"Arr.\n", words


def test_a_structured_answer_is_printed_as_json(project, script):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    model = script({"call": [{"tool": "StructuredOutput", "input": {"n": 3}}]})
    out = run("-p", "n?", "--model", model, "--json-schema", json.dumps(schema), cwd=project)
    assert (out.stdout, out.returncode) == (b'{"n":3}\n', 0)


def test_a_conversation_is_found_by_its_name(project, script):
    def result(*words):
        out = run("-p", "x", "--output-format", "json", *words, cwd=project)
        assert out.returncode == 0, out.stderr
        return json.loads(out.stdout)

    def turns(count):
        return script(*[{"text": str(number)} for number in range(1, count + 1)])

    first = result("--model", turns(1), "--name", " the parser ")["session_id"]
    again = result("--model", turns(2), "--resume", "the parser")
    assert (again["session_id"], again["result"]) == (first, "2")
    other = result("--model", turns(1), "-n", "the parser")["session_id"]
    assert result("--model", turns(2), "-r", "the parser")["session_id"] == other
    fork = result("--model", turns(3), "-r", other, "--fork-session", "-n", "a copy")["session_id"]
    assert fork not in {first, other}
    assert result("--model", turns(4), "-r", "a copy")["session_id"] == fork
    assert b"the parser" in run("sessions", cwd=project).stdout
    for name in ("", "two\nlines", "x" * 101):
        bad = run("-p", "x", "--name", name, "--model", turns(1), cwd=project)
        assert b"The name of a session must" in bad.stderr
    missing = run("-p", "x", "--resume", "../the parser", "--model", turns(1), cwd=project)
    assert missing.returncode == 1
    assert b"No conversation found" in missing.stderr


def test_resume_continue_and_fork(project, script, tmp_path):
    def result(*words):
        out = run(*words, "--output-format", "json", cwd=project)
        assert out.returncode == 0, out.stderr
        return json.loads(out.stdout)

    one = result("-p", "I am Ada", "--model", script({"text": "Hi."}), "--session-id", "mine")
    assert one["session_id"] == "mine"
    second = script({"text": "Hi."}, {"text": "first was {{first.text}}"})
    assert result("-p", "who?", "--resume", "mine", "--model", second)["result"].endswith("Ada")
    third = script({"text": ""}, {"text": ""}, {"text": "third"})
    assert result("-p", "go", "-c", "--model", third)["session_id"] == "mine"
    fourth = script({"text": ""}, {"text": ""}, {"text": ""}, {"text": "4"})
    words = ["-p", "go", "--resume=mine", "--fork-session", "--model", fourth]
    fork = result(*words)
    assert fork["session_id"] != "mine"
    assert fork["result"] == "4"
    missing = run("-p", "x", "--resume", "gone", "--model", fourth, cwd=project)
    assert missing.returncode == 1
    assert b"No conversation found with session ID: gone" in missing.stderr
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run("-p", "x", "--continue", "--model", fourth, cwd=elsewhere).returncode == 1


def test_a_run_that_is_not_to_be_kept_leaves_nothing(project, script):
    words = ["-p", "hi", "--model", script({"text": "Hi."}), "--no-session-persistence"]
    assert run(*words, cwd=project).stdout == b"Hi.\n"
    sessions = find_data_home() / "sessions"
    assert not sessions.exists() or not list(sessions.iterdir())


def test_flags_that_change_nothing_say_so(project, script):
    words = ["-p", "hi", "--model", script({"text": "Hi."}), "--task-budget", "3"]
    out = run(*words, cwd=project)
    assert out.stdout == b"Hi.\n"
    assert b"--task-budget has no effect" in out.stderr


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["--effort", "hihg"], "Did you mean high?"),
        (["--agent", "Explorer"], "Did you mean 'Explore'?"),
        (["--max-turn", "3"], "Did you mean --max-turns?"),
        (["--worktree", "../x"], "Invalid worktree name"),
        (["--worktree", "x"], "Cannot make a worktree here"),
    ],
)
def test_a_wrong_word_names_the_right_one(project, script, words, near):
    out = run("-p", "hi", "--model", script({"text": "Hi."}), *words, cwd=project)
    assert out.returncode == 2
    assert near in out.stderr.decode()
    assert b"Traceback" not in out.stderr


def test_a_type_of_agent_leads(project, script):
    agents = {"lead": {"description": "d", "prompt": "Lead.", "initialPrompt": "Begin."}}
    words = ["--agents", json.dumps(agents), "--agent", "lead", "--effort", "low"]
    out = run("-p", "go", "--model", script({"text": "{{first.text}}"}), *words, cwd=project)
    assert out.stdout == b"Begin.\n\ngo\n"


def test_the_next_model_answers_where_the_first_has_no_room(project, script, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"text": "Here."}) + "\n")
    first = script({"fail": "overloaded"})
    words = ["--fallback-model", f"scripted:{other}", "--output-format", "stream-json"]
    out = run("-p", "go", "--model", first, "--verbose", *words, cwd=project)
    messages = [json.loads(line) for line in out.stdout.splitlines()]
    assert messages[-1]["result"] == "Here."
    retry = next(m for m in messages if m.get("subtype") == "api_retry")
    assert "The next model is" in retry["error"]


def test_a_run_in_a_worktree(project, script):
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], cwd=project, check=True)
    words = ["-p", "go", "--permission-mode", "acceptEdits", "--worktree=w"]
    out = run(*words, "--model", script(WRITE, {"text": "Done."}), cwd=project)
    assert out.returncode == 0, out.stderr
    assert not (project / "a.txt").exists()
    assert (project / ".claude/worktrees/w/a.txt").read_text() == "hi\n"
    assert b"on branch worktree-w" in out.stderr
    out = run("-p", "go", "--worktree=v", "--model", script({"text": "Hi."}), cwd=project)
    assert (out.stderr, (project / ".claude/worktrees/v").exists()) == (b"", False)


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_worktree_of_a_trusted_project_has_its_hooks(project, script, is_changed):
    hook = {"type": "command", "command": "echo not here >&2; exit 2"}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
    place = project / ".claude/settings.json"
    place.parent.mkdir()
    place.write_text(json.dumps(settings))
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], ["add", "-f", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], cwd=project, check=True)
    if is_changed:
        hook["command"] = "exit 0"
        place.write_text(json.dumps(settings))
    assert run("trust", "--yes", cwd=project).returncode == 0
    turn = {"call": [{"tool": "Bash", "input": {"command": "touch ran"}}]}
    words = (
        "-p",
        "go",
        "-w",
        "w",
        "--allowedTools",
        "Bash",
        "--model",
        script(turn, {"text": "{{last.text}}"}),
    )
    out = run(*words, cwd=project)
    assert (b"not here" in out.stdout) is not is_changed, out
    assert (b"handaxe trust" in out.stderr) is is_changed


@pytest.mark.parametrize("trusts", [False, True])
def test_a_worktree_runs_no_filter_of_the_repository(project, script, tmp_path, trusts):
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
    (project / ".gitattributes").write_text("* filter=x\n")
    ran = tmp_path / "ran"
    for words in (
        ["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"],
        ["config", "filter.x.smudge", f"touch {ran}; cat"],
    ):  # fmt: skip
        subprocess.run([*git, *words], cwd=project, check=True)
    if trusts:
        assert run("trust", cwd=project).returncode == 0
    out = run("-p", "go", "-w", "w", "--model", script({"text": "Hi."}), cwd=project)
    assert out.returncode == 2
    assert b"filter.x.smudge" in out.stderr
    assert (b"this run cannot ask for approval" if trusts else b"handaxe trust") in out.stderr
    assert not ran.exists()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_run_and_it_can_be_resumed(project, script, number, code):
    sleep = {"text": "I wait.", "call": [{"tool": "Sleep", "input": {"seconds": 60}}]}
    model = script(sleep, {"text": "Woken: {{last.text}}"})
    process = subprocess.Popen(
        [sys.executable, "-m", "handaxe", "-p", "wait", "--model", model, "--session-id", "s",
         "--output-format", "stream-json", "--settings", '{"tool_search": {"when": "never"}}'],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=project,
    )  # fmt: skip
    try:
        for line in require(process.stdout):
            if json.loads(line)["type"] == "assistant":
                break
        process.send_signal(number)
        rest, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == code, errors
    said = str(list(read_events(find_data_home(), "s")))
    is_marked = "[Request interrupted by user" in said
    assert is_marked == (number == signal.SIGINT)
    if number != signal.SIGINT:
        assert b'"result"' not in rest
        out = run("-p", "--resume", "s", "--model", model, cwd=project)
    else:
        out = run("-p", "go on", "--resume", "s", "--model", model, cwd=project)
    assert out.returncode == 0, out
    assert out.stdout.startswith(b"Woken:")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Run the tests.", "Run the tests."),
        ('"Commit this"\nBecause.', "Commit this"),
        ("NONE", ""),
    ],
)
def test_what_a_person_may_say_next_follows_the_result(project, script, said, told):
    model = script({"text": "Mended."}, {"text": said, "expect": "likely to say next"})
    out = run("-p", "mend it", "--model", model, "--prompt-suggestions", "--verbose",
              "--output-format", "stream-json", cwd=project)  # fmt: skip
    lines = [json.loads(line) for line in out.stdout.splitlines()]
    after = lines[[line["type"] for line in lines].index("result") + 1 :]
    assert [line["suggestion"] for line in after] == ([told] if told else [])
    assert all({"uuid", "session_id"} <= line.keys() for line in after)


def test_suggestions_are_for_programs(project, script):
    out = run("-p", "go", "--model", script({"text": "ok"}), "--prompt-suggestions", cwd=project)
    assert out.returncode == 2
    assert b"--output-format stream-json" in out.stderr


def test_a_run_is_recorded_and_played_strictly_in_another_project(project, script, tmp_path):
    talk, other = tmp_path / "talk.jsonl", tmp_path / "other"
    other.mkdir()
    turns = [
        WRITE,
        {"call": [{"tool": "Read", "input": {"file_path": f"{project}/a.txt"}}]},
        {"expect": "hi", "text": "Done."},
    ]
    words = ["-p", "work", "--permission-mode", "acceptEdits"]
    out = run(*words, "--model", script(*turns), "--record", str(talk), cwd=project)
    assert (out.stdout, out.stderr, out.returncode) == (b"Done.\n", b"", 0)
    assert str(project).encode() not in talk.read_bytes()
    strict = ["--model", f"replay-strict:{talk}"]
    out = run(*words, *strict, cwd=other)
    assert (out.stdout, out.stderr, out.returncode) == (b"Done.\n", b"", 0)
    assert (other / "a.txt").read_text() == "hi\n"
    out = run("-p", "play", *strict, cwd=other)
    assert out.returncode == 1
    assert b"recorded: 'work'\n  now:      'play'" in out.stdout + out.stderr


@pytest.mark.proves("TC-10")
def test_verbose_tells_every_moment_of_a_call_on_standard_error(project, script):
    read = [{"tool": "Read", "input": {"file_path": name}} for name in ("a.txt", "b.txt")]
    model = script(WRITE, {"call": read}, {"text": "Done."})
    words = ["--verbose", "--disallowedTools", "Edit(b.txt)", "--permission-mode", "acceptEdits"]
    out = run("-p", "go", "--model", model, *words, cwd=project)
    assert out.stdout == b"Done.\n"
    told = out.stderr.decode()
    for line in (
        "handaxe: Write(a.txt)\n",
        "handaxe: Write(a.txt): File created",
        "1→hi\n",
        "handaxe: Read(b.txt) failed (file.not_found)\n  File does not exist.",
        "handaxe: 2 of 2 calls done, 1 without success\n",
    ):
        assert line in told, told


@pytest.mark.proves("TC-10")
def test_stream_json_tells_how_calls_look_where_that_is_wanted(project, script):
    model = script(WRITE, {"text": "Done."})
    words = ["--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"]
    shown = {}
    for option in ("--include-call-display", "--include-partial-messages"):
        words.append(option)
        out = run("-p", "go", "--model", model, *words, cwd=project)
        lines = [json.loads(line) for line in out.stdout.splitlines()]
        shown[option] = [line for line in lines if line.get("subtype") == "call_display"]
    moments = [line["moment"] for line in shown["--include-call-display"]]
    assert moments[-2:] == ["started", "finished"]
    end = shown["--include-call-display"][-1]
    assert (end["tool_name"], end["title"], end["agent_id"]) == ("Write", "Write(a.txt)", "")
    assert [block["block"] for block in end["blocks"]] == ["text", "code"]
    assert "input" in [line["moment"] for line in shown["--include-partial-messages"]]


def test_a_place_that_takes_no_recording_is_wrong_usage(project, script):
    model = script({"text": "Hi."})
    out = run("-p", "hi", "--model", model, "--record", str(project), cwd=project)
    assert (out.returncode, out.stdout) == (2, b"")
    assert b"is not a file. Name a file." in out.stderr


def start_in_background(command: str) -> dict:
    run = {"command": command, "run_in_background": True, "description": "Work"}
    return {"call": [{"tool": "Bash", "input": run}]}


def test_a_run_goes_on_until_background_work_has_ended(project, script):
    heard = {"expect": "/exit code 3/", "text": "It failed."}
    model = script(start_in_background("sleep 0.3; exit 3"), {"text": "Started."}, heard)
    out = run("-p", "go", "--model", model, "--allowedTools", "Bash", cwd=project)
    assert (out.stdout, out.returncode) == (b"It failed.\n", 0), out.stderr


def test_an_answer_in_a_form_waits_for_background_work_too(project, script):
    answer = {"call": [{"tool": "StructuredOutput", "input": {"ok": True}}]}
    again = {"call": [{"tool": "StructuredOutput", "input": {"ok": False}}]}
    model = script(start_in_background("sleep 0.3"), answer, {"expect": "/exit code 0/", **again})
    schema = json.dumps({"type": "object", "properties": {"ok": {"type": "boolean"}}})
    words = ["-p", "go", "--model", model, "--allowedTools", "Bash", "--json-schema", schema]
    out = run(*words, cwd=project)
    assert (json.loads(out.stdout), out.returncode) == ({"ok": False}, 0), out.stderr


@pytest.mark.parametrize("how", ["option", "variable"])
def test_a_server_that_never_ends_does_not_hold_a_run_for_ever(project, script, how):
    model = script(start_in_background("sleep 600"), {"text": "Started."})
    words = ["-p", "go", "--model", model, "--allowedTools", "Bash"]
    words += ["--background-wait", "0.2"] if how == "option" else []
    env = {"CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS": "200"} if how == "variable" else {}
    out = run(*words, cwd=project, env=env)
    assert (out.stdout, out.returncode) == (b"Started.\n", 0), out.stderr
    assert b"--background-wait" in out.stderr


@pytest.mark.parametrize("given", ["-1", "nan", "soon"])
def test_a_wait_that_is_none_is_refused(project, script, given):
    words = ["-p", "go", "--model", script({"text": "Hi."}), f"--background-wait={given}"]
    assert run(*words, cwd=project).returncode == 2
