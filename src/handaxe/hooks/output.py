"""Parse the output of a hook program, server or function into an `Outcome`."""

import re
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

import msgspec

from handaxe.contract.decision import Allow, Ask, Decision, Deny
from handaxe.contract.permission_updates import PermissionChange
from handaxe.contract.ports.hooks import HookCommandResult, HookResponse
from handaxe.hooks.config import ConfiguredHook
from handaxe.hooks.event_types import OCCASIONS
from handaxe.hooks.outcome import NOTHING, HookPermissionChange, Outcome
from handaxe.text.framing import neutralize
from handaxe.text.line_window import build_preview
from handaxe.text.sanitize import escape_surrogates, scrub

_BLOCK_CODE = 2
_COMPLAINT_CHARS = 300
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
NO_REASON = "A hook blocked this without giving a reason."


class InvalidHookOutput(Exception):
    """The output is not valid; the sentence says why."""


class _NotJson(InvalidHookOutput):
    """Output that only looks like JSON."""


class _Answer(msgspec.Struct, frozen=True):
    is_going_on: bool = msgspec.field(name="continue", default=True)
    stop_reason: str | None = msgspec.field(name="stopReason", default=None)
    suppress_output: bool = msgspec.field(name="suppressOutput", default=False)
    system_message: str | None = msgspec.field(name="systemMessage", default=None)
    terminal_sequence: str | None = msgspec.field(name="terminalSequence", default=None)
    decision: Literal["approve", "block"] | None = None
    reason: str | None = None
    specific: dict[str, Any] | None = msgspec.field(name="hookSpecificOutput", default=None)


class _Permission(msgspec.Struct, frozen=True, rename="camel"):
    permission_decision: Literal["allow", "deny", "ask", "defer"] | None = None
    permission_decision_reason: str | None = None
    updated_input: dict[str, Any] | None = None


class _Said(msgspec.Struct, frozen=True, rename="camel"):
    hook_event_name: str | None = None
    additional_context: str | None = None


class _Behaviour(msgspec.Struct, frozen=True, rename="camel"):
    behavior: Literal["allow", "deny"]
    updated_input: dict[str, Any] | None = None
    updated_permissions: tuple[PermissionChange, ...] = ()
    message: str | None = None
    interrupt: bool = False


_Typed = TypeVar("_Typed")


def from_command(event: str, end: HookCommandResult, *, rewakes: bool = False) -> Outcome:
    """The outcome of a program's exit code and output.

    With `rewakes` its exit code can send a message to the model at any event.

    Raises:
        InvalidHookOutput: the program failed without blocking.
    """
    said = end.stdout.decode(errors="replace").strip()
    complaint = end.stderr.decode(errors="replace").strip()
    if event == "WorktreeCreate" and (end.exit_code != 0 or not said.startswith("{")):
        return _parse_worktree(end.exit_code, said, complaint)
    if rewakes and end.exit_code == _BLOCK_CODE:
        return Outcome(blocked=complaint or said or NO_REASON)
    blocks = end.exit_code == _BLOCK_CODE and OCCASIONS[event].blocks
    outcome, is_answer = NOTHING, said.startswith("{")
    try:
        if is_answer:
            outcome = from_json(event, _decode_object(said))
    except _NotJson:
        # Where words are welcome these are words; elsewhere a guard that stammers has failed.
        is_answer = False
        if not blocks and not OCCASIONS[event].adds_stdout:
            raise
    except InvalidHookOutput:
        if not blocks:
            raise
    if blocks:
        reason = outcome.blocked or _find_denial(outcome) or complaint or NO_REASON
        return msgspec.structs.replace(outcome, blocked=reason)
    if is_answer:
        return outcome
    if end.exit_code != 0:
        first = complaint.partition("\n")[0][:_COMPLAINT_CHARS]
        raise InvalidHookOutput(
            f"it ended with exit code {end.exit_code}" + (f": {first}" if first else "")
        )
    if said and OCCASIONS[event].adds_stdout:
        return Outcome(messages=(said,))
    return NOTHING


def _parse_worktree(exit_code: int, said: str, complaint: str) -> Outcome:
    """The last output line of a worktree hook is its path; any failure means there is none."""
    if exit_code != 0:
        return Outcome(blocked=complaint or f"it ended with exit code {exit_code}")
    # Shells of the user's may colour what they print.
    lines = [line.strip() for line in _COLOURS.sub("", said).splitlines() if line.strip()]
    return Outcome(extra={"worktreePath": lines[-1]}) if lines else NOTHING


def from_reply(event: str, reply: HookResponse) -> Outcome:
    """The outcome of a server's answer.

    Raises:
        InvalidHookOutput: it is not a success, or not a JSON object.
    """
    if not 200 <= reply.status < 300:
        raise InvalidHookOutput(f"it answered with HTTP status {reply.status}")
    said = reply.body.decode(errors="replace").strip()
    return from_json(event, _decode_object(said)) if said else NOTHING


def from_value(event: str, value: object) -> Outcome:
    """The outcome of a Python hook's result.

    Raises:
        InvalidHookOutput: it has another type.
    """
    if value is None:
        return NOTHING
    if isinstance(value, Outcome):
        return value
    if isinstance(value, dict):
        return from_json(event, cast("dict[str, Any]", value))
    raise InvalidHookOutput(f"it answered with {type(value).__name__}")


