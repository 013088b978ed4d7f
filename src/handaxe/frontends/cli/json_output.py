"""Result objects and call lines as JSON."""

import re
import sys
from typing import Any

import msgspec

from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.render import write_raw
from handaxe.text.escape import encode_json_escape, to_visible_json
from handaxe.text.sanitize import escape_line_ends, scrub

_encoder = msgspec.json.Encoder(enc_hook=str)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def encode_result(result: ToolResult) -> str:
    """One result object on one line."""
    plain = result.to_json()
    try:
        line = _encoder.encode(plain)
    except (UnicodeEncodeError, ValueError, RecursionError):
        line = _encoder.encode(scrub(plain))
    return escape_line_ends(line).decode()


def write_json(value: object) -> None:
    """A value on one line of standard output."""
    try:
        line = _encoder.encode(value)
    except (UnicodeEncodeError, ValueError, RecursionError):
        line = _encoder.encode(scrub(msgspec.to_builtins(value, enc_hook=str)))
    write_line(escape_line_ends(line).decode())


def write_line(text: str) -> None:
    """Write JSON as UTF-8, or escaped if standard output has another encoding."""
    if (sys.stdout.encoding or "utf-8").lower() not in ("utf-8", "utf8"):
        text = _NOT_ASCII.sub(lambda found: encode_json_escape(found[0]), text)
    elif sys.stdout.isatty():
        text = to_visible_json(text)
    write_raw(f"{text}\n")


def decode_line(line: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value of a line; ValueError describes what is wrong."""
    # Strip the line end, so that errors do not mention a second line.
    return decode_text(line.decode("utf-8").rstrip())


def decode_text(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value of a text, lone surrogates included.

    A duplicate name is an error, because readers disagree on which one counts.
    """
    import json

    try:
        return json.loads(text, object_pairs_hook=_reject_duplicates)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError | _DuplicateKey):
            raise
        # The message of Python names an option of the interpreter.
        raise ValueError("a number in it has too many digits") from None


class _DuplicateKey(ValueError):
    pass


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise _DuplicateKey(f"an object has the name {name[:100]!r} twice")
        members[name] = value
    return members
