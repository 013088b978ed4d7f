"""Calls that tools, hooks and callbacks make while a call is under way: nothing hangs."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.expected_types import require

import handaxe
from handaxe import (
    Allow,
    Effects,
    PermissionRequest,
    Session,
    Tool,
    ToolArgs,
    ToolContext,
    ToolResult,
)
from handaxe.contract.call import ToolCall
from handaxe.contract.events import CallProgress, CallStarted

WAIT_S = 20
"""A call that takes longer hangs."""


async def bounded(work):
    """The result of work that has to end."""
    async with asyncio.timeout(WAIT_S):
        return await work


class NestArgs(ToolArgs, kw_only=True):
    name: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    before: tuple[dict[str, Any], ...] = ()
    """Inputs of the calls that validation makes."""
    within: tuple[dict[str, Any], ...] = ()
    """Inputs of the calls that the tool makes."""
    turns: int = 0
    """How often it lets others go before and after."""
    together: bool = False
    leaves: bool = False
    """Whether it goes without waiting for them."""


class Nest(Tool[NestArgs]):
    """Touches what its input says and makes the calls in it."""

    search_hint = "calls that make calls"

    def __init__(self) -> None:
        self.session: Session | None = None
        self.running: dict[str, tuple[ToolContext, Effects, tuple[str, ...]]] = {}
        self.overlaps: list[tuple[str, str]] = []
        self.left: list[asyncio.Task[Any]] = []
        self.codes: list[str | None] = []

    def effects_of(self, args: NestArgs) -> Effects:
        reads, writes = Effects.reading(*args.reads), Effects.on(*args.writes)
        return Effects(reads=(*reads.reads, *writes.reads), writes=writes.writes)

    def subjects(self, args: NestArgs):
        return ()

    async def validate(self, args: NestArgs, ctx: ToolContext) -> None:
        await self.make(args.before, ctx, args)

    async def make(self, inputs, ctx: ToolContext, args: NestArgs) -> None:
        """Half of the calls by the context, half by the session."""
        calls = [
            ctx.call("Nest", given) if i % 2 else require(self.session).call("Nest", given)
            for i, given in enumerate(inputs)
        ]
        if args.leaves:
            self.left += map(asyncio.ensure_future, calls)
        elif args.together:
            results = await asyncio.gather(*calls)
            self.codes += [one.code for one in results]
        else:
            for call in calls:
                self.codes.append((await call).code)

    async def call(self, args: NestArgs, ctx: ToolContext) -> ToolResult:
        path = tuple(args.name.split("."))
        effects = self.effects_of(args)
        for other, (_, theirs, where) in self.running.items():
            is_inside = path[: len(where)] == where or where[: len(path)] == path
            if effects.collides(theirs) and not is_inside:
                self.overlaps.append((args.name, other))
        self.running[args.name] = ctx, effects, path
        try:
            for _ in range(args.turns * 10):
                await asyncio.sleep(0)
            await self.make(args.within, ctx, args)
            await asyncio.sleep(0)
        finally:
            del self.running[args.name]
        return ToolResult(f"done {args.name}")


FILES = st.lists(st.sampled_from(["/a", "/b", "/c"]), max_size=1).map(tuple)


def trees(depth: int, writes=FILES):
    """Inputs of `Nest`."""
    inner = st.lists(trees(depth - 1), max_size=2).map(tuple) if depth else st.just(())
    return st.fixed_dictionaries(
        {
            "reads": FILES,
            "writes": writes,
            "turns": st.integers(0, 3),
            "before": inner,
            "within": inner,
            "together": st.booleans(),
            "leaves": st.sampled_from([False, False, False, True]),
        }
    )


def name_all(tree, name):
    """The same tree, each input with a name that begins with that of the one around it."""
    named = {**tree, "name": name}
    for field, letter in (("before", "b"), ("within", "w")):
        named[field] = [name_all(one, f"{name}.{letter}{i}") for i, one in enumerate(tree[field])]
    return named


def count(tree):
    return 1 + sum(map(count, (*tree["before"], *tree["within"])))


@pytest.mark.proves("TC-13")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(trees(2, st.just(())), min_size=2, max_size=4), st.integers(1, 3))
async def test_random_nestings_end_and_never_collide(project, roots, max_parallel):
    tool = Nest()
    inputs = [name_all(root, str(i)) for i, root in enumerate(roots)]
    options = {"tools": [tool], "allow": ["Nest"], "settings": {"max_parallel_calls": max_parallel}}
    async with Session(project, **options) as session:
        tool.session = session
        started: list[CallStarted] = []
        session.subscribe(lambda e: started.append(e) if isinstance(e, CallStarted) else None)
        results = await bounded(session.call_many([("Nest", one) for one in inputs]))
        left = await bounded(asyncio.gather(*tool.left))
        await asyncio.sleep(0)
    assert tool.overlaps == []
    assert {one.code for one in results} == {None}
    assert {*tool.codes, *(one.code for one in left)} <= {None, "call.nested"}
    assert len({one.call_id for one in started}) == len(started) <= sum(map(count, inputs))


def own_tool(function, effects=None, **facts):
    return handaxe.tool(effects=effects or Effects.unknown(), **facts)(function)


async def test_two_calls_that_wait_for_each_other_end_with_one_refused(project):
    both = asyncio.Barrier(2)

    async def left(ctx: ToolContext) -> ToolResult:
        """Read one file, then write the other."""
        await both.wait()
        return await ctx.call("Write", file_path="b.txt", content="left")

    async def right(ctx: ToolContext) -> ToolResult:
        """Read one file, then write the other."""
        await both.wait()
        return await ctx.call("Write", file_path="a.txt", content="right")

    a, b = str(project / "a.txt"), str(project / "b.txt")
    tools = [own_tool(left, Effects.reading(a)), own_tool(right, Effects.reading(b))]
    async with Session(project, tools=tools, permission_mode="acceptEdits") as session:
        results = await bounded(session.call_many([("left", {}), ("right", {})]))
    refused = [one for one in results if one.code == "call.nested"]
    assert sorted(one.ok for one in results) == [False, True]
    # Which of the two is refused is not determined.
    assert len(refused) == 1
    text = refused[0].text
    assert all(name in text for name in ("Write", "left", "right"))
    assert refused[0].data["waits_for"] in {one.id for one in results}
    assert (project / "a.txt").exists() + (project / "b.txt").exists() == 1


async def test_an_inner_call_has_its_own_permission_log_entry_and_parent(project):
    async def deploy(ctx: ToolContext) -> str:
        """Write a file and run a command."""
        written = await ctx.call("Write", {"file_path": "a.txt", "content": "x"})
        ran = await ctx.call("Bash", command="touch b.txt")
        return f"{written.code} {ran.code}"

    options = {"tools": [own_tool(deploy)], "allow": ["deploy", "Write(./a.txt)"]}
    async with Session(project, **options) as session:
        events = []
        session.subscribe(events.append)
        result = await bounded(session.call("deploy"))
        await asyncio.sleep(0)
    assert result.text == "None permission.asked"
    started = {one.call_id: one for one in events if isinstance(one, CallStarted)}
    tools = {one.tool: one.parent_id for one in started.values()}
    assert tools == {"deploy": None, "Write": result.id, "Bash": result.id}
    assert not (project / "b.txt").exists()


@pytest.mark.parametrize("where", ["call", "validate", "decide", "preview"])
async def test_every_method_of_a_tool_can_call_the_session(where, project):
    seen = []

    class Caller(Tool[WaitForNothing]):
        """Makes a call."""

    async def make(self, args, ctx):
        seen.append(await session.call("Read", file_path="a.txt"))
        return ToolResult("done") if where == "call" else None

    setattr(Caller, where, make)
    (project / "a.txt").write_text("hello")

    async def say_yes(request):
        return Allow()

    async with Session(project, tools=[Caller()], on_ask=say_yes) as session:
        result = await bounded(session.call("Caller"))
    assert [one.ok for one in seen] == [True]
    assert where != "call" or result.ok


class WaitForNothing(ToolArgs):
    pass


@pytest.mark.parametrize(
    "event", ["PreToolUse", "PostToolUse", "PermissionRequest", "SessionStart"]
)
async def test_hooks_can_call_the_session(event, project):
    seen = []

    async def look(_event):
        seen.append(await session.call("Glob", pattern="*"))

    async with Session(project, hooks={event: [look]}, on_ask=allow_all) as session:
        call = {"command": "touch a.txt"}
        result = await bounded(session.call("Bash", call))
    assert result.ok
    assert seen
    assert {one.code for one in seen} <= {None, "call.nested"}
    assert any(one.ok for one in seen) or event in {"PreToolUse", "PostToolUse"}


async def allow_all(_request):
    return Allow()


async def test_a_hook_that_calls_its_own_tool_is_stopped_with_the_limit(project):
    codes = []

    async def look(_event):
        codes.append((await session.call("Glob", pattern="*")).code)

    async with Session(project, hooks={"PreToolUse": [look]}) as session:
        result = await bounded(session.call("Glob", pattern="*.txt"))
    assert result.ok
    assert codes[0] == "call.nested"
    assert set(codes[1:]) == {None}
    assert len(codes) == 10


async def test_on_ask_can_look_and_its_own_question_is_refused(project):
    seen = []

    async def look_first(request):
        seen.append(await session.call("Read", file_path="a.txt"))
        seen.append(await session.call("Bash", command="touch c.txt"))
        return Allow()

    (project / "a.txt").write_text("hello")
    async with Session(project, on_ask=look_first) as session:
        result = await bounded(session.call("Bash", command="touch b.txt"))
    assert result.ok
    assert [one.code for one in seen] == [None, "call.nested"]
    assert result.id in seen[1].text
    assert not (project / "c.txt").exists()


async def test_on_question_can_call_the_session(project):
    question = {
        "question": "Which?",
        "header": "Which",
        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
        "multiSelect": False,
    }
    seen = []

    async def answer(_questions):
        seen.append(await session.call("Glob", pattern="*"))
        seen.append(await session.call("AskUserQuestion", {"questions": [question]}))
        return "A"

    async with Session(project, on_question=answer) as session:
        result = await bounded(session.call("AskUserQuestion", {"questions": [question]}))
    assert result.ok
    assert [one.code for one in seen] == [None, "call.nested"]


async def test_questions_of_two_calls_that_wait_for_each_other_end(project):
    """A question waits for a call, in which another call has to ask."""
    began, asked = asyncio.Event(), asyncio.Event()

    async def outer(ctx: ToolContext) -> str:
        """Read a file, then make a call that asks."""
        began.set()
        await asked.wait()
        return str((await ctx.call("second")).code)

    async def first() -> str:
        """Ask."""
        return "done"

    async def second() -> str:
        """Ask."""
        return "done"

    seen = []

    async def look(request: PermissionRequest) -> Allow:
        if request.tool == "first":
            asked.set()
            seen.append((await session.call("Write", file_path="a.txt", content="x")).code)
        return Allow()

    pure = Effects.pure()
    tools: list[Tool[Any]] = [own_tool(first, pure), own_tool(second, pure)]
    tools.append(own_tool(outer, Effects.reading(str(project / "a.txt"))))
    options: dict[str, Any] = {"tools": tools, "on_ask": look, "ask": ["first", "second"]}
    async with Session(project, permission_mode="acceptEdits", **options) as session:
        work = asyncio.ensure_future(session.call("outer"))
        await began.wait()
        assert (await bounded(session.call("first"))).ok
        result = await bounded(work)
    assert {str(seen[0]), result.text} == {"None", "call.nested"}


async def test_cancelling_a_call_cancels_what_was_made_in_it(project):
    started, inner = asyncio.Event(), []

    async def outer(ctx: ToolContext) -> str:
        """Start a call and wait for something else."""
        inner.append(asyncio.ensure_future(ctx.call("endless")))
        await started.wait()
        await asyncio.Event().wait()
        return "never"

    async def endless() -> str:
        """Never ends."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    tools = [own_tool(outer), own_tool(endless)]
    async with Session(project, tools=tools, allow=["outer", "endless"]) as session:
        work = asyncio.ensure_future(session.call("outer"))
        await started.wait()
        assert session.cancel() == 2
        result = await bounded(work)
        assert (await bounded(inner[0])).code == result.code == "call.cancelled"
        assert require(asyncio.current_task()).cancelling() == 0


