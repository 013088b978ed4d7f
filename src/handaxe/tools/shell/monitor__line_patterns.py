"""Regular expressions over lines that anybody may write: matching takes linear time, always.

The dialect is the one of Grep: no look-around, no back-references.
"""

from collections.abc import Callable


class BadLineRegex(ValueError):
    """A pattern that cannot be read."""


def compile_line_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a line holds a match; raises `BadLineRegex`."""
    import jsonschema_rs

    schema = {"type": "string", "pattern": pattern}
    try:
        # The validator's engine cannot backtrack, which the one of Python cannot promise.
        compiled = jsonschema_rs.validator_for(schema, pattern_options=jsonschema_rs.RegexOptions())
    except (jsonschema_rs.ValidationError, ValueError):
        raise BadLineRegex(
            "it is not in the dialect of Grep (no look-around, no back-references)"
        ) from None
    return compiled.is_valid
