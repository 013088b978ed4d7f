"""Receive the answer of the browser after a login: one request on loopback, checked by its state.

Any program on the machine can send requests here, so those without the state of this login are
rejected.
"""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import AsyncGenerator
from typing import cast
from urllib.parse import parse_qs, urlsplit

from handaxe.contract.ports.mcp_servers import McpLogin

LOOPBACK = "127.0.0.1"
PATH = "/callback"
_HEAD_BYTES = 16 << 10
_READ_S = 10.0
_PAGE = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}"
)


class OAuthCallback:
    """Waits for the answer to one login."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._state: str | None = None
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    def expect(self, state: str) -> None:
        """Accept only an answer with this state."""
        self._state = state

    async def answer(self) -> dict[str, str]:
        """The parameters of the browser's request."""
        return await self._answer

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one request of a browser or another program."""
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_READ_S):
                try:
                    head = await reader.readuntil(b"\r\n\r\n")
                    status, text = self._taken(head)
                except asyncio.LimitOverrunError:
                    status, text = "431 Request Header Fields Too Large", "Too long.\n"
                page = _PAGE.format(status=status, length=len(text), text=text)
                writer.write(page.encode("ascii"))
                await writer.drain()
        writer.close()

    def _taken(self, head: bytes) -> tuple[str, str]:
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        try:
            target = urlsplit(rest.partition(" ")[0])
            found = parse_qs(target.query, max_num_fields=50)
        except ValueError:
            return "400 Bad Request", "This is not an answer to a login.\n"
        if method != "GET" or target.path != PATH:
            return "404 Not Found", "Not found.\n"
        given = {name: values[0] for name, values in found.items() if len(values) == 1}
        state = given.get("state", "").encode()
        if self._state is None or not secrets.compare_digest(state, self._state.encode()):
            return "400 Bad Request", "This answer belongs to another login.\n"
        if not self._answer.done():
            self._answer.set_result(given)
        if "code" not in given:
            return "200 OK", "The login was refused. You can close this page.\n"
        return "200 OK", "The login continues in the terminal. You can close this page.\n"


@contextlib.asynccontextmanager
async def listen_for_callback(port: int, *, is_fixed: bool) -> AsyncGenerator[OAuthCallback]:
    """A callback on a port, or on any free one if allowed; `OSError` if it is in use."""
    try:
        bound = _bind_socket(port)
    except OSError:
        if is_fixed:
            raise
        bound = _bind_socket(0)
    callback = OAuthCallback(bound.getsockname()[1])
    server = await asyncio.start_server(callback.handle, sock=bound, limit=_HEAD_BYTES)
    try:
        yield callback
    finally:
        server.close()


def _bind_socket(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # The last login's connections may still be dying; a living listener is in the way all the
        # same.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((LOOPBACK, port))
        bound.listen(16)
    except OSError:
        bound.close()
        raise
    return bound


def get_callback_port(known: McpLogin | None) -> int:
    """The port of the last login, because a registration is bound to one redirect address."""
    addresses: object = known.client.get("redirect_uris") if known else None
    if not isinstance(addresses, list) or not addresses:
        return 0
    try:
        return urlsplit(str(cast("list[object]", addresses)[0])).port or 0
    except ValueError:
        return 0
