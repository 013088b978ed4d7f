"""What a model said once it can say again."""

from pathlib import Path

import pytest
from tests.models.talk import events_of, heard_until_failure

from handaxe.contract.content import TextBlock
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import AssistantMessage, UserMessage
from handaxe.contract.ports.model import ModelFailed, ModelRequest, TextDelta
from handaxe.models.factory import open_model
from handaxe.models.recording import RecordingModel, ReplayModel
from handaxe.models.scripted import ScriptedModel, parse_script

TURNS = {
    "name": "claude-x",
    "context_tokens": 5000,
    "turn": [
        {"text": "Hello", "thinking": "hm", "call": [{"tool": "Read", "input": {"a": 1}}]},
        {"text": "x" * 40, "fail": {"how": "overloaded", "after": 2, "status": 529}},
        {"text": "end"},
    ],
}


def request(*texts: str) -> ModelRequest:
    messages: list = []
    for text in texts:
        messages += [UserMessage((TextBlock(text),)), AssistantMessage(())]
    return ModelRequest(messages=tuple(messages[:-1]))


async def recorded(path: Path) -> list:
    model = RecordingModel(ScriptedModel(parse_script(TURNS)), path)
    heard = [await events_of(model, request("a"))]
    with pytest.raises(ModelFailed):
        await events_of(model, request("a", "b"))
    heard.append(await events_of(model, request("a", "b", "c")))
    await model.close()
    return heard


async def test_a_recording_is_played_as_it_was(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    first, last = await recorded(path)
    model = open_model(f"replay:{path}", env={})
    assert (model.name, model.context_tokens) == ("claude-x", 5000)
    assert await events_of(model, request("a")) == first
    heard, failed = await heard_until_failure(model, request("a", "b"))
    assert heard == [TextDelta("x" * 16)] * 2
    assert (failed.failure, failed.status) == ("overloaded", 529)
    assert await events_of(model, request("a", "b", "c")) == last
    with pytest.raises(ModelFailed, match="no answer"):
        await events_of(model, request("a"))


async def test_other_words_get_the_answer_of_the_same_place_unless_strict(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    first, _ = await recorded(path)
    assert await events_of(ReplayModel(path), request("other")) == first
    with pytest.raises(ModelFailed):
        await events_of(ReplayModel(path, strict=True), request("other"))


async def test_an_answer_that_was_broken_off_is_on_record(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    model = RecordingModel(ScriptedModel(parse_script(TURNS)), path)
    stream = model.stream(request("a"))
    event = await anext(stream)
    await stream.aclose()
    assert await events_of(ReplayModel(path), request("a")) == [event]


async def test_prompts_are_not_in_the_recording(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    model = RecordingModel(ScriptedModel(parse_script(TURNS)), path)
    await events_of(model, request("my secret"))
    assert b"secret" not in path.read_bytes()


@pytest.mark.parametrize(
    ("content", "word"), [("", "empty"), ("{", "damaged"), ('{"a": 1}', "damaged")]
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: str, word: str):
    path = tmp_path / "talk.jsonl"
    path.write_text(content)
    with pytest.raises(SetupError, match=word):
        ReplayModel(path)
