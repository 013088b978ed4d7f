"""Result objects and call lines as JSON."""

from typing import Any

import msgspec

from handaxe.contract.result import ToolResult
from handaxe.text.wellformed import on_one_line, scrub

_encoder = msgspec.json.Encoder(enc_hook=str)


def encode_result(result: ToolResult) -> str:
    """One result object on one line."""
    plain = result.to_json()
    try:
        line = _encoder.encode(plain)
    except (UnicodeEncodeError, ValueError, RecursionError):
        line = _encoder.encode(scrub(plain))
    return on_one_line(line).decode()


def decode_line(line: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value of a line; ValueError says why there is none."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        import json

        # The standard library also reads lone surrogates, so that the call itself can be told.
        try:
            return json.loads(line.decode("utf-8"))
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
