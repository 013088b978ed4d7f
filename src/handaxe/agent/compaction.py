"""Shorten a conversation before it exceeds the context, without losing what matters.

First long old results are cut; if that is not enough, the model summarizes everything. Calls stay
with their results, and the session's state is repeated.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Literal, cast

from handaxe.agent.conversation import AgentConversation
from handaxe.agent.limits import Meter
from handaxe.agent.loop_context import LoopContext
from handaxe.agent.system_prompt import load_prompt
from handaxe.agent.truncation import (
    estimate_message,
    format_outline,
    get_last_exchange,
    has_results,
    select_newest,
    shorten_results,
)
from handaxe.contract.content import TextBlock
from handaxe.contract.events import Compacted
from handaxe.contract.messages import Message, TokenUsage, UserMessage
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelFailed,
    ModelRequest,
    TextDelta,
    ToolSpec,
)
from handaxe.text.framing import frame, frame_reminder
from handaxe.text.tokens import estimate_tokens

Trigger = Literal["auto", "manual", "too_long"]
Method = Literal["shortened", "summarized", "cut"]

FULL = 0.8
"""The share of a model's context at which the conversation is shortened."""
ENOUGH = 0.6
"""The share to reach; otherwise it would be needed again at once."""
KEPT_MESSAGES = 6
OLD_RESULT_CHARS = 400
OUTLINE_CHARS = 12_000
SUMMARY_TOKENS = 8_000


