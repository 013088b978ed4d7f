"""An event as JSON, the same for programs, servers and models."""

import msgspec

from handaxe.text.sanitize import scrub, to_json_leaf

_encoder = msgspec.json.Encoder(enc_hook=to_json_leaf)


def encode_event(event: object) -> bytes:
    """The event as JSON, whatever values a host program put into it."""
    try:
        return _encoder.encode(event)
    except Exception:  # noqa: BLE001 - code of whoever made the values may run here
        return _encoder.encode(scrub(msgspec.to_builtins(scrub(event), enc_hook=to_json_leaf)))
