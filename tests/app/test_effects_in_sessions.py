"""What an own tool says it touches decides what runs beside it, what asks and what is refused."""

import asyncio
import itertools
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import handaxe
from handaxe import Allow, Effects, Session, Tool, ToolArgs, ToolContext, ToolResult
from handaxe.contract.effects import SESSION_STATE
from handaxe.contract.ports.agents import Agents
from handaxe.contract.ports.task_list import TaskStore
from handaxe.pipeline.parse import find_spared_state
from handaxe.session.todos import Todos
from handaxe.tools import build_loaders

ROOT = Path(__file__).parents[2]
MODES = ("default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions")
GENERATED = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Visits(handaxe.State):
    """State of an own tool."""

    pages: int = 0


class TouchArgs(ToolArgs, kw_only=True):
    number: int


class Touch(Tool[TouchArgs]):
    """Has the effects of a list, and writes down beside which calls it runs."""

    search_hint = "touch what a test wants"

    def __init__(self, effects):
        self.given = effects
        self.now: set[int] = set()
        self.ran: list[int] = []
        self.beside: set[frozenset[int]] = set()
        self.meeting: asyncio.Barrier | None = None
        """Where all calls wait for each other."""

    def effects_of(self, args: TouchArgs) -> Effects:
        return self.given[args.number]

    async def call(self, args: TouchArgs, ctx: ToolContext) -> ToolResult:
        self.ran.append(args.number)
        self.now.add(args.number)
        self.beside |= {frozenset(pair) for pair in itertools.combinations(self.now, 2)}
        if self.meeting is None:
            await asyncio.sleep(0)
        else:
            await asyncio.wait_for(self.meeting.wait(), 60)
        self.now.remove(args.number)
        return ToolResult("done")


NAMES = st.sampled_from(["shop-db", "tickets", "mail"])
PATHS = st.sampled_from(["/nowhere/a", "/nowhere/b", "/nowhere/a/c"])
SINGLE = st.one_of(
    st.builds(lambda name, writes: Effects.external(name, writes=writes), NAMES, st.booleans()),
    st.builds(Effects.on_state, st.sampled_from(["todos", "tasks", Visits])),
    st.builds(Effects.on, PATHS),
    st.builds(Effects.reading, PATHS),
    st.sampled_from([Effects.none(), Effects.pure(), Effects.unknown()]),
)
EFFECTS = SINGLE | st.builds(Effects.__or__, SINGLE, SINGLE)


def writes_outside(effects):
    return any(what.kind == "external" for what in effects.writes)


def reaches_outside(effects):
    return any(what.kind == "external" for what in (*effects.reads, *effects.writes))


def collide(effects, pair):
    """As calls of `Touch` are ordered, which gets no port of the session."""
    spared = find_spared_state(frozenset())
    first, second = (
        msgspec.structs.replace(one, spared=spared - {what.name for what in one.writes})
        if one.writes_everything
        else one
        for one in (effects[index] for index in pair)
    )
    return first.collides(second)


async def run_all(project, mode, effects, *, meet=False, **options):
    """The results of one message with a call for each, and the tool."""
    tool = Touch(effects)
    tool.meeting = asyncio.Barrier(len(effects)) if meet else None
    options = {"settings": {"max_parallel_calls": 8, "undo": {"shell_max_files": 0}}, **options}
    async with Session(project, permission_mode=mode, tools=[tool], **options) as session:
        calls = [("Touch", {"number": number}) for number in range(len(effects))]
        return await session.call_many(calls), tool


@pytest.mark.proves("TC-3")
@GENERATED
@given(st.lists(EFFECTS, min_size=2, max_size=5))
async def test_calls_that_collide_never_run_at_once(project, effects):
    results, tool = await run_all(project, "bypassPermissions", effects)
    assert [one.code for one in results] == [None] * len(effects)
    pairs = itertools.combinations(range(len(effects)), 2)
    assert not tool.beside & {frozenset(pair) for pair in pairs if collide(effects, pair)}


@pytest.mark.proves("TC-3")
@GENERATED
@given(st.lists(EFFECTS, min_size=2, max_size=6))
async def test_calls_that_do_not_collide_run_side_by_side(project, effects):
    chosen: list[Effects] = []
    for one in effects:
        if not any(collide([one, other], (0, 1)) for other in chosen):
            chosen.append(one)
    results, _ = await run_all(project, "bypassPermissions", chosen, meet=True)
    assert [one.code for one in results] == [None] * len(chosen)


@pytest.mark.proves("PM-1")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("allow", [(), ("Touch",)])
@settings(GENERATED, max_examples=6)
@given(effects=st.lists(EFFECTS, min_size=1, max_size=4))
async def test_nothing_outside_is_reached_unless_mode_or_rule_lets_it(
    project, mode, allow, effects
):
    async def say_yes(_request):
        return Allow()

    results, tool = await run_all(project, mode, effects, allow=allow)
    answered, asked = await run_all(project, mode, effects, allow=allow, on_ask=say_yes)
    for number, (effect, result, answer) in enumerate(zip(effects, results, answered, strict=True)):
        free = mode == "bypassPermissions" or (allow and mode != "plan")
        if mode == "plan" and writes_outside(effect):
            # Not even a person's yes or a rule counts.
            assert (result.code, answer.code) == ("permission.asked",) * 2
            assert number not in tool.ran + asked.ran
        elif reaches_outside(effect) and not effect.writes_everything and not free:
            is_allowed = bool(allow) and effect.is_internal
            refused = "permission.denied" if mode == "dontAsk" else "permission.asked"
            assert result.code == (None if is_allowed else refused)
        elif free:
            assert result.code is None