async def test_a_call_in_the_task_of_its_parent_is_cancelled_with_it_once(project):
    steps = []

    async def outer(ctx: ToolContext) -> str:
        """Wait for a call; go on if it ends."""
        inner = await ctx.call("endless")
        steps.append(inner.code)
        return "went on"

    started = asyncio.Event()

    async def endless() -> str:
        """Never ends."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    tools = [own_tool(outer), own_tool(endless)]
    async with Session(project, tools=tools, allow=["outer", "endless"]) as session:
        work = asyncio.ensure_future(session.call("outer"))
        await started.wait()
        session.cancel()
        assert (await bounded(work)).code == "call.cancelled"
        assert steps == []


async def test_a_timeout_of_a_call_ends_what_was_made_in_it(project):
    inner = []

    async def outer(ctx: ToolContext) -> str:
        """Start a call and wait for something else."""
        inner.append(asyncio.ensure_future(session.call("endless")))
        await asyncio.Event().wait()
        return "never"

    async def endless() -> str:
        """Never ends."""
        await asyncio.Event().wait()
        return "never"

    tools = [own_tool(outer, timeout_s=0.1), own_tool(endless)]
    async with Session(project, tools=tools, allow=["outer", "endless"]) as session:
        result = await bounded(session.call("outer"))
        assert result.code == "call.timed_out"
        assert (await bounded(inner[0])).code == "call.cancelled"


async def test_a_task_that_outlives_its_call_makes_calls_of_its_own(project):
    go, later = asyncio.Event(), []

    async def outer(ctx: ToolContext) -> str:
        """Leave a task behind."""

        async def work():
            await go.wait()
            with pytest.raises(handaxe.contract.context.CallOverError):
                await ctx.call("Glob", pattern="*")
            return await session.call("Glob", pattern="*")

        later.append(asyncio.ensure_future(work()))
        return "left"

    events = []
    async with Session(project, tools=[own_tool(outer)], allow=["outer"]) as session:
        session.subscribe(events.append)
        await bounded(session.call("outer"))
        go.set()
        assert (await bounded(later[0])).ok
        await asyncio.sleep(0)
    parents = {e.tool: e.parent_id for e in events if isinstance(e, CallStarted)}
    assert parents == {"outer": None, "Glob": None}


async def test_an_inner_call_that_outlives_its_parent_keeps_its_place(project):
    """Who waited for the parent waits for what it left behind as well, if they collide."""
    go, left = asyncio.Event(), []
    path = project / "a.txt"

    async def slow(text: str) -> str:
        """Write late."""
        await go.wait()
        path.write_text(text)
        return "written"

    async def outer(ctx: ToolContext) -> str:
        """Leave a call behind."""
        left.append(asyncio.ensure_future(ctx.call("slow", text="inner")))
        await asyncio.sleep(0)
        return "left"

    on_it = Effects.on(str(path))
    tools = [own_tool(slow, on_it), own_tool(outer, on_it)]
    async with Session(project, tools=tools, permission_mode="bypassPermissions") as session:
        work = session.call_many([("outer", {}), ("slow", {"text": "later"})])
        both = asyncio.ensure_future(work)
        await asyncio.sleep(0.05)
        go.set()
        await bounded(both)
        await bounded(left[0])
    assert path.read_text() == "later"


async def test_calls_of_a_thread_are_inside_the_call_that_waits_for_it(project):
    async def outer(ctx: ToolContext) -> str:
        """Make a call in a thread."""
        loop = asyncio.get_running_loop()

        def work():
            return asyncio.run_coroutine_threadsafe(session.call("Glob", pattern="*"), loop).result(
                WAIT_S
            )

        one = await asyncio.to_thread(work)
        made = asyncio.run_coroutine_threadsafe
        two = await loop.run_in_executor(
            None, lambda: made(ctx.call("Glob", pattern="*"), loop).result(WAIT_S)
        )
        return f"{one.code} {two.code}"

    async with Session(project, tools=[own_tool(outer)], allow=["outer"]) as session:
        assert (await bounded(session.call("outer"))).text == "None None"


async def test_an_inner_call_of_an_unfinished_id_is_refused(project):
    async def outer() -> str:
        """Ask for the result of the call around it."""
        return str((await session.run(ToolCall("one", "outer", {}))).code)

    async with Session(project, tools=[own_tool(outer)], allow=["outer"]) as session:
        result = await bounded(session.run(ToolCall("one", "outer", {})))
    assert result.text == "call.nested"


async def test_a_listener_makes_calls_of_its_own(project):
    """What is told of a call is not inside it: its calls wait for it like any other."""
    made = []

    async def outer(ctx: ToolContext) -> str:
        """Take a while."""
        ctx.report("half done")
        await asyncio.sleep(0.05)
        return "done"

    def listen(event):
        if isinstance(event, CallProgress):
            made.append(asyncio.ensure_future(session.call("Glob", pattern="*")))
        events.append(event)

    events = []
    async with Session(project, tools=[own_tool(outer)], allow=["outer"]) as session:
        session.subscribe(listen)
        await bounded(session.call("outer"))
        await bounded(made[0])
        await asyncio.sleep(0)
    parents = {e.tool: e.parent_id for e in events if isinstance(e, CallStarted)}
    assert parents == {"outer": None, "Glob": None}


async def test_undo_inside_a_call_does_not_wait_for_it(project):
    async def outer(ctx: ToolContext) -> str:
        """Write and take it back."""
        await ctx.call("Write", file_path="a.txt", content="x")
        return str((await session.undo()).code)

    options = {"tools": [own_tool(outer)], "allow": ["outer"], "permission_mode": "acceptEdits"}
    async with Session(project, **options) as session:
        assert (await bounded(session.call("outer"))).text == "None"
    assert not (project / "a.txt").exists()


async def test_closing_a_session_inside_a_call_ends(project):
    async def outer() -> str:
        """Close the session."""
        await session.close()
        return "closed"

    async with Session(project, tools=[own_tool(outer)], allow=["outer"]) as session:
        result = await bounded(session.call("outer"))
    assert result.code in {None, "call.cancelled"}
