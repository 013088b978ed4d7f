"""What a model reads after its calls, the same from everybody who sends it."""

import base64
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from players import Player, calls, says
from tests.expected_types import get_text

from handaxe import Agent, Session, ToolCall, ToolResult
from handaxe.adapters.tool_conversion import SessionAdapter
from handaxe.agent.conversation import AgentConversation
from handaxe.agent.events import ToolAnswered
from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.events import AssistantEnded, AssistantSaid, UserSaid
from handaxe.contract.messages import ToolUseBlock, UserMessage
from handaxe.frontends.mcp_server.tool_list import build_call_result
from handaxe.frontends.stream_json.codec import StreamCodec, StreamOptions
from handaxe.frontends.stream_json.result_message import MessageLookups
from handaxe.models.anthropic.request import build_request as build_anthropic
from handaxe.models.openai.request import ServerQuirks
from handaxe.models.openai.request import build_request as build_openai
from handaxe.schema.user_turn import build_user_turn

ASKED = (
    ("c1", "Skill", {"skill": "style"}),
    ("c2", "Read", {"file_path": "dot.png"}),
    ("c3", "Read", {"file_path": "missing.txt"}),
)
PROVIDERS = ("anthropic", "openai", "gemini", "json-schema")
WORDS = ("Write short lines.", "It is Monday.", "Remember the tests.")


def png(size):
    """A small picture."""
    stream = io.BytesIO()
    Image.new("RGB", (size, size)).save(stream, "png")
    return stream.getvalue()


async def started(event):
    return {"hookSpecificOutput": {"additionalContext": "It is Monday."}}


async def after(event):
    return {"hookSpecificOutput": {"additionalContext": "Remember the tests."}}


@pytest.fixture
def options(project):
    skill = project / ".claude/skills/style/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: Style\n---\nWrite short lines. !`echo from a command`\n")
    (project / "dot.png").write_bytes(png(4))
    return {
        "trusted": True,
        "allow": ["Skill"],
        "hooks": {"SessionStart": [started], "PostToolUse": [after]},
    }


def without_marks(message):
    for block in message["content"] if isinstance(message["content"], list) else ():
        block.pop("cache_control", None)
    return message


async def ask_agent(project, options):
    """The request that follows on the calls, and the events of the run."""
    model = Player(calls(*ASKED), says("done"))
    async with Agent(model, root=project, **options) as agent:
        events = [event async for event in agent.run("go")]
    return model.requests[1], events


async def make_calls(project, options):
    session = Session(project, **options)
    async with session:
        results = await session.run_many([ToolCall(*asked) for asked in ASKED])
        return [{name: session.user_turn(results, name) for name in PROVIDERS}, session, results]


@pytest.mark.proves("TC-18")
async def test_a_loop_of_ones_own_sends_what_the_agent_sends(project, options):
    # Who begins with a prompt hears of the start with it; a loop of one's own with its first call.
    del options["hooks"]["SessionStart"]
    request, _ = await ask_agent(project, options)
    (turns, _, _) = await make_calls(project, options)
    sent = without_marks(build_anthropic("m", request)["messages"][-1])
    assert sent == turns["anthropic"]
    assert [block["type"] for block in sent["content"]] == ["tool_result"] * 3 + ["text"] * 4
    tail = list(build_openai("m", request, ServerQuirks())["messages"])[-4:]
    assert tail == turns["openai"]
    assert [message["role"] for message in tail] == ["tool", "tool", "tool", "user"]


@pytest.mark.proves("TC-18")
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_nothing_is_lost_on_the_way_to_any_provider(project, options, provider):
    turns, _, _ = await make_calls(project, options)
    sent = json.dumps(turns[provider])
    for text in (*WORDS, "from a command", "c1", "c3"):
        assert text in sent
    assert base64.b64encode(png(4))[:40].decode() in sent


@pytest.mark.proves("TC-18")
async def test_adapters_and_the_mcp_server_say_the_same(project, options):
    # What the start has to say comes with the call that ends first.
    del options["hooks"]["SessionStart"]
    turns, session, results = await make_calls(project, options)
    said = [b["text"] for b in turns["anthropic"]["content"] if b["type"] == "text"]
    own = [json.loads(json.dumps(session.tool_result(r, "anthropic"))) for r in results]
    texts = [b["text"] for r in own for b in r["content"] if b["type"] == "text"]
    assert [text for text in texts if "system-reminder" in text] == said
    by_mcp = [b for r in results for b in build_call_result(session, r)["content"]]
    assert [b["text"] for b in by_mcp if b["type"] == "text"] == texts
    async with Session(project, **options) as again:
        adapter = SessionAdapter(again, fresh_ids=False)
        answers = [await adapter.call(asked[1], asked[2], asked[0]) for asked in ASKED]
    assert "\n\n".join(answer.text for answer in answers) == "\n\n".join(texts)


