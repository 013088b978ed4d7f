"""An event as JSON, the same for programs, servers and models."""

import msgspec

from handaxe.text.wellformed import in_json, scrub

_encoder = msgspec.json.Encoder(enc_hook=in_json)


def encoded(event: object) -> bytes:
    """The event as JSON, whatever values a host program put into it."""
    try:
        return _encoder.encode(event)
    except Exception:  # noqa: BLE001 - code of whoever made the values may run here
        return _encoder.encode(scrub(msgspec.to_builtins(scrub(event), enc_hook=in_json)))
