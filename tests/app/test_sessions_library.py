"""Sessions on disk as a library: list them, fork, rewind, rename, delete; who may have one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

import handaxe
from handaxe import Agent, Session, SetupError, sessions
from handaxe.contract.events import CallFinished, SessionStarted

THREE_TURNS = """
[[turn]]
text = "One."
call = [{ tool = "Glob", input = { pattern = "*" } }]
[[turn]]
text = "Two."
[[turn]]
text = "Three."
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "turns.toml").write_text(THREE_TURNS)
    return f"scripted:{tmp_path / 'turns.toml'}"


@pytest.fixture
async def talk(project: Path, model: str) -> str:
    """The id of a session in which a person said two things."""
    async with Agent(model, root=project, session_id="talk") as agent:
        await agent.ask("First words.")
        await agent.ask("Second words.")
    return "talk"


def code_of(refused: "pytest.ExceptionInfo[SetupError]") -> str:
    return getattr(refused.value, "code", "")


def cli(*words: str, root: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "handaxe", "sessions", *words],
        cwd=root, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.proves("SS-3")
async def test_sessions_of_a_project_are_listed_with_what_the_command_knows(project, talk):
    async with Session(project, permission_mode="acceptEdits") as unnamed:
        await unnamed.call("Write", file_path="a.txt", content="a\n")
        newest, oldest = handaxe.sessions(project)
        assert (newest.id, newest.open, newest.title) == (unnamed.id, True, "")
        assert (oldest.id, oldest.open, oldest.title) == (talk, False, "First words.")
    assert oldest.time < newest.time
    assert (
        oldest.size
        >= (Path(os.environ["HANDAXE_HOME"]) / "sessions/talk/events.jsonl").stat().st_size
    )
    assert oldest.root == str(project)
    shown = json.loads(cli("--json", "--root", str(project), root=project).stdout)
    assert [one["session_id"] for one in shown] == [newest.id, oldest.id]
    assert shown[1] | {"is_open": False, "title": "First words."} == shown[1]


async def test_only_sessions_of_the_project_are_listed(project, tmp_path, talk):
    (tmp_path / "other").mkdir()
    async with Session(tmp_path / "other") as other:
        await other.call("Glob", pattern="*")
    assert [one.id for one in handaxe.sessions(project)] == [talk]
    assert [one.id for one in handaxe.sessions(tmp_path / "other")] == [other.id]
    assert {one.id for one in handaxe.sessions(None)} == {talk, other.id}
    assert handaxe.sessions(project, home=tmp_path / "nothing") == []
    link = tmp_path / "link"
    link.symlink_to(project)
    assert [one.id for one in handaxe.sessions(link)] == [talk]


