"""The limits of an agent: turns, tokens, money, time; and their use so far."""

import math
import time
from collections.abc import Callable, Mapping

import msgspec

from handaxe.agent.events import Subtype, TerminalReason
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import TokenUsage
from handaxe.text.escape import format_count

MILLION = 1_000_000
SOFT_SHARE = 0.8
"""The share of a budget after which the model is asked to finish."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """A model's price, in dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def of(self, usage: TokenUsage) -> float:
        """The cost of these tokens."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
        ) / MILLION


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one run; None means no limit."""

    max_turns: int | None = None
    """Round trips with tools."""
    max_tokens: int | None = None
    """Input and output tokens of all answers, including subagents."""
    max_cost_usd: float | None = None
    max_wall_s: float | None = None

    def __post_init__(self) -> None:
        """Reject limits that are invalid or allow nothing."""
        for name in ("max_turns", "max_tokens"):
            if (count := getattr(self, name)) is not None and count < 1:
                raise SetupError(f"`{name}` must be at least 1.")
        for name in ("max_cost_usd", "max_wall_s"):
            if (amount := getattr(self, name)) is not None and not 0 < amount < math.inf:
                raise SetupError(f"`{name}` must be a number above 0.")


class LimitReached(msgspec.Struct, frozen=True):
    """The limit that ended the work, described for the user."""

    subtype: Subtype
    reason: TerminalReason
    sentence: str


