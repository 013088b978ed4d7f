"""Questions in a terminal, answered by somebody at the other end of a real pseudo-terminal."""

import json
import os
import pty
import select
import subprocess
import sys
import time

import msgspec
import pytest
from tests.waiting import HANG_S

from handaxe import Allow, Deny, PermissionRequest
from handaxe.contract.decision import Loss, PermissionSuggestion, RuleProposal
from handaxe.frontends.cli.render import BlockRenderer
from handaxe.frontends.cli.terminal_prompts import format_question, read_answer

PROPOSAL = RuleProposal("Edit(/src/**)", ("/p/src/a",), ("/p/other",))
SUGGESTIONS = (
    PermissionSuggestion("Allow all edits.", mode="acceptEdits"),
    PermissionSuggestion("Allow src.", rules=("Edit(/src/**)",)),
    PermissionSuggestion("Allow src here.", "localSettings", ("Edit(/src/**)",)),
    PermissionSuggestion("Allow src everywhere.", "userSettings", ("Edit(/src/**)",)),
)
REQUEST = PermissionRequest(
    "1", "Write", {"file_path": "/p/src/a", "content": "x\x1b[31m\u202e\ny"}, "because", cwd="/p",
    proposals=(PROPOSAL,), suggestions=SUGGESTIONS,
)  # fmt: skip


