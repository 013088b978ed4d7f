"""What hooks answered, merged into one value."""

from typing import Any

import msgspec

from handaxe.contract.decision import Decision


class BeforeOutcome(msgspec.Struct, frozen=True):
    """The joint answer of all hooks before a call."""

    blocked: str | None = None
    """Why the call must not run; None lets it go on."""
    decision: Decision | None = None
    """A word on permission. An allow beats no rule."""
    input: dict[str, Any] | None = None
    """The input to use instead; it is parsed and judged anew."""
    messages: tuple[str, ...] = ()


class AfterOutcome(msgspec.Struct, frozen=True):
    """The joint answer of all hooks after a call."""

    messages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    blocked: str | None = None
    """A complaint the model must hear; the call itself has already run."""


NOTHING_BEFORE = BeforeOutcome()
NOTHING_AFTER = AfterOutcome()
