"""Headers that a user's program prints, such as a short-lived token.

The program runs when a connection starts, and once more when the server rejects its headers.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import httpx2
import msgspec

from handaxe.contract.ports.processes import ChildProgram
from handaxe.mcp.client_context import McpClientContext

LIMIT_S = 10.0
MAX_BYTES = 64 << 10
REFUSALS = frozenset({401, 403})
MAY_REPEAT = "handaxe.may_repeat"
"""Marks a request that will be repeated if it is refused."""


class HeaderHelperFailed(Exception):
    """The program printed no headers; the reason, without its output."""


async def run_header_helper(
    command: str, server: str, url: str, context: McpClientContext
) -> dict[str, str]:
    """The program's output: one JSON object of texts."""
    program = ChildProgram(
        argv=("/bin/sh", "-c", command),
        cwd=context.cwd,
        env={
            **context.env,
            "CLAUDE_CODE_MCP_SERVER_NAME": server,
            "CLAUDE_CODE_MCP_SERVER_URL": url,
        },
        log_path=context.log_path(server),
    )
    child = await context.processes.start(program)
    printed = b""
    try:
        async with asyncio.timeout(LIMIT_S):
            while (piece := await child.read()) and len(printed) <= MAX_BYTES:
                printed += piece
    except TimeoutError:
        raise HeaderHelperFailed(f"its headersHelper took longer than {LIMIT_S:g} s") from None
    finally:
        await child.stop()
    if child.exit_code:
        raise HeaderHelperFailed(f"its headersHelper ended with exit code {child.exit_code}")
    try:
        return msgspec.json.decode(printed, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise HeaderHelperFailed("its headersHelper did not print a JSON object of texts") from None


class HeaderHelperAuth(httpx2.Auth):
    """Adds the headers to every request, and runs the program again when they are rejected."""

    def __init__(self, ask: Callable[[], Awaitable[dict[str, str]]]) -> None:
        self._ask = ask
        self._headers: dict[str, str] | None = None
        self._asking = asyncio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The request with headers, and once more with newer ones."""
        used = await self._get_newer(None)
        request.headers.update(used)
        request.extensions[MAY_REPEAT] = True
        response = yield request
        if response.status_code in REFUSALS:
            request.headers.update(await self._get_newer(used))
            request.extensions[MAY_REPEAT] = False
            yield request

    async def _get_newer(self, refused: dict[str, str] | None) -> dict[str, str]:
        """Headers; parallel rejected requests run the program only once."""
        async with self._asking:
            if self._headers is None or self._headers is refused:
                self._headers = await self._ask()
            return self._headers
