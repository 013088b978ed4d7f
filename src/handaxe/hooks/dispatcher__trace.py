"""Who was asked and what came of it, as an event."""

import msgspec

from handaxe.contract.decision import Verdict
from handaxe.contract.events import HookOutcome, HookRan
from handaxe.hooks.config import ConfiguredHook
from handaxe.hooks.outcome import Outcome

_VERDICTS: dict[Verdict, HookOutcome] = {"allow": "allowed", "ask": "asked", "deny": "denied"}


class HookRun(msgspec.Struct, frozen=True):
    """One hook's answer and what it took."""

    placed: ConfiguredHook
    outcome: Outcome
    took_ms: float
    problem: str | None = None
    timed_out: bool = False


def to_hook_event(heard: HookRun, call_id: str | None) -> HookRan:
    """The event that tells of it."""
    placed, outcome = heard.placed, heard.outcome
    reason = heard.problem or outcome.blocked or outcome.stop
    if reason is None and outcome.decision is not None:
        reason = outcome.decision.reason
    return HookRan(
        event=placed.event,
        hook=placed.hook.name,
        matcher=placed.matcher,
        call_id=call_id,
        outcome=_classify_outcome(heard),
        reason=reason or "",
        input=outcome.input,
        messages=outcome.messages,
        told=outcome.told,
        sequence=outcome.sequence,
        in_background=placed.hook.in_background,
        duration_ms=heard.took_ms,
        skill=placed.skill,
    )


def _classify_outcome(heard: HookRun) -> HookOutcome:
    outcome = heard.outcome
    if heard.problem is not None:
        return "timed_out" if heard.timed_out else "failed"
    if outcome.blocked is not None or outcome.stop is not None:
        return "blocked" if outcome.blocked is not None else "stopped"
    if outcome.defers:
        return "deferred"
    if outcome.decision is not None:
        return _VERDICTS[outcome.decision.verdict]
    if outcome.input is not None or outcome.output is not msgspec.UNSET:
        return "changed"
    return "added" if outcome.messages or outcome.told else "silent"