class Compactor:
    """Keeps one conversation within its model's context."""

    def __init__(
        self, workplace: LoopContext, conversation: AgentConversation, *, is_on: bool = True
    ) -> None:
        self._workplace = workplace
        self._conversation = conversation
        self._is_on = is_on
        self._weights: list[tuple[Message, int]] = []
        self._total = 0
        self._known: tuple[int, int] | None = None
        self._fixed: dict[int, int] = {}
        self._futile_until = 0.0

    def heard(self, usage: TokenUsage) -> None:
        """Record the conversation's real length up to here, as reported by the model."""
        real = (
            usage.input_tokens
            + usage.cache_read_tokens
            + usage.cache_write_tokens
            + usage.output_tokens
        )
        if real:
            self._known = real, self._estimate_messages()

    def tokens(self) -> int:
        """The length of the conversation: the reported length plus an estimate of the rest."""
        now = self._estimate_messages()
        if self._known is None:
            return now
        real, at = self._known
        return max(0, real + now - at)

    async def make_room(
        self, model: Model, system: tuple[str, ...], specs: tuple[ToolSpec, ...], meter: Meter
    ) -> Compacted | None:
        """Shorten the conversation if it is too long."""
        if not self._is_on:
            return None
        tokens = self._whole(system, specs)
        if tokens < max(model.context_tokens * FULL, self._futile_until):
            return None
        done = await self.compact(model, system, specs, meter, trigger="auto")
        left = self._whole(system, specs)
        if left >= model.context_tokens * FULL:
            # The rest cannot be shortened; trying again before every answer would not help.
            self._futile_until = left * 1.1
        return done

    async def compact(
        self,
        model: Model,
        system: tuple[str, ...],
        specs: tuple[ToolSpec, ...],
        meter: Meter,
        *,
        trigger: Trigger,
        instructions: str = "",
    ) -> Compacted | None:
        """Shorten it now; None if a hook forbids it or it is empty."""
        before = self._conversation.messages
        if not before:
            return None
        told_trigger = "manual" if trigger == "manual" else "auto"
        outcome = await self._workplace.fire(
            "PreCompact", trigger=told_trigger, custom_instructions=instructions
        )
        if outcome.blocked is not None:
            return None
        tokens_before = self._whole(system, specs)
        keep = 2 if trigger == "too_long" else KEPT_MESSAGES
        shorter = shorten_results(before, keep=keep, max_chars=OLD_RESULT_CHARS)
        saved = self._estimate_messages() - sum(estimate_message(message) for message in shorter)
        after = tokens_before - saved
        method: Method = "shortened"
        if trigger != "auto" or saved <= 0 or after > model.context_tokens * ENOUGH:
            wish = "\n".join(filter(None, (instructions, *outcome.messages)))
            shorter, method = await self._summarize(
                model, system, specs, meter, shorter, wish, told_trigger
            )
        self._become(shorter)
        event = Compacted(
            trigger=trigger,
            method=method,
            tokens_before=tokens_before,
            tokens_after=self._whole(system, specs),
            messages=self._conversation.messages,
        )
        self._workplace.pipeline_context.emit(event)
        return event

    def rewind(self, messages: tuple[Message, ...]) -> Compacted:
        """Return to an earlier state of the conversation."""
        tokens_before = self.tokens()
        self._become(messages)
        event = Compacted(
            trigger="rewound",
            method="cut",
            tokens_before=tokens_before,
            tokens_after=self.tokens(),
            messages=self._conversation.messages,
        )
        self._workplace.pipeline_context.emit(event)
        return event

    def _become(self, messages: tuple[Message, ...]) -> None:
        """Continue with these messages; measurements of the old ones are dropped."""
        self._conversation.replace(messages)
        self._known, self._weights, self._total = None, [], 0

    async def _summarize(
        self,
        model: Model,
        system: tuple[str, ...],
        specs: tuple[ToolSpec, ...],
        meter: Meter,
        messages: Sequence[Message],
        wish: str,
        trigger: str,
    ) -> tuple[tuple[Message, ...], Method]:
        """A summary in place of everything but the newest exchange."""
        tail = get_last_exchange(messages)
        if sum(estimate_message(message) for message in tail) > model.context_tokens * (1 - FULL):
            tail = shorten_results(tail, keep=0, max_chars=OLD_RESULT_CHARS * 10)
        old = messages[: len(messages) - len(tail)]
        waiting: tuple[Message, ...] = ()
        if not tail and old and not has_results(old[-1]) and isinstance(old[-1], UserMessage):
            old, waiting = old[:-1], (old[-1],)
        method: Method = "summarized"
        try:
            summary = await self._request_summary(model, system, specs, meter, messages, wish)
        except ModelFailed:
            summary, method = format_outline(old, max_chars=OUTLINE_CHARS), "cut"
        await self._workplace.fire("PostCompact", trigger=trigger, compact_summary=summary)
        outcome = await self._workplace.fire("SessionStart", source="compact")
        told = (*await self._workplace.reminders(), *outcome.messages)
        # A model wrote it from what files and commands said.
        head = f"{load_prompt('summary_head')}\n\n{frame('conversation-summary', summary)}"
        blocks = (TextBlock(head), *(TextBlock(str(frame_reminder(text))) for text in told))
        return (UserMessage(blocks, synthetic=True), *waiting, *tail), method

    async def _request_summary(
        self,
        model: Model,
        system: tuple[str, ...],
        specs: tuple[ToolSpec, ...],
        meter: Meter,
        messages: Sequence[Message],
        wish: str,
    ) -> str:
        fitting = messages
        if sum(estimate_message(message) for message in messages) > model.context_tokens * FULL:
            fitting = select_newest(messages, int(model.context_tokens * ENOUGH))
        asked = load_prompt("summarize") + (f"\n\n{wish}" if wish else "")
        request = ModelRequest(
            system=system,
            messages=append_question(fitting, asked),
            tools=specs,
            waiting_tools=self._workplace.waiting_specs(),
            tool_choice="none",
            max_tokens=SUMMARY_TOKENS,
            origin=self._workplace.origin,
        )
        summary = await request_text(model, request, meter)
        if not summary.strip():
            raise ModelFailed("bad_request", "The model returned no summary.")
        return summary

    def _whole(self, system: tuple[str, ...], specs: tuple[ToolSpec, ...]) -> int:
        """The length of the conversation with everything sent along."""
        beside = self._estimate_fixed(system, specs) if self._known is None else 0
        return self.tokens() + beside

    def _estimate_messages(self) -> int:
        """The estimate for all messages; only new ones are measured."""
        messages, known = self._conversation.messages, self._weights
        while known and (
            len(known) > len(messages) or known[-1][0] is not messages[len(known) - 1]
        ):
            self._total -= known.pop()[1]
        for message in messages[len(known) :]:
            weight = estimate_message(message)
            known.append((message, weight))
            self._total += weight
        return self._total

    def _estimate_fixed(self, system: tuple[str, ...], specs: tuple[ToolSpec, ...]) -> int:
        """The size of what every request includes, cached per list of tools."""
        key = hash((system, tuple(id(spec) for spec in specs)))
        if key not in self._fixed:
            tools = sum(estimate_tokens(f"{spec.description}{spec.input_schema}") for spec in specs)
            self._fixed = {key: tools + sum(estimate_tokens(part) for part in system)}
        return self._fixed[key]


def append_question(messages: Sequence[Message], question: str) -> tuple[Message, ...]:
    """The conversation with a final question that is not from the user."""
    asked = UserMessage((TextBlock(question),), synthetic=True)
    last = messages[-1] if messages else None
    if isinstance(last, UserMessage):
        return (*messages[:-1], UserMessage((*last.content, *asked.content), synthetic=True))
    return (*messages, asked)


async def request_text(model: Model, request: ModelRequest, meter: Meter) -> str:
    """The model's complete text; its cost is counted."""
    said: list[str] = []
    stream = cast("AsyncGenerator[ModelEvent, None]", model.stream(request))
    async with aclosing(stream) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                said.append(event.text)
            elif isinstance(event, MessageEnded):
                meter.add(event.model or model.name, event.usage, asked=model.name)
    return "".join(said)
