"""What own tools see of the work around their call, and whom they can ask."""

import asyncio
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe import (
    Agent,
    Conversation,
    Effects,
    ElicitationForm,
    Session,
    SessionInfo,
    SetupError,
    ToolContext,
    ToolFault,
    connect,
    tool,
)
from handaxe.agent.events import FromAgent, ToolAnswered
from handaxe.app.session import get_parts
from handaxe.contract.context import CallOverError
from handaxe.contract.events import CallProgress
from handaxe.contract.messages import AssistantMessage
from handaxe.contract.ports.conversation import ModelQuestion
from handaxe.contract.ports.model import TextDelta
from handaxe.models.scripted import ScriptedModel, parse_script
from handaxe.schema.form_schema import build_form_schema


def scripted(*turns: dict[str, Any], agents: dict[str, Any] | None = None) -> ScriptedModel:
    return ScriptedModel(parse_script({"agents": agents or {}, "turn": list(turns)}))


def called(tool_name: str, agent: str = "", **given: Any) -> dict[str, Any]:
    return {"call": [{"tool": tool_name, "input": given}], "agent": agent}


@tool(effects=Effects.pure())
async def look(conversation: Conversation, label: str = "") -> str:
    """Tell what was said before this call."""
    parent = conversation.parent_message
    roles = ["user" if "User" in type(one).__name__ else "model" for one in conversation.messages]
    said = parent and [getattr(one, "text", getattr(one, "name", "?")) for one in parent.content]
    return f"{label}{roles} {said}"


@tool(effects=Effects.pure())
async def look_inside(ctx: ToolContext) -> str:
    """Let another tool tell what was said."""
    return (await ctx.call("look", label="inner ")).text


@tool(effects=Effects.pure())
async def about(info: SessionInfo) -> dict[str, Any]:
    """Tell the options of the session."""
    return {
        "mode": info.permission_mode,
        "model": info.model,
        "interactive": info.is_interactive,
        "roots": list(info.directories),
        "agent": info.agent_type,
        "agents": bool(info.agents),
        "servers": list(info.mcp_servers),
        "commands": type(info.commands) is tuple,
        "verbose": info.is_verbose,
        "here": info.directories[0] == info.root and bool(info.session_id),
    }


@tool(effects=Effects.pure())
async def ask(ctx: ToolContext, prompt: str, model: str | None = None) -> str:
    """Ask the model something."""
    return await ctx.ask_model(prompt, system="Be short.", model=model)


async def results(agent: Agent, prompt: str = "Go.") -> list[Any]:
    found: list[Any] = []
    async for event in agent.run(prompt):
        if isinstance(event, ToolAnswered):
            found.append(event.result)
    return found


@pytest.mark.proves("TC-15")
async def test_a_tool_sees_what_was_said_before_its_call_and_who_made_it(project):
    turns = [{"text": "Well.", **called("look")}, called("look_inside"), {"text": "Done."}]
    async with Agent(scripted(*turns), root=project, tools=[look, look_inside]) as agent:
        first, inner = await results(agent)
    assert first.text == "['user'] ['Well.', 'look']"
    assert inner.text == "inner ['user', 'model', 'user'] ['look_inside']"


async def test_where_no_agent_is_at_work_nothing_was_said(project):
    async with Session(project, tools=[look, about]) as session:
        assert (await session.call("look")).text == "[] None"
        told = (await session.call("about")).data
    assert (told["model"], told["interactive"], told["here"]) == (None, False, True)


async def test_what_a_tool_sees_is_no_input_and_needs_to_be_declared(project):
    @tool(effects=Effects.pure())
    async def peek(ctx: ToolContext) -> str:
        """Look without saying so."""
        return str(ctx[Conversation])

    async with Session(project, tools=[look, peek]) as session:
        (shown,) = [one for one in session.tools() if one["name"] == "look"]
        assert list(shown["inputSchema"]["properties"]) == ["label"]
        assert (await session.call("peek")).code == "internal.error"


async def test_a_tool_sees_the_options_of_its_session_as_they_are_now(project):
    async def nobody(_: object) -> None: ...

    model = scripted(called("about"), called("about"), {"text": "Done."})
    session = Session(project, tools=[about], on_elicit=nobody)
    async with session, Agent(model, session) as agent:
        before, after = [], []
        async for event in agent.run("Go."):
            if isinstance(event, ToolAnswered):
                (after if before else before).append(event.result.data)
                session.set_mode("acceptEdits")
        assert before[0] | {"mode": "acceptEdits"} == after[0]
        assert before[0]["mode"] == "default"
        assert before[0]["model"] == model.name
        assert before[0]["interactive"] is True
        assert before[0]["agents"] is True


