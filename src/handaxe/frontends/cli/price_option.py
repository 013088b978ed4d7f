"""`--prices`: what models cost that the built-in list does not know, or at other rates."""

import math
from collections.abc import Mapping

import msgspec

from handaxe.agent.limits import Price
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import TokenUsage
from handaxe.frontends.cli.mcp_config_option import read_file

_SHAPE = (
    'Give {"NAME": {"input": 3, "output": 15}}, in US dollars for a million tokens; '
    "`cache_read` and `cache_write` may stand beside them."
)


class _GivenPrice(Price, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price as it is written; a misspelt field is a mistake."""


def read_prices(given: str | None) -> dict[str, Price]:
    """The prices in a JSON object, or in a file that holds one; none without the option."""
    if given is None:
        return {}
    text = given if given.lstrip().startswith("{") else read_file(given, "--prices")
    try:
        prices = msgspec.json.decode(text, type=dict[str, _GivenPrice])
    except (msgspec.DecodeError, RecursionError) as error:
        raise SetupError(f"--prices cannot be used: {error}. {_SHAPE}") from None
    for name, price in prices.items():
        rates = (price.input, price.output, price.cache_read or 0.0, price.cache_write or 0.0)
        if not all(0 <= rate < math.inf for rate in rates):
            raise SetupError(f"--prices: what {name!r} costs has to be 0 or more. {_SHAPE}")
    # A model answers to its name without the vendor before it.
    return {
        name.removeprefix("anthropic/").removeprefix("openai/"): price
        for name, price in prices.items()
    }


def compute_cost(prices: Mapping[str, Price], model: str, usage: TokenUsage) -> float | None:
    """What one model's tokens cost, if anybody knows."""
    if model in prices:
        return prices[model].of(usage)
    from handaxe.models.prices import cost_usd

    return cost_usd(model, usage)
