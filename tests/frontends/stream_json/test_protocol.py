"""The stream by hand: odd lines, every control request, order and size of messages."""

import json
import signal

import pytest
from claude_agent_sdk._internal.message_parser import parse_message
from tests.waiting import blocked_until

from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import read_events

WRITE = {"call": [{"tool": "Write", "input": {"file_path": "a.txt", "content": "hi\n"}}]}
ACCEPT = ("--permission-mode", "acceptEdits")


def kinds(messages):
    return [m["type"] if m["type"] != "system" else m["subtype"] for m in messages]


def parsed(messages):
    """Everything the open SDK's parser makes of the messages; it raises on a bad one."""
    mine = ("control_request", "control_response", "control_cancel_request")
    return [parse_message(m) for m in messages if m["type"] not in mine]


def test_a_turn_begins_with_init_and_ends_with_a_result(connect, script):
    client = connect("--model", script({"text": "Hi."}))
    client.say("hello")
    client.until("result")
    assert client.close() == 0
    assert kinds(client.seen) == ["init", "assistant", "result"]
    parsed(client.seen)
    assert all(m["session_id"] and m["uuid"] for m in client.seen)
    assert len({m["uuid"] for m in client.seen}) == len(client.seen)


def test_odd_lines_are_told_and_passed_over(connect, script):
    client = connect("--model", script({"text": "Hi."}))
    client.process.stdin.write(b'\r\n\n{"broken\n[1, 2]\n{"type": "what"}\n')
    client.send({"type": "user", "message": {"content": 3}})
    client.send({"type": "user", "message": {"content": [{"type": "video"}]}})
    client.send({"type": "keep_alive"})
    client.send({"type": "control_response", "response": {"request_id": "nobody's"}})
    client.say("hello")
    assert client.until("result")["result"] == "Hi."
    assert client.close() == 0
    assert kinds(client.seen).count("informational") == 5


def test_a_picture_that_is_none_is_told_and_passed_over(connect, script):
    client = connect("--model", script({"text": "Hi."}))
    for kind, data in (("image/png", "data:image/png;base64,aGk="), (None, "aGk="), ("x/y", None)):
        source = {"type": "base64", "media_type": kind, "data": data}
        blocks = [{"type": "image", "source": source}] if data else [{"type": "image"}]
        client.send({"type": "user", "message": {"role": "user", "content": blocks}})
    client.say("hello")
    assert client.until("result")["result"] == "Hi."
    assert client.close() == 0
    assert kinds(client.seen).count("informational") == 3


def test_every_control_request_gets_exactly_one_answer(connect, script):
    client = connect("--model", script({"text": "Hi."}))
    greeting = client.ask("initialize", hooks=None)
    assert greeting["subtype"] == "success"
    assert {"commands", "agents", "output_style", "models"} <= greeting["response"].keys()
    cases = [
        ("interrupt", {}, "success"),
        ("set_permission_mode", {"mode": "plan"}, "success"),
        ("set_permission_mode", {"mode": "wild"}, "error"),
        ("set_model", {"model": None}, "success"),
        ("set_model", {"model": 3}, "error"),
        ("set_model", {"model": "nobody/x"}, "error"),
        ("mcp_status", {}, "success"),
        ("mcp_reconnect", {"serverName": "x"}, "error"),
        ("get_context_usage", {}, "success"),
        ("stop_task", {"task_id": "x"}, "error"),
        ("rewind_files", {"user_message_id": "x"}, "error"),
        ("initialize", {"hooks": {"Stop": []}}, "error"),
        ("initialize", {"sdkMcpServers": ["late"]}, "error"),
        ("initialize", {"sdkMcpServers": []}, "success"),
        ("interupt", {}, "error"),
    ]
    for number, (subtype, fields, outcome) in enumerate(cases):
        answer = client.ask(subtype, f"req_{number}", **fields)
        assert (answer["request_id"], answer["subtype"]) == (f"req_{number}", outcome), answer
    assert "Did you mean 'interrupt'" in answer["error"]
    assert client.close() == 0
    assert kinds(client.seen).count("control_response") == len(cases) + 1


def answer_as_server(request):
    """What a server named `calc` or `other` in this process says to one message."""
    message, name = request["message"], request["server_name"]
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": name, "version": "1"}},
        "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": f"{name} says five"}]},
    }  # fmt: skip
    answer = {"jsonrpc": "2.0", "result": results.get(message["method"], {})}
    return {"mcp_response": {**answer, "id": message["id"]} if "id" in message else answer}


