"""The log of one session: every event that matters, one JSON line each, append-only.

The file is made with the first event, closed while nothing happens, and read again line by line.
"""

import asyncio
import contextlib
import logging
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from handaxe.contract.events import (
    AssistantEnded,
    CallAsked,
    CallDecided,
    CallDeferred,
    CallFinished,
    CallProgress,
    CallStarted,
    Event,
    JobEnded,
    JobSaid,
    JobStarted,
    JobsTold,
    MessagePosted,
    UserSaid,
)
from handaxe.contract.faults import ResultLost
from handaxe.contract.result import ToolResult, to_json_data
from handaxe.disk.append_log import LineLog, scan
from handaxe.disk.errors import DiskFault
from handaxe.session.call_fingerprints import CallFingerprints
from handaxe.storage.home import make_private_directory, sync_directory_names
from handaxe.storage.session_lock import SharedSessionLock
from handaxe.text.chunks import LONG, is_long, put_long_texts, replace_long_texts
from handaxe.text.redact import Redactor
from handaxe.text.sanitize import scrub, to_json_leaf

MOST = 64
"""Maximum number of open logs of one thread, beside those with running calls."""


class PooledFile(ABC):
    """Something that can close its files until it is used again."""

    @abstractmethod
    def release_files(self) -> bool:
        """Close the files unless they are needed right now, and return whether they were closed."""

    def mark_used(self) -> None:
        """Say that the files were used, and let others rest where too many are open."""
        holders = _of_this_thread.holders
        key = id(self)
        if key in holders:
            holders.move_to_end(key)
            return
        holders[key] = weakref.ref(self)
        if len(holders) > MOST:
            oldest, holder = holders.popitem(last=False)
            log = holder()
            if log is not None and not log.release_files():
                holders[oldest] = holder


class _Holders(threading.local):
    """One per thread: no thread closes files that another one is writing to."""

    def __init__(self) -> None:
        self.holders: OrderedDict[int, weakref.ref[PooledFile]] = OrderedDict()


_of_this_thread = _Holders()


IDLE_S = 5.0
SYNC_DELAY_S = 0.05
MAX_WAITING = 64
LONG_CHARS = 16_000
"""A result so long takes longer to write than most calls take to run."""

_WRITTEN_AT_ONCE = (JobStarted, JobEnded, JobsTold, MessagePosted, CallAsked, CallDecided)
"""Facts that survive a killed host: background work, its reported end, and questions."""
_WRITTEN_SOON = (UserSaid, AssistantEnded, JobSaid)

_OFFSET_BYTES = 8
_log = logging.getLogger("handaxe.storage")
_encoder = msgspec.json.Encoder(enc_hook=to_json_leaf)


@cache
def _make_decoder() -> "msgspec.json.Decoder[Event]":
    """Used for reading a log only."""
    return msgspec.json.Decoder(Event)