async def test_a_tool_asks_the_model_of_the_run_and_the_run_pays_for_it(project):
    model = scripted(
        called("ask", prompt="MAY IT"), {"text": "Yes.", "agent": "judge"}, {"text": "Done."},
        agents={"judge": {"match": "MAY IT"}},
    )  # fmt: skip
    async with Agent(model, root=project, tools=[ask], max_tokens=1_000_000) as agent:
        (answer,) = await results(agent)
        assert answer.text == "Yes."
        used = agent.meter.used_tokens
        assert used > sum(
            m.usage.output_tokens for m in agent.messages if isinstance(m, AssistantMessage)
        )


async def test_a_tool_that_asks_without_a_model_is_told_so(project, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_MODEL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    async with Session(project, tools=[ask]) as session:
        refused = await session.call("ask", prompt="x")
    assert (refused.ok, refused.code) == (False, "model.none")
    assert "Set `model` in the settings" in refused.text


async def test_a_session_without_an_agent_asks_the_model_of_its_settings(project, tmp_path):
    script = tmp_path / "script.json"
    script.write_text('{"turn": [{"text": "Here."}]}')
    settings = {"model": f"scripted:{script}"}
    async with Session(project, tools=[ask, about], settings=settings) as session:
        assert (await session.call("ask", prompt="x")).text == "Here."
        assert (await session.call("ask", prompt="x")).code == "model.failed"


async def test_a_budget_that_is_used_up_refuses_the_question(project):
    model = scripted(called("ask", prompt="MAY IT"), {"text": "Done."})
    async with Agent(model, root=project, tools=[ask], max_tokens=1) as agent:
        agent.meter.add("toy", msgspec.structs.replace(agent.meter.usage, output_tokens=5))
        access = get_parts(agent.session).pipeline_context.agent
        assert access
        with pytest.raises(ToolFault) as caught:
            await access.ask_model(ModelQuestion(prompt="x"))
    assert caught.value.code == "model.budget"


async def test_a_question_to_the_model_ends_with_its_call(project):
    waiting = asyncio.Event()

    class Slow(ScriptedModel):
        async def stream(self, request):
            waiting.set()
            await asyncio.Event().wait()
            yield TextDelta("never said")

    async with Session(project, tools=[ask]) as session:
        agent = Agent(Slow(parse_script({"turn": [{"text": "x"}]})), session)
        working = asyncio.ensure_future(session.call("ask", prompt="x"))
        await waiting.wait()
        assert session.cancel() == 1
        assert (await working).code == "call.cancelled"
        await agent.close()


async def test_a_model_of_another_name_is_opened_once_and_closed(project, tmp_path):
    script = tmp_path / "other.json"
    script.write_text('{"turn": [{"text": "one"}, {"text": "two"}]}')
    name = f"scripted:{script}"
    turns = [called("ask", prompt="a", model=name), called("ask", prompt="b", model=name)]
    turns += [called("ask", prompt="c", model="nobody/x"), called("ask", prompt="d", model="small")]
    model = scripted(*turns, {"text": "it is small"}, {"text": "Done."})
    async with Agent(model, root=project, tools=[ask]) as agent:
        one, two, none, small = await results(agent)
    assert (one.text, two.text, none.code) == ("one", "two", "model.failed")
    assert small.text == "it is small"


async def test_a_subagent_has_a_conversation_and_options_of_its_own(project):
    turns = [
        called("Agent", description="look", prompt="LOOK", subagent_type="general-purpose"),
        called("look", "child"), called("about", "child"), {"text": "Seen.", "agent": "child"},
        {"text": "Done."},
    ]  # fmt: skip
    model = scripted(*turns, agents={"child": {"match": "LOOK"}})
    texts: dict[str, Any] = {}

    async with Agent(model, root=project, tools=[look, about]) as agent:
        agent.session.subscribe(lambda _: None)
        async for event in agent.run("Go."):
            inner = event.event if isinstance(event, FromAgent) else None
            if isinstance(inner, ToolAnswered):
                texts[inner.result.tool] = inner.result
    assert texts["look"].text == "['user'] ['look']"
    assert texts["about"].data["agent"] == "general-purpose"


# Progress.


class Step(msgspec.Struct):
    done: int
    total: int
    note: str | None = None


@dataclass
class Line:
    message: str
    at: float = 0.5


async def heard(project, value: object, text: str = "") -> tuple[Any, list[CallProgress]]:
    @tool(effects=Effects.pure())
    async def work(ctx: ToolContext) -> str:
        """Tell how far it is."""
        ctx.progress(value, text)
        return "done"

    events: list[CallProgress] = []
    async with Session(project, tools=[work]) as session:
        session.subscribe(lambda e: events.append(e) if isinstance(e, CallProgress) else None)
        result = await session.call("work")
        await asyncio.sleep(0)
    return result, events


@pytest.mark.proves("TC-15")
@pytest.mark.parametrize(
    ("value", "text", "data"),
    [
        (Step(1, 3), "done: 1, total: 3", {"done": 1, "total": 3, "note": None}),
        (Line("half"), "half", {"message": "half", "at": 0.5}),
        ("plain", "plain", "plain"),
        ([1, (2,)], "[1, [2]]", [1, [2]]),
        ({"x": float("nan")}, "", {"x": None}),
    ],
)
async def test_progress_is_data_for_programs_and_words_for_people(project, value, text, data):
    result, (event,) = await heard(project, value)
    assert result.ok
    assert (event.data, event.text) == (data, text)


async def test_what_json_cannot_hold_is_a_mistake_of_the_tool(project):
    result, events = await heard(project, object())
    assert (result.code, events) == ("internal.error", [])


async def test_nothing_can_be_asked_when_the_call_is_over(project):
    kept: list[ToolContext] = []

    @tool(effects=Effects.pure())
    async def leak(ctx: ToolContext) -> str:
        """Keep the context."""
        kept.append(ctx)
        return "done"

    async with Session(project, tools=[leak]) as session:
        await session.call("leak")
        for late in (kept[0].ask_model("x"), kept[0].elicit("x", Answer)):
            with pytest.raises(CallOverError):
                await late


# Forms.


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Answer(msgspec.Struct):
    name: Annotated[str, "Who you are."]
    count: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
    size: Size = Size.SMALL
    color: Literal["red", "blue"] | None = None
    sure: bool = False


@dataclass
class Plain:
    name: str
    factor: float = 1.0


@tool(effects=Effects.pure())
async def fill(ctx: ToolContext) -> str:
    """Ask for an answer."""
    return str(await ctx.elicit("Who is there?", Answer))


async def filled(project, answer: object, form: Any = Answer) -> tuple[Any, list[ElicitationForm]]:
    shown: list[ElicitationForm] = []

    @tool(effects=Effects.pure())
    async def form_tool(ctx: ToolContext) -> str:
        """Ask for an answer."""
        return repr(await ctx.elicit("Who is there?", form))

    async def on_elicit(form: ElicitationForm) -> Any:
        shown.append(form)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with Session(project, tools=[form_tool], on_elicit=on_elicit) as session:
        return await session.call("form_tool"), shown


@pytest.mark.proves("TC-15")
async def test_a_form_comes_back_as_the_type_it_was_made_of(project):
    result, (form,) = await filled(project, {"name": "Ann", "count": "3", "size": "large"})
    assert result.text == repr(Answer("Ann", 3, Size.LARGE))
    assert (form.source, form.message, form.call_id) == ("form_tool", "Who is there?", result.id)
    assert form.schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who you are."},
            "count": {"type": "integer", "default": 1, "minimum": 1, "maximum": 9},
            "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
            "color": {"type": "string", "enum": ["red", "blue"]},
            "sure": {"type": "boolean", "default": False},
        },
        "required": ["name"],
    }


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (None, "elicitation.declined"),
        ({}, "elicitation.bad_answer"),
        ({"name": "x", "count": 10}, "elicitation.bad_answer"),
        ("Ann", "elicitation.bad_answer"),
        (["name"], "elicitation.bad_answer"),
        (ValueError("boom"), "elicitation.unavailable"),
        ({"name": "x", "unknown": 1}, None),
        ({"name": "x", "color": None}, None),
    ],
)
async def test_what_does_not_fit_the_form_has_a_code(project, answer, code):
    result, _ = await filled(project, answer)
    assert result.code == code, result.text


