"""A few bytes about every call of a session, by its id, for as long as the session lasts.

A session makes calls without end, so what it keeps of each must be next to nothing: no id, no
object, only bytes one behind the other. Not the results themselves: those are in the log.
"""

from collections import defaultdict

_PARTS = 256
_MARK_BYTES = 8


class CallFacts:
    """Equally many bytes for every call id; what was kept last counts."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        # Each part is short enough to be searched from end to end in no time.
        self._parts: defaultdict[int, bytearray] = defaultdict(bytearray)

    def keep(self, call_id: str, fact: bytes) -> None:
        """Keep this about a call."""
        if len(fact) != self._size_bytes:
            raise ValueError(f"{self._size_bytes} bytes are kept of each call, not {len(fact)}")
        part, mark = _placed(call_id)
        self._parts[part] += mark + fact

    def get(self, call_id: str) -> bytes | None:
        """What is kept about a call."""
        number, mark = _placed(call_id)
        part = self._parts.get(number)
        if part is None:
            return None
        record_bytes = _MARK_BYTES + self._size_bytes
        at = part.rfind(mark)
        while at > 0 and at % record_bytes:
            # Bytes of something else that look like it.
            at = part.rfind(mark, 0, at + _MARK_BYTES - 1)
        return None if at < 0 else bytes(part[at + _MARK_BYTES : at + record_bytes])


def _placed(call_id: str) -> tuple[int, bytes]:
    # Sixty-four keyed bits: two of a million ids are alike once in thirty million sessions.
    mark = hash(call_id)
    return mark % _PARTS, mark.to_bytes(_MARK_BYTES, "little", signed=True)
