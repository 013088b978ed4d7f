"""Objects of the program and state of their own, handed to own tools."""

import asyncio
import json
from typing import Annotated, Any, Protocol, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handaxe import (
    Effects,
    Session,
    SetupError,
    State,
    Tool,
    ToolArgs,
    ToolContext,
    ToolFault,
    ToolResult,
    tool,
)
from handaxe.contract.ports.files import Files
from handaxe.session.own_state import MAX_CHARS
from handaxe.storage.sessions import fork_session


class Database:
    def __init__(self, name: str = "orders") -> None:
        self.name = name


class Replica(Database):
    pass


class Clock(Protocol):
    def now(self) -> int: ...


class FixedClock:
    def now(self) -> int:
        return 12


@pytest.fixture
def data_home(tmp_path):
    return tmp_path / "home"


class Notes(State):
    texts: list[str] = []  # noqa: RUF012 - msgspec makes a new one
    count: int = 0


@tool(effects=Effects.pure(), uses=(Database,))
async def query(sql: str, db: Annotated[Database, "not shown"]) -> str:
    """Ask the database a question."""
    return f"{db.name}: {sql}"


@tool(effects=Effects.pure(), may_use=(Database,))
async def maybe(db: Database | None = None) -> str:
    """Say which database there is."""
    return db.name if db else "none"


@tool(effects=Effects.pure(), uses=(Clock,))
async def what_time(clock: Clock) -> str:
    """Tell what time it is."""
    return str(clock.now())


@tool(effects=Effects.pure())
async def note(text: str, notes: Notes, fail: bool = False) -> str:
    """Remember a text for later."""
    notes.texts.append(text)
    await asyncio.sleep(0)
    notes.count += 1
    if fail:
        raise ToolFault("It failed.")
    return " ".join(notes.texts)


class Count(Tool[ToolArgs]):
    """Count what was noted."""

    effects = Effects.pure()
    uses = (Notes,)

    async def call(self, args: ToolArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult(str(ctx[Notes].count))


@pytest.mark.proves("TC-14")
async def test_objects_are_handed_over_by_type_and_are_no_input(project, data_home):
    own = [query, maybe]
    async with Session(project, tools=own, provide=[Replica("copy")], home=data_home) as session:
        (shown,) = [one for one in session.tools() if one["name"] == "query"]
        assert list(shown["inputSchema"]["properties"]) == ["sql"]
        assert (await session.call("query", sql="x")).text == "copy: x"
        assert (await session.call("query", sql="x", db="y")).code == "call.bad_input"
        assert (await session.call("maybe")).text == "copy"


async def test_the_very_type_counts_before_one_below_it_and_a_named_one_before_all(project):
    objects = [Database("plain"), Replica("copy")]
    async with Session(project, tools=[query], provide=objects) as session:
        assert (await session.call("query", sql="x")).text == "plain: x"
    clock = {Clock: FixedClock(), Database: Replica("named")}
    async with Session(project, tools=[query, what_time], provide=clock) as session:
        assert (await session.call("query", sql="x")).text == "named: x"
        assert (await session.call("what_time")).text == "12"


async def test_a_tool_whose_object_is_missing_is_not_offered_and_says_so(project):
    async with Session(project, tools=[query, maybe], provide=[object()]) as session:
        (warning,) = session.warnings
        assert warning == (
            "The program's own tool 'query' is not offered. It uses Database, which nothing "
            "provides. Give one with Session(provide=[...])."
        )
        result = await session.call("query", sql="x")
        assert result.code == "call.unknown_tool"
        assert "It uses Database" in result.text
        assert (await session.call("maybe")).text == "none"


@pytest.mark.parametrize(
    ("provided", "sentence"),
    [
        (5, "takes a list of objects, or objects by type; not 5"),
        ("text", "takes a list of objects"),
        ([None], "takes objects; None is not one"),
        ([Database], "takes objects; <class"),
        ({"Database": Database()}, "'Database' is not a type"),
        ({Database: 5}, "5 is not a Database"),
        ({Files: Database()}, "Files is provided by the session"),
        ([Replica(), Replica()], "Replica and Replica both match Database"),
    ],
)
def test_what_cannot_be_handed_over_is_refused_in_one_sentence(project, provided, sentence):
    with pytest.raises(SetupError) as caught:
        Session(project, tools=[query], provide=provided)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_parameter_that_nobody_can_give_is_refused_where_the_tool_is_defined():
    async def bad(db: Database) -> str:
        return db.name

    with pytest.raises(TypeError, match="name its type in `uses`"):
        tool(bad)
    with pytest.raises(TypeError, match="`uses` must be a tuple of types, not <class"):
        tool(uses=cast("Any", Database))(bad)


@pytest.mark.proves("TC-14")
async def test_state_lasts_through_a_resume_and_a_fork(project, data_home):
    async with Session(project, tools=[note, Count], home=data_home) as session:
        assert session.warnings == ()
        await session.call("note", text="a")
        await session.call("note", text="b")
        assert (await session.call("Count")).text == "2"
        first = session.id
    fork_session(data_home, first, "forked")
    for session_id in (first, "forked"):
        async with Session(
            project, tools=[note, Count], home=data_home, session_id=session_id
        ) as session:
            assert (await session.call("Count")).text == "2"
            assert (await session.call("note", text=session_id[0])).text == f"a b {session_id[0]}"
    async with Session(project, tools=[note, Count], home=data_home) as session:
        assert (await session.call("Count")).text == "0"


async def test_a_call_that_fails_changes_no_state(project):
    @tool(effects=Effects.pure(), timeout_s=0.01)
    async def hang(notes: Notes) -> str:
        """Change something and hang then."""
        notes.texts.append("hang")
        await asyncio.sleep(60)
        return ""

    async with Session(project, tools=[note, Count, hang]) as session:
        await session.call("note", text="a")
        assert not (await session.call("note", text="b", fail=True)).ok
        assert (await session.call("hang")).code == "call.timed_out"
        calls = [("note", {"text": str(n)}) for n in range(5)]
        await session.call_many(calls)
        assert (await session.call("note", text="z")).text == "a 0 1 2 3 4 z"
        assert (await session.call("Count")).text == "7"


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [("count", "Expected `int`"), ("long", f"{MAX_CHARS:,} are kept"), ("odd", "object")],
)
async def test_state_that_cannot_be_saved_fails_the_call_and_is_put_back(project, broken, sentence):
    @tool(effects=Effects.pure())
    async def spoil(notes: Notes) -> str:
        """Leave something that is no state."""
        values = {"count": "x", "long": "x" * MAX_CHARS, "odd": object()}
        if broken == "count":
            notes.count = values["count"]
        else:
            notes.texts.append(values[broken])
        return "spoiled"

    async with Session(project, tools=[spoil, note]) as session:
        result = await session.call("spoil")
        assert (result.ok, sentence in result.text) == (False, True), result.text
        assert (await session.call("note", text="a")).text == "a"


