"""Result objects and call lines as JSON."""

import re
import sys
from typing import Any

import msgspec

from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.paint import write_exactly
from handaxe.text.visible import json_escape, show_json
from handaxe.text.wellformed import on_one_line, scrub

_encoder = msgspec.json.Encoder(enc_hook=str)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def encode_result(result: ToolResult) -> str:
    """One result object on one line."""
    plain = result.to_json()
    try:
        line = _encoder.encode(plain)
    except (UnicodeEncodeError, ValueError, RecursionError):
        line = _encoder.encode(scrub(plain))
    return on_one_line(line).decode()


def write_json(value: object) -> None:
    """A value on one line of standard output."""
    try:
        line = _encoder.encode(value)
    except (UnicodeEncodeError, ValueError, RecursionError):
        line = _encoder.encode(scrub(msgspec.to_builtins(value, enc_hook=str)))
    write_line(on_one_line(line).decode())


def write_line(text: str) -> None:
    """JSON text on standard output; whatever a terminal speaks, readers of JSON expect UTF-8."""
    if (sys.stdout.encoding or "utf-8").lower() not in ("utf-8", "utf8"):
        text = _NOT_ASCII.sub(lambda found: json_escape(found[0]), text)
    elif sys.stdout.isatty():
        text = show_json(text)
    write_exactly(f"{text}\n")


def decode_line(line: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value of a line; ValueError says why there is none."""
    # Without its end no error is told to be on a second line.
    return decode_text(line.decode("utf-8").rstrip())


def decode_text(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value of a text; lone surrogates are read, so that the call itself can be told.

    A name that stands twice is refused: readers disagree on which of the two counts.
    """
    import json

    try:
        return json.loads(text, object_pairs_hook=_once_each)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError | _Twice):
            raise
        # The interpreter's own words are about an option of the interpreter.
        raise ValueError("a number in it has too many digits") from None


class _Twice(ValueError):
    pass


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise _Twice(f"the name {name[:100]!r} stands twice in one object")
        members[name] = value
    return members
