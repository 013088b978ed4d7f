"""Whoever listens to a session hears everything in order and disturbs nothing."""

import asyncio
import functools
import sys
from pathlib import Path

import pytest
from tests.waiting import until

from handaxe import Effects, Session, SetupError, ToolContext, tool
from handaxe.events import CallFinished, CallProgress, CallStarted, SessionClosed
from handaxe.storage import listener_queue


@tool(effects=Effects.pure())
async def count(to: int, ctx: ToolContext) -> str:
    """Count, and report every number."""
    for number in range(to):
        ctx.report(str(number))
    return "done"


def open_session(project: Path, tmp_path: Path) -> Session:
    return Session(project, home=tmp_path / "data", tools=[count], allow="count")


def name_of(event: object) -> str:
    return event.text if isinstance(event, CallProgress) else type(event).__name__


class Heard:
    """An async listener that takes its time."""

    def __init__(self, turns: int = 3) -> None:
        self.names: list[str] = []
        self.events: list[object] = []
        self.at_once = self.most_at_once = 0
        self._turns = turns

    async def __call__(self, event: object) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        for _ in range(self._turns):
            await asyncio.sleep(0)
        self.events.append(event)
        self.names.append(name_of(event))
        self.at_once -= 1

    async def hear(self, event: object) -> None:
        await self(event)


def make_listeners(heard: Heard):
    """One and the same listener, as people write it down."""
    queue: asyncio.Queue[object] = asyncio.Queue()
    return {
        "an object": heard,
        "a method": heard.hear,
        "a lambda": lambda event: heard.hear(event=event),
        "a partial": functools.partial(Heard.hear, heard),
        "a task": lambda event: asyncio.ensure_future(heard(event)),
        "a queue": queue.put,
    }, queue


@pytest.mark.parametrize(
    "kind", ["an object", "a method", "a lambda", "a partial", "a task", "a queue"]
)
async def test_async_listeners_hear_what_plain_ones_hear_in_the_same_order(project, tmp_path, kind):
    heard, plain = Heard(), []
    listeners, queue = make_listeners(heard)
    async with open_session(project, tmp_path) as session:
        session.subscribe(listeners[kind])
        session.subscribe(lambda event: plain.append(name_of(event)))
        for _ in range(3):
            assert (await session.call("count", to=5)).ok
    names = [name_of(queue.get_nowait()) for _ in range(queue.qsize())] or heard.names

    # Nothing else had a turn since the session closed.
    assert names == plain
    assert names[-1] == "SessionClosed"
    assert names.count("CallFinished") == 3
    assert kind == "a task" or heard.most_at_once <= 1
    assert session.warnings == ()


async def test_no_call_waits_for_an_async_listener(project, tmp_path):
    may_go_on, heard = asyncio.Event(), []

    async def listen(event: object) -> None:
        await may_go_on.wait()
        heard.append(name_of(event))

    async with open_session(project, tmp_path) as session:
        session.subscribe(listen)
        assert (await session.call("count", to=2)).ok
        assert heard == []
        may_go_on.set()
    assert heard == ["SessionStarted", "CallStarted", "0", "1", "CallFinished", "SessionClosed"]


async def test_progress_is_left_out_first_where_a_listener_is_too_slow(
    project, tmp_path, monkeypatch
):
    monkeypatch.setattr(listener_queue, "MOST_WAITING", 8)
    may_go_on, heard = asyncio.Event(), []

    async def listen(event: object) -> None:
        await may_go_on.wait()
        heard.append(event)

    async with open_session(project, tmp_path) as session:
        session.subscribe(listen)
        for _ in range(3):
            assert (await session.call("count", to=50)).ok
        await asyncio.sleep(0)
        told = [warning for warning in session.warnings if "listen is too slow" in warning]
        may_go_on.set()

    assert len(told) == 1
    kinds = [type(event) for event in heard]
    assert kinds.count(CallStarted) == kinds.count(CallFinished) == 3
    missed = 150 - kinds.count(CallProgress)
    assert kinds.count(CallProgress) < 8
    after = [warning for warning in session.warnings if "listen is too slow" in warning]
    assert [f"it missed {missed} progress events and 0 others" in text for text in after] == [True]