@pytest.mark.proves("PM-1")
async def test_plan_mode_says_plainly_why_something_outside_is_not_changed(project):
    effects = [Effects.external("shop-db", "mail", writes=True)]
    (result,), tool = await run_all(project, "plan", effects, allow=["Touch"])
    assert tool.ran == []
    assert "Plan mode is read-only. Touch changes shop-db and mail" in result.text


async def test_a_question_names_what_is_outside_and_the_rule_that_allows_it(project):
    seen = []

    async def on_ask(request):
        seen.append(request)
        return Allow()

    effects = [Effects.external("shop-db", writes=True), Effects.external("mail", writes=False)]
    results, _ = await run_all(project, "acceptEdits", effects, on_ask=on_ask)
    assert [one.ok for one in results] == [True, True]
    assert "would change shop-db" in seen[0].reason
    assert "undo cannot restore it" in seen[0].reason
    assert "would read mail" in seen[1].reason
    assert [[one.rule for one in request.proposals] for request in seen] == [["Touch"]] * 2


@pytest.mark.parametrize("deny", ["Touch", "Touch(number:0)"])
async def test_a_deny_rule_holds_for_what_is_outside(project, deny):
    effects = [Effects.external("shop-db", writes=False)]
    (result,), tool = await run_all(project, "bypassPermissions", effects, deny=[deny])
    assert (result.code, tool.ran) == ("permission.denied", [])


@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
@pytest.mark.parametrize("writes", [True, False])
async def test_a_path_inside_frees_no_call_that_reaches_outside(project, mode, writes):
    @handaxe.tool(effects=Effects.external("shop-db", writes=writes))
    async def export(file_path: str) -> str:
        """Put a table into a file."""
        return file_path

    options = {"allow": ["Edit", "Read(//**)", "Edit(//**)"], "tools": [export]}
    async with Session(project, permission_mode=mode, **options) as session:
        result = await session.call("export", file_path="a.txt")
    assert result.code == "permission.asked"


@pytest.mark.proves("TC-2")
async def test_state_that_is_not_the_sessions_is_refused_where_a_tool_is_defined(project):
    with pytest.raises(ValueError, match=r"'shop-db' is not a state of the session"):

        @handaxe.tool(effects=Effects.on_state("shop-db"))
        async def delete_orders() -> str:
            """Delete all orders."""
            return ""

    @handaxe.tool(effects=lambda _args: Effects.on_state("shop-db"))
    async def delete_later() -> str:
        """Delete all orders."""
        raise AssertionError

    async with Session(project, tools=[delete_later], allow=["delete_later"]) as session:
        assert (await session.call("delete_later")).code == "internal.error"


async def test_a_tool_that_changes_state_of_the_session_is_free_in_plan_mode(project):
    effects = [*map(Effects.on_state, sorted(SESSION_STATE)), Effects.on_state(Visits)]
    results, tool = await run_all(project, "plan", effects)
    assert [one.code for one in results] == [None] * len(effects)
    assert len(tool.ran) == len(effects)


async def test_a_call_with_unknown_effects_holds_up_no_state_that_it_cannot_reach(project):
    gate = asyncio.Event()

    @handaxe.tool
    async def deploy() -> str:
        """Wait for what has nothing to do with it."""
        await asyncio.wait_for(gate.wait(), 30)
        return "deployed"

    @handaxe.tool(effects=Effects.pure())
    async def visit(visits: Visits) -> str:
        """Count."""
        visits.pages += 1
        gate.set()
        return str(visits.pages)

    async with Session(project, tools=[deploy, visit], allow=["deploy"]) as session:
        todo = {"content": "x", "status": "pending", "activeForm": "x"}
        calls = [("deploy", {}), ("TodoWrite", {"todos": [todo]}), ("TaskList", {}), ("visit", {})]
        results = await session.call_many(calls)
    assert [one.code for one in results] == [None] * 4


@pytest.mark.parametrize(
    ("reach", "state"), [(Todos, "todos"), (TaskStore, "tasks"), (Agents, "agent messages")]
)
def test_a_tool_that_gets_the_port_of_a_state_may_change_it(reach, state):
    assert state in find_spared_state(frozenset())
    assert state not in find_spared_state(frozenset((reach,)))


def test_no_builtin_tool_changes_state_that_its_ports_are_said_not_to_reach():
    for load in set(build_loaders().values()):
        tool = load()
        named = {what.name for what in (*tool.effects.reads, *tool.effects.writes)}
        assert not named & find_spared_state(tool.reach), tool.name


def test_what_permission_depends_on_is_never_spared():
    assert not find_spared_state(frozenset()) & {"mode", "skills", "cwd", "loaded tools", "user"}


def test_every_name_of_state_in_the_sources_is_known():
    used = set()
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text("utf-8")
        used |= set(re.findall(r'on_state\("([^"]+)"\)|Resource\("state", "([^"]+)"\)', text))
    assert {one or other for one, other in used} | {"own state"} == SESSION_STATE


def test_the_guide_lists_every_name():
    guide = (ROOT / "docs/guides/own-tools.md").read_text("utf-8")
    for name in SESSION_STATE:
        assert f"`{name}`" in guide