class _Spent(msgspec.Struct, frozen=True):
    """The use of the limits by a prompt and its continuations."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Meter:
    """The use so far; a subagent's use also counts for its parent."""

    def __init__(
        self,
        limits: RunLimits,
        prices: Mapping[str, Price] | None = None,
        *,
        parent: "Meter | None" = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.prices: Mapping[str, Price] = {} if prices is None else prices
        self._parent = parent
        self._now = now
        self.turns = 0
        self.by_model: dict[str, TokenUsage] = {}
        self._cost_usd: float | None = 0.0
        self.start()

    def start(self, *, goes_on: bool = False) -> None:
        """Start a new run at zero; with `goes_on` the limits continue from the last one."""
        self._earlier = self._spent() if goes_on else _Spent()
        self.turns = 0
        self.by_model = {}
        self._cost_usd = 0.0
        self.model_s = 0.0
        self._began = self._now()
        self._has_warned = False

    @property
    def usage(self) -> TokenUsage:
        """All tokens so far."""
        total = TokenUsage()
        for usage in self.by_model.values():
            total = total.add_usage(usage)
        return total

    @property
    def used_tokens(self) -> int:
        """Tokens that count toward a limit. Tokens read from a cache do not."""
        total = self.usage
        return total.input_tokens + total.output_tokens + total.cache_write_tokens

    @property
    def elapsed_s(self) -> float:
        """The duration of the run."""
        return self._now() - self._began

    @property
    def cost_usd(self) -> float | None:
        """The cost; None if the price of any used model is unknown."""
        return self._cost_usd

    def add(self, model: str, usage: TokenUsage, *, asked: str = "") -> None:
        """Count one answer.

        A server may answer under another model name. If that has no price, the price of the
        requested model counts, so that budgets hold there too.
        """
        if (
            asked
            and self.price(model, TokenUsage()) is None
            and self.price(asked, TokenUsage()) is not None
        ):
            model = asked
        self.by_model[model] = self.by_model.get(model, TokenUsage()).add_usage(usage)
        if self._cost_usd is not None:
            cost = self.price(model, usage)
            self._cost_usd = None if cost is None else self._cost_usd + cost
        if self._parent is not None:
            self._parent.add(model, usage)

    def price(self, model: str, usage: TokenUsage) -> float | None:
        """The cost of an answer: by the host's prices, else by the built-in list."""
        if model in self.prices:
            return self.prices[model].of(usage)
        from handaxe.models.prices import cost_usd

        return cost_usd(model, usage)

    def check_prices(self, model: str) -> None:
        """Reject a budget in money without a price, before anything is spent."""
        if self.limits.max_cost_usd is not None and self.price(model, TokenUsage()) is None:
            raise SetupError(
                f"A budget in dollars needs the price of {model!r}. "
                "Give it with `--prices` (`prices` in a program), or limit turns or tokens instead."
            )

    def check_near_limit(self) -> str | None:
        """A note once per run when little of the budget is left."""
        if self._has_warned:
            return None
        tokens, cost = self.limits.max_tokens, self.limits.max_cost_usd
        spent = self._spent()
        told: list[str] = []
        if tokens is not None and spent.tokens >= SOFT_SHARE * tokens:
            told.append(f"{spent.tokens:,} of {tokens:,} tokens")
        if cost is not None and self.cost_usd is not None and spent.cost_usd >= SOFT_SHARE * cost:
            told.append(f"${spent.cost_usd:.4f} of ${cost:.4f}")
        self._has_warned = bool(told)
        return f"The budget is almost used up: {' and '.join(told)}." if told else None

    def check_limits(self) -> LimitReached | None:
        """The reached limit, if any; a parent's limits apply to its agents."""
        limits, spent = self.limits, self._spent()
        used = spent.tokens
        if limits.max_turns is not None and spent.turns >= limits.max_turns:
            sentence = f"Reached the limit of {format_count(limits.max_turns, 'turn')}."
            return LimitReached("error_max_turns", "max_turns", sentence)
        if limits.max_tokens is not None and used >= limits.max_tokens:
            sentence = f"Reached the limit of {limits.max_tokens:,} tokens ({used:,} used)."
            return LimitReached("error_during_execution", "token_limit", sentence)
        cost = None if self.cost_usd is None else spent.cost_usd
        if limits.max_cost_usd is not None and cost is not None and cost >= limits.max_cost_usd:
            sentence = f"Budget limit reached: ${cost:.4f} of ${limits.max_cost_usd:.4f} used."
            return LimitReached("error_max_budget_usd", "budget_exhausted", sentence)
        if limits.max_wall_s is not None and self.elapsed_s >= limits.max_wall_s:
            sentence = f"Reached the limit of {limits.max_wall_s:g} seconds."
            return LimitReached("error_during_execution", "time_limit", sentence)
        above = self._parent.check_limits() if self._parent is not None else None
        return above if above is not None and above.reason != "max_turns" else None

    def has_room_for_turn(self) -> bool:
        """Whether the limits allow one more answer without a prompt."""
        most = self.limits.max_turns
        is_last = most is not None and self._spent().turns + 1 >= most
        return not is_last and self.check_limits() is None

    def _spent(self) -> _Spent:
        earlier = self._earlier
        return _Spent(
            earlier.turns + self.turns,
            earlier.tokens + self.used_tokens,
            earlier.cost_usd + (self.cost_usd or 0.0),
        )

    def check_time_limit(self) -> LimitReached | None:
        """The time limit, if it is reached."""
        reached = self.check_limits()
        return reached if reached is not None and reached.reason == "time_limit" else None


class LoopOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a loop."""

    max_output_tokens: int = 16_000
    thinking_tokens: int | None = None
    effort: str | None = None
    stop_after_nudges: int | None = None
    """How often a model that repeats itself gets a hint before it is stopped; None: never."""
    wait_for_agents_s: float = 0.0
    """How long a run that could end waits for its background agents."""
    wait_for_commands_s: float = 0.0
    """The same for commands and watches; an endless one must not hold a run."""
    auto_compact: bool = True
    """Whether a conversation that grows too long is summarized automatically."""
    is_sub_agent: bool = False
    may_put_off: bool = False
    """Whether a run ends when a hook defers a call, to continue later."""


MAX_STOP_BLOCKS = 8
MAX_CONTINUATIONS = 3


class ContinuationBudget:
    """The use by one run."""

    def __init__(self) -> None:
        self.stop_blocks = 0
        self.was_broken = False
        """Whether the last answer was interrupted."""
        self.idle_since: float | None = None
        """When the run could first have ended without background work."""
        self._continuations = 0

    def may_go_on(self) -> bool:
        """Whether an interrupted answer may be continued; counts it."""
        self._continuations += 1
        return self._continuations <= MAX_CONTINUATIONS

    def use_stop_block(self) -> bool:
        """Whether a hook may keep the model working once more; counts it."""
        if self.stop_blocks >= MAX_STOP_BLOCKS:
            return False
        self.stop_blocks += 1
        return True
