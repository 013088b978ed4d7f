"""The end of background work, lines and messages reach an agent that is idle, each exactly once."""

import asyncio
import subprocess
import sys

import pytest
from players import Player, calls, says
from tests.expected_types import get_text

from handaxe import Agent, Session
from handaxe.contract.events import UserSaid
from handaxe.contract.messages import UserMessage
from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import read_events

WAITS = "while [ ! -e go ]; do sleep 0.02; done; echo over"
HANG_S = 60


def start(command=WAITS, tool="Bash", **more):
    more = {"run_in_background": True, **more} if tool == "Bash" else more
    return calls((f"c{abs(hash(command))}", tool, {"command": command, "description": "w", **more}))


def count_notices(messages, words):
    texts = [
        get_text(block)
        for message in messages
        if isinstance(message, UserMessage)
        for block in message.content
        if hasattr(block, "text")
    ]
    return sum(text.count(words) for text in texts)


async def test_the_end_of_a_command_is_waited_for_and_heard_once(project):
    model = Player(start(), says("Started."), says("It is over."))
    async with Agent(model, root=project, allow=["Bash"]) as agent:
        assert (await agent.ask("go")).result == "Started."
        assert not agent.wakes.wants_run
        assert not await agent.wait_for_work(0.05)
        (project / "go").touch()
        assert await agent.wait_for_work(HANG_S)
        assert (await agent.ask(None)).result == "It is over."
        assert count_notices(agent.messages, "completed (exit code 0)") == 1
        # Nothing goes on any more, so there is nothing to wait for.
        assert not await agent.wait_for_work()


async def test_what_ended_is_heard_before_the_next_prompt_is_answered(project):
    model = Player(start(), says("Started."), says("I know."))
    async with Agent(model, root=project, allow=["Bash"]) as agent:
        await agent.ask("go")
        (project / "go").touch()
        assert await agent.session.jobs.news(HANG_S)
        await agent.ask("And?")
        notice, prompt = model.requests[2].messages[-1].content
        assert "completed (exit code 0)" in get_text(notice)
        assert get_text(prompt) == "And?"
        assert not agent.wakes.wants_run


async def test_a_run_can_wait_for_commands_itself(project):
    model = Player(start("sleep 0.2"), says("Started."), says("It is over."))
    async with Agent(model, root=project, allow=["Bash"], wait_for_commands_s=HANG_S) as agent:
        assert (await agent.ask("go")).result == "It is over."


async def test_a_command_that_never_ends_holds_a_run_only_so_long(project):
    model = Player(start("sleep 600"), says("Started."))
    async with Agent(model, root=project, allow=["Bash"], wait_for_commands_s=0.2) as agent:
        assert (await agent.ask("go")).result == "Started."
        assert len(agent.session.jobs.running()) == 1


async def test_lines_of_a_watch_that_never_ends_do_not_hold_a_run_for_ever(project):
    chatty = "while true; do echo line; sleep 0.02; done"
    model = Player(start(chatty, "Monitor", persistent=True), *[says("Hm.")] * 500)
    async with Agent(model, root=project, allow=["Monitor"], wait_for_commands_s=0.5) as agent:
        final = await agent.ask("go")
        assert (final.result, final.is_error) == ("Hm.", False)
        assert len(model.requests) < 400


async def test_a_word_of_the_person_ends_the_wait_of_a_run(project):
    model = Player(start(), says("Started."), says("You said so."), says("Over."))
    async with Agent(model, root=project, allow=["Bash"], wait_for_commands_s=HANG_S) as agent:
        run = asyncio.ensure_future(agent.ask("go"))
        while not any("Started." in str(message) for message in agent.messages):
            await asyncio.sleep(0.01)
        agent.send("Do not wait.")
        while len(model.requests) < 3:
            await asyncio.sleep(0.01)
        (project / "go").touch()
        assert (await run).result == "Over."
        assert "Do not wait." in str(model.requests[2].messages[-1])


async def test_an_agent_whose_run_was_stopped_is_not_woken(project):
    model = Player(start(), calls(("f1", "Bash", {"command": "sleep 600"})), says("I hear."))
    async with Agent(model, root=project, allow=["Bash"]) as agent:
        woken = []
        agent.wakes.on_wake = lambda: woken.append(True)
        run = asyncio.ensure_future(agent.ask("go"))
        while len(model.requests) < 2:
            await asyncio.sleep(0.01)
        agent.interrupt()
        assert (await run).is_error
        (project / "go").touch()
        assert await agent.session.jobs.news(HANG_S)
        assert not await agent.wait_for_work()
        assert not agent.wakes.wants_run
        assert woken == []
        assert (await agent.ask("Well?")).result == "I hear."
        assert count_notices(agent.messages, "completed (exit code 0)") == 1


