"""A few bytes about every call of a session, by its id, for as long as the session lasts.

A session makes calls without end, so what it keeps of each must be next to nothing: no id, no
object, only bytes one behind the other. Not the results themselves: those are in the log.
"""

from collections import defaultdict
from struct import Struct

import msgspec

from handaxe.text.chunks import is_long, replace_long_texts
from handaxe.text.sanitize import to_safe_text

FINGERPRINT_BYTES = 8

_encoder = msgspec.json.Encoder(order="deterministic")

_PARTS = 256
_MARK = Struct("<q")
# Sixty-four keyed bits: two of a million ids are alike once in thirty million sessions.
_MOST_RECENT = 64


class CallFingerprints:
    """Equally many bytes for every call id; the last entry counts."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        # The last few as they came: to sort in many at once costs less than one after the other.
        self._recent: dict[str, bytes] = {}
        # Each part is short enough to be searched from end to end in no time.
        self._parts: defaultdict[int, bytearray] = defaultdict(bytearray)

    def keep(self, call_id: str, fact: bytes) -> None:
        """Keep this about a call."""
        if len(fact) != self._size_bytes:
            raise ValueError(f"{self._size_bytes} bytes per call are expected; got {len(fact)}")
        self._recent[call_id] = fact
        if len(self._recent) >= _MOST_RECENT:
            self._flush_recent()

    def get(self, call_id: str) -> bytes | None:
        """The kept data about a call."""
        if call_id in self._recent:
            return self._recent[call_id]
        mark = hash(call_id)
        part = self._parts.get(mark % _PARTS)
        if part is None:
            return None
        wanted = _MARK.pack(mark)
        at = part.rfind(wanted)
        record_bytes = _MARK.size + self._size_bytes
        while at > 0 and at % record_bytes:
            # Bytes of something else that look like it.
            at = part.rfind(wanted, 0, at + _MARK.size - 1)
        return None if at < 0 else bytes(part[at + _MARK.size : at + record_bytes])

    def _flush_recent(self) -> None:
        for call_id, fact in self._recent.items():
            mark = hash(call_id)
            self._parts[mark % _PARTS] += _MARK.pack(mark) + fact
        self._recent.clear()


def compute_fingerprint(tool: str, call_input: object) -> bytes:
    """A 64-bit hash of the tool's name and its exact input.

    A random key of this process makes it unpredictable. If two inputs collide, the second call gets
    an answer and nothing runs.
    """
    try:
        if call_input and is_long(call_input):
            call_input = replace_long_texts(call_input, lambda text: f"{len(text)}:{hash(text)}")
        encoded = _encoder.encode(call_input)
    except Exception:  # noqa: BLE001 - whatever a host's program gave as input
        encoded = to_safe_text(call_input).encode()
    name = tool.encode(errors="backslashreplace")
    return hash(name + b"\0" + encoded).to_bytes(FINGERPRINT_BYTES, "little", signed=True)
