"""Hooks that ask a model or an agent, in a session with a real one."""

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.models.serving import Reply, model_server
from tests.waiting import until

from handaxe import Agent, Session
from handaxe.agent import model_hooks
from handaxe.contract.events import HookRan
from handaxe.models.scripted import ModelScript, ScriptedModel, parse_script

OK = '{"ok": true}'
NO = '{"ok": false, "reason": "Run the tests first."}'


JUDGE = {"judge": {"match": "MAY IT"}}


def script_of(*turns: dict) -> ModelScript:
    return parse_script({"agents": JUDGE, "turn": list(turns)})


def scripted(*turns: dict) -> ScriptedModel:
    return ScriptedModel(script_of(*turns))


def said(text: str, agent: str = "") -> dict:
    return {"text": text, "agent": agent}


def called(tool: str, agent: str = "", **given) -> dict:
    return {"call": [{"tool": tool, "input": given}], "agent": agent}


def judged(*texts: str) -> list[dict]:
    """Turns of whoever is asked MAY IT?"""
    return [said(text, "judge") for text in texts]


def verdict(kind="prompt", prompt="MAY IT? $ARGUMENTS", **more):
    return [{"hooks": [{"type": kind, "prompt": prompt, **more}]}]


@asynccontextmanager
async def at_work(project: Path, model: ScriptedModel, hooks, **more):
    async with Session(project, hooks=hooks, **more) as session, Agent(model, session) as agent:
        yield agent


WRITES = [called("Write", file_path="new.txt", content="x"), said("Done.")]


def ran(session: Session) -> list[HookRan]:
    heard: list[HookRan] = []
    session.subscribe(lambda event: heard.append(event) if isinstance(event, HookRan) else None)
    return heard


@pytest.mark.proves("HK-1")
@pytest.mark.parametrize(
    ("more", "reason", "result"),
    [
        ({}, "hook_stopped", "Run the tests first."),
        ({"continueOnBlock": True}, "completed", "Done."),
    ],
)
async def test_a_prompt_hook_can_refuse_a_call(project: Path, more, reason, result):
    hooks, model = {"PreToolUse": verdict(**more)}, scripted(*judged(NO), *WRITES)
    async with at_work(project, model, hooks, permission_mode="acceptEdits") as agent:
        final = await agent.ask("Go.")
    assert (final.terminal_reason, final.result) == (reason, result)
    assert not (project / "new.txt").exists()


async def test_a_yes_lets_the_rules_decide(project: Path):
    model = scripted(*judged(OK), *WRITES)
    async with at_work(project, model, {"PreToolUse": verdict()}) as agent:
        heard = ran(agent.session)
        final = await agent.ask("Go.")
    assert [event.outcome for event in heard] == ["silent"]
    # Nobody is there to say yes, and a hook's yes is none.
    assert [denied.code for denied in final.denials] == ["permission.asked"]
    assert not (project / "new.txt").exists()


@pytest.mark.proves("HK-1")
async def test_an_agent_hook_looks_before_it_answers(project: Path):
    (project / "notes.md").write_text("Never write new.txt.\n")
    looking = called("Read", "judge", file_path="notes.md")
    found = {**said(NO, "judge"), "expect": "Never write"}
    hooks = {"PreToolUse": [{"matcher": "Write", **verdict("agent")[0]}]}
    model = scripted(looking, found, *WRITES)
    async with at_work(project, model, hooks, permission_mode="acceptEdits") as agent:
        final = await agent.ask("Go.")
        assert agent.agents.listed() == ()
    assert final.result == "Done."
    assert not (project / "new.txt").exists()


class Listening(ScriptedModel):
    """Keeps what it was told."""

    heard = ""

    def stream(self, request):
        self.heard += str(request.messages)
        return super().stream(request)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": "made.txt", "content": "x"}),
        ("Bash", {"command": "touch made.txt"}),
        ("Bash", {"command": "echo x > made.txt"}),
        ("Read", {"file_path": "secret.txt"}),
        ("Read", {"file_path": "guarded.txt"}),
    ],
)
@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
async def test_a_hooks_agent_is_never_wider_than_the_session(project: Path, tool, given, mode):
    """Not even where everything is free: it only looks, other hooks guard it, it asks nobody."""
    (project / "secret.txt").write_text("HUSH\n")
    (project / "guarded.txt").write_text("HUSH\n")

    async def guard(event):
        if "guarded.txt" in str(event["tool_input"]):
            return {"decision": "block", "reason": "Guarded."}
        return None

    async def on_ask(request):
        raise AssertionError("nobody is to be asked")

    turns = called(tool, "judge", **given), *judged(OK), said("Done.")
    model = Listening(script_of(*turns))
    hooks = {"Stop": verdict("agent", on_failure="closed"), "PreToolUse": [guard]}
    more = {"permission_mode": mode, "allow": ("Bash", "Write"), "deny": "Read(secret.txt)"}
    async with at_work(project, model, hooks, on_ask=on_ask, **more) as agent:
        final = await agent.ask("Go.")
    assert final.result == "Done."
    assert not (project / "made.txt").exists()
    assert "HUSH" not in model.heard


