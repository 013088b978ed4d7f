"""The one synchronous way in: a session that runs in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future, wait
from typing import Any, Self, TypeVar, cast

from handaxe.app.session import PathLike, Session
from handaxe.contract.result import ToolResult

T = TypeVar("T")


class Connection:
    """A session for code that does not use asyncio."""

    def __init__(self, root: PathLike, options: dict[str, Any]) -> None:
        self._session = Session(root, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="handaxe", daemon=True)
        self._thread.start()
        self._is_open = True
        self._asked: set[Future[Any]] = set()
        self._door = threading.Lock()
        """Held to hand work to the thread, and to end it: nothing is left with one that ended."""

    def call(
        self,
        tool: str,
        input: dict[str, Any] | None = None,
        /,
        **arguments: Any,  # noqa: ANN401 - the tool's own types
    ) -> ToolResult:
        """One call; see `Session.call`."""
        return self._wait(self._session.call(tool, input, **arguments))

    def call_many(
        self, calls: Sequence[tuple[str, dict[str, Any]]], *, stop_on_error: bool = False
    ) -> list[ToolResult]:
        """The calls of one message; see `Session.call_many`."""
        return self._wait(self._session.call_many(calls, stop_on_error=stop_on_error))

    def tools(self, provider: str = "json-schema") -> list[dict[str, Any]]:
        """The schemas of the tools on offer."""
        return self._session.tools(provider)

    def close(self) -> None:
        """End the session and its thread; closing twice is fine."""
        self._wait(self._session.close())
        with self._door:
            if not self._is_open:
                return
            self._is_open = False
            # What other threads still wait for has its answer now, or is about to.
            wait(tuple(self._asked))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        with self._door:
            if self._is_open:
                waited = asyncio.run_coroutine_threadsafe(work, self._loop)
                self._asked.add(waited)
                waited.add_done_callback(self._asked.discard)
            else:
                return _get_closed_answer(work)
        return waited.result()


def _get_closed_answer(work: Coroutine[Any, Any, T]) -> T:
    """What a closed session answers: at once, without a loop to wait in."""
    try:
        work.send(None)
    except StopIteration as answer:
        return cast("T", answer.value)
    raise RuntimeError("A closed session waits for nothing.")


def connect(root: PathLike = ".", **options: Any) -> Connection:  # noqa: ANN401
    """A session behind ordinary functions; takes the options of `Session`."""
    return Connection(root, options)
