"""What a model said once it can say again."""

import os
import resource
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.expected_types import expect_type
from tests.models.talk import READ, events_of, heard_until_failure

from handaxe.contract.content import TextBlock
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import (
    AssistantMessage,
    TokenUsage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelFailed,
    ModelRequest,
    RequestOrigin,
    TextDelta,
    ToolEnded,
    ToolInputDelta,
    ToolStarted,
)
from handaxe.models.factory import open_model
from handaxe.models.normalized_request import NormalizedRequest
from handaxe.models.recording import RecordingModel, ReplayModel
from handaxe.models.scripted import ScriptedModel, parse_script
from handaxe.text.redact import Redactor

TURNS = {
    "name": "claude-x",
    "context_tokens": 5000,
    "turn": [
        {"text": "Hello", "thinking": "hm", "call": [{"tool": "Read", "input": {"a": 1}}]},
        {"text": "x" * 40, "fail": {"how": "overloaded", "after": 2, "status": 529}},
        {"text": "end"},
    ],
}


ENDED = MessageEnded("end_turn", TokenUsage())


class Saying(Model):
    """Answers everything with the same events."""

    name = "saying"

    def __init__(self, events: list) -> None:
        self._events = events

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for event in self._events:
            if isinstance(event, ModelFailed):
                raise event
            yield event


def asked_by(agent: str) -> ModelRequest:
    return msgspec.structs.replace(request("Look around."), origin=RequestOrigin(agent=agent))


def worked(call_id: str, result: str) -> ModelRequest:
    """A conversation with one call."""
    return ModelRequest(
        messages=(
            UserMessage((TextBlock("Work."),)),
            AssistantMessage(
                (ToolUseBlock(call_id, "Read", {"file_path": "a"}),), message_id=result
            ),
            UserMessage((ToolResultBlock(call_id, (TextBlock(result),)),)),
        )
    )


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
    stream = expect_type(AsyncGenerator, model.stream(request("a")))
    event = await anext(stream)
    await stream.aclose()
    assert await events_of(ReplayModel(path), request("a")) == [event]


async def test_the_first_difference_from_the_recording_is_shown_by_every_later_failure(
    tmp_path: Path,
):
    path = tmp_path / "talk.jsonl"
    model = RecordingModel(Saying([ENDED]), path)
    await events_of(model, worked("toolu_0123456789ab", "one\ntwo\nthree"))
    strict = ReplayModel(path, strict=True)
    with pytest.raises(ModelFailed) as failed:
        await events_of(strict, worked("call_1", "one\nzwei\nthree"))
    assert failed.value.failure == "bad_request"
    for word in (
        "request 2 of the main agent",
        "line 1 of",
        "message 3",
        "[result of call 1: Read]",
    ):
        assert word in failed.value.sentence
    assert "recorded: 'two'\n  now:      'zwei'" in failed.value.sentence
    with pytest.raises(ModelFailed, match="'zwei'"):
        await events_of(strict, request("something else"))


RANDOM_NAMES = [
    ("12345678-1234-1234-1234-123456789abc", "87654321-4321-4321-4321-cba987654321"),
    ("a0123456789abcdef", "afedcba9876543210"),
    ("bash_0a1b2c", "bash_c2b1a0"),
    ("call_0123456789ab_7", "call_ba9876543210_9"),
    ("/tmp/tmp.a1B2c3/x", "/tmp/tmpzzzz/x"),
    ("/srv/project/a.txt", "/home/other/a.txt"),
    ("/data/sessions/1/results/x.txt", "/elsewhere/2/results/x.txt"),
]


@pytest.mark.parametrize(("before", "after"), RANDOM_NAMES)
@pytest.mark.parametrize("frame", ["{}", "in {}: {}", "see '{}'", "x={};", "agent-{}\n"])
def test_the_digest_does_not_depend_on_random_names(before: str, after: str, frame: str):
    def digest(name: str, call_id: str, root: str, directory: str) -> str:
        text = frame.replace("{}", name)
        if "/" in name and frame.startswith("agent-"):
            text = name
        places = ((root, "root"), (directory, "session"), ("/tmp", "temp"))
        asked = worked(call_id, text)
        return NormalizedRequest(
            msgspec.structs.replace(asked, origin=RequestOrigin(places=places))
        ).digest

    one = digest(before, "call_0", "/srv/project", "/data/sessions/1")
    assert one == digest(after, "toolu_xyz0123456789", "/home/other", "/elsewhere/2")
    assert one != digest(f"{after} more", "call_0", "/home/other", "/elsewhere/2")


