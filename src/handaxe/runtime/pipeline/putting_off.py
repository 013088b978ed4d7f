"""A hook wants a call made later: where the work can stop for that it does, elsewhere it asks."""

import msgspec

from handaxe.contract.decision import Ask, Deny
from handaxe.runtime.hooks.outcome import Outcome
from handaxe.runtime.pipeline.collaborators import Collaborators
from handaxe.runtime.pipeline.heard import PutOff

NOT_HERE = (
    "A hook put this call off, which is possible only for the single call of an answer "
    "in a run without a terminal."
)


async def put_off(outcome: Outcome, call_id: str, among: Collaborators) -> Outcome:
    """What is left of the hooks' word where nothing can be put off: a person has to decide.

    Raises:
        PutOff: the work stops here.
    """
    if isinstance(outcome.decision, Deny):
        return outcome
    if among.may_put_off is not None and await among.may_put_off(call_id):
        raise PutOff
    return msgspec.structs.replace(outcome, decision=Ask(NOT_HERE, by="hook"))
