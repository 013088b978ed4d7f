"""JSON-RPC 2.0 with one peer: requests both ways, notifications, batches, cancelling.

The caller gives methods their meaning. Every input gets a valid answer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeGuard, cast

from handaxe.frontends.mcp_server.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    TOO_MANY_REQUESTS,
    Params,
    RequestId,
    RpcError,
)
from handaxe.frontends.mcp_server.stdio_transport import MAX_LINE_BYTES, decode, encode

MAX_RUNNING = 10_000
_log = logging.getLogger("handaxe.mcp")

Reply = Callable[[dict[str, Any] | None], None]
"""Takes the answer to one message, or None."""


class JsonRpcRequest:
    """A running request of the peer."""

    __slots__ = ("id", "is_cancelled", "method", "on_cancel", "params", "task")

    def __init__(self, id: RequestId, method: str, params: Params) -> None:
        self.id = id
        self.method = method
        self.params = params
        self.is_cancelled = False
        self.on_cancel: Callable[[], object] | None = None
        """The function that stops it; without one its task is cancelled."""
        self.task: asyncio.Task[None] | None = None

    def set_cancel_handler(self, stop: Callable[[], object]) -> None:
        """Set the function that stops it."""
        self.on_cancel = stop
        if self.is_cancelled:
            stop()

    @property
    def meta(self) -> Params:
        """The `_meta` of the request."""
        meta = self.params.get("_meta")
        return cast("Params", meta) if isinstance(meta, dict) else {}


Result = dict[str, Any]
Dispatch = Callable[[JsonRpcRequest], Result | Awaitable[Result]]


class JsonRpcPeer:
    """The peer of a connection."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self.on_request: Dispatch = _reject_request
        self.on_notification: Callable[[str, Params], None] = lambda _method, _params: None
        self.takes_batches = False
        self._running: dict[RequestId, JsonRpcRequest] = {}
        self._asked: dict[RequestId, asyncio.Future[Any]] = {}
        self._questions = 0

    def receive(self, line: bytes | None) -> None:
        """Handle a line; None stands for one that was too long."""
        if line is None:
            told = f"A line has at most {MAX_LINE_BYTES:,} bytes."
            self._tell(_build_error(None, RpcError(INVALID_REQUEST, told)))
            return
        if not line.strip():
            return
        try:
            value = decode(line)
        except ValueError as error:
            self._tell(_build_error(None, RpcError(PARSE_ERROR, f"The line is not JSON: {error}.")))
            return
        if isinstance(value, list):
            self._take_batch(cast("list[Any]", value))
        else:
            self._take(value, self._tell)

    async def request(self, method: str, params: Params) -> Any:  # noqa: ANN401 - its answer
        """Send a request to the peer; raises `RpcError` on an error or disconnect."""
        self._questions += 1
        number = f"handaxe-{self._questions}"
        answered = self._asked[number] = asyncio.get_running_loop().create_future()
        self._tell({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            return await answered
        except asyncio.CancelledError:
            self.notify("notifications/cancelled", {"requestId": number})
            raise
        finally:
            del self._asked[number]

    def notify(self, method: str, params: Params | None = None) -> None:
        """Send a notification to the peer."""
        told: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        self._tell(told if params is None else {**told, "params": params})

    def leave(self) -> None:
        """Fail all requests to the peer, because it disconnected."""
        for answered in self._asked.values():
            if not answered.done():
                answered.set_exception(RpcError(INTERNAL_ERROR, "The client disconnected."))

    async def finish(self, grace_s: float) -> None:
        """Wait some time for running requests, then stop them."""
        tasks = [request.task for request in self._running.values() if request.task]
        if not tasks:
            return
        await asyncio.wait(tasks, timeout=grace_s)
        for request in list(self._running.values()):
            self._stop(request)
        await asyncio.wait(tasks, timeout=2)

    def _take_batch(self, items: list[Any]) -> None:
        if not self.takes_batches or not items:
            problem = "The batch is empty." if not items else "This revision has no batches."
            self._tell(_build_error(None, RpcError(INVALID_REQUEST, problem)))
            return
        answers: list[dict[str, Any]] = []
        missing = len(items)

        def collect(answer: dict[str, Any] | None) -> None:
            nonlocal missing
            missing -= 1
            if answer is not None:
                answers.append(answer)
            if not missing and answers:
                self._send(encode(answers))

        for item in items:
            self._take(item, collect)

    def _take(self, value: object, reply: Reply) -> None:
        """Answer one message, now or later; `reply` is called once."""
        if not isinstance(value, dict):
            reply(_build_error(None, RpcError(INVALID_REQUEST, "A message must be an object.")))
            return
        message = cast("dict[str, Any]", value)
        if "method" not in message and ("result" in message or "error" in message):
            self._take_answer(message)
            reply(None)
            return
        number, method = message.get("id"), message.get("method")
        if "id" not in message and isinstance(method, str) and message.get("jsonrpc") == "2.0":
            params = message.get("params")
            self._take_notification(method, params)
            reply(None)
            return
        try:
            request = self._read_request(message)
        except RpcError as error:
            reply(_build_error(number if _is_id(number) else None, error))
            return
        self._start(request, reply)

    def _read_request(self, message: dict[str, Any]) -> JsonRpcRequest:
        number, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if message.get("jsonrpc") != "2.0":
            raise RpcError(INVALID_REQUEST, '`jsonrpc` is not "2.0".')
        if not isinstance(method, str):
            raise RpcError(INVALID_REQUEST, "`method` must be a string.")
        if not _is_id(number):
            raise RpcError(INVALID_REQUEST, "`id` must be a string or an integer.")
        if number in self._running:
            raise RpcError(INVALID_REQUEST, f"A request with the id {number!r} is still running.")
        if len(self._running) >= MAX_RUNNING:
            raise RpcError(TOO_MANY_REQUESTS, f"More than {MAX_RUNNING:,} requests are running.")
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "`params` must be an object.")
        return JsonRpcRequest(number, method, cast("Params", params))

    def _start(self, request: JsonRpcRequest, reply: Reply) -> None:
        try:
            result = self.on_request(request)
        except RpcError as error:
            reply(_build_error(request.id, error))
            return
        if isinstance(result, dict):
            reply({"jsonrpc": "2.0", "id": request.id, "result": result})
            return
        self._running[request.id] = request
        request.task = asyncio.ensure_future(self._answer(request, result, reply))

    async def _answer(self, request: JsonRpcRequest, work: Awaitable[Result], reply: Reply) -> None:
        answer: dict[str, Any] | None
        try:
            answer = {"jsonrpc": "2.0", "id": request.id, "result": await work}
        except RpcError as error:
            answer = _build_error(request.id, error)
        except asyncio.CancelledError:
            answer = None
        except Exception as error:  # noqa: BLE001 - one bad request must not stop the others
            _log.warning("%s failed", request.method, exc_info=error)
            told = f"An internal error of handaxe ({type(error).__name__}: {error})."
            answer = _build_error(request.id, RpcError(INTERNAL_ERROR, told))
        del self._running[request.id]
        # A cancelled request gets no answer.
        reply(None if request.is_cancelled else answer)

    def _take_notification(self, method: str, params: object) -> None:
        named = cast("Params", params) if isinstance(params, dict) else {}
        if method != "notifications/cancelled":
            self.on_notification(method, named)
            return
        number = named.get("requestId")
        request = self._running.get(number) if _is_id(number) else None
        if request is not None:
            self._stop(request)

    def _stop(self, request: JsonRpcRequest) -> None:
        request.is_cancelled = True
        if request.on_cancel is not None:
            request.on_cancel()
        elif request.task is not None:
            request.task.cancel()

    def _take_answer(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        answered = self._asked.get(number) if _is_id(number) else None
        if answered is None or answered.done():
            return
        if "error" not in message:
            answered.set_result(message["result"])
            return
        error = message["error"]
        told = cast("Params", error) if isinstance(error, dict) else {}
        answered.set_exception(RpcError(INTERNAL_ERROR, str(told.get("message", "an error"))))

    def _tell(self, message: dict[str, Any] | None) -> None:
        if message is not None:
            self._send(encode(message))


def _is_id(value: object) -> TypeGuard[RequestId]:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 1 << 63
    return isinstance(value, str)


def _build_error(number: object, error: RpcError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": error.to_json()}


def _reject_request(request: JsonRpcRequest) -> Result:
    raise RpcError(INTERNAL_ERROR, f"There is no handler for {request.method}.")
