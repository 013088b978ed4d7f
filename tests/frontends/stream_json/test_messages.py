"""What stands in the messages of the stream, and in which order they come."""

import json
import subprocess
import sys

import pytest
from claude_agent_sdk import AssistantMessage
from claude_agent_sdk._internal.message_parser import parse_message
from tests.expected_types import expect_type

READ = {"tool": "Read", "input": {"file_path": "a.txt"}}


def test_a_stream_begins_with_init_whatever_there_is_to_tell(connect, script, project):
    broken = project / ".claude" / "agents" / "broken.md"
    broken.parent.mkdir(parents=True)
    broken.write_text("---\nname: [\n---\nx\n")
    client = connect("--model", script({"text": "Hi."}))
    client.say("hello")
    client.until("result")
    assert client.close() == 0
    assert client.seen[0]["subtype"] == "init"
    told = [m["content"] for m in client.seen if m.get("subtype") == "informational"]
    assert ["broken.md" in sentence for sentence in told] == [True]


def test_the_last_part_of_every_answer_has_its_tokens(connect, script, project):
    (project / "a.txt").write_text("one\n")
    first, second = {"input_tokens": 100, "output_tokens": 10}, {"input_tokens": 200}
    client = connect(
        "--model",
        script(
            {"text": "Look.", "call": [READ, READ], "usage": first},
            {"text": "Done.", "usage": second},
            context_tokens=50_000,
        ),
    )
    client.say("go")
    result = client.until("result")
    assert client.close() == 0
    said = [m["message"] for m in client.seen if m["type"] == "assistant"]
    last = {message["id"]: message for message in said}
    assert [m["usage"]["input_tokens"] for m in last.values()] == [100, 200]
    assert [m["stop_reason"] for m in last.values()] == ["tool_use", "end_turn"]
    assert sum(m["usage"]["input_tokens"] for m in said) == result["usage"]["input_tokens"]
    assert result["modelUsage"]["scripted"]["contextWindow"] == 50_000
    # Every call stands before its result, and a question or a long text cannot hold it back.
    ids = [block["id"] for m in said for block in m["content"] if block["type"] == "tool_use"]
    answered = [
        m["message"]["content"][0]["tool_use_id"] for m in client.seen if m["type"] == "user"
    ]
    assert ids == answered


def test_a_call_is_shown_before_its_question(connect, script, project):
    write = {"tool": "Write", "input": {"file_path": "a.txt", "content": "x"}}
    client = connect("--model", script({"call": [write]}, {"text": "ok"}),
                     "--permission-prompt-tool", "stdio")  # fmt: skip
    client.ask("initialize", hooks=None)
    client.say("go")
    question = client.until("control_request")
    shown = [m for m in client.seen if m["type"] == "assistant"]
    assert [b["id"] for m in shown for b in m["message"]["content"]] == [
        question["request"]["tool_use_id"]
    ]
    client.answer(question, {"behavior": "deny", "message": "no"})
    client.until("result")
    assert client.close() == 0


def test_agents_tell_of_themselves_and_not_as_a_calls_progress(connect, script, project):
    (project / "a.txt").write_text("one\n")
    agent = {"tool": "Agent", "input": {"description": "look", "prompt": "please look"}}
    client = connect(
        "--model",
        script(
            {"call": [agent]},
            {"text": "Done."},
            {"agent": "sub", "call": [READ]},
            {"agent": "sub", "text": "Seen."},
            agents={"sub": {"match": "please look"}},
        ),
    )
    client.say("go")
    client.until("result")
    assert client.close() == 0
    kinds = [m.get("subtype") or m["type"] for m in client.seen]
    assert "task_progress" in kinds
    assert "tool_progress" not in kinds
    started = next(i for i, m in enumerate(client.seen) if m.get("subtype") == "task_started")
    assert client.seen[started]["tool_use_id"] in str(client.seen[started - 1])
    (ended,) = [
        m["tool_use_result"]
        for m in client.seen
        if m["type"] == "user" and m["parent_tool_use_id"] is None
    ]
    assert ended["usage"].keys() >= {"cache_creation_input_tokens", "cache_read_input_tokens"}


def test_a_failure_of_the_server_brings_its_status(connect, script):
    client = connect("--model", script({"fail": {"how": "overloaded", "status": 529}}))
    client.say("go")
    result = client.until("result")
    assert (result["subtype"], result["is_error"], result["api_error_status"]) == (
        "success", True, 529,
    )  # fmt: skip
    assert client.close() == 1
    failed = client.seen[-2]
    assert (failed["type"], failed["error"]) == ("assistant", "server_error")
    assert failed["message"]["content"] == [{"type": "text", "text": result["result"]}]
    assert expect_type(AssistantMessage, parse_message(failed)).error == "server_error"


ODD = "a\u2028b\u2029c\x85d\x0be\x1cf"


@pytest.mark.parametrize(
    "words",
    [
        ("-p", ODD, "--output-format", "json"),
        ("-p", ODD, "--output-format", "stream-json", "--replay-user-messages"),
        ("call", "TaskCreate", f"subject={ODD}", "description=x", "--json"),
        ("explain", f"echo '{ODD}'", "--json"),
        ("sessions", "export", "mine"),
    ],
    ids=lambda words: words[0] + words[-1][-4:],
)
def test_every_object_is_one_line_for_every_reader(script, project, words):
    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "handaxe", *words], stdin=subprocess.DEVNULL,
            capture_output=True, cwd=project, timeout=60, check=True, encoding="utf-8",
        ).stdout  # fmt: skip

    model = ("--model", script({"text": "{{last.text}}"}))
    if words[0] == "sessions":
        run("-p", ODD, "--session-id", "mine", *model)
    out = run(*words, *(model if words[0] == "-p" else ()))
    assert all(json.loads(line) for line in out.splitlines())
    assert json.dumps("a\u2028b")[1:-1] in out


def test_a_prompt_that_says_nothing_is_a_failed_turn_and_leaves_no_trace(connect, script):
    client = connect("--model", script({"expect": "/^hello$/", "text": "Hi."}))
    for words in ("", " \n", [{"type": "text", "text": ""}]):
        client.say(words)
        assert "empty" in client.until("result")["result"]
    client.say("hello")
    assert client.until("result")["result"] == "Hi."
    assert client.close() == 0
