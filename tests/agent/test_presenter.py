"""A call looks the same in every front end, from its first letters to its end."""

import json
import sys
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from players import Player, call, calls, ended, says

from handaxe import Agent, Session, Tool, ToolArgs, ToolResult
from handaxe.agent.events import FromAgent, ToolAnswered, ToolCalled
from handaxe.app.services.call_presenter import CallPresenter
from handaxe.contract.call import ToolCall
from handaxe.contract.display import Block, CallDisplay, Diff, Items, Table, Text
from handaxe.contract.effects import Effects
from handaxe.contract.ports.model import ToolInputDelta, ToolStarted
from handaxe.text.partial_json import parse_partial_input
from handaxe.tools import BUILTIN, build_loaders


async def present_run(model: Player, session: Session, **options) -> list[CallDisplay]:
    """Everything that is shown of a run, from the events of the agent and of the session."""
    presenter = session.presenter()
    shown: list[CallDisplay] = []
    session.subscribe(lambda event: shown.extend(presenter.present(event)))
    async for event in Agent(model, session, **options).run("Go."):
        shown += presenter.present(event)
    return shown


def moments_of(shown: list[CallDisplay], call_id: str) -> list[str]:
    return [each.moment for each in shown if each.call_id == call_id]


@pytest.mark.proves("TC-10")
async def test_every_moment_of_a_call_is_shown_once_and_in_order(project: Path):
    (project / "a.txt").write_text("one\ntwo\n")
    model = Player(
        [
            *call("c1", "Read", {"file_path": "a.txt"}),
            *call("c2", "Read", {"file_path": "missing.txt"}),
            *call("c3", "Write", {"file_path": "b.txt", "content": "x"}),
            *call("c4", "Nonsense", {}),
            ended("tool_use", 0),
        ],
        says("Done."),
    )
    async with Session(project, deny=["Write"]) as session:
        shown = await present_run(model, session)
    ends = {
        each.call_id: each for each in shown if each.moment in ("finished", "failed", "rejected")
    }
    assert {call_id: each.moment for call_id, each in ends.items()} == {
        "c1": "finished", "c2": "failed", "c3": "rejected", "c4": "failed",
    }  # fmt: skip
    for call_id, end in ends.items():
        moments = [m for m in moments_of(shown, call_id) if m != "input"]
        assert moments[-1] == end.moment
        assert moments.count(end.moment) == 1
        assert moments == sorted(moments, key=["queued", "started", end.moment].index)
    assert ends["c1"].headline == f"Read(a.txt): Read 2 lines of {project}/a.txt"
    assert ends["c2"].headline == "Read(missing.txt) failed (file.not_found)"
    assert ends["c3"].headline == "Write(b.txt) was not run (rule Write)"
    (group,) = [each for each in shown if each.moment == "group"]
    assert group.headline == "4 of 4 calls done, 3 without success"
    (items,) = group.blocks
    assert isinstance(items, Items)
    assert [line[0] for line in items.items] == ["✓", "✗", "✗", "✗"]


@pytest.mark.proves("TC-10")
async def test_the_title_grows_with_the_input_and_a_waiting_call_says_so(session: Session):
    presenter = session.presenter()
    text = json.dumps({"file_path": "src/a.txt", "old_string": "x" * 9_000, "new_string": ""})
    titles = [each.title for each in presenter.present(ToolStarted("c", "Edit"))]
    for char in text:
        titles += [each.title for each in presenter.present(ToolInputDelta("c", char))]
    assert titles[0] == "Edit()"
    assert titles[-1] == "Edit(src/a.txt)"
    assert len(titles) == len(set(titles)) < 15
    asked = ToolCall("c", "Edit", json.loads(text))
    (queued,) = presenter.present(ToolCalled(asked))
    assert queued.headline == "Edit(src/a.txt) (waiting)"
    assert presenter.present(ToolCalled(asked))[0].moment == "queued"
    assert presenter.present(ToolInputDelta("c", "more")) == ()


@pytest.mark.proves("TC-10")
async def test_progress_is_shown_below_the_title(project: Path):
    class Slow(Tool[ToolArgs]):
        effects = Effects.pure()

        async def call(self, args, ctx):
            ctx.report("half")
            return ToolResult("done")

    async with Session(project, tools=[Slow()]) as session:
        shown = await present_run(Player(calls(("c", "Slow", {})), says("x")), session)
    (progress,) = [each for each in shown if each.moment == "progress"]
    assert (progress.headline, progress.blocks) == ("Slow: half", (Text("half", "muted"),))


@pytest.mark.proves("TC-10")
async def test_calls_of_a_batch_are_one_group_while_they_run_and_in_the_end(project: Path):
    async with Session(project) as session:
        presenter = session.presenter()
        groups: list[CallDisplay | None] = []

        def hear(event) -> None:
            presenter.present(event)
            groups.append(presenter.present_group())

        session.subscribe(hear)
        await session.call_many([("Glob", {"pattern": f"{n}*"}) for n in range(3)])
        await session.call("Glob", pattern="last")
    headlines = [group.headline for group in groups if group is not None]
    assert "3 of 3 calls done" in headlines
    assert any(line.startswith(("0 of", "1 of", "2 of")) for line in headlines)


