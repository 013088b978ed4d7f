"""Prices and context sizes of models, from `prices.json`.

A name in the file also applies to its dated versions (`NAME-20260101`, `NAME-2026-01-01`). `long`
holds the higher prices of a vendor for long prompts. A model that is not listed has no known
price.
"""

import re
from functools import cache
from pathlib import Path

import msgspec

from handaxe.contract.messages import TokenUsage

_MILLION = 1_000_000


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    above: int = 0
    """The number of prompt tokens above which these prices apply."""


class ModelCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The context size and the prices of one model."""

    context: int
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    long: Rates | None = None

    def cost_usd(self, usage: TokenUsage) -> float:
        """The cost of one response."""
        prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        rates: Rates | ModelCard = self.long if self.long and prompt > self.long.above else self
        # Without a price of their own, cached tokens cost as much as others.
        read = rates.input if rates.cache_read is None else rates.cache_read
        write = rates.input if rates.cache_write is None else rates.cache_write
        dollars = (
            usage.input_tokens * rates.input
            + usage.output_tokens * rates.output
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
        )
        return dollars / _MILLION


class PriceList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    as_of: str
    defaults: dict[str, str]
    aliases: dict[str, str]
    models: dict[str, ModelCard]


@cache
def load_price_list() -> PriceList:
    """The list of this version."""
    return msgspec.json.decode(Path(__file__).with_name("prices.json").read_bytes(), type=PriceList)


_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def find_model_card(model: str) -> ModelCard | None:
    """The entry of a model, by its name with or without vendor and date."""
    models = load_price_list().models
    bare = model.rpartition("/")[2]
    return models.get(bare) or models.get(_DATED.sub("", bare))


def cost_usd(model: str, usage: TokenUsage) -> float | None:
    """The cost of one response; None if the price of the model is not known."""
    card = find_model_card(model)
    return None if card is None else card.cost_usd(usage)
