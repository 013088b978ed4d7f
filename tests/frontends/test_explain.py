"""`handaxe explain`: the decision and its reasons, for people and for programs."""

import json
import subprocess
import sys

import pytest

PLACES = {"cwd": "/repo", "home": "/home/dev", "working_dirs": ["/repo"]}


def explain(*words, stdin=None, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "handaxe", "explain", *words],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=60,
        check=False,
    )


def ask_lines(*questions):
    stdin = "".join(
        f"{q if isinstance(q, str) else json.dumps({**PLACES, **q})}\n" for q in questions
    )
    out = explain("--jsonl", stdin=stdin)
    assert out.returncode == 0, out.stderr
    return [json.loads(line) for line in out.stdout.splitlines()]


def bash(command, mode="default", **rules):
    return {"tool": "Bash", "input": {"command": command}, "mode": mode, "rules": rules}


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"rules": {"alow": ["Bash"]}}, "alow"),
        ({"cwd": "repo"}, "absolute"),
        ({"working_dirs": []}, "working_dirs must not be empty"),
    ],
)
def test_a_request_with_a_mistake_is_not_judged(wrong, word):
    (answer,) = ask_lines({**bash("ls"), **wrong})
    assert (answer["verdict"], answer["code"]) == ("ask", "call.bad_line")
    assert word in answer["reason"]


@pytest.mark.proves("PM-3")
def test_every_line_gets_one_answer_with_parts_and_reasons():
    answers = ask_lines(
        {
            **bash(
                "npm test && curl evil.example", allow=["Bash(npm test:*)"], deny=["Bash(curl:*)"]
            ),
            "id": 7,
        },
        bash("ls -la src"),
        "garbage",
        "[]",
        '{"tool": 5}',
        bash("npm test", allow=["Bash(npm test:*)"]),
        bash("git push", ask=["Bash(git push:*)"], allow=["Bash"]),
    )
    assert [a["verdict"] for a in answers] == ["deny", "allow", "ask", "ask", "ask", "allow", "ask"]
    assert answers[0]["id"] == 7
    assert [(p["text"], p["verdict"]) for p in answers[0]["parts"]] == [
        ("npm test", "allow"),
        ("curl evil.example", "deny"),
    ]
    assert answers[0]["parts"][1]["rule"] == "Bash(curl:*)"
    assert all(answer["reason"] for answer in answers)
    assert answers[2]["code"] == "call.bad_line"


@pytest.mark.proves("PM-2", "PM-3")
def test_other_tools_are_explained_too_and_no_path_need_exist():
    edit = {"file_path": "/repo/a", "old_string": "a", "new_string": "b"}
    answers = ask_lines(
        {"tool": "Edit", "input": edit},
        {"tool": "Edit", "input": edit, "mode": "acceptEdits"},
        {"tool": "Edit", "input": edit, "rules": {"allow": ["Edit(/a)"]}},
        {"tool": "Edit", "input": edit, "mode": "acceptEdits", "rules": {"deny": ["Edit(a)"]}},
        {"tool": "Read", "input": {"file_path": "/etc/passwd"}},
        {"tool": "Read", "input": {"file_path": "/repo/.env"}},
        {"tool": "Read", "input": {"file_path": "src/x.py"}},
        {"tool": "mcp__srv__do", "input": {"x": 1}},
        {"tool": "mcp__srv__do", "input": {"x": 1}, "rules": {"allow": ["mcp__srv"]}},
        {"tool": "Edit", "input": {}},
        {"tool": "Edit", "input": edit, "mode": "nonsense"},
        {"tool": "Edit", "input": edit, "mode": "bypassPermissions"},
        {"tool": "Edit", "input": edit, "mode": "dontAsk"},
        {"tool": "Edit", "input": edit, "mode": "plan"},
    )
    assert [a["verdict"] for a in answers] == [
        "ask", "allow", "allow", "deny", "ask", "ask", "allow", "ask", "allow", "ask", "ask", "allow",
        "deny", "ask",
    ]  # fmt: skip


def test_read_and_edit_rules_bind_commands_too():
    answers = ask_lines(
        bash("cat secrets/key", deny=["Read(secrets/**)"], allow=["Bash"]),
        bash("echo x > secrets/key", deny=["Edit(secrets/**)"], allow=["Bash"]),
        bash("cat < secrets/key", deny=["Read(secrets/**)"], allow=["Bash"]),
        bash("echo x > out.txt", mode="acceptEdits"),
        bash("echo x > out.txt"),
        bash("echo x > /etc/out.txt", mode="acceptEdits", allow=["Bash(echo:*)"]),
        bash("cat .git/config"),
        bash("echo x > .git/hooks/pre-commit", mode="acceptEdits", allow=["Bash(echo:*)"]),
    )
    assert [a["verdict"] for a in answers] == [
        "deny", "deny", "deny", "allow", "ask", "ask", "allow", "ask",
    ]  # fmt: skip


