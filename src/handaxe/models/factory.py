"""Open a model by its name."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from handaxe.contract.faults import SetupError
from handaxe.contract.ports.model import Model, ModelEvent, ModelFailed, ModelRequest, Retrying
from handaxe.models.failures import MAX_RETRIES
from handaxe.text.escape import find_closest_name

_NO_MODEL = """\
No model is chosen, and no key in the environment suggests one. Choose one of these:
  1. Anthropic:   set ANTHROPIC_API_KEY, then --model claude-... (or anthropic/NAME)
  2. OpenAI or any Chat Completions server (Ollama, llama.cpp, vLLM, gateways):
                  set OPENAI_API_KEY or OPENAI_BASE_URL, then --model openai/NAME
  3. No network:  --model scripted:FILE, turns from a file"""

_MOST_RETRIES = 15
_KINDS = ("anthropic/", "openai/", "scripted:", "replay:", "replay-strict:")


def open_model(
    choice: "str | Model | object | None" = None,
    *,
    env: Mapping[str, str] | None = None,
    http: Any = None,  # noqa: ANN401 - an httpx2.AsyncClient, which is not imported here
) -> Model:
    """The model that `choice` names; nothing is sent before the first request.

    Args:
        choice: `anthropic/NAME`, `claude-...`, `openai/NAME`, `scripted:FILE`, `replay:FILE`,
            `replay-strict:FILE`, a `Model` of your own (returned as it is), or None for the
            model that the keys in the environment suggest.
        env: Variables with keys and addresses; the environment of the process by default.
        http: An `httpx2.AsyncClient` to send requests through.

    Raises:
        SetupError: the model or its key is missing.
    """
    env = os.environ if env is None else env
    if isinstance(choice, Model):
        return choice
    if choice is not None and not isinstance(choice, str):
        raise SetupError(
            f"A {type(choice).__name__} is not a model. For a client of an official SDK use "
            "handaxe.models.from_client(client, 'NAME')."
        )
    name = _resolve_alias((choice or "").strip() or _suggest_model(env))
    return _open_offline(name) or _open_online(name, env, http)


def _open_offline(name: str) -> Model | None:
    if name.startswith("scripted:"):
        from handaxe.models.scripted import ScriptedModel

        return ScriptedModel(Path(name.removeprefix("scripted:")).expanduser())
    if name.startswith("replay:"):
        from handaxe.models.recording import ReplayModel

        return ReplayModel(Path(name.removeprefix("replay:")).expanduser())
    if name.startswith("replay-strict:"):
        from handaxe.models.recording import ReplayModel

        path = Path(name.removeprefix("replay-strict:")).expanduser()
        return ReplayModel(path, strict=True)
    if name == "local":
        raise SetupError(
            "The model 'local' was removed from handaxe. Start a model server on this machine, "
            "such as Ollama or llama.cpp, set OPENAI_BASE_URL to its address and use "
            "--model openai/NAME."
        )
    return None


def _open_online(name: str, env: Mapping[str, str], http: Any) -> Model:  # noqa: ANN401
    vendor, slash, bare = name.partition("/")
    if slash and bare and vendor == "anthropic":
        return _open_anthropic(bare, env, http)
    if slash and bare and vendor == "openai":
        return _open_openai(bare, env, http)
    if name.startswith("claude-"):
        return _open_anthropic(name, env, http)
    near = find_closest_name(vendor, [kind.rstrip("/:") for kind in _KINDS])
    hint = f" Did you mean {near!r}?" if near and near != vendor else ""
    raise SetupError(
        f"Unknown model {name!r}.{hint} Use anthropic/NAME, openai/NAME, "
        "scripted:FILE, replay:FILE or replay-strict:FILE."
    )


def _suggest_model(env: Mapping[str, str]) -> str:
    if env.get("ANTHROPIC_MODEL"):
        return f"anthropic/{env['ANTHROPIC_MODEL'].removeprefix('anthropic/')}"
    from handaxe.models.prices import load_price_list

    if env.get("ANTHROPIC_API_KEY") or env.get("ANTHROPIC_AUTH_TOKEN"):
        return f"anthropic/{load_price_list().defaults['anthropic']}"
    if env.get("OPENAI_API_KEY") and not env.get("OPENAI_BASE_URL"):
        return f"openai/{load_price_list().defaults['openai']}"
    if env.get("OPENAI_BASE_URL"):
        raise SetupError(
            f"OPENAI_BASE_URL names the server {env['OPENAI_BASE_URL']}, but no model is chosen. "
            "Name one: --model openai/NAME."
        )
    raise SetupError(_NO_MODEL)


def _resolve_alias(name: str) -> str:
    bare = name.removeprefix("anthropic/")
    if not bare.isalpha() or bare == "local":
        return name
    from handaxe.models.prices import load_price_list

    return load_price_list().aliases.get(bare, name)


def find_small_model(name: str) -> str | None:
    """The small model of the same vendor, or None."""
    from handaxe.models.prices import load_price_list

    given = os.environ.get("ANTHROPIC_SMALL_FAST_MODEL", "").strip()
    if not name.removeprefix("anthropic/").startswith("claude-"):
        return None
    return given or load_price_list().aliases.get("haiku")


def _open_anthropic(name: str, env: Mapping[str, str], http: Any) -> Model:  # noqa: ANN401
    from handaxe.models.anthropic import DEFAULT_URL, AnthropicModel
    from handaxe.models.http.connect import open_transport

    base_url = _read_address(env, "ANTHROPIC_BASE_URL", DEFAULT_URL)
    token = _read_secret(env, "ANTHROPIC_API_KEY") or _read_secret(env, "ANTHROPIC_AUTH_TOKEN")
    extra = _parse_extra_headers(env.get("ANTHROPIC_CUSTOM_HEADERS", ""))
    if not token and base_url == DEFAULT_URL and "authorization" not in extra:
        raise SetupError(
            f"The model {name!r} needs a key. Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for "
            "your own server."
        )
    return AnthropicModel(
        name,
        open_transport(base_url, env, http),
        base_url=base_url,
        token=token,
        extra_headers=extra,
        context_tokens=_find_context_tokens(name, 200_000),
        max_retries=_read_max_retries(env),
    )


def _open_openai(name: str, env: Mapping[str, str], http: Any) -> Model:  # noqa: ANN401
    from handaxe.models.http.connect import open_transport
    from handaxe.models.openai import DEFAULT_URL, OpenAIModel

    base_url = _read_address(env, "OPENAI_BASE_URL", DEFAULT_URL)
    token = _read_secret(env, "OPENAI_API_KEY")
    if not token and base_url == DEFAULT_URL:
        raise SetupError(
            f"The model {name!r} needs a key. Set OPENAI_API_KEY, or OPENAI_BASE_URL for "
            "another server (Ollama: http://127.0.0.1:11434/v1)."
        )
    return OpenAIModel(
        name,
        open_transport(base_url, env, http),
        base_url=base_url,
        token=token,
        context_tokens=_find_context_tokens(name, 128_000),
        max_retries=_read_max_retries(env),
    )


def _find_context_tokens(name: str, default: int) -> int:
    from handaxe.models.prices import find_model_card

    card = find_model_card(name)
    return default if card is None else card.context


def _read_max_retries(env: Mapping[str, str]) -> int:
    given = env.get("CLAUDE_CODE_MAX_RETRIES", "").strip()
    return min(int(given), _MOST_RETRIES) if given.isdecimal() else MAX_RETRIES


def _read_address(env: Mapping[str, str], variable: str, default: str) -> str:
    address = env.get(variable, "").strip().rstrip("/") or default
    if not address.startswith(("http://", "https://")):
        raise SetupError(f"{variable} is {address!r}. It must begin with http:// or https://.")
    try:
        parts = urlsplit(address)
        is_somewhere = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_somewhere = False
    if not is_somewhere or not (address.isprintable() and " " not in address):
        raise SetupError(f"{variable} is {address!r}. It must be the URL of a server.")
    return address


def _read_secret(env: Mapping[str, str], variable: str) -> str | None:
    secret = env.get(variable, "").strip()
    if not (secret.isascii() and secret.isprintable()):
        raise SetupError(f"{variable} has characters that a key cannot have. Set it again.")
    return secret or None


def _parse_extra_headers(lines: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines.splitlines() if ":" in line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs if name.strip()}


_PASSED_ON = frozenset({"overloaded", "rate_limited", "not_found", "unreachable", "timed_out"})
"""Failures after which another model may succeed."""


class FallbackModel(Model):
    """A model with fallbacks, which are opened when it fails before its first output."""

    def __init__(self, first: Model, others: Sequence[Callable[[], Model]]) -> None:
        self.name = first.name
        self.context_tokens = first.context_tokens
        self.answers_for_all = first.answers_for_all
        self._opened = [first]
        self._others = list(others)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The answer of the first model that gives one, with a `Retrying` event for each change."""
        at = 0
        while True:
            has_output = False
            try:
                async for event in self._opened[at].stream(request):
                    has_output = has_output or not isinstance(event, Retrying)
                    yield event
            except ModelFailed as failed:
                if has_output or failed.failure not in _PASSED_ON or not self._has_next(at):
                    raise
                at += 1
                yield Retrying(
                    attempt=at,
                    delay_s=0.0,
                    status=failed.status,
                    sentence=f"{failed.sentence} The next model is {self._opened[at].name}.",
                )
            else:
                return

    async def close(self) -> None:
        """Close the connections."""
        for model in self._opened:
            await model.close()

    def _has_next(self, at: int) -> bool:
        if at + 1 == len(self._opened) and self._others:
            self._opened.append(self._others.pop(0)())
        return at + 1 < len(self._opened)
