"""Threads for work that waits for a device, so that the event loop never does.

A device may need seconds for a sync, and nobody knows before. These threads cost a third of what
those of `asyncio` cost. They are few, stay for the next work, and keep no process from ending.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

MOST = 16
"""So many at once; more work waits for one of them."""

_NO_MEMORY_S = 0.01

T = TypeVar("T")


class ThreadWork(Generic[T]):
    """Work in a thread, which comes to its end also if nobody waits for it any more."""

    __slots__ = ("_ends", "_loop", "_work", "is_over", "result")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._ends: list[asyncio.Future[None]] = []
        self.is_over = False
        self.result: asyncio.Future[T] = self._loop.create_future()
        """What it gives or raises. To cancel this is to stop waiting, and nothing else."""

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end, however it ends; whether it came in time."""
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
        while True:
            try:
                self._loop.call_soon_threadsafe(self._end, given, error)
            except RuntimeError:
                # The loop is closed, and whoever waited has gone with it.
                return
            except MemoryError:
                # Somebody waits for this word, and would wait for ever.
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
        self._jobs: SimpleQueue[ThreadWork[Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._begun = self._threads = 0

    def begin(self, job: ThreadWork[Any]) -> None:
        with self._lock:
            self._begun += 1
            is_missing = self._threads < min(self._begun, MOST)
            self._threads += is_missing
        self._jobs.put(job)
        if is_missing:
            self._add_thread()

    def _add_thread(self) -> None:
        try:
            threading.Thread(target=self._serve, name="handaxe-disk", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
                has_none = self._threads == 0
            if has_none:
                # The system gives no thread: better to wait here than not to work at all.
                self._serve_once()

    def _serve(self) -> None:
        while True:
            try:
                self._serve_once()
            except MemoryError:
                time.sleep(_NO_MEMORY_S)

    def _serve_once(self) -> None:
        self._jobs.get().run()
        with self._lock:
            self._begun -= 1


_threads = _Threads()


def begin(work: Callable[[], T]) -> ThreadWork[T]:
    """Do work in a thread, beginning now."""
    job = ThreadWork(work)
    _threads.begin(job)
    return job


def _forget() -> None:
    """A copy of this process has none of its threads."""
    global _threads  # noqa: PLW0603 - one for all sessions of a process
    _threads = _Threads()


os.register_at_fork(after_in_child=_forget)