@pytest.mark.parametrize(
    ("inside", "is_named_before"),
    [(["calc", "calc"], False), (["calc"], True), (["calc", "other"], True)],
)
def test_servers_that_a_client_names_in_its_first_request_are_there(
    connect, script, inside, is_named_before, monkeypatch
):
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "false")
    call = {"tool": f"mcp__{inside[-1]}__add", "input": {}}
    model = script({"call": [call]}, {"expect": f"{inside[-1]} says five", "text": "Five."})
    config = json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})
    options = ("--mcp-config", config) if is_named_before else ()
    client = connect("--model", model, "--allowedTools", "mcp__calc,mcp__other", *options)
    client.send({"type": "control_request", "request_id": "i",
                 "request": {"subtype": "initialize", "sdkMcpServers": inside}})  # fmt: skip
    client.say("add")
    result = None
    while result is None:
        message = json.loads(client.process.stdout.readline())
        client.seen.append(message)
        if message["type"] == "control_request":
            client.answer(message, answer_as_server(message["request"]))
        result = message if message["type"] == "result" else None
    assert result["result"] == "Five."
    init = next(m for m in client.seen if m.get("subtype") == "init")
    assert init["mcp_servers"] == [
        {"name": n, "status": "connected"} for n in dict.fromkeys(inside)
    ]
    status = client.ask("mcp_status")["response"]["mcpServers"]
    assert [row["name"] for row in status] == list(dict.fromkeys(inside))
    assert client.close() == 0


@pytest.mark.parametrize("names", ["calc", [3]])
def test_names_of_servers_that_are_none_are_refused(connect, script, names):
    client = connect("--model", script({"text": "Hi."}))
    answer = client.ask("initialize", sdkMcpServers=names)
    assert (answer["subtype"], "sdkMcpServers" in answer["error"]) == ("error", True)
    client.say("hello")
    assert client.until("result")["result"] == "Hi."
    assert client.close() == 0


def test_messages_that_come_during_a_turn_become_turns_of_their_own(connect, script):
    model = script({"text": "one"}, {"text": "two"}, {"text": "{{last.text}}"})
    client = connect("--model", model, "--replay-user-messages")
    client.say("first", uuid="u1")
    client.say("second")
    client.say("held back", shouldQuery=False)
    client.say("third")
    assert client.close() == 0
    results = [m["result"] for m in client.seen if m["type"] == "result"]
    assert results == ["one", "two", "held back\nthird"]
    replays = [m for m in client.seen if m.get("isReplay")]
    assert len(replays) == 3
    parsed(client.seen)


def test_an_interrupt_before_the_first_word_counts(connect, script):
    model = script({"text": "slow " * 50, "delay_ms": 100}, {"text": "next"})
    client = connect("--model", model)
    client.say("go")
    client.say("and then")
    answer = client.ask("interrupt")
    assert answer["subtype"] == "success"
    first = client.until("result")
    assert first["is_error"]
    assert first["terminal_reason"].startswith("aborted")
    client.close()
    assert [m["type"] for m in client.seen].count("result") == 2


def test_an_interrupt_can_take_back_what_waits(connect, script):
    client = connect("--model", script({"text": "slow " * 50, "delay_ms": 100}))
    client.say("go", uuid="a")
    client.until("system", "init")
    client.say("later", uuid="b")
    answer = client.ask("interrupt", cancel_queued=True)
    assert answer["response"] == {"still_queued": [], "cancelled": ["b"]}
    client.until("result")
    assert client.close() == 1
    assert kinds(client.seen).count("result") == 1
    texts = json.dumps([m for m in client.seen if m["type"] == "user"])
    assert "[Request interrupted by user]" in texts


def test_no_line_is_too_long_for_a_client(connect, script, project):
    (project / "big.txt").write_text("x" * 1999 + "\n")
    (project / "long.txt").write_text(("é" * 1000 + "\n") * 1900)
    big = "é" * 1_200_000
    model = script(
        {"text": "w" * 1_200_000,
         "call": [{"tool": "Read", "input": {"file_path": "long.txt"}},
                  {"tool": "Write", "input": {"file_path": "new.txt", "content": big}}]},
        {"text": "ok"},
        chunk_chars=200_000, context_tokens=100_000_000,
    )  # fmt: skip
    client = connect("--model", model, *ACCEPT)
    client.say("go")
    while line := client.process.stdout.readline():
        assert len(line.decode()) < 1_048_576
        client.seen.append(json.loads(line))
        if client.seen[-1]["type"] == "result":
            break
    assert client.close() == 0
    parsed(client.seen)
    assert (project / "new.txt").read_text() == big
    assert "characters left out" in json.dumps(client.seen)
    texts = [b.get("text", "") for m in client.seen if m["type"] == "assistant"
             for b in m["message"]["content"]]  # fmt: skip
    assert "".join(texts) == "w" * 1_200_000 + "ok"


