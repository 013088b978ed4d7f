"""The log of a session: what is in it when somebody sees a result, and what is said if it is not."""

import asyncio
from pathlib import Path

import pytest
from tests.waiting import until

from handaxe import Session
from handaxe.app.session import get_parts
from handaxe.contract.call import ToolCall
from handaxe.contract.events import CallFinished, CallStarted, Event
from handaxe.storage.event_log import LONG_CHARS, LoggedEvents


def events_of(home: Path, session: Session) -> list[Event]:
    return [event for _, event in LoggedEvents(home / "sessions" / session.id / "events.jsonl")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def look(session: Session, name: str):
    result = await session.run(
        ToolCall(get_parts(session).new_call_id(), "Read", {"file_path": name})
    )
    return get_parts(session).recorder.logged(result)


async def test_a_call_that_looked_is_in_the_log_before_its_result_is_handed_out(project, home):
    (project / "a.py").write_text("x = 1\n")
    async with Session(project, home=home) as session:
        result = await look(session, "a.py")
        # Nothing ran since: what is on disk now was there before.
        finished = [event for event in events_of(home, session) if isinstance(event, CallFinished)]
    assert [event.result.text for event in finished] == [result.text]


async def test_of_a_long_look_at_least_the_start_is_in_the_log_and_the_rest_follows(project, home):
    (project / "long.txt").write_text("a line\n" * LONG_CHARS)
    async with Session(project, home=home) as session:
        results = [await look(session, "long.txt"), await look(session, "long.txt")]

        def written(kind):
            return sum(isinstance(event, kind) for event in events_of(home, session))

        assert written(CallStarted) == 2
        assert written(CallFinished) == 1
        await until(lambda: written(CallFinished) == 2)
        events = events_of(home, session)
    order = [event.call_id for event in events if isinstance(event, CallStarted | CallFinished)]
    first, second = (result.id for result in results)
    assert order == [first, first, second, second]


async def test_a_log_that_cannot_be_written_is_told_with_every_result(project, home):
    (project / "a.py").write_text("x = 1\n")
    async with Session(project, home=home) as session:
        home.mkdir(exist_ok=True)
        (home / "sessions").write_text("a file where a directory should be")
        told = await look(session, "a.py")
        again = await session.call("Read", file_path="a.py")
    for result in (told, again):
        assert result.ok
        assert [note for note in result.notes if "event log could not be written" in note]


async def test_records_that_fail_after_a_result_was_given_are_told_with_the_next(project, home):
    (project / "a.py").write_text("x = 1\n")
    async with Session(project, home=home) as session:
        home.mkdir(exist_ok=True)
        (home / "sessions").write_text("a file where a directory should be")
        first = await session.call("Read", file_path="a.py")
        assert first.notes == ()
        await asyncio.sleep(0)
        second = await session.call("Read", file_path="a.py")
    assert "event log could not be written" in second.notes[0]


async def test_whoever_listens_has_heard_everything_when_the_session_is_closed(project, home):
    (project / "a.py").write_text("x = 1\n")
    heard: list[str] = []
    async with Session(project, home=home) as session:
        session.subscribe(lambda event: heard.append(type(event).__name__))
        await session.call("Read", file_path="a.py")
    # Nothing else had a turn since.
    assert heard == ["SessionStarted", "CallStarted", "FileSeen", "CallFinished", "SessionClosed"]
