"""Approvals in LangGraph: a call that needs approval interrupts its graph.

LangGraph gives answers out by order, which differs when calls run side by side. So answers are
given by call id: `Command(resume={"call_1": "allow"})`.
"""

import asyncio
from typing import cast

import msgspec

from handaxe.adapters.tool_conversion import CANNOT_ASK, FrameworkResult, SessionAdapter
from handaxe.contract.decision import Allow, Deny
from handaxe.contract.faults import BadAnswer

_BEAT_S = 0.05
_PATIENCE_BEATS = 20


class GraphAnswers:
    """The answers of graphs to the questions of one session."""

    def __init__(self, exchange: SessionAdapter) -> None:
        self._exchange = exchange
        self._given: dict[str, Allow | Deny] = {}
        self._running = 0
        self._are_idle = asyncio.Event()

    async def call(self, tool: str, call_input: object, call_id: str) -> FrameworkResult:
        """Run one call, and interrupt the graph if it waits and has no answer yet."""
        self._count(1)
        try:
            if not self._exchange.is_waiting(call_id):
                result = await self._exchange.call(tool, call_input, call_id)
                if result.question is None:
                    return result
            answer = await self._take(call_id) or Deny(CANNOT_ASK)
            return await self._exchange.call_answered(tool, call_input, call_id, answer)
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        self._running += more
        if self._running:
            self._are_idle.clear()
        else:
            self._are_idle.set()

    async def _take(self, call_id: str) -> Allow | Deny | None:
        """The answer to a call; None outside a graph.

        Raises:
            GraphInterrupt: there is no answer yet.
        """
        try:
            from langgraph.errors import GraphInterrupt
            from langgraph.types import interrupt
        except ImportError:
            return None
        shown = self._exchange.find_question(call_id) or {}
        while call_id not in self._given:
            try:
                self._keep(interrupt(shown))
            except BadAnswer as error:
                shown = {**shown, "problem": str(error)}
            except (RuntimeError, KeyError):
                return None
            except GraphInterrupt:
                await self._let_others_end()
                if call_id not in self._given:
                    raise
        return self._given.pop(call_id)

    def _keep(self, said: object) -> None:
        """Keep answers, also for other calls of the same node."""
        self._given |= {
            call_id: answer
            for call_id, answer in _read_answers(said).items()
            if self._exchange.is_waiting(call_id)
        }

    async def _let_others_end(self) -> None:
        """Wait for the other calls of the message, which an interrupt would cancel."""
        self._count(-1)
        try:
            await asyncio.sleep(_BEAT_S)
            for _ in range(_PATIENCE_BEATS):
                # The answered call may still be running, or belong to another graph.
                if not self._given:
                    break
                await asyncio.sleep(_BEAT_S)
            await self._are_idle.wait()
        finally:
            self._count(1)


def _read_answers(said: object) -> dict[str, Allow | Deny]:
    """Answers as JSON by call id: "allow", "deny", or the fields of an answer.

    Raises:
        BadAnswer: an answer is invalid.
    """
    if not isinstance(said, dict):
        raise BadAnswer(
            'Answers are given by the ids of the calls, such as {"call_1": "allow"}; '
            f"got {said!r:.100}."
        )
    given = cast("dict[object, object]", said)
    return {str(call_id): _read_answer(call_id, answer) for call_id, answer in given.items()}


def _read_answer(call_id: object, answer: object) -> Allow | Deny:
    parts = {"verdict": answer} if isinstance(answer, str) else answer
    try:
        read = msgspec.convert(parts, Allow | Deny)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadAnswer(
            f'The answer to the call {call_id!r:.100} must be "allow", "deny" or an object with '
            f"`verdict`: {error}."
        ) from None
    named = set(cast("dict[str, object]", parts)) if isinstance(parts, dict) else set[str]()
    if unknown := named - {"verdict", *read.__struct_fields__}:
        raise BadAnswer(f"The answer to the call {call_id!r:.100} has no parts {sorted(unknown)}.")
    return read
