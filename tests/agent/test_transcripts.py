"""Every transcript plays as it is written: scripted turns, expected events, files after."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pairing import complaints
from players import Player, calls, ended

from handaxe import Agent, Session
from handaxe.agent.events import RunFinished, ToolAnswered
from handaxe.contract.ports.model import TextDelta

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