async def test_a_state_whose_type_changed_begins_anew_with_a_warning(project, data_home):
    def make(kind: type):
        changed = msgspec.defstruct(
            "Notes", [("texts", kind, kind())], bases=(State,), module=__name__, kw_only=True
        )

        async def show(notes) -> str:
            """Show what is there."""
            return json.dumps(notes.texts)

        async def put(notes) -> str:
            """Put something else there."""
            notes.texts = kind(7)
            return ""

        for function in (show, put):
            function.__annotations__["notes"] = changed
        return [tool(effects=Effects.pure())(function) for function in (show, put)]

    async with Session(project, tools=make(int), home=data_home) as session:
        await session.call("put")
    async with Session(project, tools=make(int), home=data_home, session_id=session.id) as session:
        assert (await session.call("show")).text == "7"
    async with Session(project, tools=make(dict), home=data_home, session_id=session.id) as session:
        assert "starts with its defaults" in session.warnings[0]
        assert (await session.call("show")).text == "{}"


def test_a_state_that_cannot_be_kept_is_refused_where_the_tool_is_defined():
    class Frozen(State, frozen=True):  # pyright: ignore[reportGeneralTypeIssues] - refused when it runs, too
        count: int = 0

    class NoDefault(State):
        count: int

    class Foreign(State):
        database: Database | None = None

    for kind, sentence in {
        Frozen: "is frozen",
        NoDefault: "Missing required argument",
        Foreign: "cannot be kept",
    }.items():
        with pytest.raises(TypeError, match=sentence):
            type("Bad", (Tool,), {"uses": (kind,)})


async def test_a_secret_in_state_is_told(project, data_home, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "tok-4711-abcdefghij")
    async with Session(project, tools=[note], home=data_home) as session:
        result = await session.call("note", text="tok-4711-abcdefghij")
        assert any("contains a secret" in told for told in result.notes)
    log = (data_home / "sessions" / session.id / "events.jsonl").read_text()
    assert "tok-4711" not in log


@settings(max_examples=6, deadline=None)
@given(steps=st.lists(st.tuples(st.text(max_size=3), st.booleans(), st.booleans()), max_size=6))
def test_after_any_calls_and_resumes_the_state_is_what_succeeded(tmp_path_factory, steps):
    base = tmp_path_factory.mktemp("state")
    (base / "p").mkdir()

    async def run() -> None:
        wanted: list[str] = []
        session = Session(base / "p", tools=[note, Count], home=base / "h", session_id="s")
        for text, fails, resumes in steps:
            await session.call("note", text=text, fail=fails)
            wanted += [] if fails else [text]
            if resumes:
                await session.close()
                session = Session(base / "p", tools=[note, Count], home=base / "h", session_id="s")
            assert (await session.call("Count")).text == str(len(wanted))
        assert (await session.call("note", text="end")).text == " ".join([*wanted, "end"])
        await session.close()

    asyncio.run(run())
