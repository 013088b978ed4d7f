"""Questions in revisions where a server may not ask: the call pauses, the client comes again.

A paused call is answered with `input_required` and a state that only this server understands. The
client repeats its request with the state and the user's answer, and gets the result of the very
call that waited.
"""

import asyncio
from collections.abc import Callable, Coroutine
from secrets import token_urlsafe
from typing import Any, cast

from handaxe.frontends.mcp_server.desk import Line
from handaxe.frontends.mcp_server.protocol import INTERNAL_ERROR, INVALID_PARAMS, RpcError

MAX_PAUSE_S = 600.0
"""A question that nobody answers for so long counts as refused."""
_QUESTION = "permission"

Result = dict[str, Any]


class PausingLine(Line):
    """The way back for a call that may have to be asked for twice."""

    def __init__(self, *, can_ask: bool, progress: Callable[[str], None]) -> None:
        self._can_ask = can_ask
        self.on_progress = progress
        self.form: dict[str, Any] | None = None
        self.asked = asyncio.Event()
        self.answered: asyncio.Future[object] | None = None
        self.stop: Callable[[], object] | None = None

    def stop_with(self, stop: Callable[[], object]) -> None:
        """Say how to stop the call."""
        self.stop = stop

    @property
    def can_ask(self) -> bool:
        """Whether the client said that it can show forms."""
        return self._can_ask

    async def ask(self, form: dict[str, Any]) -> object:
        """Pause until the client comes again."""
        self.form = form
        self.answered = asyncio.get_running_loop().create_future()
        self.asked.set()
        try:
            return await asyncio.wait_for(self.answered, MAX_PAUSE_S)
        except TimeoutError:
            raise RpcError(INTERNAL_ERROR, "nobody answered in time") from None

    def progress(self, text: str) -> None:
        """Say how far the call is."""
        self.on_progress(text)


class _Paused:
    def __init__(
        self, params: dict[str, Any], line: PausingLine, task: asyncio.Task[Result]
    ) -> None:
        self.fingerprint = (params.get("name"), params.get("arguments"))
        self.line = line
        self.task = task

    def stop(self) -> None:
        """End the call."""
        (self.line.stop or self.task.cancel)()


class Pauses:
    """The calls of one server that wait for their clients."""

    def __init__(self) -> None:
        self._paused: dict[str, _Paused] = {}

    async def run(
        self,
        params: dict[str, Any],
        line: PausingLine,
        work: Callable[[PausingLine], Coroutine[Any, Any, Result]],
        started: Callable[[Callable[[], object]], None] = lambda _: None,
    ) -> Result:
        """The result of a call, or the question it waits for; `started` is told how to stop it."""
        state = params.get("requestState")
        if state is None:
            paused = _Paused(params, line, asyncio.ensure_future(work(line)))
        else:
            paused = self._continued(state, params, line)
        started(paused.stop)
        try:
            return await self._next(paused)
        except asyncio.CancelledError:
            paused.stop()
            raise

    def close(self) -> None:
        """Refuse whatever still waits."""
        for paused in list(self._paused.values()):
            paused.stop()

    async def _next(self, paused: _Paused) -> Result:
        asked = asyncio.ensure_future(paused.line.asked.wait())
        try:
            await asyncio.wait([paused.task, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
        if paused.task.done():
            return paused.task.result()
        paused.line.asked.clear()
        state = token_urlsafe(24)
        self._paused[state] = paused
        paused.task.add_done_callback(lambda _: self._paused.pop(state, None))
        question = {"method": "elicitation/create", "params": paused.line.form}
        return {
            "resultType": "input_required",
            "inputRequests": {_QUESTION: question},
            "requestState": state,
        }

    def _continued(self, state: object, params: dict[str, Any], line: PausingLine) -> _Paused:
        paused = self._paused.get(state) if isinstance(state, str) else None
        if paused is None or paused.line.answered is None:
            raise RpcError(INVALID_PARAMS, "`requestState` belongs to no call that waits here.")
        if paused.fingerprint != (params.get("name"), params.get("arguments")):
            raise RpcError(INVALID_PARAMS, "`requestState` belongs to another call.")
        responses = params.get("inputResponses")
        given = cast("Result", responses) if isinstance(responses, dict) else {}
        if _QUESTION not in given:
            raise RpcError(INVALID_PARAMS, f"`inputResponses` has no {_QUESTION!r}.")
        assert isinstance(state, str)
        del self._paused[state]
        paused.line.on_progress = line.on_progress
        if not paused.line.answered.done():
            paused.line.answered.set_result(given[_QUESTION])
        return paused
