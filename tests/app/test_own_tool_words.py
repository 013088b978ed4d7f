"""Inputs that a tool changes itself, names that people see, prompts that depend on the session."""

from typing import Any

import pytest

from handaxe import (
    Agent,
    Allow,
    Ask,
    Deny,
    Effects,
    PermissionRequest,
    Session,
    SessionInfo,
    SetupError,
    Tool,
    ToolArgs,
    ToolContext,
    ToolFault,
    ToolResult,
    tool,
)
from handaxe.app.session import get_parts
from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.events import CallAsked, CallStarted
from handaxe.contract.permission_subjects import TextSubject
from handaxe.models.scripted import ScriptedModel, parse_script


class CopyArgs(ToolArgs):
    count: int
    target: str = "here"


class Copies(Tool[CopyArgs]):
    """Print copies of something."""

    effects = Effects.unknown()

    def subjects(self, args: CopyArgs) -> tuple[TextSubject, ...]:
        return (TextSubject(args.target),)

    async def validate(self, args: CopyArgs, ctx: ToolContext) -> None:
        if args.count < 0:
            raise ToolFault("Less than none.")

    async def decide(self, args: CopyArgs, ctx: ToolContext) -> Any:
        if args.count > 10:
            return Allow("at most ten", input={"count": 10, "target": args.target})
        if args.target == "elsewhere":
            return Allow(input={"count": args.count, "target": "secret"})
        if args.target == "broken":
            return Allow(input={"count": "many"})
        if args.target == "negative":
            return Allow(input={"count": -1})
        if args.target.startswith("restless"):
            return Allow(input={"count": args.count, "target": args.target + "!"})
        return Ask("Printing costs paper.") if args.target == "ask" else None

    def user_facing_name(self, args: CopyArgs | None = None) -> str:
        return "Printer" if args is None else f"Print {args.count} copies"

    async def call(self, args: CopyArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult(f"{args.count} {args.target}")


@tool(effects=Effects.pure())
async def outer(ctx: ToolContext, count: int, target: str = "here") -> str:
    """Call the printer."""
    return (await ctx.call("Copies", count=count, target=target)).text


async def copy(project, input: dict[str, Any], answer: Any = None, name="Copies", **options: Any):
    asked: list[PermissionRequest] = []

    async def on_ask(request: PermissionRequest) -> Any:
        asked.append(request)
        return answer or Deny("no")

    session = Session(project, tools=[Copies(), outer], on_ask=on_ask, **options)
    async with session:
        return await session.call(name, input), asked


@pytest.mark.proves("TC-16")
async def test_a_tool_gives_permission_for_another_input(project):
    result, asked = await copy(project, {"count": 99}, ask=())
    assert (result.text, asked) == ("10 here", [])
    assert result.decision
    assert (result.decision.by, result.decision.reason) == ("tool", "at most ten")


@pytest.mark.parametrize(
    ("input", "options", "code"),
    [
        ({"count": 1, "target": "elsewhere"}, {"deny": ["Copies(secret)"]}, "permission.denied"),
        ({"count": 99, "target": "secret"}, {"deny": ["Copies(secret)"]}, "permission.denied"),
        ({"count": 1, "target": "broken"}, {}, "call.bad_input"),
        ({"count": 1, "target": "negative"}, {}, "call.failed"),
        ({"count": 1, "target": "restless"}, {}, "internal.error"),
        ({"count": 99}, {"permission_mode": "plan"}, "permission.asked"),
    ],
)
async def test_the_other_input_is_checked_from_the_start(project, input, options, code):
    result, _ = await copy(project, input, **options)
    assert result.code == code, result.text


async def test_an_ask_rule_asks_about_the_input_that_will_run(project):
    result, (asked,) = await copy(project, {"count": 99}, Allow(), ask=["Copies"])
    assert asked.input == {"count": 10, "target": "here"}
    assert result.text == "10 here"


async def test_what_the_tool_changes_after_a_yes_is_asked_again(project):
    changed = Allow(input={"count": 50, "target": "here"})
    result, asked = await copy(project, {"count": 1, "target": "ask"}, changed, ask=["Copies"])
    assert [one.input["count"] for one in asked] == [1, 10, 10] or result.ok, asked
    assert "50" not in result.text


async def test_it_holds_in_a_call_of_another_tool_and_after_a_hook(project):
    result, _ = await copy(project, {"count": 99}, name="outer")
    assert result.text == "10 here"

    async def more(event: dict[str, Any]) -> dict[str, Any]:
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse",
                                       "updatedInput": {"count": 77}}}  # fmt: skip

    result, _ = await copy(project, {"count": 1}, hooks={"PreToolUse": [more]})
    assert result.text == "10 here"