def talk(words, answers, cwd):
    """Run a command in a terminal, type the answers when it asks; all it showed, and its code."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "handaxe", *words], stdin=other, stdout=other, stderr=other, cwd=cwd
    )
    os.close(other)
    shown, waiting = "", list(answers)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([main], [], [], 0.2)[0]:
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            shown += piece.decode()
            if waiting and shown.count("Allow?") > len(answers) - len(waiting):
                os.write(main, waiting.pop(0).encode() + b"\n")
        elif process.poll() is not None:
            break
    os.close(main)
    return shown, process.wait(HANG_S)


def test_a_yes_lets_the_call_run_and_the_diff_was_shown(project):
    (project / "a.txt").write_text("one\n")
    options = ["--session-id", "t"]
    subprocess.run(
        [sys.executable, "-m", "handaxe", "call", "Read", "file_path=a.txt", *options],
        cwd=project,
        check=True,
    )
    words = ["call", "Edit", "file_path=a.txt", "old_string=one", "new_string=two", *options]
    shown, code = talk(words, ["y"], project)
    assert code == 0, shown
    assert "-one" in shown.partition("Allow?")[0]
    assert "+two" in shown.partition("Allow?")[0]
    assert (project / "a.txt").read_text() == "two\n"


def test_a_no_with_a_comment_reaches_the_result(project):
    words = ["call", "Write", "file_path=a.txt", "content=x"]
    shown, code = talk(words, ["what?", "n use b.txt instead"], project)
    assert code == 3, shown
    assert "Please answer" in shown
    assert "use b.txt instead" in shown.rpartition("`n COMMENT`: no, and tell the agent why.")[2]
    assert not (project / "a.txt").exists()


@pytest.mark.proves("PM-4")
def test_a_lasting_yes_is_written_down_where_it_says(project, tmp_path, monkeypatch):
    monkeypatch.setenv("HANDAXE_CONFIG_HOME", str(tmp_path / "config"))
    shown, code = talk(["call", "Write", "file_path=src/a.txt", "content=x"], ["a"], project)
    assert code == 0, shown
    again = subprocess.run(
        [sys.executable, "-m", "handaxe", "call", "Write", "file_path=src/b.txt", "content=x", "--json"],
        cwd=project, capture_output=True, check=False,
    )  # fmt: skip
    result = json.loads(again.stdout)
    assert result["ok"], result
    assert result["decision"]["by"] == "rule"


def test_the_question_is_complete_and_cannot_lie():
    shown = format_question(REQUEST, BlockRenderer(colour=False))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    for piece in ("/p/src/a", "because", "Edit(/src/**)", "/p/other", "y"):
        assert piece in shown


def test_the_question_says_what_would_be_destroyed_and_which_agent_asks():
    loss = Loss(text="rm -rf build", form="rm", reason="deletes files for good")
    request = msgspec.structs.replace(
        REQUEST, destructive=(loss,), agent_id="a1", agent_type="Explore"
    )
    shown = format_question(request, BlockRenderer(colour=False))
    assert "Write of agent a1 (Explore) asks for permission" in shown
    assert "destructive: deletes files for good" in shown


def yes(remember, **more):
    return Allow("The user approved it.", by="user", remember=remember, **more)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y\n", Allow("The user approved it.", by="user")),
        ("YES", Allow("The user approved it.", by="user")),
        ("s", yes("session", mode="acceptEdits")),
        ("session", yes("session", mode="acceptEdits")),
        ("S2", yes("session", rules=("Edit(/src/**)",))),
        ("session2", yes("session", rules=("Edit(/src/**)",))),
        ("p", yes("project", rules=("Edit(/src/**)",))),
        ("project", yes("project", rules=("Edit(/src/**)",))),
        ("a", yes("always", rules=("Edit(/src/**)",))),
        ("always", yes("always", rules=("Edit(/src/**)",))),
        ("s3", None),
        ("p2", None),
        ("s please", None),
        ("n", Deny("The user denied it.", by="user")),
        ("no not now ", Deny("not now", by="user")),
        ("", None),
        ("maybe", None),
        ("y please", None),
        (None, Deny("No one answered.", by="user")),
    ],
)
def test_answers_mean_what_they_say(line, expected):
    assert read_answer(line, REQUEST) == expected


@pytest.mark.parametrize(
    ("there", "words", "once"),
    [
        (None, ["Write", "file_path=a.txt", "content=alpha\nbeta\n"], ["alpha", "beta"]),
        ("old\nbeta\n", ["Write", "file_path=a.txt", "content=alpha\nbeta\n"], ["alpha", "beta"]),
        ("old\n", ["Edit", "file_path=a.txt", "old_string=old", "new_string=alpha"], ["alpha", "old"]),
    ],
)  # fmt: skip
def test_what_is_to_be_written_is_shown_once(project, there, words, once):
    options = ["--session-id", "t"]
    if there is not None:
        (project / "a.txt").write_text(there)
        read = [sys.executable, "-m", "handaxe", "call", "Read", "file_path=a.txt", *options]
        subprocess.run(read, cwd=project, check=True)
    shown, code = talk(["call", *words, *options], ["n"], project)
    question = shown.partition("Allow?")[0]
    assert code != 0
    assert [question.count(word) for word in once] == [1] * len(once), question
    assert "a.txt" in question


def test_what_the_preview_does_not_show_is_shown():
    from handaxe.contract.display import Code, Diff

    given = {"file_path": "/p/a", "content": "x\ny\n", "command": "x\ny\n!"}
    whole = Code("x\ny\n", "/p/a")
    for preview, hidden in [
        (None, set()),
        ((whole,), {"content"}),
        ((Code("x\ny", "/p/a"),), set()),
        ((Diff("/p/a", ()),), set()),
    ]:
        request = PermissionRequest("1", "Write", given, "because", preview=preview)
        assert given.keys() - request.told_input.keys() == hidden
    odd = {"content": "x\r\ny\n"}
    request = PermissionRequest("1", "Write", odd, "because", preview=(Code("x\r\ny\n"),))
    assert request.told_input == odd


@pytest.mark.parametrize("sign", ["\u00ad", "\ufeff", "\u061c", "\u2028", "\U000e0041", "\u3000"])
def test_signs_that_nobody_sees_are_spelled_out_in_previews(sign):
    from handaxe.contract.display import Code

    painted = BlockRenderer(colour=False).block(Code(f"a{sign}b"))
    assert sign not in painted
    assert f"{ord(sign):02x}" in painted.lower()
