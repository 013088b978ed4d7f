"""What hooks answer: one value for one hook, and the same for all of them merged."""

from typing import Any, Final

import msgspec

from handaxe.contract.decision import Allow, Decision
from handaxe.contract.permission_updates import PermissionChange


class HookPermissionChange(msgspec.Struct, frozen=True):
    """A change of permissions, and whether a project's own hook wants it."""

    change: PermissionChange
    from_project: bool = False


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """An answer; missing parts change nothing."""

    blocked: str | None = None
    """Why it must not go on; after a call, a complaint that the model must hear."""
    decision: Decision | None = None
    """A word on permission. An allow beats no rule."""
    defers: bool = False
    """Whether to make the call later; only a denial is stronger."""
    input: dict[str, Any] | None = None
    """The input to use instead; it is parsed and judged again."""
    messages: tuple[str, ...] = ()
    """For the model."""
    notes: tuple[str, ...] = ()
    """For the reader of the result."""
    output: Any = msgspec.UNSET
    """What the model gets instead of the tool's own output."""
    stop: str | None = None
    """Why the agent should stop altogether."""
    told: tuple[str, ...] = ()
    """For the person in front of the screen."""
    sequence: str = ""
    """For the terminal itself: a title, a notice, the bell."""
    variables: dict[str, str | None] = {}
    """What later commands find in their environment; None takes a variable away."""
    changes: tuple[HookPermissionChange, ...] = ()
    """Changes of permissions, if the approval they came with counts."""
    extra: dict[str, Any] = {}
    """What else the answer held, for the owner of the event."""


NOTHING: Final = Outcome()
WATCH_PATHS: Final = "watchPaths"

_STRICTNESS: dict[str, int] = {"allow": 0, "ask": 1, "deny": 2}


def merge_outcomes(first: Outcome, second: Outcome) -> Outcome:
    """Two answers as one: the strictest word, the later input, everything said in order."""
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
    """Everything, the later word over the earlier; files to watch are put together."""
    merged = {**first, **second}
    paths = [extra[WATCH_PATHS] for extra in (first, second) if WATCH_PATHS in extra]
    if len(paths) > 1 and all(isinstance(some, list) for some in paths):
        merged[WATCH_PATHS] = [path for some in paths for path in some]
    return merged


def _merge_decision(first: Outcome, second: Outcome) -> Decision | None:
    """The stricter decision; an approval counts only for the input that was shown."""
    earlier, later = first.decision, second.decision
    if isinstance(earlier, Allow) and second.input is not None and second.input != first.input:
        earlier = None
    if isinstance(later, Allow) and second.input is None and first.input is not None:
        later = None
    return choose_strictest(earlier, later)


def choose_strictest(first: Decision | None, second: Decision | None) -> Decision | None:
    """The stricter of two words; deny over ask over allow over silence."""
    if first is None or second is None:
        return first or second
    return max(first, second, key=lambda word: _STRICTNESS[word.verdict])