async def test_an_agent_hook_does_not_ask_itself(project: Path):
    (project / "a.txt").write_text("one\n")
    model = scripted(
        called("Read", "judge", file_path="a.txt"),
        *judged(OK),
        called("Glob", pattern="*"),
        said("Done."),
    )
    hooks = {name: verdict("agent") for name in ("PreToolUse", "PostToolUse", "SubagentStop")}
    async with at_work(project, model, hooks) as agent:
        heard = ran(agent.session)
        final = await agent.ask("Go.")
    assert final.result == "Done."
    assert [(event.event, event.outcome) for event in heard] == [
        ("PreToolUse", "silent"),
        ("PostToolUse", "silent"),
    ]


async def test_an_agent_that_never_answers_ends_after_its_turns(project: Path, monkeypatch):
    monkeypatch.setattr(model_hooks, "MAX_TURNS", 2)
    looking = [called("Glob", "judge", pattern=f"{n}*") for n in range(9)]
    async with at_work(
        project, scripted(*looking, said("Done.")), {"Stop": verdict("agent")}
    ) as agent:
        heard = ran(agent.session)
        assert (await agent.ask("Go.")).result == "Done."
    assert [event.outcome for event in heard] == ["failed"]
    assert "2" in heard[0].reason


async def test_what_hooks_ask_is_counted_with_the_agents_own_use(project: Path):
    async with Agent(scripted(said("Done.")), root=project) as alone:
        without = (await alone.ask("Go.")).usage
    model = scripted(*judged(OK), said("Done."))
    async with at_work(project, model, {"Stop": verdict()}) as agent:
        used = (await agent.ask("Go.")).usage
    assert used.input_tokens > without.input_tokens


async def test_a_session_without_a_model_says_so(project: Path):
    (project / "a.txt").write_text("one\n")
    for on_failure, ok in (("open", True), ("closed", False)):
        hooks = {"PreToolUse": verdict(on_failure=on_failure)}
        async with Session(project, hooks=hooks) as session:
            result = await session.call("Read", file_path="a.txt")
        assert result.ok == ok
        assert "this session has no agent" in f"{result.text} {result.notes}"


async def test_when_the_agent_is_gone_its_model_answers_no_more(project: Path):
    (project / "a.txt").write_text("one\n")
    async with Session(project, hooks={"PreToolUse": verdict()}) as session:
        async with Agent(scripted(*judged(OK)), session):
            assert (await session.call("Read", file_path="a.txt")).notes == ()
        result = await session.call("Read", file_path="a.txt")
    assert "this session has no agent" in result.notes[0]


def chunk(text: str | None, finish: str | None = None) -> bytes:
    delta = {} if text is None else {"content": text}
    body = {"id": "c", "model": "m", "choices": [
        {"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip
    return f"data: {json.dumps(body)}\n\n".encode()


def completion(text: str) -> Reply:
    return Reply(pieces=(chunk(text), chunk(None, "stop"), b"data: [DONE]\n\n"))


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    def point(url: str) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", url)

    return point


@pytest.mark.proves("HK-1")
async def test_a_hook_names_its_model_and_a_real_server_is_asked(project: Path, openai):
    async with model_server(completion(NO), completion(OK)) as server:
        openai(server.url)
        hooks = {"Stop": verdict(model="openai/judge")}
        model = scripted(said("Done."), said("Tested."))
        async with at_work(project, model, hooks) as agent:
            final = await agent.ask("Go.")
    assert final.result == "Tested."
    assert [asked.body["model"] for asked in server.asked] == ["judge", "judge"]
    told = json.loads(server.asked[0].body["messages"][-1]["content"].removeprefix("MAY IT? "))
    assert (told["hook_event_name"], told["last_assistant_message"]) == ("Stop", "Done.")


async def test_a_server_that_hangs_is_left_at_the_timeout(project: Path, openai):
    async with model_server(Reply(pieces=(chunk("{"),), hang=True)) as server:
        openai(server.url)
        hooks = {"Stop": verdict(model="openai/judge", timeout=0.3)}
        async with at_work(project, scripted(said("Done.")), hooks) as agent:
            heard = ran(agent.session)
            assert (await agent.ask("Go.")).result == "Done."
        await asyncio.wait_for(server.gone.wait(), 30)
    assert [event.outcome for event in heard] == ["timed_out"]


@pytest.mark.parametrize("kind", ["prompt", "agent"])
async def test_an_interrupted_run_lets_go_of_the_hooks_model(project: Path, openai, kind):
    async with model_server(Reply(pieces=(chunk("{"),), hang=True)) as server:
        openai(server.url)
        hooks = {"Stop": verdict(kind, model="openai/judge")}
        async with at_work(project, scripted(said("Done.")), hooks) as agent:
            running = asyncio.ensure_future(agent.ask("Go."))
            await until(lambda: server.asked)
            agent.interrupt()
            final = await running
        await asyncio.wait_for(server.gone.wait(), 30)
    assert final.terminal_reason == "aborted_streaming"


async def test_a_model_that_cannot_be_had_is_stood_in_for(project: Path):
    hooks = {"Stop": verdict(model="nobody/knows-this")}
    async with at_work(project, scripted(*judged(OK), said("Done.")), hooks) as agent:
        heard = ran(agent.session)
        assert (await agent.ask("Go.")).result == "Done."
    assert [event.outcome for event in heard] == ["silent"]


async def test_a_batch_that_a_model_refuses_ends_the_run(project: Path):
    model = scripted(*judged(NO), called("Glob", pattern="*"))
    async with at_work(project, model, {"PostToolBatch": verdict()}) as agent:
        final = await agent.ask("Go.")
    assert (final.terminal_reason, final.result) == ("hook_stopped", "Run the tests first.")
