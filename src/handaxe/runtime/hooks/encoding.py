"""An event as JSON, the same for programs, servers and models."""

import msgspec

from handaxe.text.wellformed import writable

_encoder = msgspec.json.Encoder(enc_hook=str)


def encoded(event: object) -> bytes:
    """The event as JSON, whatever values a host program put into it."""
    try:
        return _encoder.encode(event)
    except (UnicodeEncodeError, RecursionError, TypeError, ValueError):
        return _encoder.encode(writable(event))
