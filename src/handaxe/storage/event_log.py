"""The log of one session: every event that matters, one JSON line each, append-only.

The file is made with the first event, closed while nothing happens, and read again line by line.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec

from handaxe.contract.events import CallFinished, CallProgress, Event
from handaxe.contract.result import ToolResult
from handaxe.disk.lines import LineLog, scan
from handaxe.text.wellformed import scrub

IDLE_S = 5.0
SYNC_DELAY_S = 0.05

_log = logging.getLogger("handaxe.storage")
_encoder = msgspec.json.Encoder(enc_hook=str)
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class EventLog:
    """Appends events, and finds the results of finished calls again."""

    def __init__(self, path: Path) -> None:
        self._directory = path.parent
        self._lines = LineLog(path)
        self._result_at: dict[str, int] = {}
        self._used = False
        self._has_directory = False
        self._watcher: asyncio.TimerHandle | None = None
        self._sync: asyncio.Future[None] | None = None
        self._sync_timer: asyncio.TimerHandle | None = None

    def append(self, event: Event) -> None:
        """Write one event; progress is shown to listeners only and never written."""
        if isinstance(event, CallProgress):
            return
        if isinstance(event, CallFinished):
            shown = event.result
            if shown.display is not None:
                shown = msgspec.structs.replace(shown, display=None)
                event = msgspec.structs.replace(event, result=shown)
            self._result_at[event.call_id] = self._write(event)
            self._sync_soon()
        else:
            self._write(event)

    def replay(self, call_id: str, offset: int) -> None:
        """A result that an earlier run of the session had written."""
        self._result_at[call_id] = offset

    def result_of(self, call_id: str) -> ToolResult | None:
        """The stored result of a finished call."""
        offset = self._result_at.get(call_id)
        if offset is None:
            return None
        event = _decoder.decode(self._lines.read_at(offset))
        return event.result if isinstance(event, CallFinished) else None

    async def close(self) -> None:
        """Make everything durable and let go of the file."""
        for timer in (self._watcher, self._sync_timer):
            if timer is not None:
                timer.cancel()
        self._watcher = self._sync_timer = None
        if self._sync is not None:
            with contextlib.suppress(OSError):
                await self._sync
        if self._has_directory:
            self._lines.sync()
            self._lines.close()

    def _write(self, event: Event) -> int:
        try:
            payload = _encoder.encode(event)
        except (UnicodeEncodeError, RecursionError, TypeError, ValueError):
            payload = _encoder.encode(scrub(msgspec.to_builtins(event, enc_hook=str)))
        if not self._has_directory:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._has_directory = True
        offset = self._lines.append(payload)
        self._used = True
        if self._watcher is None:
            self._watch()
        return offset

    def _watch(self) -> None:
        """Close the file when it was not used for a while: idle sessions hold no descriptor."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._used = False
        self._watcher = loop.call_later(IDLE_S, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self._watcher = None
        if self._used:
            self._watch()
        else:
            self._lines.close()

    def _sync_soon(self) -> None:
        """Make results durable shortly, without anybody waiting; many become one sync."""
        if self._sync_timer is None and self._sync is None:
            with contextlib.suppress(RuntimeError):
                loop = asyncio.get_running_loop()
                self._sync_timer = loop.call_later(SYNC_DELAY_S, self._start_sync)

    def _start_sync(self) -> None:
        self._sync_timer = None
        self._sync = asyncio.get_running_loop().run_in_executor(None, self._lines.sync)
        self._sync.add_done_callback(self._synced)

    def _synced(self, sync: asyncio.Future[None]) -> None:
        self._sync = None
        if not sync.cancelled() and sync.exception() is not None:
            _log.error("the event log could not be synced", exc_info=sync.exception())


class LoggedEvents:
    """The events of a log in order, with where they stand; what cannot be read is told after."""

    def __init__(self, path: Path) -> None:
        self._scan = scan(path)
        self._unreadable: list[str] = []

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        for record in self._scan:
            try:
                yield record.offset, _decoder.decode(record.payload)
            except (msgspec.DecodeError, msgspec.ValidationError) as error:
                self._unreadable.append(f"record {record.seq} is no event: {error}")

    @property
    def damage(self) -> list[str]:
        """What was skipped so far, one sentence each."""
        return [
            f"line {damage.line_number}: {damage.reason}" for damage in self._scan.damages
        ] + self._unreadable
