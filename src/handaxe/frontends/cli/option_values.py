"""Values of options: JSON, files, pairs, MCP servers and prices."""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from handaxe.agent.limits import Price
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import TokenUsage
from handaxe.frontends.stream_json.init_message import ClientServers
from handaxe.frontends.stream_json.wire_types import Json

NO_SDK_SERVERS = "SDK servers, which run in the client, need --input-format stream-json."
_TYPES = frozenset({"stdio", "http", "sse", "streamable-http", "ws", "sdk"})


def partition_servers(arguments: argparse.Namespace) -> tuple[list[str], ClientServers]:
    """Split MCP configurations into those for the session and SDK servers of the client.

    With stream-json output, invalid entries are left out and listed in the first message; otherwise
    the session reports them and does not open.
    """
    kept: list[str] = []
    inside: list[str] = []
    wrong: list[Json] = []
    tells = getattr(arguments, "output_format", None) == "stream-json"
    for text in arguments.mcp_config:
        read = text if text.lstrip().startswith("{") else read_file(text, "--mcp-config")
        config = parse_json_object(read, "--mcp-config") or {}
        listed = config.get("mcpServers")
        servers = cast("dict[str, Any]", listed) if isinstance(listed, dict) else {}
        own = [name for name, entry in servers.items() if _is_sdk(entry)]
        rest = {name: entry for name, entry in servers.items() if name not in own}
        found = [_find_mistake(name, entry) for name, entry in rest.items()] if tells else []
        bad = {error["name"]: error for error in found if error is not None}
        rest = {name: entry for name, entry in rest.items() if name not in bad}
        kept.append(json.dumps({**config, "mcpServers": rest}) if own or bad else text)
        inside += own
        wrong += bad.values()
    if getattr(arguments, "input_format", None) == "stream-json":
        return kept, ClientServers(inside=tuple(inside), wrong=tuple(wrong))
    return kept, ClientServers(dict.fromkeys(inside, NO_SDK_SERVERS), wrong=tuple(wrong))


def _find_mistake(name: str, entry: object) -> Json | None:
    """The problem of an entry, if it has one."""
    from handaxe.config.mcp_definitions import find_entry_problem

    problem = find_entry_problem(name, entry)
    if problem is None:
        return None
    return {"name": name, "type": _get_error_type(entry), "message": problem}


def _get_error_type(entry: object) -> str:
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    kind = fields.get("type")
    if kind is None and "url" in fields and "command" not in fields:
        return "url_missing_type"
    return "unknown_type" if kind is not None and kind not in _TYPES else "invalid_config"


def _is_sdk(entry: object) -> bool:
    return isinstance(entry, dict) and cast("dict[str, Any]", entry).get("type") == "sdk"


def read_prompt_option(text: str | None, file: str | None) -> str | None:
    """A system prompt, from its text or its file."""
    if file is None:
        return text
    if text is not None:
        raise SetupError("Give either the text or the file of a system prompt, not both.")
    return read_file(file, "the system prompt")


def read_file(name: str, what: str) -> str:
    """The text of a file."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"{what}: cannot read {name} ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise SetupError(f"{what}: {name} is not UTF-8 text.") from None


def parse_json_object(text: str | None, option: str) -> dict[str, Any] | None:
    """The JSON object in a text."""
    if text is None:
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{option} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise SetupError(f"{option} must be a JSON object.")
    return cast("dict[str, Any]", value)


def parse_pairs(given: Sequence[str], between: str, option: str) -> dict[str, str]:
    """The values of a repeatable option by name."""
    pairs: dict[str, str] = {}
    for text in given:
        name, found, value = text.partition(between)
        if not found or not name.strip():
            raise SetupError(f"{option} must be NAME{between}VALUE; got {text!r}.")
        pairs[name.strip()] = value.strip() if between == ":" else value
    return pairs


_SHAPE = (
    'Give {"NAME": {"input": 3, "output": 15}}, in US dollars for a million tokens; '
    "`cache_read` and `cache_write` are optional."
)


class _GivenPrice(Price, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price in a JSON object; an unknown field is an error."""


def read_prices(given: str | None) -> dict[str, Price]:
    """The prices from a JSON object or a file; empty without the option."""
    if given is None:
        return {}
    text = given if given.lstrip().startswith("{") else read_file(given, "--prices")
    try:
        prices = msgspec.json.decode(text, type=dict[str, _GivenPrice])
    except (msgspec.DecodeError, RecursionError) as error:
        raise SetupError(f"--prices is not valid: {error}. {_SHAPE}") from None
    for name, price in prices.items():
        rates = (price.input, price.output, price.cache_read or 0.0, price.cache_write or 0.0)
        if not all(0 <= rate < math.inf for rate in rates):
            raise SetupError(f"--prices: the rates of {name!r} must be 0 or more. {_SHAPE}")
    # Models report their names without the vendor.
    return {
        name.removeprefix("anthropic/").removeprefix("openai/"): price
        for name, price in prices.items()
    }


def compute_cost(prices: Mapping[str, Price], model: str, usage: TokenUsage) -> float | None:
    """The cost of a model's tokens, if its price is known."""
    if model in prices:
        return prices[model].of(usage)
    from handaxe.models.prices import cost_usd

    return cost_usd(model, usage)