async def test_data_classes_and_schemas_are_forms_too(project):
    result, _ = await filled(project, {"name": "x"}, Plain)
    assert result.text == repr(Plain("x", 1.0))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert (await filled(project, {"n": 4}, schema))[0].text == "{'n': 4}"
    assert (await filled(project, {"n": "no"}, schema))[0].code == "elicitation.bad_answer"


async def test_headless_says_that_nobody_can_be_asked(project):
    async with Session(project, tools=[fill]) as session:
        refused = await session.call("fill")
    assert refused.code == "elicitation.unavailable"
    assert "on_elicit" in refused.text


async def test_a_hook_can_fill_in_the_form(project):
    async def answer(event: dict[str, Any]) -> dict[str, Any]:
        assert event["mcp_server_name"] == "fill"
        content = {"name": "Hook"}
        return {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept",
                                       "content": content}}  # fmt: skip

    async with Session(project, tools=[fill], hooks={"Elicitation": [answer]}) as session:
        result = await session.call("fill")
    assert "Hook" in result.text


async def test_a_callback_for_a_form_may_use_the_session_itself(project):
    async def on_elicit(_: ElicitationForm) -> dict[str, Any]:
        return {"name": (await session.call("look")).text}

    async with Session(project, tools=[fill, look], on_elicit=on_elicit) as session:
        assert "[] None" in (await session.call("fill")).text


