"""`--defer-permissions` ends a run before what needs a yes; `--answer` gives it in the next one."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.proves("PL-4")


def write(call_id: str) -> dict:
    call_input = {"file_path": f"{call_id}.txt", "content": "hi\n"}
    return {"tool": "Write", "id": call_id, "input": call_input}


ASKED = {"text": "I write.", "call": [write("one"), write("two")]}


@pytest.fixture
def run(project, script):
    """A headless run; its exit code, the last line of its output, and what it says beside."""

    def running(*words: str, turns: tuple[dict, ...] = (ASKED,), form: str = "json"):
        out = subprocess.run(
            [sys.executable, "-m", "handaxe", "-p", *words, "--model", script(*turns),
             "--output-format", form],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=project, timeout=60,
            check=False,
        )  # fmt: skip
        said = out.stdout.splitlines()[-1:] or [""]
        told = json.loads(said[0]) if form != "text" and said[0] else said[0]
        return out.returncode, told, out.stderr

    return running


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_a_run_ends_with_what_waits_and_goes_on_with_the_answers(run, project, form):
    code, first, _ = run("go", "--defer-permissions", form=form)
    assert code == 3
    assert (first["subtype"], first["is_error"]) == ("success", False)
    assert (first["terminal_reason"], first["handaxe_reason"]) == (
        "tool_deferred", "permission_pending",
    )  # fmt: skip
    assert [call["id"] for call in first["pending"]] == ["one", "two"]
    call = first["pending"][0]
    assert (call["name"], call["input"]["content"]) == ("Write", "hi\n")
    assert call["preview"][0]["block"] == "code"
    assert call["permission_suggestions"]
    assert first["permission_denials"] == []
    resume = ("--resume", first["session_id"])
    code, again, _ = run(*resume, form=form)
    assert (code, again["pending"]) == (3, first["pending"])
    turns = (ASKED, {"expect": "/Not that one/", "text": "Done."})
    answers = ("--answer", "one=allow", "--answer", "two=deny:Not that one: a=b.")
    code, last, _ = run(*resume, *answers, turns=turns, form=form)
    assert (code, last["result"]) == (3, "Done.")
    assert "pending" not in last
    assert (project / "one.txt").read_text() == "hi\n"
    assert not (project / "two.txt").exists()
    code, _, said = run(*resume, *answers, form=form)
    assert code == 2
    assert "waits for no answer" in said


def test_text_says_how_to_answer(run):
    code, said, beside = run("go", "--defer-permissions", form="text")
    assert (code, said) == (3, "I write.")
    assert "--answer one=allow|deny --answer two=allow|deny" in beside


def test_a_prompt_while_calls_wait_is_not_lost_silently(run):
    _, first, _ = run("go", "--defer-permissions")
    code, told, _ = run("more", "--resume", first["session_id"])
    assert (code, told["is_error"], len(told["pending"])) == (3, True, 2)
    assert "was not sent" in told["result"]


@pytest.mark.parametrize("answer", ["one", "one=maybe", "=allow", "one=", "one=allow=deny", ""])
def test_what_is_no_answer_is_wrong_usage(run, answer):
    code, _, said = run("--resume", "x", "--answer", answer, form="text")
    assert code == 2
    assert "CALL_ID=allow" in said


def test_an_answer_needs_a_conversation_and_counts_once(run):
    assert run("go", "--answer", "one=allow", form="text")[0] == 2
    code, _, said = run("--resume", "x", "--answer", "a=allow", "--answer", "a=deny", form="text")
    assert code == 2
    assert "twice" in said