async def test_a_hook_that_wants_a_question_gets_it_although_the_tool_changed_the_input(project):
    async def ask(event: dict[str, Any]) -> dict[str, Any]:
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse",
                                       "permissionDecision": "ask"}}  # fmt: skip

    result, asked = await copy(project, {"count": 99}, hooks={"PreToolUse": [ask]})
    assert result.code == "permission.denied"
    assert [one.input["count"] for one in asked] == [10]


# Names.


@pytest.mark.proves("TC-16")
async def test_people_see_the_name_that_a_tool_wants_and_rules_know_the_real_one(project):
    events: list[Any] = []
    asked: list[PermissionRequest] = []

    async def on_ask(request: PermissionRequest) -> Allow:
        asked.append(request)
        return Allow()

    async with Session(project, tools=[Copies()], on_ask=on_ask) as session:
        session.subscribe(events.append)
        await session.call("Copies", count=2)
        await session.call("Glob", pattern="*")
        (printer, glob) = [one for one in events if isinstance(one, CallStarted)]
        tool_in_use, _ = get_parts(session).catalog.find("Copies")
        assert tool_in_use.title({"count": 2}) == "Printer(2)"
        assert tool_in_use.title({}) == "Printer"
    assert (printer.tool, printer.display_name) == ("Copies", "Print 2 copies")
    assert glob.display_name is None
    assert asked[0].asked_for == "Print 2 copies (Copies)"
    assert asked[0].display_name == "Print 2 copies"
    assert next(one for one in events if isinstance(one, CallAsked)).tool == "Copies"


@pytest.mark.parametrize("name", [lambda args: 1 / 0, lambda args: None, lambda args: " ", ""])
async def test_a_name_that_is_none_keeps_no_call_from_running(project, name):
    @tool(effects=Effects.pure(), user_facing_name=name)
    async def work(x: int = 1) -> str:
        """Do some work."""
        return str(x)

    async with Session(project, tools=[work]) as session:
        assert (await session.call("work", x=3)).text == "3"


async def test_functions_have_names_checks_and_words_of_their_own(project):
    async def check(args: Any, ctx: ToolContext) -> None:
        if args.x < 0:
            raise ToolFault("Not less than zero.")

    async def judge(args: Any, ctx: ToolContext) -> Any:
        return Deny("Too much.") if args.x > 9 else Allow(input={"x": args.x * 2 // 2})

    @tool(
        effects=Effects.unknown(), validate=check, decide=judge,
        user_facing_name=lambda args: f"Work on {args.x}", summary=lambda args, result: "short",
    )  # fmt: skip
    async def work(x: int) -> str:
        """Do some work."""
        return str(x)

    assert work.user_facing_name(work.args_type(x=3)) == "Work on 3"
    assert work.user_facing_name() == "work"
    assert work.summary(None, ToolResult("long")) == "short"
    async with Session(project, tools=[work]) as session:
        assert (await session.call("work", x=3)).text == "3"
        assert (await session.call("work", x=-1)).text == "Not less than zero."
        assert (await session.call("work", x=10)).code == "permission.denied"


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("validate", lambda args, ctx: None), ("decide", lambda args, ctx: None), ("validate", 3),
        ("show", "x"), ("user_facing_name", 3),
    ],
)  # fmt: skip
def test_what_is_no_such_function_is_a_mistake_where_the_tool_is_made(fact, value):
    async def work() -> str:
        """Do some work."""
        return ""

    with pytest.raises(TypeError, match=f"`{fact}` (?:is|must be)"):
        tool(**{fact: value})(work)


@pytest.mark.parametrize("aliases", [("Same",), ("a", "a"), ("a", "Same", "b")])
def test_a_name_that_a_tool_has_twice_is_a_mistake(aliases):
    with pytest.raises(ValueError, match="a name twice"):
        type("Same", (Tool,), {"aliases": aliases})


async def test_an_inherited_alias_that_means_another_tool_is_a_warning(project):
    class First(Copies):
        """Print once."""

        aliases = ("old_print",)

    class Second(First):
        """Print twice."""

    async with Session(project, tools=[First(), Second()]) as session:
        (warning,) = session.warnings
    assert "The alias 'old_print' of the program's own tool 'Second'" in warning


