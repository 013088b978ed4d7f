"""Threads for work that waits for a device, so that the event loop never does.

A device may need seconds for a sync, without notice. These threads cost a third of those of
`asyncio`. They are few and stay for the next work; the end of the process waits a moment for
started work. `threading.Thread.start` never returns if a thread dies at once for lack of memory.
Starting a thread here waits for nothing: a thread that does not report is replaced.
"""

import _thread
import asyncio
import atexit
import os
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from handaxe.contract.cancellation import CancelledWithResult
from handaxe.contract.faults import Cancelled
from handaxe.contract.result import ToolResult

MOST = 16
"""Maximum number at once. More work waits for one of them."""
MOST_LARGE = 1
"""Maximum number of long computations of a process at once."""

_USUAL_TURN_S, _TURN_S = 0.005, 0.0002
_STUCK_S = 2.0
"""Seconds that large work waits for other running work."""
SMALL = 1 << 17
"""Up to this many bytes or characters, work runs in the calling thread."""

_NO_MEMORY_S = 0.01
_reserve = bytearray(1 << 20)
"""Never written to, so it costs addresses only. Given up where the event loop itself, which needs
4 KB to be woken, finds no memory any more."""
_START_S = 1.0
"""A thread that has not reported by then has died."""
_EXIT_S = 5.0
"""Seconds that the end of the process waits for running work."""

T = TypeVar("T")


class ThreadWork(Generic[T]):
    """Work in a thread, which finishes even after its caller stopped waiting."""

    __slots__ = ("_ends", "_loop", "_work", "is_over", "result")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._ends: list[asyncio.Future[None]] = []
        self.is_over = False
        self.result: asyncio.Future[T] = self._loop.create_future()
        """The result or exception of the work. Cancelling this only stops waiting."""

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it ends in any way and return whether it ended in time."""
        if not self.is_over:
            end: asyncio.Future[None] = self._loop.create_future()
            self._ends.append(end)
            await asyncio.wait([end], timeout=timeout_s)
        return self.is_over

    def run(self) -> None:
        """Do it here, and tell the loop that waits."""
        given: Any = None
        error: BaseException | None = None
        try:
            given = self._work()
        except BaseException as raised:  # noqa: BLE001 - raised again where it is waited for
            error = raised
        if isinstance(error, MemoryError):
            _reserve.clear()
        while True:
            try:
                self._loop.call_soon_threadsafe(self._end, given, error)
            except RuntimeError:
                # The loop is closed, and whoever waited has gone with it.
                return
            except MemoryError:
                # Somebody waits for this word, and would wait for ever.
                _reserve.clear()
                if error is not None:
                    error.__traceback__ = None
                time.sleep(_NO_MEMORY_S)
            else:
                return

    def _end(self, given: T, error: BaseException | None) -> None:
        self.is_over = True
        if not self.result.done():
            if error is None:
                self.result.set_result(given)
            else:
                self.result.set_exception(error)
        for end in self._ends:
            if not end.done():
                end.set_result(None)


class _Threads:
    def __init__(self) -> None:
        self._jobs: SimpleQueue[ThreadWork[Any] | _Turn] = SimpleQueue()
        self._lock = threading.Lock()
        self._begun = self._threads = self._reported = 0
        self._large: OrderedDict[int, deque[ThreadWork[Any]]] = OrderedDict()
        self._large_running = 0
        self._large_ended = 0.0

    def begin_large(self, job: ThreadWork[Any], owner: int) -> None:
        """Do it when its turn comes; owners take turns, however much each of them has to do."""
        with self._lock:
            self._large.setdefault(owner, deque()).append(job)
            must_wait = self._large_running >= MOST_LARGE
            self._large_running += not must_wait
        if must_wait:
            asyncio.get_running_loop().call_later(_STUCK_S, self._pass_stuck)
        else:
            self.begin(_Turn(self))

    def _pass_stuck(self) -> None:
        """Start another thread if the running ones do not finish: their device may hang."""
        with self._lock:
            is_stuck = bool(self._large) and time.monotonic() - self._large_ended > _STUCK_S
            if is_stuck:
                self._large_running += 1
                self._large_ended = time.monotonic()
        if is_stuck:
            self.begin(_Turn(self))

    def run_large(self) -> None:
        """Do the next work, then free the thread."""
        with self._lock:
            if not self._large:
                # Another one took it, which had been started for one that hung.
                self._large_running -= 1
                return
            owner, jobs = self._large.popitem(last=False)
            job = jobs.popleft()
            if jobs:
                self._large[owner] = jobs
        try:
            job.run()
        finally:
            with self._lock:
                self._large_ended = time.monotonic()
                is_last = not self._large
                self._large_running -= is_last
                self._begun += not is_last
            if not is_last:
                self._jobs.put(_Turn(self))

    def begin(self, job: "ThreadWork[Any] | _Turn") -> None:
        with self._lock:
            self._begun += 1
            is_missing = self._threads < min(self._begun, MOST)
        self._jobs.put(job)
        if is_missing:
            self._add_thread()

    def _add_thread(self) -> None:
        try:
            _thread.start_new_thread(self._serve, ())
        except (RuntimeError, MemoryError):
            if self._threads == 0:
                # The system gives no thread: better to wait here than not to work at all.
                self._serve_once()
        else:
            with self._lock:
                self._threads += 1
            asyncio.get_running_loop().call_later(_START_S, self._replace_dead)

    def _replace_dead(self) -> None:
        """Count only threads that live, and go on with the work that waited for a dead one."""
        with self._lock:
            self._threads = self._reported
            is_missing = self._threads < min(self._begun, MOST)
        if is_missing and not self._jobs.empty():
            self._add_thread()

    def _serve(self) -> None:
        with self._lock:
            self._reported += 1
        while True:
            try:
                self._serve_once()
            except MemoryError:
                time.sleep(_NO_MEMORY_S)

    def _serve_once(self) -> None:
        self._jobs.get().run()
        with self._lock:
            self._begun -= 1

    def finish(self) -> None:
        """Wait a moment for what has begun."""
        last = time.monotonic() + _EXIT_S
        while self._begun and time.monotonic() < last:
            time.sleep(_NO_MEMORY_S)


class _Turn:
    """A place in the queue for the next large work."""

    __slots__ = ("_threads",)

    def __init__(self, threads: _Threads) -> None:
        self._threads = threads

    def run(self) -> None:
        """Do that work."""
        self._threads.run_large()


_threads = _Threads()


def share_interpreter() -> None:
    """Shorten the turns of computing threads for the event loop, unless the host set them.

    The interpreter switches threads after 5 ms; with ten computing threads the event loop would
    wait that long again and again in a single call.
    """
    if sys.getswitchinterval() == _USUAL_TURN_S:
        sys.setswitchinterval(_TURN_S)


def start_large(work: Callable[[], T], owner: object) -> ThreadWork[T]:
    """Do work that computes for long in a thread, when it is the turn of its owner.

    Beside more than one of them the event loop would hardly get the interpreter. Work that waits
    for other large work must not be started so.
    """
    job = ThreadWork(work)
    _threads.begin_large(job, id(owner))
    return job


def start_in_thread(work: Callable[[], T]) -> ThreadWork[T]:
    """Do work in a thread, beginning now."""
    job = ThreadWork(work)
    _threads.begin(job)
    return job


def _forget() -> None:
    """A copy of this process has none of its threads."""
    global _threads  # noqa: PLW0603 - one for all sessions of a process
    _threads = _Threads()


def _finish() -> None:
    _threads.finish()


os.register_at_fork(after_in_child=_forget)
atexit.register(_finish)


GRACE_S = 0.1
"""How long a cancelled write may take to end; then its call returns while it continues."""

Unfinished = list[ThreadWork[Any]]
"""Writes that go on although their calls were cancelled."""


async def write_in_thread(
    path: str, work: Callable[[], T], unfinished: Unfinished, *, is_large: bool = False
) -> T:
    """Do work that writes; if it is cancelled, it continues and is added to `unfinished`."""
    job = start_large(work, unfinished) if is_large else start_in_thread(work)
    try:
        return await job.result
    except asyncio.CancelledError:
        try:
            if await job.wait(GRACE_S):
                raise
        finally:
            if not job.is_over:
                unfinished.append(job)
        cut_off = ToolResult.from_fault(Cancelled(started=True, writing=path))
        raise CancelledWithResult(cut_off) from None


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run in a thread to its end, even if the caller is cancelled."""
    job = start_in_thread(work)
    try:
        return await job.result
    except asyncio.CancelledError:
        await job.wait()
        raise