async def test_what_waits_is_bounded_also_where_there_is_no_progress(
    project, tmp_path, monkeypatch
):
    monkeypatch.setattr(listener_queue, "MOST_WAITING", 4)
    may_go_on, heard = asyncio.Event(), []

    async def listen(event: object) -> None:
        await may_go_on.wait()
        heard.append(event)

    async with open_session(project, tmp_path) as session:
        session.subscribe(listen)
        for _ in range(10):
            await session.call("count", to=0)
        await asyncio.sleep(0)
        may_go_on.set()
    # One was on its way, four waited, and one came at the end, when there may have been room.
    assert len(heard) <= 6
    assert isinstance(heard[-1], SessionClosed)
    assert "0 progress events and" in " ".join(session.warnings)


def fail(error: BaseException):
    raise error


async def fail_later(error: BaseException):
    await asyncio.sleep(0)
    raise error


@pytest.mark.parametrize("failing", [fail, fail_later])
@pytest.mark.parametrize(
    "error",
    [ValueError("planned"), SystemExit(3), asyncio.CancelledError(), GeneratorExit()],
    ids=repr,
)
async def test_what_a_listener_raises_breaks_nothing_and_is_told_once(
    project, tmp_path, caplog, failing, error
):
    told: list[object] = []

    def listen(event: object):
        told.append(event)
        return failing(error)

    other = Heard()
    async with open_session(project, tmp_path) as session:
        session.subscribe(listen)
        session.subscribe(other)
        for _ in range(3):
            assert (await session.call("count", to=1)).ok
        await until(lambda: len(other.names) == len(told) == 10)
        warnings = [warning for warning in session.warnings if "listen failed" in warning]
        assert len(warnings) == 1
        assert type(error).__name__ in warnings[0]
    assert len(told) == len(other.names) == 11
    assert sum("listen failed" in record.message for record in caplog.records) == 1


async def test_a_listener_that_never_ends_does_not_keep_a_session_open(
    project, tmp_path, monkeypatch
):
    monkeypatch.setattr(listener_queue, "STUCK_S", 0.05)
    stopped = []

    async def hang(event: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(event)

    other = Heard()
    async with open_session(project, tmp_path) as session:
        session.subscribe(hang)
        session.subscribe(other)
        await session.call("count", to=1)
    assert len(stopped) == 1
    assert other.names[-1] == "SessionClosed"
    assert [text for text in session.warnings if "was stopped with 5 of its events" in text]


async def test_a_listener_may_use_and_close_the_session(project, tmp_path):
    results, heard = [], []

    async def listen(event: object) -> None:
        heard.append(name_of(event))
        if isinstance(event, CallFinished) and not results:
            results.append(await session.call("count", to=0))
            await session.close()

    session = open_session(project, tmp_path)
    session.subscribe(listen)
    await session.call("count", to=0)
    await until(lambda: "SessionClosed" in heard)
    assert results[0].ok
    assert heard.count("CallFinished") == 2


async def test_who_leaves_hears_what_happened_before_and_nothing_after(project, tmp_path):
    heard = Heard(turns=20)
    async with open_session(project, tmp_path) as session:
        stop = session.subscribe(heard)
        await session.call("count", to=1)
        stop()
        stop()
        await session.call("count", to=7)
    assert heard.names == ["SessionStarted", "CallStarted", "0", "CallFinished"]


@pytest.mark.parametrize("listener", [None, "watch", 7])
async def test_only_functions_can_listen(project, tmp_path, listener):
    async with open_session(project, tmp_path) as session:
        with pytest.raises(SetupError, match="takes a function"):
            session.subscribe(listener)
        assert (await session.call("count", to=1)).ok
    assert session.warnings == ()


def test_a_session_without_a_loop_tells_its_listeners_all_the_same(project, tmp_path):
    plain, heard = [], Heard()

    async def go_on(session: Session) -> None:
        async with session:
            await session.call("count", to=0)

    session = open_session(project, tmp_path)
    session.subscribe(lambda event: plain.append(name_of(event)))
    session.subscribe(heard)
    session.subscribe(lambda _: sys.exit(3))
    session.set_mode("plan")
    session.set_mode("acceptEdits")
    asyncio.run(go_on(session))
    assert "ModeChanged" in plain
    assert heard.names == plain
