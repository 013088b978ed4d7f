"""Work in the background asks at a real terminal while the person stands at an idle prompt."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from tests.frontends.terminals import HELD, PATIENT, Terminal
from tests.waiting import blocked_until

ALLOWED = json.dumps({"permissions": {"allow": ["Bash"]}})
WAITS = "while [ ! -e {} ]; do sleep 0.05; done"


def write(name: str) -> dict:
    return {"tool": "Write", "input": {"file_path": name, "content": "hi\n"}}


def wait(name: str) -> dict:
    return {"tool": "Bash", "input": {"command": WAITS.format(name)}}


@pytest.fixture
def background(script, project: Path):
    """Opens a terminal whose agents in the background ask when a file is there."""
    opened: list[Terminal] = []

    def open_terminal(
        *agents: list[dict], kind: str = "xterm-256color", then: tuple = (), **options
    ):
        names = [f"helper{number}" for number, _ in enumerate(agents)]
        calls = [
            {"tool": "Agent",
             "input": {"description": name, "prompt": name.upper(), "run_in_background": True}}
            for name in names
        ]  # fmt: skip
        turns = [{"call": calls}, {"text": "Started."}, *then]
        for name, steps in zip(names, agents, strict=True):
            turns += [{"agent": name, **step} for step in steps]
        model = script(*turns, agents={name: {"match": name.upper()} for name in names})
        me = Terminal(
            "--model", model, "--settings", ALLOWED, "--append-system-prompt", "x", "go",
            cwd=project, TERM=kind, **options,
        )  # fmt: skip
        opened.append(me)
        me.wait_for("Started.")
        me.wait_for("›")
        return me

    yield open_terminal
    for one in opened:
        one.close()


def leave(me: Terminal) -> None:
    """Leave; keys that come while an agent is woken by what ended are kept as words."""

    def has_left() -> bool:
        with suppress(OSError):
            me.type("\x15\x04")
        return me.has_ended()

    blocked_until(has_left)
    assert me.end() == 0


@pytest.mark.parametrize("kind", ["xterm-256color", "dumb"])
def test_a_question_at_the_idle_prompt_is_answered_and_the_line_goes_on(background, project, kind):
    enter = "\n" if kind == "dumb" else "\r"
    helper = [{"call": [wait("go"), write("a.txt")]}, {"text": "Written."}]
    me = background(helper, kind=kind, then=({"expect": "hello there", "text": "Hi."},))
    me.type("hello ")
    me.wait_for("hello")
    (project / "go").touch()
    me.wait_for("asks for permission")
    me.wait_for("Allow?")
    me.type("y\n")
    me.wait_for("›")
    me.wait_for("hello")
    me.type(f"there{enter}")
    me.wait_for("Hi.")
    me.wait_for("›")
    blocked_until((project / "a.txt").exists)
    leave(me)


def test_keys_typed_before_the_question_stands_there_are_no_answer(background, project):
    helper = [{"call": [wait("go"), write("a.txt")]}, {"text": "Written."}]
    me = background(helper, program=HELD)
    (project / "hold").touch()
    (project / "go").touch()
    me.wait_for("asks for permission")
    me.type("y" * 40)
    (project / "hold").unlink()
    me.wait_for("Allow?")
    me.type("n\n")
    me.wait_for("›")
    leave(me)
    assert not (project / "a.txt").exists()


def test_questions_of_several_agents_come_one_after_the_other(background, project):
    helpers = [[{"call": [wait("go"), write(f"{n}.txt")]}, {"text": "Written."}] for n in range(3)]
    # What ends in the background may wake the agent before and after the prompt.
    me = background(*helpers, then=({"text": "Hi."},) * 5)
    (project / "go").touch()
    for answer in ("y", "n", "y"):
        me.wait_for("Allow?")
        me.type(f"{answer}\n")
    me.wait_for("›")
    me.type("hello\r")
    me.wait_for("Hi.")
    me.wait_for("›")
    blocked_until(lambda: len(list(project.glob("*.txt"))) == 2)
    leave(me)


def test_ctrl_c_at_such_a_question_is_a_no_and_twice_leaves(background, project):
    helpers = [[{"call": [wait("go"), write(f"{n}.txt")]}, {"text": "Written."}] for n in range(2)]
    me = background(*helpers, program=PATIENT)
    (project / "go").touch()
    me.wait_for("Allow?")
    me.type("\x03")
    me.wait_for("Allow?")
    me.type("\x03")
    assert me.end() == 130
    assert list(project.glob("*.txt")) == []


def test_ctrl_c_is_no_answer_to_the_questions_that_nobody_has_seen(background, project):
    helpers = [[{"call": [wait("go"), write(f"{n}.txt")]}, {"text": "Written."}] for n in range(2)]
    me = background(*helpers)
    (project / "go").touch()
    me.wait_for("Allow?")
    logs = [*Path(os.environ["HANDAXE_HOME"]).rglob("events.jsonl")]
    blocked_until(lambda: sum(log.read_text().count('"call_asked"') for log in logs) == 2)
    me.type("\x03")
    me.wait_for("Allow?")
    me.type("y\n")
    me.wait_for("›")
    blocked_until(lambda: len(list(project.glob("*.txt"))) == 1)
    leave(me)


def test_a_question_that_outlasts_the_turn_keeps_the_prompt_away(background, project):
    helper = [{"call": [wait("go"), write("a.txt")]}, {"text": "Written."}]
    busy = {"call": [wait("done")]}
    me = background(helper, then=(busy, {"text": "I am done."}, *({"text": "Hi."},) * 3))
    me.type("work\r")
    me.wait_for("● Bash")
    (project / "go").touch()
    me.wait_for("Allow?")
    (project / "done").touch()
    me.wait_for("I am done.")
    me.type("y\n")
    me.wait_for("›")
    me.type("hello\r")
    me.wait_for("Hi.")
    me.wait_for("›")
    blocked_until((project / "a.txt").exists)
    leave(me)


def test_what_ends_in_the_background_wakes_the_agent_at_the_idle_prompt(background, project):
    helper = [{"call": [wait("go")]}, {"text": "It is green."}]
    me = background(helper, then=({"expect": "It is green.", "text": "I heard."},))
    (project / "go").touch()
    me.wait_for("I heard.")
    me.wait_for("›")
    leave(me)