async def test_calls_of_subagents_are_told_apart_by_their_agent(session: Session):
    presenter = session.presenter()
    presenter.present(ToolCalled(ToolCall("c", "Read", {"file_path": "mine"})))
    for agent_id in ("a1", "a2"):
        asked = ToolCalled(ToolCall("c", "Read", {"file_path": agent_id}))
        (shown,) = presenter.present(FromAgent(agent_id, "reader", "c", asked))
        assert (shown.agent_id, shown.agent_type, shown.parent_call_id, shown.title) == (
            agent_id, "reader", "c", f"Read({agent_id})",
        )  # fmt: skip
    answered = ToolAnswered(ToolResult("x", id="c", tool="Read"))
    (shown,) = presenter.present(FromAgent("a2", "reader", "c", answered))
    assert shown.title == "Read(a2)"
    (shown,) = presenter.present(answered)
    assert (shown.agent_id, shown.title) == ("", "Read(mine)")
    assert presenter.present(answered) == ()


def fail() -> None:
    raise ValueError("no")


def leave() -> None:
    sys.exit(3)


async def give_later() -> str:
    return "later"


def recurse() -> None:
    recurse()


class Odd(msgspec.Struct):
    text: str = "x"


BAD = {
    "raises": fail,
    "exits": leave,
    "recurses": recurse,
    "awaits": give_later,
    "number": lambda: 5,
    "bytes": lambda: b"x",
    "list of texts": lambda: ["a"],
    "foreign block": lambda: (Odd(),),
    "text that is none": lambda: (Text(cast("Any", 5)),),
    "object": object,
    "wrong table": lambda: (Table(("a",), (("b", "c"),)),),
}


@pytest.mark.proves("TC-10")
@pytest.mark.parametrize(
    ("method", "bad"),
    [
        *((method, bad) for method in ("title", "show", "summary") for bad in BAD),
        *(("user_facing_name", bad) for bad in BAD if bad != "awaits"),
    ],
)
async def test_a_display_method_that_fails_shows_the_default_and_ends_nothing(
    project: Path, method: str, bad: str
):
    class Mine(Tool[ToolArgs]):
        effects = Effects.pure()

        async def call(self, args, ctx):
            return ToolResult("first\nsecond")

    setattr(Mine, method, lambda *_: BAD[bad]())
    Mine.has_display_name = method == "user_facing_name"
    async with Session(project, tools=[Mine()]) as session:
        shown = await present_run(Player(calls(("c", "Mine", {})), says("Done.")), session)
        assert (await session.call("Mine")).ok
    (end,) = [each for each in shown if (each.moment, each.call_id) == ("finished", "c")]
    assert end.title == ("Mine({})" if method == "title" else "Mine")
    assert end.blocks == (Text("first\nsecond"),)
    assert end.summary == ("first (+1 line)" if method == "summary" else "first ...")


async def test_own_blocks_are_shown_and_a_list_is_as_good_as_a_tuple(project: Path):
    class Mine(Tool[ToolArgs]):
        effects = Effects.pure()

        async def call(self, args, ctx):
            return ToolResult("words", notes=("a note",))

        def show(self, args, result) -> Any:
            return [Diff("a", ())]

    async with Session(project, tools=[Mine()]) as session:
        result = await session.call("Mine")
        shown = session.presenter().present_result(result, {})
    assert shown.blocks == (Text("words"), Diff("a", ()), Text("a note", "muted"))


@pytest.mark.parametrize(
    "given", [None, 5, "x", [], {"file_path": 5}, {"no such": {}}, {"a": "\ud800"}]
)
async def test_any_input_has_a_title_and_a_result(session: Session, given):
    for tool in ("Read", "Bash", "Nonsense", ""):
        for ok in (True, False):
            result = ToolResult("x", tool=tool, ok=ok, code=None if ok else "a.b")
            shown = session.presenter().present_result(result, given)
            assert shown.title
            assert "\n" not in shown.headline
            assert len(shown.headline) <= 200


@pytest.mark.proves("TC-10")
@pytest.mark.parametrize("name", BUILTIN)
def test_every_tool_has_a_title_while_its_input_still_streams_in(name):
    tool = build_loaders()[name]()
    for partial in ({}, {"file_path": "/a"}, {"file_path": 5}, {"unknown": None}):
        assert tool.title(partial).startswith(name)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4), st.booleans())
def test_the_beginning_of_an_input_holds_its_first_fields(value: dict, ascii_only: bool):
    text = json.dumps(value, ensure_ascii=ascii_only)
    known: list[str] = []
    for end in range(len(text) + 1):
        fields = parse_partial_input(text[:end])
        assert list(fields) == list(value)[: len(fields)]
        known = [*fields]
    assert known == list(value)
    assert parse_partial_input(text) == value


async def test_what_is_shown_survives_the_wire(session: Session):
    presenter = session.presenter()
    for n in range(2):
        presenter.present(ToolCalled(ToolCall(str(n), "Read", {"file_path": str(n)})))
    group = presenter.present_group()
    assert group is not None
    again = msgspec.json.decode(msgspec.json.encode(group.to_json()), type=CallDisplay)
    assert again == group
    assert all(isinstance(block, Block) for block in again.blocks)


async def test_a_long_session_is_not_kept_in_memory(session: Session):
    presenter: CallPresenter = session.presenter()
    for n in range(3_000):
        presenter.present(ToolCalled(ToolCall(str(n), "Glob", {"pattern": "x"})))
        presenter.present(ToolAnswered(ToolResult("x", id=str(n), tool="Glob")))
    assert len(presenter._calls) <= 1_001