def test_two_names_that_change_places_are_a_difference():
    one, other = "a0123456789abcdef", "afedcba9876543210"
    first, second, third = (
        NormalizedRequest(worked("c", text)).digest
        for text in (f"{one} {other} {one}", f"{other} {one} {other}", f"{one} {other} {other}")
    )
    assert first == second
    assert first != third


async def test_names_in_an_answer_become_those_of_the_replay(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    asked = worked("c", "agentId: a0123456789abcdef")
    heard = [
        TextDelta("I ask a01234567"),
        TextDelta("89abcdef, not a00000000000000ff."),
        ToolStarted("d", "TaskOutput"),
        ToolInputDelta("d", '{"task_id": "a0123456789abcdef"}'),
        ToolEnded("d", "TaskOutput", {"task_id": "a0123456789abcdef"}),
        MessageEnded("tool_use", TokenUsage()),
    ]
    await events_of(RecordingModel(Saying(heard), path), asked)
    assert b"a0123456789abcdef" not in path.read_bytes()
    played = await events_of(
        ReplayModel(path, strict=True), worked("e", "agentId: a1111111111111111")
    )
    assert "".join(e.text for e in played if isinstance(e, TextDelta)) == (
        "I ask a1111111111111111, not a00000000000000ff."
    )
    assert played[2:] == [
        ToolStarted("d", "TaskOutput"),
        ToolInputDelta("d", '{"task_id": "a1111111111111111"}'),
        ToolEnded("d", "TaskOutput", {"task_id": "a1111111111111111"}),
        heard[-1],
    ]


async def test_names_in_a_failure_become_those_of_the_replay(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    failing = Saying([ModelFailed("overloaded", "a0123456789abcdef asked too often")])
    with pytest.raises(ModelFailed):
        await events_of(RecordingModel(failing, path), worked("c", "agentId: a0123456789abcdef"))
    replay = ReplayModel(path, strict=True)
    with pytest.raises(ModelFailed, match="a1111111111111111 asked too often"):
        await events_of(replay, worked("e", "agentId: a1111111111111111"))


async def test_secrets_are_not_in_the_recording_and_make_no_difference(tmp_path: Path):
    path = tmp_path / "talk.jsonl"

    def with_secret(secret: str) -> ModelRequest:
        redactor = Redactor({"API_TOKEN": secret})
        asked = worked("c", f"The token is {secret}.")
        return msgspec.structs.replace(asked, origin=RequestOrigin(redact=redactor.redact))

    said = [
        TextDelta("It is hunter2"),
        TextDelta("hunter2."),
        ToolEnded("d", "Bash", {"command": "curl -H hunter2hunter2"}),
        MessageEnded("end_turn", TokenUsage()),
    ]
    await events_of(RecordingModel(Saying(said), path), with_secret("hunter2hunter2"))
    failing = Saying([ModelFailed("overloaded", "hunter2hunter2 has no credit")])
    with pytest.raises(ModelFailed):
        await events_of(RecordingModel(failing, path), with_secret("hunter2hunter2"))
    assert b"hunter2" not in path.read_bytes()
    strict = ReplayModel(path, strict=True)
    played = await events_of(strict, with_secret("another-password"))
    assert "It is [redacted: API_TOKEN]." in "".join(
        e.text for e in played if isinstance(e, TextDelta)
    )


async def test_agents_with_the_same_words_are_told_apart(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    for agent in ("", "2", "2.1"):
        model = RecordingModel(Saying([TextDelta(f"I am {agent}"), ENDED]), path)
        await events_of(model, asked_by(agent))
    for strict in (True, False):
        replay = ReplayModel(path, strict=strict)
        for agent in ("2.1", "", "2"):
            assert (await events_of(replay, asked_by(agent)))[0] == TextDelta(f"I am {agent}")
        with pytest.raises(ModelFailed, match="no answer to request 1 of agent 9"):
            await events_of(replay, asked_by("9"))


async def test_several_runs_in_one_file_are_played_in_their_order(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    for number in range(3):
        model = RecordingModel(Saying([TextDelta(str(number)), ENDED]), path)
        await events_of(model, request("a", "b"))
        await model.close()
    strict = ReplayModel(path, strict=True)
    for number in range(3):
        assert (await events_of(strict, request("a", "b")))[0] == TextDelta(str(number))


async def test_other_tools_are_a_difference(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    await events_of(RecordingModel(Saying([ENDED]), path), request("a"))
    with_tool = msgspec.structs.replace(request("a"), tools=(READ,))
    with pytest.raises(ModelFailed, match="its tools: without none, with Read more"):
        await events_of(ReplayModel(path, strict=True), with_tool)


def test_a_new_recording_is_private_and_an_old_one_keeps_its_mode(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    RecordingModel(Saying([]), path)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    RecordingModel(Saying([]), path)
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("place", "word"),
    [
        (".", "is not a file"),
        ("missing/talk.jsonl", "No such file or directory"),
        ("note.md/talk.jsonl", "Not a directory"),
        ("note.md", "is not a recording"),
        ("pipe", "is not a file"),
        ("nul\0", "null"),
    ],
)
def test_a_place_that_takes_no_recording_is_refused_and_left_alone(
    tmp_path: Path, place: str, word: str
):
    (tmp_path / "note.md").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SetupError, match=word):
        RecordingModel(Saying([]), tmp_path / place)
    assert (tmp_path / "note.md").read_text() == "mine"


@pytest.mark.parametrize("cut", [1, 20, 200])
async def test_a_line_that_a_killed_process_did_not_finish_is_not_there(tmp_path: Path, cut: int):
    path = tmp_path / "talk.jsonl"
    model = RecordingModel(Saying([TextDelta("x" * 300), ENDED]), path)
    await events_of(model, request("a"))
    whole = path.read_bytes()
    await events_of(model, request("b"))
    path.write_bytes(path.read_bytes()[:-cut])
    has_lost = cut > 1
    assert len(ReplayModel(path, strict=True)._left) == 2 - has_lost
    await events_of(RecordingModel(Saying([ENDED]), path), request("c"))
    assert path.read_bytes().startswith(whole)
    strict = ReplayModel(path, strict=True)
    assert await events_of(strict, request("c")) == [ENDED]


async def test_a_full_disk_ends_the_recording_and_not_the_work(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    model = RecordingModel(Saying([TextDelta("x" * 9_000), ENDED]), path)
    await events_of(model, request("a"))
    whole = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 100, hard))
    try:
        heard = await events_of(model, request("b"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert heard[-1] == ENDED
    assert "is not complete: File too large" in model.recording.problem
    await events_of(model, request("c"))
    assert path.read_bytes() == whole


async def test_a_recording_of_an_older_version_is_played_by_length_only(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    old = {"format": 1, "model": "m", "context_tokens": 9, "request": "0", "said": 0}
    path.write_bytes(msgspec.json.encode({**old, "events": [ENDED]}) + b"\n")
    assert await events_of(ReplayModel(path), asked_by("2")) == [ENDED]
    with pytest.raises(ModelFailed, match="older version"):
        await events_of(ReplayModel(path, strict=True), request("a"))
    path.write_bytes(msgspec.json.encode({**old, "format": 99, "events": [ENDED]}) + b"\n")
    with pytest.raises(SetupError, match="newer version"):
        ReplayModel(path)


@pytest.mark.parametrize(
    ("content", "word"), [("", "empty"), ("{", "damaged"), ('{"a": 1}', "damaged")]
)
def test_a_file_that_is_no_recording_is_not_played(tmp_path: Path, content: str, word: str):
    path = tmp_path / "talk.jsonl"
    path.write_text(content)
    with pytest.raises(SetupError, match=word):
        ReplayModel(path)