def from_json(event: str, raw: dict[str, Any]) -> Outcome:
    """The outcome of an answer in the ecosystem's format.

    Raises:
        InvalidHookOutput: it has another format.
    """
    if raw.get("async") is True:
        # It works on in the background; nothing it says counts now.
        return NOTHING
    answer = _convert_answer(raw, _Answer)
    specific = answer.specific or {}
    said = _convert_answer(specific, _Said)
    if said.hook_event_name not in {None, event}:
        raise InvalidHookOutput(f"it answered for {said.hook_event_name!r}, not for {event!r}")
    outcome = Outcome(
        messages=(said.additional_context,) if said.additional_context else (),
        stop=None if answer.is_going_on else answer.stop_reason or "A hook asked to stop.",
        told=(answer.system_message,) if answer.system_message else (),
        sequence=filter_terminal_sequence(answer.terminal_sequence),
    )
    if event == "PreToolUse":
        return _apply_permission(outcome, answer, _convert_answer(specific, _Permission))
    if event == "PermissionRequest":
        return _apply_behaviour(outcome, specific.get("decision"))
    if answer.decision == "block" and OCCASIONS[event].blocks:
        outcome = msgspec.structs.replace(outcome, blocked=answer.reason or NO_REASON)
    return _apply_rest(outcome, specific)


def _apply_permission(outcome: Outcome, answer: _Answer, word: _Permission) -> Outcome:
    reason = word.permission_decision_reason or answer.reason or ""
    decision: Decision | None = None
    match word.permission_decision or answer.decision:
        case "allow" | "approve":
            decision = Allow(reason, by="hook")
        case "ask":
            decision = Ask(reason or "A hook wants the user to decide.", by="hook")
        case "defer":
            # It is asked again when the call is made; until then nothing else it says counts.
            return msgspec.structs.replace(outcome, messages=(), defers=True)
        case "deny" | "block":
            decision = Deny(reason or NO_REASON, by="hook")
        case None:
            pass
    return msgspec.structs.replace(outcome, decision=decision, input=word.updated_input)


def _apply_behaviour(outcome: Outcome, raw: object) -> Outcome:
    if raw is None:
        return outcome
    word = _convert_answer(raw, _Behaviour)
    if word.behavior == "deny":
        deny = Deny(word.message or "A hook refused it.", by="hook")
        stop = outcome.stop or (deny.reason if word.interrupt else None)
        return msgspec.structs.replace(outcome, decision=deny, stop=stop)
    changes = tuple(HookPermissionChange(change) for change in word.updated_permissions)
    allow = Allow(word.message or "", by="hook")
    return msgspec.structs.replace(
        outcome, decision=allow, input=word.updated_input, changes=changes
    )


def _apply_rest(outcome: Outcome, specific: dict[str, Any]) -> Outcome:
    known = {"hookEventName", "additionalContext", "updatedToolOutput", "updatedMCPToolOutput"}
    output = specific.get(
        "updatedToolOutput", specific.get("updatedMCPToolOutput", cast("Any", msgspec.UNSET))
    )
    extra = {key: value for key, value in specific.items() if key not in known}
    return msgspec.structs.replace(outcome, output=output, extra=extra)


def _find_denial(outcome: Outcome) -> str | None:
    return outcome.decision.reason if isinstance(outcome.decision, Deny) else None


def _decode_object(text: str) -> dict[str, Any]:
    try:
        value: object = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise _NotJson(f"its answer is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise InvalidHookOutput("its answer is not a JSON object")
    return cast("dict[str, Any]", value)


def _convert_answer(raw: object, kind: type[_Typed]) -> _Typed:
    try:
        return msgspec.convert(scrub(raw), kind)
    except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
        raise InvalidHookOutput(f"its answer has another form than expected ({error})") from None


MAX_SEQUENCE_CHARS = 4_000
# Titles (0, 1, 2), notices (9, 99, 777) and the bell; nothing that moves, paints, links or copies.
_HARMLESS = re.compile(r"(?:\x1b\](?:0|1|2|9|99|777);[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\)|\x07)+")


def filter_terminal_sequence(sequence: str | None) -> str:
    """The sequence if all of it is allowed; otherwise empty."""
    if not sequence or len(sequence) > MAX_SEQUENCE_CHARS or _HARMLESS.fullmatch(sequence) is None:
        return ""
    return sequence


MAX_TEXT_CHARS = 10_000

Keep = Callable[[str], str]
"""Stores a text that is too long to show; returns where to read it."""


def sanitize_outcome(outcome: Outcome, placed: ConfiguredHook, keep: Keep | None) -> Outcome:
    """The outcome with all texts made safe for the model."""
    if outcome is NOTHING:
        return outcome

    def shown(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sanitize_hook_text(text, keep) for text in texts)

    decision = outcome.decision
    if decision is not None:
        decision = msgspec.structs.replace(
            decision,
            reason=sanitize_hook_text(decision.reason, keep),
            source=decision.source or placed.hook.name,
        )
    return msgspec.structs.replace(
        outcome,
        blocked=None if outcome.blocked is None else sanitize_hook_text(outcome.blocked, keep),
        stop=None if outcome.stop is None else sanitize_hook_text(outcome.stop, keep),
        decision=decision,
        messages=shown(outcome.messages),
        notes=shown(outcome.notes),
        told=shown(outcome.told),
        changes=tuple(
            msgspec.structs.replace(given, from_project=placed.is_projects)
            for given in outcome.changes
        ),
    )


def sanitize_hook_text(text: str, keep: Keep | None) -> str:
    """The text, or its two ends and where to read all of it."""
    text = neutralize(escape_surrogates(text))
    if len(text) <= MAX_TEXT_CHARS:
        return text
    if keep is None:
        return (
            f"{text[:MAX_TEXT_CHARS]}\n[... {len(text) - MAX_TEXT_CHARS:,} characters left out ...]"
        )
    return build_preview(text, keep)
