"""Convert the input that a model sent to the typed input of a tool.

Models send `"true"` for true, `"10"` for 10 and a list as JSON text. Where the declared type
is unambiguous, the intended value is used and noted. Text is never changed, and a number counts as
text only if it names a numbered thing. All remaining problems are listed, so that one more turn is
enough. The tool checks whether values make sense (a path that exists, a NUL byte in it).
"""

from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from handaxe.contract.input_shape import InputShape
from handaxe.text.sanitize import escape_surrogates, has_plain_values, to_plain_values

Args = TypeVar("Args")
Json: TypeAlias = Any

_MAX_PROBLEMS = 25
_CLOSED: dict[Any, bool] = {}


class InputProblems(Exception):
    """The input cannot be read; every problem is one sentence in `problems`."""

    def __init__(self, problems: list[str]) -> None:
        shown = [escape_surrogates(problem) for problem in problems[:_MAX_PROBLEMS]]
        if len(problems) > _MAX_PROBLEMS:
            from handaxe.text.escape import format_count

            shown.append(f"... and {format_count(len(problems) - _MAX_PROBLEMS, 'more problem')}")
        super().__init__("\n".join(shown))
        self.problems = shown


def read_input(args_type: type[Args], raw: Json) -> tuple[Args, list[str]]:
    """The typed input, and notes on what was read leniently; `InputProblems` if that fails."""
    is_closed = _CLOSED.get(args_type)
    if is_closed is None:
        if isinstance(args_type, InputShape):
            plain = raw if has_plain_values(raw) else to_plain_values(raw)
            return cast("Any", args_type.read(plain))
        is_closed = _is_closed(args_type)
    if is_closed and has_plain_values(raw):
        try:
            return msgspec.convert(raw, args_type), []
        except (msgspec.ValidationError, UnicodeError):
            pass
    # Most inputs fit; what reads the others is loaded when the first one does not.
    from handaxe.schema.lenient import UnreadableInput, read_leniently

    try:
        return read_leniently(args_type, to_plain_values(raw), most_told=_MAX_PROBLEMS)
    except UnreadableInput as found:
        raise InputProblems(found.problems) from None


def _is_closed(args_type: type[Any]) -> bool:
    from handaxe.schema.tool_schema import is_closed

    return _CLOSED.setdefault(args_type, is_closed(args_type))
