"""JSON that is still coming in."""

from typing import Any

import msgspec


def parse_partial_input(text: str) -> dict[str, Any]:
    """The fields that the beginning of a JSON object holds so far."""
    closers: list[str] = []
    before_comma = ""
    in_string = is_escaped = False
    for at, char in enumerate(text):
        if in_string:
            in_string = is_escaped or char != '"'
            is_escaped = not is_escaped and char == "\\"
        elif char == '"':
            in_string = True
        elif char in "{[":
            closers.append("}" if char == "{" else "]")
        elif char in "}]" and closers:
            closers.pop()
        elif char == ",":
            before_comma = text[:at] + "".join(reversed(closers))
    whole = text[:-1] if is_escaped else text
    whole += ('"' if in_string else "") + "".join(reversed(closers))
    for candidate in (whole, before_comma):
        try:
            return msgspec.json.decode(candidate, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
    return {}