async def test_forms_are_shown_one_at_a_time(project):
    shown, most = 0, 0

    async def on_elicit(_: ElicitationForm) -> dict[str, Any]:
        nonlocal shown, most
        shown += 1
        most = max(most, shown)
        await asyncio.sleep(0)
        shown -= 1
        return {"name": "x"}

    async with Session(project, tools=[fill], on_elicit=on_elicit) as session:
        results = await session.call_many([("fill", {})] * 1 + [("fill", {}) for _ in range(3)])
        more = await asyncio.gather(*[session.call("fill") for _ in range(4)])
    assert most == 1
    assert all(one.ok for one in (*results, *more))


async def test_a_form_in_the_answer_to_a_form_is_refused_and_hangs_nothing(project):
    async def on_elicit(_: ElicitationForm) -> dict[str, Any]:
        inner = await session.call("fill")
        return {"name": str(inner.code)}

    async with Session(project, tools=[fill], on_elicit=on_elicit) as session:
        assert "call.nested" in (await session.call("fill")).text


async def test_a_cancelled_call_takes_its_form_back(project):
    shown, taken_back = asyncio.Event(), asyncio.Event()

    async def on_elicit(_: ElicitationForm) -> None:
        shown.set()
        try:
            await asyncio.Event().wait()
        finally:
            taken_back.set()

    async with Session(project, tools=[fill], on_elicit=on_elicit) as session:
        asking = asyncio.ensure_future(session.call("fill"))
        await shown.wait()
        session.cancel()
        assert (await asking).code == "call.cancelled"
        assert taken_back.is_set()


async def test_a_session_that_never_prompts_shows_no_form(project):
    async def on_elicit(_: ElicitationForm) -> dict[str, Any]:
        raise AssertionError("nobody may be asked")

    options = {"on_elicit": on_elicit, "never_prompt": True}
    async with Session(project, tools=[fill], **options) as session:
        assert (await session.call("fill")).code == "elicitation.unavailable"


@pytest.mark.parametrize("message", [None, 3, "", "  "])
async def test_a_form_needs_words_for_the_person(project, message):
    @tool(effects=Effects.pure())
    async def mute(ctx: ToolContext) -> str:
        """Ask without words."""
        return str(await ctx.elicit(message, Answer))

    async with Session(project, tools=[mute]) as session:
        refused = await session.call("mute")
    assert (refused.code, "takes a message" in refused.text) == ("internal.error", True)


def test_the_synchronous_connection_takes_a_plain_function(project):
    with connect(project, tools=[fill], on_elicit=lambda form: {"name": form.source}) as session:
        assert "name='fill'" in session.call("fill").text


async def test_what_is_no_callback_is_refused_at_once(project):
    with pytest.raises(SetupError, match="`on_elicit` must be an async function"):
        Session(project, on_elicit=cast("Any", "yes"))


@pytest.mark.parametrize(
    "kind",
    [list[str], int, Annotated[str, "x"], {"type": "string"}, {}, object, None],
)
def test_what_is_no_form_says_so(kind):
    with pytest.raises(TypeError, match="form"):
        build_form_schema(kind)


simple = st.sampled_from([str, int, float, bool, Size, Literal["a", "b"]])
hard = st.sampled_from([list[str], dict[str, int], tuple[int, int], Literal[1, 2], Answer])


@given(st.lists(simple, max_size=4), st.lists(hard, max_size=1), st.booleans())
def test_every_form_has_simple_fields_or_is_refused(easy, odd, optional):
    kinds = [*easy, *odd]
    fields = [(f"f{n}", kind | None if optional else kind) for n, kind in enumerate(kinds)]
    form = msgspec.defstruct("Form", fields)
    if odd:
        with pytest.raises(TypeError, match="is not possible in a form"):
            build_form_schema(form)
        return
    schema = build_form_schema(form)
    assert {one["type"] for one in schema["properties"].values()} <= {
        "string", "integer", "number", "boolean",
    }  # fmt: skip
    assert len(schema["required"]) == (0 if optional else len(kinds))
