"""Whether the conditions of hooks are rules; the same for settings, agents and skills."""

from typing import TYPE_CHECKING

from handaxe.rules.grammar import parse_rule

if TYPE_CHECKING:
    from handaxe.hooks.config import HookConfig


def find_bad_conditions(book: "HookConfig") -> list[str]:
    """The `if`s that are no rules."""
    return [
        f"hooks.{placed.event}: the `if` of {placed.hook.name!r} is no rule: {rule.problem}"
        for placed in book.placed
        if placed.hook.condition is not None
        and (rule := parse_rule(placed.hook.condition, "deny")).is_dead
    ]
