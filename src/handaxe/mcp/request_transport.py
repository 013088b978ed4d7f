"""A server reached by request and response: each message has one answer.

Hosts with servers in their own process use this. Such a server cannot send messages first.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from handaxe.mcp.stdio_transport import Streams

Message = dict[str, Any]
Exchange = Callable[[Message], Awaitable[object]]
"""Sends a message; returns the answer, or a value that means none."""

_log = logging.getLogger("handaxe.mcp")


@asynccontextmanager
async def open_exchange_streams(exchange: Exchange) -> AsyncGenerator[Streams]:
    """The two streams of a server behind an exchange, until the block ends."""
    to_session, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    speaking = asyncio.ensure_future(
        _MessageForwarder(exchange, to_session).forward_all(from_session)
    )
    try:
        yield reading, writing
    finally:
        speaking.cancel()
        await asyncio.gather(speaking, return_exceptions=True)
        for stream in (to_session, reading, writing, from_session):
            stream.close()


class _MessageForwarder:
    def __init__(
        self, exchange: Exchange, to_session: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        self._exchange = exchange
        self._to_session = to_session
        self._under_way: dict[object, asyncio.Task[None]] = {}

    async def forward_all(self, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send all messages, requests in parallel."""
        try:
            async for item in from_session:
                message: Message = item.message.model_dump(
                    by_alias=True, mode="json", exclude_unset=True
                )
                # Notifications have no id, and need an end that can be waited for all the same.
                key = message.get("id", object())
                if message.get("method") == "notifications/cancelled":
                    self._stop(message)
                task = self._under_way[key] = asyncio.ensure_future(self._hand_over(message))
                task.add_done_callback(lambda _, key=key: self._under_way.pop(key, None))
        finally:
            for task in self._under_way.values():
                task.cancel()

    def _stop(self, message: Message) -> None:
        asked = self._under_way.get(message.get("params", {}).get("requestId"))
        if asked is not None:
            asked.cancel()

    async def _hand_over(self, message: Message) -> None:
        try:
            answer = await self._exchange(message)
        except Exception as error:  # noqa: BLE001 - whatever fails there is this request's affair
            answer = _build_error(message, str(error) or type(error).__name__)
        if "id" not in message:
            return
        try:
            read = mcp_types.jsonrpc_message_adapter.validate_python(answer, by_name=False)
        except (ValueError, RecursionError) as error:
            _log.debug("no message came back", exc_info=error)
            read = mcp_types.jsonrpc_message_adapter.validate_python(
                _build_error(message, "the answer is not a message"), by_name=False
            )
        try:
            await self._to_session.send(SessionMessage(read))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            _log.debug("no caller waits for the answer any more", exc_info=error)


def _build_error(message: Message, why: str) -> Message:
    error = {"code": mcp_types.INTERNAL_ERROR, "message": why}
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
