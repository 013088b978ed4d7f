"""A permission question outlives its process, and its answer counts exactly once."""

import asyncio
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from pairing import complaints
from players import Player, calls, says
from tests.expected_types import get_text

from handaxe import (
    Agent,
    Allow,
    Defer,
    Deny,
    PermissionRequest,
    Session,
    SetupError,
    ToolCall,
)  # fmt: skip
from handaxe.contract.display import Diff
from handaxe.contract.faults import BadAnswer, NotPending
from handaxe.contract.messages import ToolResultBlock, UserMessage
from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import fork_session

pytestmark = pytest.mark.proves("PL-2", "PL-4")


async def put_off(_request: PermissionRequest) -> Defer:
    return Defer()


def write(name: str, text: str = "new\n", call_id: str = "") -> tuple[str, str, dict[str, str]]:
    return (call_id or name.removesuffix(".txt"), "Write", {"file_path": name, "content": text})


async def begin(project: Path, *asked, **options):
    """Run until everything asked for waits; the last event."""
    async with (
        Session(project, session_id="s", on_ask=put_off, **options) as session,
        Agent(Player(calls(*asked)), session, memory=False) as agent,
    ):
        return await agent.ask("Work.")


async def resume(project: Path, answers=None, *, prompt=None, session_id="s", **options):
    """Go on in another session object; the last event, and what the model was sent."""
    model = Player(says("Done."), says("Again."))
    async with (
        Session(project, session_id=session_id, **options) as session,
        Agent(model, session, memory=False) as agent,
    ):
        final = await agent.ask(prompt, answers=answers)
        return final, agent.messages


def results_in(messages) -> dict[str, str]:
    return {
        block.tool_use_id: "".join(get_text(part) for part in block.content)
        for message in messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, ToolResultBlock)
    }


