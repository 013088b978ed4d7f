"""A request's body as bytes."""

from typing import Any

import msgspec

from handaxe.text.sanitize import scrub

_ENCODER = msgspec.json.Encoder()


def encode_body(body: dict[str, Any]) -> bytes:
    """JSON that every server reads: half of a UTF-16 pair is spelled out, not sent."""
    try:
        return _ENCODER.encode(body)
    except UnicodeEncodeError:
        return _ENCODER.encode(scrub(body))
