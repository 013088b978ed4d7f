"""Every transcript plays as it is written: scripted turns, expected events, files after."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pairing import complaints
from players import Player, calls, ended
from tests.expected_types import require

from handaxe import Agent, Effects, Session, Tool, ToolArgs, ToolContext, ToolResult
from handaxe.agent.events import RunFinished, ToolAnswered
from handaxe.contract.events import CallDerived, CallFinished, CallStarted
from handaxe.contract.ports.model import TextDelta
from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import read_events

FILES = sorted((Path(__file__).parent.parent / "transcripts").glob("*.toml"))


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    tool: str
    input: dict[str, Any] = {}


class Said(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    calls: list[Asked] = []


class Transcript(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    summary: str
    prompt: str
    turns: list[Said]
    result: str
    mode: str = "acceptEdits"
    files: dict[str, str] = {}
    files_after: dict[str, str] = {}
    events: list[str] = []
    codes: list[str] | None = None
    denials: list[str] = []


def played(said: Said):
    if not said.calls:
        return [TextDelta(said.text), ended()]
    return calls(*((c.id, c.tool, c.input) for c in said.calls), text=said.text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_transcript_plays_as_written(path: Path, project: Path):
    script = msgspec.convert(tomllib.loads(path.read_text()), Transcript)
    for name, content in script.files.items():
        (project / name).write_text(content)
    model = Player(*[played(said) for said in script.turns])
    async with Session(project, permission_mode=script.mode) as session:
        agent = Agent(model, session)
        events = [event async for event in agent.run(script.prompt)]
    final = events[-1]
    assert isinstance(final, RunFinished)
    assert final.result == script.result
    assert [denied.tool for denied in final.denials] == script.denials
    if script.events:
        assert [type(event).__name__ for event in events] == script.events
    if script.codes is not None:
        answered = {e.result.id: e.result.code for e in events if isinstance(e, ToolAnswered)}
        asked = [call.id for said in script.turns for call in said.calls]
        assert [answered[call_id] or "" for call_id in asked] == script.codes
    for name, content in script.files_after.items():
        assert (project / name).read_text() == content
    assert complaints(agent.messages) == []


class DeployArgs(ToolArgs):
    target: str


class Deploy(Tool[DeployArgs]):
    """Deploy."""

    effects = Effects.pure()

    async def for_observers(self, args: DeployArgs, ctx: ToolContext) -> dict[str, Any]:
        return {"cluster": f"OBSERVED {args.target}", "place": Path("/srv")}

    async def call(self, args: DeployArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult("deployed")


@pytest.mark.proves("TC-11")
async def test_derived_fields_reach_hooks_events_and_the_log_and_never_the_model(project: Path):
    (project / "sub").mkdir()
    (project / "sub" / "a.txt").write_text("hello\n")
    heard: dict[str, dict[str, Any]] = {}

    async def watch(event: dict[str, Any]) -> None:
        heard[event["tool_use_id"]] = event

    model = Player(
        calls(
            ("read", "Read", {"file_path": "sub/../sub/a.txt"}),
            ("deploy", "Deploy", {"target": "x"}),
            ("bash", "Bash", {"command": "cd sub && cat a.txt | wc -l"}),
        ),
        calls(("again", "Deploy", {"target": "y"})),
        [TextDelta("done"), ended()],
    )
    options = {"tools": ["full", Deploy()], "allow": ["Deploy"], "hooks": {"PreToolUse": [watch]}}
    seen: list[Any] = []
    async with Session(project, session_id="s", **options) as session:
        session.subscribe(seen.append)
        async with Agent(model, session) as agent:
            await agent.ask("go")
    path = str(project / "sub" / "a.txt")
    observed = {"cluster": "OBSERVED x", "place": "/srv"}
    assert heard["read"]["tool_input"] == {"file_path": path}
    assert heard["deploy"]["tool_input"] == {"target": "x", **observed}
    assert heard["bash"]["tool_input"] == {"command": "cd sub && cat a.txt | wc -l"}
    parsed = heard["bash"]["parsed_command"]
    assert parsed["parts"] == ["cd sub", "cat a.txt", "wc -l"]
    assert (parsed["programs"], parsed["only_reads"]) == (["cat", "cd", "wc"], True)
    assert "parsed_command" not in heard["read"]
    for events in (seen, list(read_events(find_data_home(), "s"))):
        started = {e.call_id: e.derived for e in events if isinstance(e, CallStarted)}
        told = {e.call_id: e.derived for e in events if isinstance(e, CallDerived)}
        ended_calls = {e.call_id: e.result for e in events if isinstance(e, CallFinished)}
        assert started["read"] == {"file_path": path}
        assert told == {"deploy": observed, "again": {**observed, "cluster": "OBSERVED y"}}
        texts = [part.text for part in require(ended_calls["bash"].decision).parts]
        assert texts == ["cd sub", "cat a.txt", "wc -l"]
    sent = b"".join(msgspec.json.encode(request, enc_hook=str) for request in model.requests)
    assert b"sub/../sub/a.txt" in sent
    assert b"OBSERVED" not in sent
    assert b"/srv" not in sent