def test_a_question_too_long_for_a_line_is_asked_shortened_and_runs_whole(connect, script, project):
    big = "y" * 1_500_000
    call = {"tool": "Write", "input": {"file_path": "new.txt", "content": big}}
    model = script({"call": [call]}, {"text": "ok"}, chunk_chars=500_000,
                   context_tokens=100_000_000)  # fmt: skip
    client = connect("--model", model, "--permission-prompt-tool", "stdio")
    client.say("go")
    request = client.until("control_request")
    assert len(request["request"]["input"]["content"]) < 200_000
    client.answer(request, {"behavior": "allow", "updatedInput": request["request"]["input"]})
    client.until("result")
    assert client.close() == 0
    assert (project / "new.txt").read_text() == big


def test_a_client_that_goes_away_cannot_say_yes(connect, script, project):
    client = connect("--model", script(WRITE, {"text": "no"}), "--permission-prompt-tool", "stdio")
    client.say("go")
    client.until("control_request")
    assert client.close() == 0
    assert not (project / "a.txt").exists()
    assert client.seen[-1]["permission_denials"]


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        ({"behavior": "allow"}, "hi\n"),
        ({"behavior": "allow", "updatedInput": {"file_path": "a.txt", "content": "new"}}, "new"),
        ({"behavior": "allow", "updatedInput": {"file_path": "a.txt"}}, None),
        ({"behavior": "deny"}, None),
        ({"behavior": "maybe"}, None),
        ({}, None),
        ({"behavior": "allow", "updatedPermissions": [{"type": "wild"}]}, None),
    ],
)
def test_answers_to_permission_questions(connect, script, project, answer, written):
    client = connect("--model", script(WRITE, {"text": "on"}), "--permission-prompt-tool", "stdio")
    client.say("go")
    request = client.until("control_request")
    assert request["request"]["subtype"] == "can_use_tool"
    assert request["request"]["blocked_path"] == str(project / "a.txt")
    client.answer(request, answer)
    client.until("result")
    assert client.close() == 0
    file = project / "a.txt"
    assert (file.read_text() if file.exists() else None) == written


def test_a_changed_input_cannot_get_around_a_deny_rule(connect, script, project):
    words = ("--permission-prompt-tool", "stdio", "--disallowedTools", "Edit(/secret/**)")
    client = connect("--model", script(WRITE, {"text": "on"}), *words)
    client.say("go")
    request = client.until("control_request")
    changed = {"file_path": "secret/a.txt", "content": "x"}
    client.answer(request, {"behavior": "allow", "updatedInput": changed})
    client.until("result")
    client.close()
    assert not (project / "secret").exists()


def test_rules_from_an_answer_hold_for_the_session(connect, script, project):
    more = {"call": [{"tool": "Write", "input": {"file_path": "b.txt", "content": "b"}}]}
    model = script(WRITE, more, {"text": "done"})
    client = connect("--model", model, "--permission-prompt-tool", "stdio")
    client.say("go")
    request = client.until("control_request")
    rules = [{"toolName": "Edit", "ruleContent": "/*.txt"}]
    update = {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}
    client.answer(request, {"behavior": "allow", "updatedPermissions": [update]})
    client.until("result")
    client.close()
    assert (project / "b.txt").exists()
    assert kinds(client.seen).count("control_request") == 1


def test_a_question_of_the_model_is_answered_by_the_client(connect, script):
    question = {"question": "Which way?", "header": "Way",
                "options": [{"label": "Left"}, {"label": "Right"}]}  # fmt: skip
    turn = {"call": [{"tool": "AskUserQuestion", "input": {"questions": [question]}, "id": "q1"}]}
    model = script(turn, {"expect": "Right", "text": "To the right."})
    client = connect("--model", model, "--permission-prompt-tool", "stdio")
    client.say("go")
    request = client.until("control_request")["request"]
    assert (request["tool_name"], request["tool_use_id"]) == ("AskUserQuestion", "q1")
    answers = {**request["input"], "answers": {"Which way?": "Right"}}
    client.answer(client.seen[-1], {"behavior": "allow", "updatedInput": answers})
    assert client.until("result")["result"] == "To the right."


