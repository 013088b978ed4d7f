"""Several models behind one: where the first has no room, the next one answers."""

from collections.abc import AsyncIterator, Callable, Sequence

from handaxe.contract.ports.model import Model, ModelEvent, ModelFailed, ModelRequest, Retrying

_PASSED_ON = frozenset({"overloaded", "rate_limited", "not_found", "unreachable", "timed_out"})
"""Failures that another model need not have."""


class FallbackModel(Model):
    """The first model, and others that are opened when it fails before it said anything."""

    def __init__(self, first: Model, others: Sequence[Callable[[], Model]]) -> None:
        self.name = first.name
        self.context_tokens = first.context_tokens
        self._opened = [first]
        self._others = list(others)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The answer of the first model that gives one; each change is told."""
        at = 0
        while True:
            has_spoken = False
            try:
                async for event in self._opened[at].stream(request):
                    has_spoken = has_spoken or not isinstance(event, Retrying)
                    yield event
            except ModelFailed as failed:
                if has_spoken or failed.failure not in _PASSED_ON or not self._has_next(at):
                    raise
                at += 1
                yield Retrying(
                    attempt=at,
                    delay_s=0.0,
                    status=failed.status,
                    sentence=f"{failed.sentence} {self._opened[at].name} answers instead.",
                )
            else:
                return

    async def close(self) -> None:
        """Let go of connections."""
        for model in self._opened:
            await model.close()

    def _has_next(self, at: int) -> bool:
        if at + 1 == len(self._opened) and self._others:
            self._opened.append(self._others.pop(0)())
        return at + 1 < len(self._opened)