async def test_woken_runs_count_for_the_limits_of_their_prompt(project):
    noisy = "for i in $(seq 50); do echo line; sleep 0.02; done; sleep 600"
    model = Player(start(noisy, "Monitor"), *[says("Hm.")] * 100)
    async with Agent(model, root=project, allow=["Monitor"], max_turns=4) as agent:
        runs = [await agent.ask("go")]
        while await agent.wait_for_work(HANG_S):
            runs.append(await agent.ask(None))
        assert len(runs) <= 3
        assert [final.subtype for final in runs] == ["success"] * len(runs)
        assert len(model.requests) <= 4
        # A new prompt has limits of its own.
        assert (await agent.ask("Again")).subtype == "success"


async def test_a_message_of_an_agent_in_the_background_wakes_its_own(project):
    def help_out(request):
        heard = "gets the message when" in str(request.messages[-1])
        word = {"to": "main", "message": "Look at a.py."}
        return says("Sent.") if heard else calls(("m1", "SendMessage", word))

    class Two(Player):
        async def stream(self, request):
            if "HELPER" in str(request.messages[0]):
                self._turns.insert(0, help_out)
            async for event in super().stream(request):
                yield event

    helper = {"description": "h", "prompt": "HELPER", "run_in_background": True}
    model = Two(calls(("a1", "Agent", helper)), *[says("Heard.")] * 9)
    async with Agent(model, root=project, wait_for_agents_s=0) as agent:
        await agent.ask("go")
        while await agent.wait_for_work(HANG_S):
            assert (await agent.ask(None)).result == "Heard."
        assert count_notices(agent.messages, "Look at a.py.") == 1


DIES = """
import asyncio, os, signal, sys
from handaxe import Session
from handaxe.app.session import get_parts

async def main():
    session = Session(sys.argv[1], allow=["Bash", "Monitor"], session_id="again")
    await session.call("Monitor", command="echo first; echo second; sleep 60", description="m")
    while session.jobs.notices.is_empty(None) or "second" not in session.jobs.list_notices()[0].text:
        await asyncio.sleep(0.01)
    session.jobs.post_message("A word of an agent.")
    if sys.argv[2] == "told":
        session.jobs.take_notices()
    get_parts(session).recorder.flush()
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.proves("SH-5", "BT-15", "BT-30")
@pytest.mark.parametrize("fate", ["told", "untold"])
async def test_lines_and_messages_are_told_once_also_after_a_kill(project, fate):
    words = [sys.executable, "-c", DIES, str(project), fate]
    subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    expected = 1 if fate == "untold" else 0
    for seen in (expected, 0):
        async with Session(project, session_id="again") as resumed:
            told = "\n".join(resumed.jobs.take_notices())
            assert told.count("first\nsecond") == seen
            assert told.count("A word of an agent.") == seen


@pytest.mark.parametrize("cut", ["before", "between"])
async def test_a_notice_and_that_it_was_told_are_one_record_of_the_log(project, cut):
    """Whatever the last record is that a kill leaves, the notice is in the conversation once."""
    model = Player(start(), says("Started."), says("Over."))
    options = {"root": project, "allow": ["Bash"], "session_id": "s"}
    async with Agent(model, **options) as agent:
        await agent.ask("go")
        (project / "go").touch()
        assert await agent.wait_for_work(HANG_S)
        await agent.ask(None)
    log = find_data_home() / "sessions/s/events.jsonl"
    events = list(read_events(find_data_home(), "s"))
    told = next(i for i, e in enumerate(events) if isinstance(e, UserSaid) and e.notices)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: told + (cut == "between")]))
    model = Player(*[says("I hear.")] * 2)
    async with Agent(model, **options) as agent:
        await agent.ask("Well?")
        assert count_notices(agent.messages, "completed (exit code 0)") == 1


async def test_waiting_during_a_run_is_a_mistake(project):
    holds = asyncio.Event()
    async with Agent(Player([holds, *says("Hi.")]), root=project) as agent:
        run = asyncio.ensure_future(agent.ask("go"))
        while not agent.loop.is_running:
            await asyncio.sleep(0.01)
        with pytest.raises(RuntimeError, match="gets news by itself"):
            await agent.wait_for_work()
        holds.set()
        assert (await run).result == "Hi."