@pytest.mark.parametrize(
    "make",
    [
        lambda: TextBlock(3),  # type: ignore[arg-type]
        lambda: ImageBlock("image/png", b"x"),  # type: ignore[arg-type]
        lambda: ImageBlock("png", "aGk="),
        lambda: ImageBlock("image/png", "data:image/png;base64,aGk="),
        lambda: ImageBlock("image/png", "\x89PNG"),
    ],
)
def test_a_block_that_no_provider_takes_fails_where_it_is_made(make):
    with pytest.raises((TypeError, ValueError), match="Block: `"):
        make()


# Prompts.


class Guide(Tool[ToolArgs]):
    """Never shown."""

    effects = Effects.pure()
    asked = 0

    def prompt_for(self, session: SessionInfo) -> str:
        type(self).asked += 1
        return f"Guides in {session.root} by {session.model}, round {self.asked}."

    async def call(self, args: ToolArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult("here")


@pytest.fixture(autouse=True)
def _unasked():
    Guide.asked = 0


def describe(session: Session, name: str = "Guide") -> str:
    return next(one for one in session.tools() if one["name"] == name)["description"]


@pytest.mark.proves("TC-16")
async def test_a_prompt_depends_on_the_session_and_stays_the_same_within_it(project, tmp_path):
    async with Session(project, tools=[Guide()]) as session:
        first = describe(session)
        session.set_mode("plan")
        assert describe(session) == first == f"Guides in {project} by None, round 1."
    other = tmp_path / "other"
    other.mkdir()
    async with Session(other, tools=[Guide()]) as session:
        assert describe(session) == f"Guides in {other} by None, round 2."


async def test_one_tool_in_two_sessions_has_two_prompts(project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    guide = Guide()
    async with Session(project, tools=[guide]) as one, Session(other, tools=[guide]) as two:
        assert (str(project) in describe(one), str(other) in describe(two)) == (True, True)
        assert describe(one) != describe(two)


async def test_the_model_gets_the_same_prompt_in_every_request_and_so_do_subagents(project):
    class Listening(ScriptedModel):
        def __init__(self, script: Any) -> None:
            super().__init__(script)
            self.heard: list[str] = []

        def stream(self, request: Any) -> Any:
            told = {spec.name: spec.description for spec in request.tools}
            self.heard.append(told.get("Guide", ""))
            return super().stream(request)

    turns = [
        {"call": [{"tool": "Guide", "input": {}}]},
        {"call": [{"tool": "Agent", "input": {"description": "x", "prompt": "LOOK"}}]},
        {"text": "Seen.", "agent": "child"}, {"text": "Done."},
    ]  # fmt: skip
    script = parse_script({"agents": {"child": {"match": "LOOK"}}, "turn": turns})
    model = Listening(script)
    async with Agent(model, root=project, tools=[Guide()]) as agent:
        await agent.ask("Go.")
    assert len(model.heard) == 4
    assert set(model.heard) == {f"Guides in {project} by {model.name}, round 1."}


@pytest.mark.parametrize("wrong", [None, 3, ValueError("boom")])
async def test_a_prompt_that_fails_falls_back_to_the_plain_one(project, wrong):
    class Odd(Guide):
        """The plain prompt."""

        def prompt_for(self, session: SessionInfo) -> Any:
            if isinstance(wrong, Exception):
                raise wrong
            return wrong

    async with Session(project, tools=[Odd()]) as session:
        assert describe(session, "Odd") == "The plain prompt."
        (warning,) = session.warnings
        assert "`prompt_for` of the tool 'Odd'" in warning


def test_two_own_tools_of_one_name_are_refused_by_that_name(tmp_path):
    @tool(effects=Effects.pure(), name="twin")
    async def first() -> str:
        """One."""
        return ""

    @tool(effects=Effects.pure(), name="twin")
    async def second() -> str:
        """Two."""
        return ""

    with pytest.raises(SetupError, match="Two own tools have the name 'twin'"):
        Session(tmp_path, tools=[first, second])


@pytest.mark.parametrize("word", ["yes", True, 5, Allow, []], ids=repr)
async def test_a_decision_of_another_kind_lets_nothing_run_and_says_what_is_expected(project, word):
    async def decide(args, ctx):
        return word

    ran: list[str] = []

    @tool(effects=Effects.pure(), decide=decide)
    async def note() -> str:
        """Note that it ran."""
        ran.append("note")
        return "noted"

    async with Session(project, tools=[note]) as session:
        result = await session.call("note")
    assert result.code == "internal.error"
    assert "must return Allow(), Ask(), Deny() or None" in result.text
    assert not ran
