"""A model that goes in circles is told so, and stopped only much later."""

import pytest
from players import Player, calls, says

from handaxe import Agent, Session
from handaxe.agent.loop_guard import LoopGuard
from handaxe.contract.call import ToolCall
from handaxe.contract.result import ToolResult


def watched(story: list[tuple[str, str, bool]], **options: int | None) -> list[str]:
    guard = LoopGuard(**options)
    actions: list[str] = []
    for number, (asked, given, ok) in enumerate(story):
        call = ToolCall(str(number), "Read", {"file_path": asked})
        result = ToolResult(given, ok=ok, code=None if ok else "file.not_found", tool="Read")
        circle = guard.watch([call], [result])
        actions.append(circle.action if circle else "-")
    return actions


@pytest.mark.parametrize(
    ("story", "actions"),
    [
        ([("a", "x", True)] * 3, ["-", "-", "nudge"]),
        ([("a", str(i), True) for i in range(9)], ["-"] * 9),
        ([(str(i), "x", True) for i in range(9)], ["-"] * 9),
        ([("a", "x", True), ("b", "y", True)] * 3, ["-"] * 5 + ["nudge"]),
        ([(str(i), f"no {i}", False) for i in range(5)], ["-"] * 4 + ["nudge"]),
        ([(str(i), "read it first", False) for i in range(4)], ["-", "-", "nudge", "-"]),
    ],
)
def test_circles_are_found_and_progress_is_left_alone(
    story: list[tuple[str, str, bool]], actions: list[str]
):
    assert watched(story) == actions


def test_calls_of_one_message_that_fail_alike_are_no_circle():
    guard = LoopGuard()
    many = [ToolCall(str(n), "Read", {"file_path": str(n)}) for n in range(3)]
    failed = [ToolResult("read it first", ok=False, code="file.not_read", tool="Read")] * 3
    assert guard.watch(many, failed) is None
    assert guard.watch(many[:1], failed[:1]) is None


def test_it_stops_after_it_was_not_heard():
    story = [("a", "x", True)] * 12
    heard = [a for a in watched(story, stop_after_nudges=3) if a != "-"]
    assert heard == ["nudge", "nudge", "nudge", "stop"]
    assert "stop" not in watched(story)


async def test_a_circle_is_told_and_stops_nothing_unless_the_host_says_so(session: Session):
    turns = [calls((f"c{i}", "Glob", {"pattern": "*.nothing"})) for i in range(20)]
    model = Player(*turns, says("Done."))
    final = await Agent(model, session).ask("Go.")
    assert (final.is_error, final.result) == (False, "Done.")
    assert str(model.requests[-1].messages).count("You repeat yourself") > 3


async def test_the_model_hears_the_nudge_and_the_run_ends_in_the_end(session: Session):
    model = Player(
        *[calls((f"c{i}", "Glob", {"pattern": "*.nothing"})) for i in range(20)], says("x")
    )
    final = await Agent(model, session, stop_after_nudges=3).ask("Go.")
    assert (final.is_error, final.terminal_reason) == (True, "loop")
    assert "You repeat yourself" in str(model.requests[3].messages)


async def test_commands_that_take_a_different_time_each_are_a_circle_all_the_same(
    session: Session,
):
    turns = [calls((f"c{i}", "Bash", {"command": "echo the same"})) for i in range(3)]
    model = Player(*turns, says("Done."))
    await Agent(model, session).ask("Go.")
    assert "the same Bash call returned the same result 3 times" in str(model.requests[-1].messages)
