"""What makes two calls the same call, in few bytes."""

import msgspec

FINGERPRINT_BYTES = 8

_encoder = msgspec.json.Encoder(order="deterministic")


def fingerprint_of(tool: str, call_input: object) -> bytes:
    """What makes two calls the same: the tool's name and its input, to the letter.

    Sixty-four bits under a key of this process, as call ids are known by (`CallFacts`): nobody can
    foresee them, and what comes of two inputs that are alike in them is an answer, never an act.
    """
    try:
        encoded = _encoder.encode(call_input)
    except (TypeError, ValueError, RecursionError):
        encoded = repr(call_input).encode(errors="backslashreplace")
    name = tool.encode(errors="backslashreplace")
    return hash(name + b"\0" + encoded).to_bytes(FINGERPRINT_BYTES, "little", signed=True)
