"""What models cost and how much they hold, from `prices.json`; None where nobody knows.

A name in the file stands for itself and for its dated versions (`NAME-20260101`,
`NAME-2026-01-01`). Where a vendor charges more for long prompts, `long` says from how many prompt
tokens on, and how much. A model that is not listed has no known price: limits on money say so.
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
    """From how many prompt tokens on these hold."""


class ModelCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one model."""

    context: int
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    long: Rates | None = None

    def cost_usd(self, usage: TokenUsage) -> float:
        """What one response costs."""
        prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        rates: Rates | ModelCard = self.long if self.long and prompt > self.long.above else self
        # Where no price for cached tokens is listed, they cost what all tokens cost.
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
    """The list that comes with this version."""
    return msgspec.json.decode(Path(__file__).with_name("prices.json").read_bytes(), type=PriceList)


_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def find_model_card(model: str) -> ModelCard | None:
    """What is known of a model, by its name with or without vendor and date."""
    models = load_price_list().models
    bare = model.rpartition("/")[2]
    return models.get(bare) or models.get(_DATED.sub("", bare))


def cost_usd(model: str, usage: TokenUsage) -> float | None:
    """What one response cost; None if the model's price is not known."""
    card = find_model_card(model)
    return None if card is None else card.cost_usd(usage)
