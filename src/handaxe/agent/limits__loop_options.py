"""How a loop asks its model, and how patient it is."""

import msgspec


class LoopOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a loop asks."""

    max_output_tokens: int = 16_000
    thinking_tokens: int | None = None
    effort: str | None = None
    stop_after_nudges: int | None = None
    """How many times a model that goes in circles is told so before it is stopped; None: never."""
    wait_for_agents_s: float = 0.0
    """How long a run that could end waits for agents it started in the background."""
    auto_compact: bool = True
    """Whether a conversation that grows too long is summed up without being asked."""
    is_sub_agent: bool = False
    may_put_off: bool = False
    """Whether a run ends where a hook puts a call off, to go on with it later."""