@pytest.mark.proves("TC-18")
async def test_stream_json_shows_what_the_model_reads(project, options):
    request, events = await ask_agent(project, options)
    codec = StreamCodec("s", lambda _: {}, StreamOptions(), MessageLookups())
    told = [message for event in events for message in codec.messages(event)]
    shown = [
        block
        for message in told
        if message["type"] == "user"
        for block in message["message"]["content"]
    ]
    sent = without_marks(build_anthropic("m", request)["messages"][-1])["content"]
    assert [b["text"] for b in shown if b["type"] == "text"] == [
        b["text"] for b in sent if b["type"] == "text"
    ]
    assert [b["tool_use_id"] for b in shown if b["type"] == "tool_result"] == [
        answered.result.id for answered in events if isinstance(answered, ToolAnswered)
    ]


@pytest.mark.proves("TC-18")
async def test_the_start_is_heard_when_the_first_prompt_is_a_skill_with_commands(project, options):
    from handaxe.app.slash_commands import expand_prompt

    model = Player(says("done"))
    async with Agent(model, root=project, **options) as agent:
        await agent.ask(await expand_prompt(agent.session, "/style"))
    texts = [get_text(block) for message in model.requests[0].messages for block in message.content]
    assert sum("It is Monday." in text for text in texts) == 1
    assert any("from a command" in text for text in texts)


async def test_news_of_background_work_comes_with_the_next_turn_once(project):
    async with Session(project, permission_mode="bypassPermissions") as session:
        begun = await session.call("Bash", command="true", run_in_background=True)
        await session.jobs.news()
        found = await session.call("Glob", pattern="*")
        first, second = (json.dumps(session.user_turn([found], "anthropic")) for _ in range(2))
    job = begun.data["backgroundTaskId"]
    assert job in first
    assert job not in second


async def test_messages_of_a_call_survive_a_death_right_after_it():
    said = [
        UserSaid(message_id="u", message=UserMessage((TextBlock("go"),))),
        AssistantSaid(message_id="a", content=(ToolUseBlock("c1", "Skill", {}),)),
        AssistantEnded(message_id="a", stop_reason="tool_use"),
    ]
    result = ToolResult("Launching", id="c1", messages=("The text of the skill.",))
    resumed = AgentConversation.from_events(said, {"c1": result}.get)
    assert "The text of the skill." in get_text(resumed.messages[-1].content[-1])
    # Where it was said already it is not said again.
    later = UserSaid(
        message_id="s", message=UserMessage((TextBlock("The text of the skill."),), synthetic=True)
    )
    whole = AgentConversation.from_events([*said, later], {"c1": result}.get)
    assert str(whole.messages).count("The text of the skill.") == 1


TEXTS = st.text(max_size=20)
RESULTS = st.lists(
    st.builds(
        ToolResult,
        text=TEXTS,
        content=st.lists(
            st.one_of(
                st.builds(TextBlock, TEXTS),
                st.just(ImageBlock("image/png", base64.b64encode(png(2)).decode())),
            ),
            max_size=2,
        ).map(tuple),
        notes=st.lists(TEXTS, max_size=1).map(tuple),
        messages=st.lists(TEXTS, max_size=2).map(tuple),
        ok=st.booleans(),
        id=st.uuids().map(str),
        tool=st.just("Read"),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda result: result.id,
)


@pytest.mark.proves("TC-18")
@settings(max_examples=60, deadline=None)
@given(results=RESULTS)
def test_any_results_make_a_turn_that_providers_take(results):
    turn = build_user_turn(results, "anthropic")
    kinds = [block["type"] for block in turn["content"]]
    assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result")
    assert [b["tool_use_id"] for b in turn["content"][: len(results)]] == [r.id for r in results]
    assert all(b["text"].strip() for b in turn["content"] if b["type"] == "text")
    for block in turn["content"][: len(results)]:
        parts = block.get("content", [])
        assert all(part["type"] == "text" for part in parts) or not block.get("is_error")
    tools = [m for m in build_user_turn(results, "openai") if m["role"] == "tool"]
    assert [message["tool_call_id"] for message in tools] == [result.id for result in results]
    for provider in PROVIDERS:
        json.dumps(build_user_turn(results, provider)).encode()


@pytest.mark.proves("RG-5", "RG-8")
async def test_a_loop_of_ones_own_sends_the_tools_and_names_that_an_agent_sends(project):
    from handaxe import tool

    def make(number):
        @tool(name=f"Own{number}")
        async def own(text: str) -> str:
            """Say something, at some length, so that many of these are too long to be sent."""
            return text

        return own

    tools = [*map(make, range(300)), "ToolSearch", "Read"]
    asked = [("c1", "ToolSearch", {"query": "select:Own5,Own2"}), ("c2", "Own9", {"text": "x"})]
    model = Player(calls(asked[0]), calls(asked[1]), says("done"))
    async with Agent(model, root=project, tools=tools) as agent:
        await agent.ask("go")
    async with Session(project, tools=tools) as session:
        names = session.deferred_tools()
        assert names
        assert names in "\n\n".join(model.requests[0].system)
        for request, (call_id, name, given) in zip(model.requests, [*asked, asked[1]], strict=True):
            sent = [tool["name"] for tool in session.tools("anthropic", deferred=True)]
            assert sent == [spec.name for spec in request.tools]
            results = await session.run_many([ToolCall(call_id, name, given)])
            turn = session.user_turn(results, "anthropic")
            if request is not model.requests[-1]:
                following = model.requests[model.requests.index(request) + 1]
                assert len(turn["content"]) == len(following.messages[-1].content)
