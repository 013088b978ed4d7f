"""A server that is a program: its pipes as the two streams of the SDK's session.

The SDK's own transport keeps lines of any length in memory, and does not control standard error and
child processes. So handaxe owns the pipes and uses only the SDK's messages.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from handaxe.contract.ports.processes import Child
from handaxe.mcp.line_framing import LineFramer, OversizedLine
from handaxe.text.redact import Redactor

TOO_LARGE = -32_099
"""The error code for an answer that was not read."""

_MAX_NOTED = 100
_log = logging.getLogger("handaxe.mcp")

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def open_child_streams(
    child: Child,
    spill: Callable[[], str],
    lost: Callable[[], None],
    redactor: Redactor | None = None,
) -> AsyncGenerator[Streams]:
    """Exchange messages with a child until the block ends; `lost` is called if it exits before."""
    to_session, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_messages, child, to_session, LineFramer(spill, redactor), lost)
            tasks.start_soon(_send_messages, child, from_session, lost)
            yield reading, writing
            tasks.cancel_scope.cancel()
    finally:
        for stream in (to_session, reading, writing, from_session):
            stream.close()


async def _read_messages(
    child: Child,
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    frames: LineFramer,
    lost: Callable[[], None],
) -> None:
    strange = 0
    try:
        async with to_session:
            while piece := await child.read():
                for line in frames.feed(piece):
                    message = _parse_message(line)
                    if message is not None:
                        await to_session.send(message)
                        continue
                    strange += 1
                    if strange <= _MAX_NOTED and isinstance(line, bytes):
                        shown = line[:300].decode("utf-8", "replace")
                        child.note(f"(on standard output, not a message) {shown}")
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
        _log.debug("listening ended", exc_info=error)
    finally:
        frames.close()
        lost()


async def _send_messages(
    child: Child,
    from_session: MemoryObjectReceiveStream[SessionMessage],
    lost: Callable[[], None],
) -> None:
    try:
        async with from_session:
            async for message in from_session:
                body = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await child.write(body.encode() + b"\n")
    except OSError:
        lost()


def _parse_message(line: bytes | OversizedLine) -> SessionMessage | None:
    if isinstance(line, OversizedLine):
        if line.request_id is None:
            return None
        data: dict[str, Any] = {"size_bytes": line.size_bytes, "path": line.path}
        error = mcp_types.ErrorData(code=TOO_LARGE, message="answer too large", data=data)
        return SessionMessage(
            mcp_types.JSONRPCError(jsonrpc="2.0", id=line.request_id, error=error)
        )
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        return None