def kill_while_it_asks(project: Path, count: int) -> None:
    """Have a process ask so many questions, and kill it."""
    script = Path(__file__).with_name("asking_agent.py")
    child = subprocess.Popen(
        [sys.executable, script, project, "s", str(count)],
        stdout=subprocess.PIPE,
        env={**os.environ},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"asked\n"
    child.kill()
    child.wait()
    child.stdout.close()


async def test_questions_of_a_killed_process_are_answered_in_another_one(project: Path):
    (project / "seen.txt").write_text("seen\n")
    kill_while_it_asks(project, 3)
    async with Session(project, session_id="s") as session:
        assert [request.call_id for request in session.pending] == ["w0", "w1", "w2"]
        assert session.pending[1].input["content"] == "new\n"
    first, _ = await resume(project, {"w1": Allow(), "w2": Deny("Not this one.")})
    assert [request.call_id for request in first.pending] == ["w0"]
    assert first.terminal_reason == "permission_pending"
    assert not first.is_error
    assert sorted(path.name for path in project.glob("?.txt")) == ["1.txt"]
    (project / "1.txt").unlink()
    (project / "seen.txt").write_text("other\n")
    last, messages = await resume(project, {"w0": Allow()}, permission_mode="acceptEdits")
    told = results_in(messages)
    assert (last.result, last.pending) == ("Done.", ())
    assert "seen" in told["look"]
    assert "Not this one." in told["w2"]
    assert not any("started" in text for text in told.values())
    assert list(told) == ["look", "w0", "w1", "w2", "behind"]
    assert sorted(path.name for path in project.glob("?.txt")) == ["0.txt"]
    assert (project / "0.txt").read_text() == "newer\n"
    assert not complaints(messages)


ASKS_AGAIN = """
import asyncio, sys
from handaxe import Session, ToolCall

async def on_ask(request):
    print("asked", flush=True)
    await asyncio.Event().wait()

async def main():
    async with Session(sys.argv[1], session_id="s", on_ask=on_ask) as session:
        call_input = {"file_path": "0.txt", "content": "new\\n"}
        await session.run(ToolCall(session.pending[0].call_id, "Write", call_input))

asyncio.run(main())
"""


async def test_a_question_survives_any_number_of_processes_that_die_with_it(project: Path):
    (project / "seen.txt").write_text("seen\n")
    kill_while_it_asks(project, 1)
    for _ in range(2):
        final, _ = await resume(project)
        assert [request.call_id for request in final.pending] == ["w0"]
    asking = subprocess.Popen(
        [sys.executable, "-c", ASKS_AGAIN, project], stdout=subprocess.PIPE, env={**os.environ}
    )
    assert asking.stdout is not None
    assert asking.stdout.readline() == b"asked\n"
    asking.kill()
    asking.wait()
    asking.stdout.close()
    last, messages = await resume(project, {"w0": Allow()}, permission_mode="acceptEdits")
    assert (last.result, last.pending) == ("Done.", ())
    assert not any("started" in text for text in results_in(messages).values())


@pytest.mark.parametrize("number", range(1, 4))
async def test_every_order_of_answers_makes_every_call_once(project: Path, number: int):
    names = [f"n{each}" for each in range(number)]
    for run, order in enumerate(itertools.permutations(names)):
        root = project / f"run{run}"
        root.mkdir()
        session_id = f"s{number}{run}"
        async with Session(root, session_id=session_id, on_ask=put_off) as session:
            model = Player(calls(*(write(f"{name}.txt") for name in names)))
            async with Agent(model, session, memory=False) as agent:
                final = await agent.ask("Work.")
        messages = ()
        for done, name in enumerate(order):
            left = [each for each in names if each not in order[:done]]
            assert [request.call_id for request in final.pending] == left
            assert sorted(path.stem for path in root.iterdir()) == sorted(order[:done])
            final, messages = await resume(root, {name: Allow()}, session_id=session_id)
        assert final.result == "Done."
        assert list(results_in(messages)) == names
        for name in order:
            with pytest.raises(NotPending):
                await resume(root, {name: Allow()}, session_id=session_id)


@pytest.mark.proves("EX-1")
async def test_a_call_never_overtakes_one_that_waits(project: Path):
    edit = ("edit", "Edit", {"file_path": "a.txt", "old_string": "new", "new_string": "newer"})
    final = await begin(project, write("a.txt"), edit, allow="Edit(/b/**)")
    assert [request.call_id for request in final.pending] == ["a"]
    final, messages = await resume(project, {"a": Allow()}, permission_mode="acceptEdits")
    assert final.result == "Done."
    assert (project / "a.txt").read_text() == "newer\n"
    assert list(results_in(messages)) == ["a", "edit"]


async def test_a_pending_question_tells_a_person_everything(project: Path):
    (project / "a.txt").write_text("one\n")
    edit = ("edit", "Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    async with Session(project, session_id="s", on_ask=put_off) as session:
        read = calls(("read", "Read", {"file_path": "a.txt"}))
        async with Agent(Player(read, calls(edit)), session, memory=False) as agent:
            live = (await agent.ask("Work.")).pending
    async with Session(project, session_id="s") as session:
        logged = session.pending
    assert logged == live
    (request,) = logged
    assert (request.call_id, request.tool, request.input["new_string"]) == ("edit", "Edit", "two")
    (diff,) = [block for block in request.preview or () if isinstance(block, Diff)]
    assert diff.hunks[0].lines == ("-one", "+two")
    assert request.suggestions
    assert "default mode" in request.reason


WRONG: list[tuple[Any, type[BadAnswer | NotPending]]] = [
    ([("a", Allow())], BadAnswer),
    ("allow", BadAnswer),
    ({"a": True}, BadAnswer),
    ({"a": "allow"}, BadAnswer),
    ({"a": None}, BadAnswer),
    ({"a": Defer()}, BadAnswer),
    ({"a": Allow}, BadAnswer),
    ({"a": Allow(remember=cast("Any", "for ever"))}, BadAnswer),
    ({"a": Allow(input=cast("Any", "x"))}, BadAnswer),
    ({"nobody": Allow()}, NotPending),
    ({1: Allow()}, NotPending),
    ({"": Deny()}, NotPending),
    ({"a": Allow(), "nobody": Allow()}, NotPending),
]


@pytest.mark.parametrize(("answers", "fault"), WRONG)
async def test_a_wrong_answer_is_an_error_that_changes_nothing(
    project: Path, answers: Any, fault: type[BadAnswer | NotPending]
):
    await begin(project, write("a.txt"))
    with pytest.raises(fault) as refused:
        await resume(project, answers)
    assert issubclass(type(refused.value), SetupError)
    assert refused.value.code in {"permission.bad_answer", "permission.not_pending"}
    assert not (project / "a.txt").exists()
    final, _ = await resume(project, {"a": Allow()})
    assert final.result == "Done."


async def test_an_answer_counts_for_what_was_shown_only(project: Path):
    (project / "a.txt").write_text("one\n")
    read = calls(("read", "Read", {"file_path": "a.txt"}))
    async with Session(project, session_id="s", on_ask=put_off) as session:
        model = Player(read, calls(write("a.txt", "two\n")))
        async with Agent(model, session, memory=False) as agent:
            await agent.ask("Work.")
    (project / "x").mkdir()
    (project / "x" / "b.txt").write_text("other\n")
    (project / "a.txt").unlink()
    (project / "a.txt").symlink_to("x/b.txt")
    final, messages = await resume(project, {"a": Allow()})
    assert (project / "x" / "b.txt").read_text() == "other\n"
    assert final.pending or "a" in results_in(messages)


async def test_a_command_whose_paths_lead_elsewhere_is_asked_again(project: Path):
    for name in ("x", "y"):
        (project / name).mkdir()
        (project / name / "f").write_text(name)
    (project / "link").symlink_to("x")
    command = ("c", "Bash", {"command": "touch link/g"})
    final = await begin(project, command)
    assert [request.call_id for request in final.pending] == ["c"]
    (project / "link").unlink()
    (project / "link").symlink_to("y")
    final, _ = await resume(project, {"c": Allow()})
    assert [request.call_id for request in final.pending] == ["c"]
    assert final.pending[0].reason.startswith("The previous question no longer applies.")
    assert not (project / "y" / "g").exists()
    final, _ = await resume(project, {"c": Allow()})
    assert final.result == "Done."
    assert (project / "y" / "g").exists()


async def test_a_no_holds_though_a_rule_would_allow_the_call_by_now(project: Path):
    await begin(project, write("a.txt"))
    final, messages = await resume(project, {"a": Deny("No.")}, allow="Write")
    assert final.result == "Done."
    assert results_in(messages) == {"a": "The call was refused. No."}
    assert not (project / "a.txt").exists()


async def test_what_rules_allow_by_now_needs_no_answer(project: Path):
    await begin(project, write("a.txt"))
    final, _ = await resume(project, allow="Write")
    assert (final.result, final.pending) == ("Done.", ())
    assert (project / "a.txt").exists()


async def test_an_answer_may_change_the_input(project: Path):
    await begin(project, write("a.txt"))
    other = {"file_path": "b.txt", "content": "mine\n"}
    final, _ = await resume(project, {"a": Allow(input=other)})
    assert final.result == "Done."
    assert (project / "b.txt").read_text() == "mine\n"
    assert not (project / "a.txt").exists()


async def test_a_yes_for_the_session_covers_what_else_waits(project: Path):
    await begin(project, write("a.txt"), write("b.txt"))
    answer = Allow(remember="session", rules=("Write",))
    final, _ = await resume(project, {"a": answer})
    assert final.result == "Done."
    assert (project / "b.txt").exists()


async def test_a_prompt_is_not_lost_silently_while_calls_wait(project: Path):
    await begin(project, write("a.txt"))
    final, messages = await resume(project, prompt="And now?")
    assert final.is_error
    assert "was not sent" in final.result
    assert [request.call_id for request in final.pending] == ["a"]
    assert "And now?" not in str(messages)
    final, messages = await resume(project, {"a": Allow()}, prompt="And now?")
    assert final.result == "Done."
    assert "And now?" in str(messages)


async def test_with_somebody_there_the_question_is_put_again(project: Path):
    await begin(project, write("a.txt"))
    asked: list[str] = []

    async def on_ask(request: PermissionRequest) -> Allow:
        asked.append(request.call_id)
        return Allow()

    final, _ = await resume(project, on_ask=on_ask)
    assert (final.result, asked) == ("Done.", ["a"])
    assert (project / "a.txt").exists()


async def test_a_fork_cannot_answer_and_the_original_can(project: Path):
    await begin(project, write("a.txt"))
    fork_session(find_data_home(), "s", "copy")
    with pytest.raises(NotPending):
        await resume(project, {"a": Allow()}, session_id="copy")
    final, messages = await resume(project, session_id="copy")
    assert final.pending == ()
    assert "had not started" in results_in(messages)["a"]
    final, _ = await resume(project, {"a": Allow()})
    assert final.result == "Done."
    assert (project / "a.txt").exists()


async def test_rewinding_drops_what_waits(project: Path):
    async with Session(project, session_id="s", on_ask=put_off) as session:
        model = Player(says("Hello."), calls(write("a.txt")), says("Other."))
        async with Agent(model, session, memory=False) as agent:
            await agent.ask("Hi.")
            before = agent.messages
            assert (await agent.ask("Work.")).pending
            agent.loop.rewind(before)
            assert session.pending == ()
            with pytest.raises(NotPending):
                await agent.ask(None, answers={"a": Allow()})
            final = await agent.ask("Something else.")
            assert (final.result, final.pending) == ("Other.", ())
    async with Session(project, session_id="s") as session:
        assert session.pending == ()
    assert not (project / "a.txt").exists()


async def test_a_suspended_run_keeps_its_questions_and_an_interrupted_one_does_not(project: Path):
    for session_id, stop in (("kept", "suspend"), ("lost", "interrupt")):
        is_asked = asyncio.Event()

        async def on_ask(_request: PermissionRequest, is_asked=is_asked) -> Allow:
            is_asked.set()
            await asyncio.Event().wait()
            return Allow()

        async with (
            Session(project, session_id=session_id, on_ask=on_ask) as session,
            Agent(Player(calls(write("a.txt"))), session, memory=False) as agent,
        ):
            running = asyncio.ensure_future(agent.ask("Work."))
            await is_asked.wait()
            getattr(agent, stop)()
            await running
    assert [r.call_id for r in (await resume(project, session_id="kept"))[0].pending] == ["a"]
    final, messages = await resume(project, session_id="lost")
    assert final.pending == ()
    assert "had not started" in results_in(messages)["a"]


@pytest.mark.parametrize("in_parallel", [False, True])
async def test_questions_are_asked_one_at_a_time_unless_wanted_otherwise(project, in_parallel):
    most, now = 0, 0

    async def on_ask(_request: PermissionRequest) -> Allow:
        nonlocal most, now
        now += 1
        most = max(most, now)
        for _ in range(50):
            await asyncio.sleep(0)
        now -= 1
        return Allow()

    async with Session(project, on_ask=on_ask, ask_in_parallel=in_parallel) as session:
        asked = [("Write", {"file_path": f"{n}.txt", "content": ""}) for n in range(3)]
        results = await session.call_many(asked)
    assert all(result.ok for result in results)
    assert most == (3 if in_parallel else 1)


async def test_a_plain_loop_answers_later_as_well(project: Path):
    call_of = ToolCall("one", "Write", {"file_path": "a.txt", "content": "x"})
    async with Session(project, session_id="s", on_ask=put_off) as session:
        result = await session.run(call_of)
        assert (result.ok, result.code) == (False, "permission.pending")
        assert [request.call_id for request in session.pending] == ["one"]
    async with Session(project, session_id="s") as session:
        assert (await session.run(call_of)).code == "permission.pending"
        assert (await session.run(call_of, answer=Allow())).ok
        assert session.pending == ()
        (project / "a.txt").unlink()
        assert (await session.run(call_of)).ok
        with pytest.raises(NotPending):
            await session.run(call_of, answer=Allow())
    assert not (project / "a.txt").exists()


async def test_a_call_inside_another_one_cannot_be_put_off(project: Path):
    async def hook(_event: dict[str, Any]) -> dict[str, Any]:
        inner = await session.call("Write", file_path="b.txt", content="x")
        seen.append(inner.code)
        return {}

    seen: list[str | None] = []
    hooks = {"PreToolUse": [{"matcher": "Read", "hooks": [hook]}]}
    (project / "a.txt").write_text("a")
    async with Session(project, on_ask=put_off, hooks=hooks) as session:
        assert (await session.call("Read", file_path="a.txt")).ok
        assert session.pending == ()
    assert seen == ["permission.asked"]


async def test_without_an_option_a_headless_question_is_refused_as_ever(project: Path):
    async with Session(project, session_id="s") as session:
        model = Player(calls(write("a.txt")), says("Done."))
        async with Agent(model, session, memory=False) as agent:
            final = await agent.ask("Work.")
    assert (final.result, final.pending) == ("Done.", ())
    assert [result.code for result in final.denials] == ["permission.asked"]