class SlowRecords:
    """Records of cancelled calls for which a slow device is at work still."""

    def __init__(self, writes: list[ThreadWork[Any]]) -> None:
        """`writes` are those that go on although their calls were cancelled."""
        self._writes = writes
        self._recording: dict[str, ThreadWork[None]] = {}
        self._unstarted: set[str] = set()
        self._late: set[asyncio.Future[None]] = set()

    async def record(self, call_id: str, record: Callable[[], None]) -> None:
        """Make the record of a call in a thread; cancelled, it comes to its end all the same."""
        job = self._recording[call_id] = start_in_thread(record)
        try:
            await job.result
        except asyncio.CancelledError:
            self._unstarted.add(call_id)
            await job.wait(GRACE_S)
            raise
        finally:
            if job.is_over:
                del self._recording[call_id]

    def take_unstarted(self, call_id: str) -> bool:
        """Whether a call was cancelled before it could change anything; told once."""
        is_unstarted = call_id in self._unstarted
        self._unstarted.discard(call_id)
        return is_unstarted

    def put_off(self, call_id: str, finish: Callable[[str], Coroutine[Any, Any, object]]) -> bool:
        """Finish the record of a call later if a write continues. Return whether one does."""
        going_on = [job for job in self._writes if not job.is_over]
        self._writes.clear()
        if call_id in self._recording:
            going_on.append(self._recording.pop(call_id))
        if going_on:
            late = asyncio.ensure_future(_finish_after(going_on, call_id, finish))
            self._late.add(late)
            late.add_done_callback(self._late.discard)
        return bool(going_on)

    async def settle(self) -> None:
        """Return when everything is recorded."""
        while self._late:
            await asyncio.wait(tuple(self._late))


async def _finish_after(
    going_on: list[ThreadWork[Any]],
    call_id: str,
    finish: Callable[[str], Coroutine[Any, Any, object]],
) -> None:
    for job in going_on:
        await job.wait()
    await finish(call_id)
