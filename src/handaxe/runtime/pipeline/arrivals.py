"""The calls of one message as they arrive: each gets its place, a repetition gets none."""

from collections.abc import Sequence

from handaxe.contract.call import ToolCall
from handaxe.runtime.pipeline.execute import Pipeline
from handaxe.runtime.pipeline.under_way import Admitted
from handaxe.session.call_facts import fingerprint_of


class Arrivals:
    """Who came, in order; the very same call again is run once."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._latest: dict[bytes, int] = {}
        self.calls: list[ToolCall] = []
        self.admitted: dict[int, Admitted] = {}
        self.twin_of: dict[int, int] = {}
        """Which calls only repeat an earlier one, by position."""

    def add(self, call: ToolCall) -> Admitted | None:
        """Give the call its place; None if an earlier one answers for it."""
        position = len(self.calls)
        self.calls.append(call)
        fingerprint = fingerprint_of(call.tool, call.input)
        original = self._latest.get(fingerprint)
        if original is not None and self.calls[original].id != call.id:
            between = [self.admitted[i] for i in self.admitted if i > original]
            if not _is_disturbed(self.admitted[original], between):
                self.twin_of[position] = original
                return None
        return self._take(position, self._pipeline.admit(call, fingerprint))

    def add_answered(self, answered: Admitted) -> None:
        """A call that has its answer already; nothing repeats it."""
        self.calls.append(answered.call)
        self.admitted[len(self.calls) - 1] = answered

    def _take(self, position: int, admitted: Admitted) -> Admitted:
        self.admitted[position] = admitted
        self._latest[admitted.fingerprint] = position
        return admitted


def _is_disturbed(original: Admitted, between: Sequence[Admitted]) -> bool:
    """Whether a call in between could change what the original would give now."""
    if original.ticket is None:
        return False
    effects = original.ticket.effects
    return any(call.ticket and effects.collides(call.ticket.effects) for call in between)
