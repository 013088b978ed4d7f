"""What hooks say, made fit to be shown: well-formed, not too long, and with a name on it."""

from collections.abc import Callable

import msgspec

from handaxe.hooks.config import ConfiguredHook
from handaxe.hooks.outcome import NOTHING, Outcome
from handaxe.text.framing import neutralize
from handaxe.text.line_window import build_preview
from handaxe.text.sanitize import escape_surrogates

MAX_TEXT_CHARS = 10_000

Keep = Callable[[str], str]
"""Stores a text that is too long to be shown; where it can be read."""


def sanitize_outcome(outcome: Outcome, placed: ConfiguredHook, keep: Keep | None) -> Outcome:
    """The same answer with every text in it fit for the model."""
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
    """The text itself, or its two ends and where the whole of it is."""
    text = neutralize(escape_surrogates(text))
    if len(text) <= MAX_TEXT_CHARS:
        return text
    if keep is None:
        return f"{text[:MAX_TEXT_CHARS]}\n[... {len(text) - MAX_TEXT_CHARS:,} characters left out ...]"
    return build_preview(text, keep)
