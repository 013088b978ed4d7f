"""A hook wants a call made later: where the work can stop for that it does, elsewhere it asks."""

import msgspec

from handaxe.contract.decision import Ask, Deny
from handaxe.hooks.outcome import Outcome
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.permission_request__heard import DeferredCall

NOT_HERE = (
    "A hook put this call off, which is possible only for the single call of an answer "
    "in a run without a terminal."
)


async def defer_call(outcome: Outcome, call_id: str, among: PipelineContext) -> Outcome:
    """What is left of the hooks' word where nothing can be put off: a person has to decide.

    Raises:
        PutOff: the work stops here.
    """
    if isinstance(outcome.decision, Deny):
        return outcome
    if among.may_put_off is not None and await among.may_put_off(call_id):
        raise DeferredCall
    return msgspec.structs.replace(outcome, decision=Ask(NOT_HERE, by="hook"))