def test_files_go_back_to_how_they_were_at_a_message(connect, script, project):
    edit = {"call": [{"tool": "Edit", "input": {
        "file_path": "a.txt", "old_string": "hi", "new_string": "ho"}}]}  # fmt: skip
    model = script(WRITE, {"text": "one"}, edit, {"text": "two"})
    client = connect("--model", model, "--replay-user-messages", *ACCEPT)
    client.say("first", uuid="mine")
    client.until("result")
    client.say("second")
    client.until("result")
    ours = next(m["uuid"] for m in client.seen if m.get("isReplay") and "second" in str(m))
    assert (project / "a.txt").read_text() == "ho\n"
    dry = client.ask("rewind_files", user_message_id=ours, dry_run=True)["response"]
    assert (dry["insertions"], dry["deletions"]) == (1, 1)
    assert (project / "a.txt").read_text() == "ho\n"
    assert client.ask("rewind_files", user_message_id=ours)["subtype"] == "success"
    assert (project / "a.txt").read_text() == "hi\n"
    assert client.ask("rewind_files", user_message_id="mine")["subtype"] == "success"
    assert not (project / "a.txt").exists()
    assert client.close() == 0


def test_retries_and_compaction_are_told(connect, script):
    model = script({"fail": {"how": "overloaded", "retries": 2, "delay_ms": 1}, "text": "Hi."},
                   {"text": "A summary."})  # fmt: skip
    client = connect("--model", model)
    client.say("hello")
    client.until("result")
    client.say("/compact")
    client.until("result")
    client.close()
    assert kinds(client.seen).count("api_retry") == 2
    assert "compact_boundary" in kinds(client.seen)
    parsed(client.seen)


def test_an_unknown_command_is_an_error_of_the_turn_only(connect, script, project):
    command = project / ".claude" / "commands" / "review.md"
    command.parent.mkdir(parents=True)
    command.write_text("Review it.\n")
    client = connect("--model", script({"expect": "Review it.", "text": "Fine."}))
    client.say("/revew")
    failed = client.until("result")
    assert failed["is_error"]
    assert "/review" in failed["result"]
    client.say("/review")
    assert client.until("result")["result"] == "Fine."
    assert client.close() == 0


def test_a_model_that_fails_is_an_error_with_its_reason(connect, script):
    client = connect("--model", script({"fail": "authentication"}))
    client.say("go")
    result = client.until("result")
    assert (result["subtype"], result["is_error"]) == ("success", True)
    assert result["terminal_reason"] == "model_error"
    assert client.close() == 1


def test_termination_leaves_a_conversation_that_goes_on(connect, script):
    turn = {"text": "I wait.", "call": [{"tool": "Sleep", "input": {"seconds": 60}}]}
    model = script(turn, {"text": "Back."})
    never = '{"tool_search": {"when": "never"}}'
    client = connect("--model", model, "--session-id", "s", "--settings", never)
    client.say("wait")
    client.until("assistant")
    client.process.send_signal(signal.SIGTERM)
    assert client.process.wait(30) == 143
    assert "[Request interrupted" not in str(list(read_events(find_data_home(), "s")))
    client = connect("--model", model, "--resume", "s")
    client.say("go on")
    assert client.until("result")["result"] == "Back."


