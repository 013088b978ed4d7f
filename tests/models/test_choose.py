"""From a name to a model, and what is said when there is none."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.models.serving import Reply, model_server
from tests.models.talk import events_of
from tests.models.test_anthropic import ANSWER

from handaxe.contract.faults import SetupError
from handaxe.contract.messages import TokenUsage
from handaxe.models.anthropic import AnthropicModel
from handaxe.models.factory import open_model
from handaxe.models.openai import OpenAIModel
from handaxe.models.prices import cost_usd, find_model_card, load_price_list
from handaxe.models.scripted import ScriptedModel
from handaxe.models.sdk_clients import from_client

ANTHROPIC = {"ANTHROPIC_API_KEY": "k"}
OPENAI = {"OPENAI_API_KEY": "k"}


@pytest.mark.parametrize(
    ("choice", "env", "kind", "name"),
    [
        ("anthropic/claude-opus-5-5", ANTHROPIC, AnthropicModel, "claude-opus-5-5"),
        ("claude-opus-5-5", ANTHROPIC, AnthropicModel, "claude-opus-5-5"),
        ("claude-x", {"ANTHROPIC_AUTH_TOKEN": "t"}, AnthropicModel, "claude-x"),
        ("anthropic/any", {"ANTHROPIC_BASE_URL": "http://h"}, AnthropicModel, "any"),
        ("sonnet", ANTHROPIC, AnthropicModel, "claude-sonnet-5-5"),
        ("anthropic/opus", ANTHROPIC, AnthropicModel, "claude-opus-5-5"),
        ("openai/gpt-x", OPENAI, OpenAIModel, "gpt-x"),
        ("openai/org/model:7b", {"OPENAI_BASE_URL": "http://h"}, OpenAIModel, "org/model:7b"),
        (None, ANTHROPIC, AnthropicModel, "claude-sonnet-5-5"),
        ("", ANTHROPIC | OPENAI, AnthropicModel, "claude-sonnet-5-5"),
        (None, OPENAI, OpenAIModel, load_price_list().defaults["openai"]),
        (None, ANTHROPIC | {"ANTHROPIC_MODEL": "claude-y"}, AnthropicModel, "claude-y"),
    ],
)  # fmt: skip
def test_names_of_models(choice: str | None, env: dict[str, str], kind: type, name: str):
    model = open_model(choice, env=env)
    assert isinstance(model, kind)
    assert model.name == name


@pytest.mark.proves("AR-3")
def test_without_a_model_or_a_key_every_way_to_choose_one_is_named():
    with pytest.raises(SetupError) as caught:
        open_model(None, env={})
    for way in ("ANTHROPIC_API_KEY", "openai/NAME", "scripted:FILE"):
        assert way in str(caught.value)


@pytest.mark.parametrize(
    ("choice", "env", "word"),
    [
        ("claude-x", {}, "ANTHROPIC_API_KEY"),
        ("openai/x", {}, "OPENAI_BASE_URL"),
        ("antropic/x", ANTHROPIC, "Did you mean 'anthropic'"),
        ("gpt-5", OPENAI, "openai/NAME"),
        ("openai/", OPENAI, "openai/NAME"),
        ("local", {}, "removed.*OPENAI_BASE_URL"),
        (None, {"OPENAI_BASE_URL": "http://h"}, "Name one"),
        ("openai/x", {"OPENAI_BASE_URL": "localhost:11434"}, "http://"),
        ("openai/x", {"OPENAI_BASE_URL": "http://h:99999"}, "must be the URL of a server"),
        ("openai/x", {"OPENAI_BASE_URL": "http://h:port"}, "must be the URL of a server"),
        ("openai/x", {"OPENAI_BASE_URL": "http://[::1"}, "must be the URL of a server"),
        ("claude-x", {"ANTHROPIC_BASE_URL": "http://h/a b"}, "must be the URL of a server"),
        ("claude-x", {"ANTHROPIC_BASE_URL": "https://:443/v1"}, "must be the URL of a server"),
        ("claude-x", {"ANTHROPIC_API_KEY": "k\u200bx"}, "ANTHROPIC_API_KEY"),
        ("scripted:/nowhere.toml", {}, "/nowhere.toml"),
        ("replay:/nowhere.jsonl", {}, "/nowhere.jsonl"),
        (object(), {}, "from_client"),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_explained(choice, env: dict[str, str], word: str):
    with pytest.raises(SetupError, match=word):
        open_model(choice, env=env)


def test_a_model_of_your_own_is_taken_as_it_is(tmp_path: Path):
    script = tmp_path / "s.toml"
    script.write_text("[[turn]]\ntext = 'x'\n")
    own = open_model(f"scripted:{script}", env={})
    assert isinstance(own, ScriptedModel)
    assert open_model(own) is own


@pytest.mark.parametrize(
    ("client", "word"), [(object(), "Async"), (type("AsyncThing", (), {})(), "neither")]
)
def test_a_client_that_is_none_is_refused(client: object, word: str):
    with pytest.raises(SetupError, match=word):
        from_client(client, "x")


async def test_variables_reach_the_server():
    async with model_server(Reply(pieces=(ANSWER,))) as server:
        env = {
            "ANTHROPIC_BASE_URL": f"{server.url}/v1/",
            "ANTHROPIC_API_KEY": " key \n",
            "ANTHROPIC_CUSTOM_HEADERS": "X-Team: me\nanthropic-beta: a,b",
        }
        model = open_model("claude-x", env=env)
        await events_of(model)
        await model.close()
    (asked,) = server.asked
    assert asked.path == "/v1/messages"
    assert asked.headers["authorization"] == "Bearer key"
    assert asked.headers["x-team"] == "me"
    assert asked.headers["anthropic-beta"] == "a,b"


def test_importing_and_opening_models_loads_no_http_library():
    code = (
        "import sys; from handaxe.models.factory import open_model; "
        "import handaxe.models.sdk_clients, handaxe.models.scripted, handaxe.models.recording; "
        "open_model('claude-x', env={'ANTHROPIC_API_KEY': 'k'}); "
        "print(*sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in out.stdout.split()}
    assert not loaded & {"httpx2", "httpcore2", "h11", "anyio", "anthropic", "openai", "xllamacpp"}


def test_what_models_cost():
    usage = TokenUsage(
        input_tokens=1_000, output_tokens=1_000, cache_read_tokens=10_000, cache_write_tokens=1_000
    )
    assert cost_usd("claude-sonnet-4-6", usage) == pytest.approx(0.003 + 0.015 + 0.003 + 0.00375)
    assert cost_usd("anthropic/claude-sonnet-4-5-20250929", usage) is not None
    assert cost_usd("gpt-5-2025-08-07", usage) == pytest.approx(0.00125 * 2 + 0.01 + 0.00125)
    long = TokenUsage(input_tokens=300_000)
    assert cost_usd("gpt-6-sol", long) == pytest.approx(0.3 * 4)
    assert cost_usd("qwen3:8b", usage) is None
    assert find_model_card("my-model") is None


def test_the_context_of_a_known_model_is_known():
    assert open_model("claude-opus-5-5", env=ANTHROPIC).context_tokens == 1_000_000
    assert open_model("claude-haiku-4-5-20251001", env=ANTHROPIC).context_tokens == 200_000


def test_defaults_and_aliases_have_prices():
    known = load_price_list()
    for name in (*known.defaults.values(), *known.aliases.values()):
        assert name in known.models
