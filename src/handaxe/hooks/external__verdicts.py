"""Hooks that ask a model: what it is asked about an event, and what its verdict means there."""

import json
from typing import Any, Final

import msgspec

from handaxe.contract.decision import Deny
from handaxe.contract.ports.hooks__hook_models import HookQuestion
from handaxe.hooks.config import AgentHook, PromptHook
from handaxe.hooks.event_types__encoding import encode_event
from handaxe.hooks.outcome import NOTHING, Outcome
from handaxe.hooks.output import NO_REASON, InvalidHookOutput
from handaxe.text.sanitize import escape_surrogates

PLACEHOLDER: Final = "$ARGUMENTS"
MAX_EVENT_CHARS = 200_000
"""What is longer is cut in its middle; no model would read it anyway."""
_SHOWN_CHARS = 200
_json = json.JSONDecoder()
_UNHEARD = frozenset({"PermissionRequest", "PermissionDenied"})
"""A verdict means nothing here: neither is a matter of yes or no."""
_ENDING = frozenset({"UserPromptSubmit", "UserPromptExpansion", "PostToolBatch"})
_STOPPING = frozenset({"Stop", "SubagentStop"})
_ADJUSTABLE = frozenset({"PreToolUse", "PostToolUse", "TeammateIdle"})


class _Verdict(msgspec.Struct, frozen=True):
    ok: bool
    reason: str | None = None
    impossible: bool | None = None


def build_hook_question(hook: PromptHook | AgentHook, event: dict[str, Any]) -> HookQuestion:
    """What is asked: the hook's prompt with the event in its place, or after it."""
    told = encode_event(event).decode()
    if len(told) > MAX_EVENT_CHARS:
        half, left_out = MAX_EVENT_CHARS // 2, len(told) - MAX_EVENT_CHARS
        told = f"{told[:half]} [... {left_out:,} characters left out ...] {told[-half:]}"
    if PLACEHOLDER in hook.prompt:
        prompt = hook.prompt.replace(PLACEHOLDER, told)
    else:
        prompt = f"{hook.prompt}\n\n{told}"
    return HookQuestion(
        prompt=escape_surrogates(prompt),
        model=hook.model,
        may_look=isinstance(hook, AgentHook),
        cwd=str(event.get("cwd", "")),
    )


def from_verdict(event: str, said: str, hook: PromptHook | AgentHook) -> Outcome:
    """What a model's words mean at this event. A yes only means that nothing speaks against it.

    Raises:
        Unusable: they hold no verdict.
    """
    verdict = _parse_verdict(said)
    if verdict.ok or event in _UNHEARD:
        return NOTHING
    reason = (verdict.reason or "").strip() or NO_REASON
    goes_on = isinstance(hook, AgentHook) or hook.continue_on_block
    if event in _STOPPING:
        # What can never be reached is no reason to go on.
        hopeless = verdict.impossible is True and not isinstance(hook, AgentHook)
        return Outcome(told=(reason,)) if hopeless else Outcome(blocked=reason)
    if event in _ENDING:
        return Outcome(blocked=reason, told=(reason,))
    if event in _ADJUSTABLE and not goes_on:
        return Outcome(blocked=reason, stop=reason, told=(reason,))
    if event == "PreToolUse":
        return Outcome(decision=Deny(reason, by="hook"))
    return Outcome(blocked=reason)


def _parse_verdict(said: str) -> _Verdict:
    """The verdict in an answer: models like to put a fence or a sentence around it."""
    found: _Verdict | None = None
    at = said.find("{")
    while at != -1:
        end = at + 1
        try:
            value, end = _json.raw_decode(said, at)
            found = msgspec.convert(value, _Verdict)
        except (ValueError, RecursionError):
            # Another brace; msgspec's complaint about a shape is a ValueError too.
            pass
        at = said.find("{", end)
    if found is None:
        shown = " ".join(said.split())[:_SHOWN_CHARS]
        told = f"it said {shown!r}" if shown else "it said nothing"
        raise InvalidHookOutput(f'the model gave no verdict like {{"ok": true}}; {told}')
    return found