@pytest.mark.parametrize(
    "turn",
    [
        {"text": "I wait.", "call": [{"tool": "Sleep", "input": {"seconds": 60}}]},
        {"text": "slow " * 100, "delay_ms": 100},
    ],
)
def test_a_turn_that_was_ended_from_outside_goes_on_by_itself(connect, script, monkeypatch, turn):
    model = script(turn, {"text": "Back: {{last.text}}"}, {"text": "Again."})
    never = '{"tool_search": {"when": "never"}}'
    words = ("--settings", never, "--include-partial-messages")
    client = connect("--model", model, "--session-id", "s", *words)
    client.say("wait")
    client.until("assistant" if "call" in turn else "stream_event")
    while "call" not in turn and "slow" not in str(client.until("stream_event")):
        pass
    client.process.send_signal(signal.SIGTERM)
    assert client.process.wait(30) == 143
    monkeypatch.setenv("CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "1")
    client = connect("--model", model, "--resume", "s")
    client.ask("initialize", hooks=None)
    said = client.until("result")["result"]
    assert said.startswith("Back: ")
    assert said.endswith("Continue from where you left off.")
    assert client.close() == 0
    client = connect("--model", model, "--resume", "s")
    client.ask("initialize", hooks=None)
    client.say("hello")
    assert client.until("result")["result"] == "Again."


def test_a_command_in_the_background_is_announced_and_told(connect, script):
    run = {"command": "echo hi", "run_in_background": True, "description": "Say hi"}
    wait = {"call": [{"tool": "TaskList", "input": {}}]}
    model = script({"call": [{"tool": "Bash", "input": run}]}, wait, {"text": "Done."})
    client = connect("--model", model, "--allowedTools", "Bash")
    client.say("go")
    started = client.until("system", "task_started")
    assert (started["task_type"], started["description"]) == ("local_bash", "Say hi")
    told = client.until("system", "task_notification")
    assert (told["status"], told["task_id"]) == ("completed", started["task_id"])
    live = [m["tasks"] for m in client.seen if m.get("subtype") == "background_tasks_changed"]
    task = {"task_id": started["task_id"], "task_type": "local_bash", "description": "Say hi"}
    assert live == [[task], []]
    client.close()
    parsed(client.seen)


def start_waiting(more="") -> dict:
    command = f"while [ ! -e go ]; do sleep 0.05; done; {more}"
    run = {"command": command, "run_in_background": True, "description": "Wait"}
    return {"call": [{"tool": "Bash", "input": run}]}


def test_an_idle_connection_starts_a_turn_when_background_work_ends(connect, script, project):
    heard = {"expect": "/exit code 3/", "text": "It failed."}
    model = script(start_waiting("exit 3"), {"text": "Started."}, {"text": "Yes?"}, heard)
    client = connect("--model", model, "--allowedTools", "Bash")
    client.say("go")
    assert client.until("result")["result"] == "Started."
    client.say("still there?")
    assert client.until("result")["result"] == "Yes?"
    (project / "go").touch()
    assert client.until("result")["result"] == "It failed."
    assert client.close() == 0
    parsed(client.seen)


def test_what_ends_after_the_input_is_still_told(connect, script):
    heard = {"expect": "/exit code 0/", "text": "It is over."}
    run = {"command": "sleep 0.5", "run_in_background": True}
    model = script({"call": [{"tool": "Bash", "input": run}]}, {"text": "Started."}, heard)
    client = connect("--model", model, "--allowedTools", "Bash")
    client.say("go")
    assert client.close() == 0
    results = [m["result"] for m in client.seen if m["type"] == "result"]
    assert results == ["Started.", "It is over."]


def test_a_connection_whose_turn_was_interrupted_is_not_woken(connect, script, project):
    blocks = {"call": [{"tool": "Bash", "input": {"command": "touch busy; sleep 600"}}]}
    heard = {"expect": "/go on/", "text": "I hear."}
    model = script(start_waiting(), blocks, heard)
    client = connect("--model", model, "--allowedTools", "Bash")
    client.say("go")
    blocked_until((project / "busy").exists)
    client.ask("interrupt")
    assert client.until("result")["is_error"]
    (project / "go").touch()
    client.until("system", "task_notification")
    client.say("go on")
    assert client.until("result")["result"] == "I hear."
    assert client.close() == 0
    assert len([m for m in client.seen if m["type"] == "result"]) == 2


def test_a_hook_wakes_an_agent_that_waits_for_a_message(connect, script, project):
    command = "while [ ! -e go ]; do sleep 0.05; done; echo 'The build broke.' >&2; exit 2"
    hook = {"type": "command", "command": command, "asyncRewake": True}
    given = json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}})
    model = script({"text": "Hi."}, {"expect": "/The build broke/", "text": "I see."})
    client = connect("--model", model, "--settings", given)
    client.say("hello")
    assert client.until("result")["result"] == "Hi."
    (project / "go").touch()
    assert client.until("result")["result"] == "I see."
    assert client.close() == 0


def test_a_suggestion_follows_each_turn_that_is_over(connect, script):
    model = script(
        {"text": "One."}, {"text": "Go on.", "expect": "likely to say next"}, {"text": "Two."},
        {"text": "NONE"},
    )  # fmt: skip
    client = connect("--model", model, "--prompt-suggestions")
    client.say("first")
    assert client.until("result")["result"] == "One."
    assert client.until("prompt_suggestion")["suggestion"] == "Go on."
    client.say("second")
    assert client.close() == 0
    assert kinds(client.seen).count("prompt_suggestion") == 1


def test_nobody_waits_for_a_suggestion_who_has_something_to_say(connect, script):
    model = script(
        {"text": "One."},
        {"text": "Go on.", "when": "likely to say next", "delay_ms": 3_600_000},
        {"text": "Two."},
    )
    client = connect("--model", model, "--prompt-suggestions")
    client.say("first")
    assert client.until("result")["result"] == "One."
    client.say("second")
    assert client.until("result")["result"] == "Two."
    assert client.close() == 0
    assert "prompt_suggestion" not in kinds(client.seen)