@pytest.mark.parametrize("harm", ["empty", "garbage", "directory", "fifo", "cut", "bit"])
async def test_a_broken_log_is_listed_as_damaged_and_hides_no_other(project, talk, harm):
    place = Path(os.environ["HANDAXE_HOME"]) / "sessions"
    whole = (place / talk / "events.jsonl").read_bytes()
    bad = place / "bad" / "events.jsonl"
    bad.parent.mkdir()
    match harm:
        case "directory":
            bad.mkdir()
        case "fifo":
            os.mkfifo(bad)
        case "bit":
            bad.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
        case _:
            text = {"empty": b"", "garbage": b"\xff\x00 no log\n", "cut": whole[: len(whole) // 2]}
            bad.write_bytes(text[harm])
    listed = {one.id: one for one in handaxe.sessions(project)}
    assert listed[talk].damage == ()
    assert set(listed) == {talk, "bad"}
    assert listed["bad"].damage or harm in {"empty", "cut"}
    assert cli(root=project).returncode == 0


async def messages_of(project: Path, session_id: str, model: str) -> list[str]:
    async with Agent(model, root=project, session_id=session_id) as agent:
        return [str(message) for message in agent.messages]


@pytest.mark.proves("SS-3")
async def test_a_fork_at_any_message_holds_what_was_said_until_then(project, talk, model):
    whole = await messages_of(project, talk, model)
    said = sessions.list_messages(talk)
    assert [one.role for one in said] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert [one.text for one in said][::4] == ["First words.", "Second words."]
    last = 0
    for one in said:
        fork = sessions.fork(talk, at=one.id)
        kept = await messages_of(project, fork, model)
        # A call alone gets its result from the log: no provider takes it without.
        assert kept == whole[: len(kept)]
        assert len(kept) >= last
        last = len(kept)
        async with Session(project, fork_of=talk, fork_at=one.id) as same:
            forked = same.id
        assert await messages_of(project, forked, model) == kept
    assert await messages_of(project, talk, model) == whole


async def test_a_rewound_session_goes_on_from_there_and_keeps_its_undo(project, model):
    async with Agent(model, root=project, session_id="s", permission_mode="acceptEdits") as agent:
        await agent.ask("First words.")
        await agent.session.call("Write", file_path="a.txt", content="new\n")
        await agent.ask("Second words.")
    said = sessions.list_messages("s")
    sessions.rewind("s", said[3].id)
    async with Agent(model, root=project, session_id="s") as agent:
        assert "Second" not in str(agent.messages)
        assert "First words." in str(agent.messages[0])
        assert (await agent.session.undo()).ok
    assert not (project / "a.txt").exists()
    # What was left out can be gone back to as well.
    sessions.rewind("s", said[-1].id)
    assert "Second" in "".join(await messages_of(project, "s", model))


async def test_a_rewound_fork_resumes_its_calls_without_making_them_again(project, talk, model):
    fork = sessions.fork(talk, at=sessions.list_messages(talk)[0].id)
    ended = [e.call_id for e in sessions.read_events(fork) if isinstance(e, CallFinished)]
    async with Session(project, session_id=fork) as session:
        again = await session.run(handaxe.ToolCall(ended[0], "Glob", {"pattern": "*"}))
        assert again.id == ended[0]
    assert len([e for e in sessions.read_events(fork) if isinstance(e, CallFinished)]) == 1


async def test_a_renamed_session_is_found_by_its_title(project, talk):
    sessions.rename(talk, "  The talk  ")
    assert [one.title for one in handaxe.sessions(project)] == ["The talk"]
    assert cli("rename", talk, "Another", root=project).returncode == 0
    assert handaxe.sessions(project)[0].name == "Another"
    wrong: list[Any] = ["", " ", "x" * 101, "two\nlines", 3, None]
    for bad in wrong:
        with pytest.raises(SetupError) as refused:
            sessions.rename(talk, bad)
        assert code_of(refused) == "session.bad_title"


CHANGES = {
    "fork": sessions.fork,
    "rewind": lambda name, **more: sessions.rewind(name, "m", **more),
    "rename": lambda name, **more: sessions.rename(name, "t", **more),
    "delete": sessions.delete,
    "list_messages": sessions.list_messages,
    "read_events": lambda name, **more: list(sessions.read_events(name, **more)),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_every_change_refuses_what_it_does_not_know(project, tmp_path, talk, change):
    for name, code in {"nobody": "session.not_found", "../talk": "session.bad_id"}.items():
        with pytest.raises(SetupError) as refused:
            CHANGES[change](name)
        assert code_of(refused) == code
    with pytest.raises(SetupError) as refused:
        CHANGES[change](talk, root=tmp_path)
    assert code_of(refused) == "session.other_root"
    assert [one.id for one in handaxe.sessions(None)] == [talk]


@pytest.mark.parametrize("change", ["rewind", "delete"])
async def test_an_open_session_is_neither_rewound_nor_deleted(project, talk, change):
    async with Session(project, session_id=talk):
        with pytest.raises(SetupError) as refused:
            CHANGES[change](talk)
        assert code_of(refused) == "session.busy"
    program = f"import handaxe\nwith handaxe.connect({str(project)!r}, session_id={talk!r}): print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert [one.open for one in handaxe.sessions(project)] == [True]
        with pytest.raises(SetupError) as refused:
            CHANGES[change](talk)
        assert code_of(refused) == "session.busy"
        other.kill()
    assert [one.open for one in handaxe.sessions(project)] == [False]


async def test_a_message_that_nobody_said_leaves_no_fork_behind(project, talk):
    for go in (
        lambda: sessions.fork(talk, at="nothing"),
        lambda: sessions.rewind(talk, "nothing"),
        lambda: Session(project, fork_of=talk, fork_at="nothing"),
    ):
        with pytest.raises(SetupError) as refused:
            go()
        assert code_of(refused) == "session.no_message"
    with pytest.raises(SetupError) as refused:
        sessions.fork(talk, new_id=talk)
    assert code_of(refused) == "session.exists"
    with pytest.raises(SetupError, match="fork_of"):
        Session(project, fork_at="x")
    with pytest.raises(SetupError):
        Session(project, fork_of=talk, on_question=cast("Any", "no function"))
    assert [one.id for one in handaxe.sessions(None)] == [talk]


async def test_the_command_forks_and_rewinds_by_message(project, talk, model):
    listed = json.loads(cli("messages", talk, "--json", root=project).stdout)
    assert [one["id"] for one in listed] == [one.id for one in sessions.list_messages(talk)]
    fork = cli("fork", talk, "--at", listed[0]["id"], root=project).stdout.strip()
    assert len(await messages_of(project, fork, model)) == 1
    assert cli("rewind", talk, listed[3]["id"], root=project).returncode == 0
    assert "Second" not in "".join(await messages_of(project, talk, model))
    for words in (
        ("rewind", talk),
        ("rename", talk),
        ("delete", talk, "x"),
        ("show", talk, "--at", "x"),
    ):
        out = cli(*words, root=project)
        assert (out.returncode, out.stdout) == (2, "")
        assert out.stderr.startswith("handaxe: ")


@pytest.mark.proves("SS-3")
async def test_a_session_whose_log_names_another_root_is_refused(project, tmp_path, talk):
    (tmp_path / "other").mkdir()
    for options in ({"session_id": talk}, {"fork_of": talk}):
        with pytest.raises(SetupError) as refused:
            Session(tmp_path / "other", **options)
        assert code_of(refused) == "session.other_root"
    # Nothing of it is kept: its own project still opens it.
    async with Session(project, session_id=talk) as session:
        assert (await session.call("Glob", pattern="*")).ok
    started = [e for e in sessions.read_events(talk) if isinstance(e, SessionStarted)]
    assert [one.root for one in started] == [str(project)]


async def test_the_module_and_the_call_are_one(project, talk):
    import handaxe.sessions as module
    from handaxe.sessions import fork, list_sessions

    assert module is handaxe.sessions
    assert handaxe.sessions.fork is fork
    assert list_sessions(project) == handaxe.sessions(project)
    wrong: list[Any] = ["", 3, b"x"]
    for bad in wrong:
        with pytest.raises(SetupError):
            handaxe.sessions(bad)