class _LogSyncs:
    """Makes a log durable shortly after it was written, in the background."""

    def __init__(
        self, lines: LineLog, directory: Path, report: Callable[[BaseException], None]
    ) -> None:
        self._lines = lines
        self._directory = directory
        self._report = report
        self._running: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.is_due = False
        """Whether a sync is running already."""
        self.has_lasting_name = False

    def start_soon(self, flush: Callable[[], None]) -> None:
        """Sync what is written until then, flushed first; many results become one sync."""
        if not self.is_due:
            with contextlib.suppress(RuntimeError):
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(SYNC_DELAY_S, self._start, flush)
                self.is_due = True

    def cancel_timer(self) -> None:
        """Begin no sync any more but one that is asked for."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.is_due = False

    async def wait(self) -> None:
        """Wait for the running sync, if there is one."""
        if self._running is not None:
            with contextlib.suppress(OSError, DiskFault):
                await self._running

    async def sync(self) -> None:
        """Make durable what is written by now."""
        from handaxe.disk.threads import start_in_thread

        await start_in_thread(self._make_durable).result

    def _start(self, flush: Callable[[], None]) -> None:
        self._timer, self.is_due = None, False
        flush()
        from handaxe.disk.threads import start_in_thread

        self._running = start_in_thread(self._make_durable).result
        self.is_due = True
        self._running.add_done_callback(self._finish)

    def _make_durable(self) -> None:
        self._lines.sync()
        if not self.has_lasting_name:
            sync_directory_names(self._directory)
            self.has_lasting_name = True

    def _finish(self, sync: asyncio.Future[None]) -> None:
        self._running = None
        self.is_due = False
        if not sync.cancelled() and (error := sync.exception()) is not None:
            self._report(error)


class EventLog(PooledFile):
    """Appends events, and finds the results of finished calls again."""

    def __init__(
        self,
        path: Path,
        opening: Callable[[], Event] | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        """`opening` returns the first event of a log that has to start again.

        `redactor` removes secrets from written text.
        """
        self._redactor = Redactor() if redactor is None else redactor
        self._directory = path.parent
        self._opening = opening
        self._presence = SharedSessionLock(path.parent)
        self.problem: str | None = None
        """Why events are missing from the log, if any are."""
        self.elsewhere: frozenset[str] = frozenset()
        """Calls that another process had under way when this one came."""
        self._waiting: list[Event] = []
        self._open: dict[str, bool] = {}
        """Running calls and background work by id, and whether they are read-only."""
        self._is_flush_due = False
        self._lines = LineLog(path)
        self._result_at = CallFingerprints(_OFFSET_BYTES)
        self._used = self._has_directory = self._is_known = False
        self._watcher: asyncio.TimerHandle | None = None
        self._syncs = _LogSyncs(self._lines, self._directory, self._report_sync)
        self._behind: Sequence[Event] | None = None
        """Events that are being written in a thread."""
        self._drained: asyncio.Future[None] | None = None
        self.may_write_behind = True
        """Whether long events may be written in a thread, with later events behind them."""

    def append(self, event: Event) -> asyncio.Future[None] | None:
        """Take one event; progress is shown to listeners only and never written.

        A long event, and others that come meanwhile, return a future: it is done when they are
        written, or `problem` says why not. Cancelling it stops nothing.

        A call that may change something is on disk before it starts and when it ends, and so is
        background work. Events of read-only calls wait until the event loop has a free moment, so
        that many of them cost one write.
        """
        if isinstance(event, CallStarted):
            self._waiting.append(event)
            self._open[event.call_id] = event.is_read_only
            if is_long(event.input):
                self._write_behind()
            elif not event.is_read_only:
                self.flush()
        elif isinstance(event, CallFinished):
            self._take_finished(event)
        elif isinstance(event, CallProgress) or (isinstance(event, JobSaid) and not event.is_kept):
            return None
        else:
            self._waiting.append(event)
            if isinstance(event, _WRITTEN_AT_ONCE):
                self._follow_work(event)
                self.flush()
            elif isinstance(event, CallDeferred):
                self._open.pop(event.call_id, None)
            elif isinstance(event, _WRITTEN_SOON):
                self._flush_soon()
        if not self._syncs.is_due:
            self._syncs.start_soon(self._flush_or_report)
        return self._drained

    def _take_finished(self, event: CallFinished) -> None:
        self._waiting.append(event if event.result.display is None else _strip_display(event))
        is_read_only = self._open.pop(event.call_id, False)
        if _is_long(event):
            self._write_behind()
        elif is_read_only:
            self._flush_soon()
        else:
            self.flush()

    def _write_behind(self) -> None:
        """Write the waiting events in a thread, and later ones after them."""
        if self._behind is not None:
            return
        if not self._can_write_behind():
            # `flush` does it, or knows why not.
            self.flush()
            return
        from handaxe.disk.threads import start_large

        if self._drained is None:
            self._drained = asyncio.get_running_loop().create_future()
        self._behind, self._waiting = self._waiting, []
        job = start_large(
            partial(_write_long, self._lines, self._redactor, self._behind), self._directory
        )
        job.result.add_done_callback(self._end_behind)

    def _can_write_behind(self) -> bool:
        try:
            asyncio.get_running_loop()
            return self.may_write_behind and self._prepare()
        except (RuntimeError, DiskFault, OSError):
            return False

    def _end_behind(self, written: "asyncio.Future[list[int]]") -> None:
        events, self._behind = self._behind or (), None
        if (error := written.exception()) is not None:
            self.problem = str(error)
            _log.error("the event log could not be written: %s", error)
        else:
            self._note_results(events, written.result())
            self._note_use()
        if any(map(_is_long, self._waiting)):
            self._write_behind()
        if self._behind is None:
            self._flush_or_report()
            drained, self._drained = self._drained, None
            if drained is not None and not drained.done():
                drained.set_result(None)

    def _follow_work(self, event: Event) -> None:
        if isinstance(event, JobStarted):
            self._open[event.job.job_id] = False
        elif isinstance(event, JobEnded):
            self._open.pop(event.job.job_id, None)

    def take_over(self) -> bool:
        """Whether no other process works here, so that open calls belong to dead processes.

        Then no other process can start before the next events are written, which may close them.
        """
        return self._presence.enter_alone()

    def _flush_soon(self) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self.flush()
        elif not self._is_flush_due:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().call_soon(self._flush_or_report)
                self._is_flush_due = True

    def _report_sync(self, error: BaseException) -> None:
        self.problem = str(error)
        _log.error("the event log could not be made durable: %s", error)

    def _flush_or_report(self) -> None:
        self._is_flush_due = False
        try:
            self.flush()
        except (DiskFault, OSError) as error:
            _log.error("the event log could not be written: %s", error)

    def flush(self) -> None:
        """Write every event received so far. Events that wait for a long one follow soon."""
        if self._behind is not None:
            return
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            offsets = self._write(waiting)
        except (DiskFault, OSError) as error:
            self.problem = str(error)
            raise
        self._note_results(waiting, offsets)

    def _note_results(self, events: Sequence[Event], offsets: Sequence[int]) -> None:
        for event, offset in zip(events, offsets, strict=True):
            if isinstance(event, CallFinished):
                self.replay(event.call_id, offset)

    def flush_but_long_look(self) -> None:
        """Write every event received so far. A long result of a read-only call follows soon.

        Its start is in the log then, so that a killed process leaves a call without an end
        there, and not the silence of a call that was never made.
        """
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, CallFinished) and len(last.result.text) > LONG_CHARS:
            self._waiting.pop()
            try:
                self.flush()
            finally:
                self._waiting.insert(0, last)
        else:
            self.flush()

    def replay(self, call_id: str, offset: int) -> None:
        """The log has a result, perhaps of an earlier run of the session."""
        self._result_at.keep(call_id, offset.to_bytes(_OFFSET_BYTES, "little"))

    def has_result(self, call_id: str) -> bool:
        """Whether the log is known to have the result of a call."""
        return self._result_at.get(call_id) is not None

    def result_of(self, call_id: str) -> ToolResult | None:
        """The stored result of a finished call.

        Raises:
            ResultLost: it was written, and the log was damaged since.
        """
        with contextlib.suppress(DiskFault, OSError):
            # What could not be written is known by `problem`.
            self.flush()
        for event in (*(self._behind or ()), *self._waiting):
            if isinstance(event, CallFinished) and event.call_id == call_id:
                return event.result
        offset = self._result_at.get(call_id)
        if offset is None:
            if call_id in self.elsewhere:
                raise ResultLost(call_id=call_id, reason="another process ran it, or still does")
            return None
        try:
            event = _make_decoder().decode(self._lines.read_at(int.from_bytes(offset, "little")))
        except (DiskFault, OSError, msgspec.DecodeError) as error:
            raise ResultLost(call_id=call_id, reason=str(error)) from None
        if not isinstance(event, CallFinished) or event.call_id != call_id:
            raise ResultLost(call_id=call_id, reason="the log has another record in its place")
        return event.result

    async def close(self) -> None:
        """Make everything durable and close the file."""
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None
        self._syncs.cancel_timer()
        while self._drained is not None:
            await asyncio.wait([self._drained])
        await self._syncs.wait()
        try:
            self.flush()
            if self._has_directory:
                await self._syncs.sync()
                self._lines.close()
        finally:
            self._presence.leave()

    def _write(self, events: Sequence[Event]) -> list[int]:
        if not self._prepare():
            return self._begin_anew(events, self._lines.find_damage() or "")
        redact = self._redactor.redact_json
        offsets = self._lines.extend([redact(_encode_event(event)) for event in events])
        self._note_use()
        return offsets

    def _prepare(self) -> bool:
        """Prepare for records; False if the log was damaged meanwhile."""
        if self._lines.find_damage() is not None:
            return False
        if not self._has_directory:
            make_private_directory(self._directory)
            self._has_directory = True
        if not self._is_known:
            self._presence.enter()
            self._is_known = True
        return True

    def _note_use(self) -> None:
        self._used = True
        self.mark_used()
        if self._watcher is None:
            self._watch()

    def _begin_anew(self, events: Sequence[Event], harm: str) -> list[int]:
        """Continue with the remaining log, with a new first event if records were removed."""
        self.problem = f"it was {harm} while the session ran, and was started again"
        self._lines.begin_anew()
        self._presence.leave()
        self._has_directory = self._is_known = self._syncs.has_lasting_name = False
        if harm == "removed":
            self._result_at = CallFingerprints(_OFFSET_BYTES)
        if self._opening is None:
            return self._write(events)
        opening = msgspec.structs.replace(self._opening(), at=time.time())
        return self._write([opening, *events])[1:]

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
        if self._used or not self.release_files():
            self._watch()

    def release_files(self) -> bool:
        """Close the file if no call is running; the next event opens it again."""
        if self._open or self._behind is not None:
            return False
        self._lines.close()
        self._presence.leave()
        self._is_known = False
        return True


def append_to_log(path: Path, event: Event) -> None:
    """Write one event to the log of a session that is not open; then it is durable."""
    lines = LineLog(path)
    try:
        lines.extend([_encode_event(msgspec.structs.replace(event, at=time.time()))])
        lines.sync()
    finally:
        lines.close()


def _strip_display(event: CallFinished) -> CallFinished:
    shown = msgspec.structs.replace(event.result, display=None)
    return msgspec.structs.replace(event, result=shown)


def _encode_event(event: Event) -> bytes:
    try:
        return _encoder.encode(event)
    except Exception:  # noqa: BLE001 - an own tool's data may be anything, and fail in any way
        return _encoder.encode(
            scrub(msgspec.to_builtins(_scrub_event(event), enc_hook=to_json_leaf))
        )


def _is_long(event: Event) -> bool:
    if isinstance(event, CallStarted):
        return is_long(event.input)
    if isinstance(event, CallFinished):
        return len(event.result.text) > LONG or is_long(event.result.data)
    return False


def _write_long(lines: LineLog, redactor: Redactor, events: Sequence[Event]) -> list[int]:
    return lines.extend_long([_encode_long(event, redactor) for event in events])


def _encode_long(event: Event, redactor: Redactor) -> list[bytes]:
    """The JSON of an event in pieces, without secrets; its long texts are never encoded whole."""
    from secrets import token_hex

    texts: dict[str, str] = {}

    def mark(text: str) -> str:
        texts[name := token_hex(16)] = redactor.redact(text)
        return name

    def replace(value: Any) -> Any:  # noqa: ANN401 - any JSON
        return replace_long_texts(value, mark)

    short = event
    if isinstance(event, CallStarted):
        short = msgspec.structs.replace(event, input=replace(event.input))
    elif isinstance(event, CallFinished):
        result = event.result
        result = msgspec.structs.replace(
            result, text=replace(result.text), data=replace(result.data)
        )
        short = msgspec.structs.replace(event, result=result)
    try:
        return put_long_texts(redactor.redact_json(_encode_event(short)), texts)
    except UnicodeEncodeError:
        # Halves of characters, which `_encode_event` makes visible.
        return [redactor.redact_json(_encode_event(event))]


def _scrub_event(event: Event) -> Event:
    """The event with an end to what a caller or a tool put into it, however that is made."""
    if isinstance(event, CallStarted):
        return msgspec.structs.replace(event, input=scrub(event.input))
    if isinstance(event, CallFinished):
        result = msgspec.structs.replace(event.result, data=scrub(to_json_data(event.result.data)))
        return msgspec.structs.replace(event, result=result)
    if isinstance(event, CallAsked) and event.request is not None:
        request = msgspec.structs.replace(event.request, input=scrub(event.request.input))
        return msgspec.structs.replace(event, request=request)
    return event


class LoggedEvents:
    """The events of a log in order, with their offsets; unreadable records come last."""

    def __init__(self, path: Path, start: int = 0) -> None:
        self._scan = scan(path, start)
        self._unreadable: list[str] = []

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        for record in self._scan:
            try:
                yield record.offset, _make_decoder().decode(record.payload)
            except (msgspec.DecodeError, msgspec.ValidationError) as error:
                self._unreadable.append(f"record {record.seq} is not an event: {error}")

    @property
    def end(self) -> int:
        """Where the next event will begin."""
        return self._scan.end

    @property
    def is_readable(self) -> bool:
        """Whether there was a log to read at all."""
        return self._scan.is_readable

    @property
    def damage(self) -> list[str]:
        """The skipped parts so far, one sentence each."""
        found = [f"line {damage.line_number}: {damage.reason}" for damage in self._scan.damages]
        torn_bytes = self._scan.torn_bytes
        if torn_bytes and self._scan.damages[-1].size_bytes == torn_bytes:
            at = self._scan.damages[-1].line_number
            found[-1] = f"line {at}: the last record broke off after {torn_bytes:,} bytes"
        return found + self._unreadable
