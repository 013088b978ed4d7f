"""What a mistake in a settings file may have been meant for: is it a rule that forbids?

Says nothing about which calls a rule covers; it only tells rules from texts that cannot be one.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

MEANT_TO_FORBID = frozenset({"permissions", "permissions.deny", "permissions.ask"})
"""Keys that somebody who misspelt one of them would have protected something with."""
_RULE = re.compile(r"[^()\s]+(\s*\(.*\))?", re.DOTALL)
_SCOPED_RULE = re.compile(r"[A-Za-z_][\w*-]*\(.*\)?", re.DOTALL)


def is_rule(text: object) -> bool:
    """Whether a text has the form of a rule: `Tool` or `Tool(pattern)`."""
    return isinstance(text, str) and _RULE.fullmatch(text.strip()) is not None


def is_likely_restriction(value: Any) -> bool:  # noqa: ANN401 - whatever stands behind an unknown key
    """Whether a value holds what only rules hold: lists named deny or ask, or texts like rules."""
    if isinstance(value, str):
        return _SCOPED_RULE.fullmatch(value.strip()) is not None
    if isinstance(value, list):
        return any(is_likely_restriction(item) for item in cast("list[Any]", value)[:100])
    if isinstance(value, Mapping):
        names = {str(name).casefold() for name in cast("Mapping[Any, Any]", value)}
        return not names.isdisjoint({"deny", "ask"})
    return False
