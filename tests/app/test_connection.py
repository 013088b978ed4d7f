"""The synchronous door, as programs with threads use it."""

import threading

import pytest
from tests.waiting import HANG_S

import handaxe
from handaxe.app.sync import Connection


def codes_of_calls(
    tools: Connection, codes: list[str | None], is_under_way: threading.Event
) -> None:
    while "call.cancelled" not in codes:
        codes.append(tools.call("Read", file_path="a.txt").code)
        is_under_way.set()


@pytest.mark.proves("AR-1")
@pytest.mark.parametrize("attempt", range(15))
def test_calls_of_other_threads_are_answered_whenever_a_connection_closes(project, attempt):
    (project / "a.txt").write_text("x\n")
    tools = handaxe.connect(project)
    told: list[list[str | None]] = [[], [], []]
    is_under_way = threading.Event()
    callers = [
        threading.Thread(target=codes_of_calls, args=(tools, codes, is_under_way), daemon=True)
        for codes in told
    ]
    for caller in callers:
        caller.start()
    is_under_way.wait(HANG_S)
    closers = [threading.Thread(target=tools.close, daemon=True) for _ in range(2)]
    for closer in closers:
        closer.start()
    for thread in (*callers, *closers):
        thread.join(HANG_S)
    assert not [thread for thread in (*callers, *closers) if thread.is_alive()]
    assert all(set(codes) <= {None, "call.cancelled"} for codes in told)
