"""The calls of one message as they arrive: each gets its place, a repetition gets none."""

from collections.abc import Sequence

from handaxe.contract.call import ToolCall
from handaxe.pipeline.active_calls import AdmittedCall
from handaxe.pipeline.pipeline import ToolPipeline
from handaxe.session.call_fingerprints import compute_fingerprint


class BatchCalls:
    """Who came, in order; the very same call again is run once."""

    def __init__(self, pipeline: ToolPipeline) -> None:
        self._pipeline = pipeline
        self._latest: dict[bytes, int] = {}
        self.calls: list[ToolCall] = []
        self.admitted: dict[int, AdmittedCall] = {}
        self.twin_of: dict[int, int] = {}
        """Which calls only repeat an earlier one, by position."""

    def add(self, call: ToolCall) -> AdmittedCall | None:
        """Give the call its place; None if an earlier one answers for it."""
        position = len(self.calls)
        self.calls.append(call)
        fingerprint = compute_fingerprint(call.tool, call.input)
        original = self._latest.get(fingerprint)
        if original is not None and self.calls[original].id != call.id:
            between = [self.admitted[i] for i in self.admitted if i > original]
            if not _is_disturbed(self.admitted[original], between):
                self.twin_of[position] = original
                return None
        return self._take(position, self._pipeline.admit(call, fingerprint))

    def add_answered(self, answered: AdmittedCall) -> None:
        """A call that has its answer already; nothing repeats it."""
        self.calls.append(answered.call)
        self.admitted[len(self.calls) - 1] = answered

    def _take(self, position: int, admitted: AdmittedCall) -> AdmittedCall:
        self.admitted[position] = admitted
        self._latest[admitted.fingerprint] = position
        return admitted


def _is_disturbed(original: AdmittedCall, between: Sequence[AdmittedCall]) -> bool:
    """Whether a call in between could change what the original would give now."""
    if original.ticket is None:
        return False
    effects = original.ticket.effects
    return any(call.ticket and effects.collides(call.ticket.effects) for call in between)