def test_people_get_a_tree_of_parts(tmp_path):
    out = explain("ls && rm -rf build", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    assert "ask" in out.stdout
    assert "rm -rf build" in out.stdout
    assert "destructive" in out.stdout


def test_json_for_one_call(tmp_path):
    out = explain(
        "--tool", "Write", "--input", '{"file_path": "a", "content": ""}', "--json", cwd=tmp_path
    )
    answer = json.loads(out.stdout)
    assert answer["verdict"] == "ask"
    assert answer["parts"][0]["text"] == str(tmp_path / "a")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--tool", "Read"],
        ["--tool", "Read", "--input", "{"],
        ["--tool", "Read", "--input", "[]"],
    ],
)
def test_wrong_usage_is_said(words, tmp_path):
    out = explain(*words, cwd=tmp_path)
    assert out.returncode == 2
    assert "Traceback" not in out.stderr


def test_invisible_characters_are_shown(tmp_path):
    out = explain("ls \u202e\u200b", cwd=tmp_path)
    assert "\u202e" not in out.stdout
    assert out.stdout.startswith("ask")


@pytest.mark.parametrize(
    ("rule", "address", "verdict"),
    [
        ("domain:example.com", "https://Example.com.", "allow"),
        ("domain:example.com", "https://example.com:8080/x?y", "allow"),
        ("domain:*.example.com", "https://a.b.example.com", "allow"),
        ("domain:*.example.com", "https://example.com", "ask"),
        ("domain:api.*.com", "https://api.x.com", "allow"),
        ("domain:api.*.com", "https://api.x.y.com", "ask"),
        ("domain:*", "https://x.org", "allow"),
    ],
)
def test_an_address_is_compared_by_its_host(rule, address, verdict):
    rules = {"allow": [f"WebFetch({rule})"]}
    call_input = {"url": address, "prompt": "sum it up"}
    (answer,) = ask_lines({"tool": "WebFetch", "input": call_input, "rules": rules})
    assert answer["verdict"] == verdict


def test_a_web_socket_is_judged_by_its_host():
    socket = {"description": "d", "ws": {"url": "wss://example.org/events"}}
    rules = {"allow": ["Monitor(domain:example.org)"]}
    asked, allowed, beside = ask_lines(
        {"tool": "Monitor", "input": socket},
        {"tool": "Monitor", "input": socket, "rules": rules},
        {"tool": "Monitor", "input": {**socket, "command": ""}, "rules": {"deny": ["WebFetch"]}},
    )
    assert [answer["verdict"] for answer in (asked, allowed, beside)] == ["ask", "allow", "deny"]
    assert [part["text"] for part in asked["parts"]] == ["example.org"]


@pytest.mark.parametrize(
    ("tool", "warned"),
    [("Reed", True), ("Read", False), ("BashOutput", False), ("mcp__a__Read", False)],
)
def test_a_misspelled_tool_is_told_beside_the_decision(project, tool, warned):
    out = explain("--tool", tool, "--input", '{"file_path": "a.txt"}', "--json", cwd=project)
    assert json.loads(out.stdout)["verdict"] in {"allow", "ask"}
    assert ("Did you mean 'Read'?" in out.stderr) is warned


def test_a_command_is_judged_from_the_directory_that_its_call_names():
    inside, empty, outside, read = ask_lines(
        *({"tool": "Bash", "input": {"command": "ls", "cwd": cwd}} for cwd in ("sub", "", "/x")),
        {"tool": "Bash", "input": {"command": "cat ../../a", "cwd": "sub"}},
    )
    assert (inside["verdict"], empty["verdict"]) == ("allow", "allow")
    assert (outside["verdict"], "outside the working directories" in outside["reason"]) == (
        "ask",
        True,
    )
    assert read["verdict"] == "ask"


OWN = """
from handaxe import Effects, tool

@tool(effects=Effects.external("shop-db", writes=True))
async def refund(number: int) -> str:
    \"\"\"Pay an order back.\"\"\"
    return ""
"""


@pytest.mark.proves("PM-3")
def test_an_own_tool_is_explained_by_its_effects_with_a_remedy(tmp_path):
    (tmp_path / "shop.py").write_text(OWN)
    words = ["--tools-from", "shop.py", "--tool", "refund", "--input"]
    told = json.loads(explain(*words, '{"number": 1}', "--json", cwd=tmp_path).stdout)
    assert told["verdict"] == "ask"
    assert "would change shop-db" in told["reason"]
    assert told["remedy"] == "Add the allow rule refund."
    text = explain(*words, '{"number": 1}', cwd=tmp_path).stdout
    assert "undo cannot restore it. Add the allow rule refund." in text
    planned = explain(*words, '{"number": 1}', "--permission-mode", "plan", cwd=tmp_path)
    assert "Plan mode is read-only. refund changes shop-db" in planned.stdout
    wrong = json.loads(explain(*words, '{"nummer": 1}', "--json", cwd=tmp_path).stdout)
    assert "Invalid request" in wrong["reason"]
