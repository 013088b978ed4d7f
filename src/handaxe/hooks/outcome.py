"""The outcome of hooks: one type for one hook and for all of them merged."""

from typing import Any, Final

import msgspec

from handaxe.contract.decision import Allow, Decision
from handaxe.contract.permission_updates import PermissionChange


class HookPermissionChange(msgspec.Struct, frozen=True):
    """A permission change, and whether a project's hook requested it."""

    change: PermissionChange
    from_project: bool = False


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome; unset fields change nothing."""

    blocked: str | None = None
    """Why it must not continue; after a call, feedback for the model."""
    decision: Decision | None = None
    """A permission decision. An allow does not override rules."""
    defers: bool = False
    """Whether the call is deferred; only a denial is stronger."""
    input: dict[str, Any] | None = None
    """A replacement for the input; it is validated and judged again."""
    messages: tuple[str, ...] = ()
    """For the model."""
    notes: tuple[str, ...] = ()
    """For the reader of the result."""
    output: Any = msgspec.UNSET
    """The output for the model instead of the tool's."""
    stop: str | None = None
    """Why the agent should stop."""
    told: tuple[str, ...] = ()
    """For the user."""
    sequence: str = ""
    """For the terminal: a title, a notification, the bell."""
    variables: dict[str, str | None] = {}
    """Variables for later commands; None removes a variable."""
    changes: tuple[HookPermissionChange, ...] = ()
    """Permission changes that apply if the approval counts."""
    extra: dict[str, Any] = {}
    """Other fields of the answer, for the event's owner."""


NOTHING: Final = Outcome()
WATCH_PATHS: Final = "watchPaths"

_STRICTNESS: dict[str, int] = {"allow": 0, "ask": 1, "deny": 2}


def merge_outcomes(first: Outcome, second: Outcome) -> Outcome:
    """Merge two outcomes: the strictest decision, the later input, all messages in order."""
    if first is NOTHING:
        return second
    if second is NOTHING:
        return first
    return Outcome(
        blocked=first.blocked if first.blocked is not None else second.blocked,
        decision=_merge_decision(first, second),
        defers=first.defers or second.defers,
        input=second.input if second.input is not None else first.input,
        messages=(*first.messages, *second.messages),
        notes=(*first.notes, *second.notes),
        output=second.output if second.output is not msgspec.UNSET else first.output,
        stop=first.stop if first.stop is not None else second.stop,
        told=(*first.told, *second.told),
        sequence=first.sequence + second.sequence,
        variables={**first.variables, **second.variables},
        changes=(*first.changes, *second.changes),
        extra=_merge_extra(first.extra, second.extra),
    )


def _merge_extra(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """All fields, later ones win; files to watch are combined."""
    merged = {**first, **second}
    paths = [extra[WATCH_PATHS] for extra in (first, second) if WATCH_PATHS in extra]
    if len(paths) > 1 and all(isinstance(some, list) for some in paths):
        merged[WATCH_PATHS] = [path for some in paths for path in some]
    return merged


def _merge_decision(first: Outcome, second: Outcome) -> Decision | None:
    """The stricter decision; an approval counts only for the input that its hook saw."""
    earlier, later = first.decision, second.decision
    if isinstance(earlier, Allow) and second.input is not None and second.input != first.input:
        earlier = None
    if isinstance(later, Allow) and second.input is None and first.input is not None:
        later = None
    return choose_strictest(earlier, later)


def choose_strictest(first: Decision | None, second: Decision | None) -> Decision | None:
    """The stricter of two decisions; deny over ask over allow over none."""
    if first is None or second is None:
        return first or second
    return max(first, second, key=lambda word: _STRICTNESS[word.verdict])
