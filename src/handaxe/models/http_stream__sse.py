"""Server-sent events from bytes, however the network cut them."""

from typing import NamedTuple

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""More in one event is a server out of its mind, not an answer."""

_BOM = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event: its name, empty where the server gave none, and its data."""

    event: str
    data: str


class EventTooLong(Exception):
    """One event passed `MAX_EVENT_BYTES` without coming to an end."""


class EventParser:
    """Bytes in, events out. The same bytes give the same events for every way to cut them."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        """The beginning of a line whose end has not come yet."""
        self._held_bytes = 0
        self._was_return = False
        self._is_first_line = True
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes."""
        if self._was_return and chunk:
            # The second half of a line break that was cut in two.
            chunk = chunk.removeprefix(b"\n")
            self._was_return = False
        self._held_bytes += len(chunk)
        if self._held_bytes > MAX_EVENT_BYTES:
            raise EventTooLong
        if b"\n" not in chunk and b"\r" not in chunk:
            if chunk:
                self._pieces.append(chunk)
            return []
        lines = b"".join((*self._pieces, chunk)).splitlines()
        self._pieces = []
        if chunk.endswith(b"\r"):
            self._was_return = True
        elif not chunk.endswith(b"\n"):
            self._pieces = [lines.pop()]
        events = self._read(lines)
        self._held_bytes = max(self._held_bytes, *(len(piece) for piece in (b"", *self._pieces)))
        return events

    def end(self) -> list[ServerEvent]:
        """The last event where the server left out the empty line after it."""
        rest, self._pieces = b"".join(self._pieces), []
        return self._read([*rest.splitlines(), b""])

    def _read(self, lines: list[bytes]) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        for raw in lines:
            line = raw
            if self._is_first_line:
                line = line.removeprefix(_BOM)
                self._is_first_line = False
            if line:
                self._take(line.decode("utf-8", "replace"))
                continue
            if self._data:
                events.append(ServerEvent(self._event, "\n".join(self._data)))
            self._event, self._data = "", []
            self._held_bytes = 0
        return events

    def _take(self, line: str) -> None:
        # A line that begins with a colon is a comment: its field has no name.
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
