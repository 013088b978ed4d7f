"""What makes two calls the same."""

import msgspec

from handaxe.text.wellformed import in_words

FINGERPRINT_BYTES = 8

_encoder = msgspec.json.Encoder(order="deterministic")


def fingerprint_of(tool: str, call_input: object) -> bytes:
    """The tool's name and its input, to the letter.

    Sixty-four bits under a key of this process, as call ids are known by (`CallFacts`): nobody can
    foresee them, and what comes of two inputs that are alike in them is an answer, never an act.
    """
    try:
        encoded = _encoder.encode(call_input)
    except (TypeError, ValueError, RecursionError):
        encoded = in_words(call_input).encode()
    name = tool.encode(errors="backslashreplace")
    return hash(name + b"\0" + encoded).to_bytes(FINGERPRINT_BYTES, "little", signed=True)
