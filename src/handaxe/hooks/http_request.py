"""Send one HTTP request of a hook: POST, one answer, no redirects, no proxies, no keep-alive.

Uses asyncio streams, so waiting needs no thread and cancelling is immediate.
"""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

from handaxe.contract.ports.hooks import HookRequest, HookResponse, HookUnreachable

MAX_BODY_BYTES = 1 << 20
MAX_HEAD_BYTES = 1 << 16

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


async def post(request: HookRequest, body: bytes, environment: Mapping[str, str]) -> HookResponse:
    """Send it and read the answer; raises `HookUnreachable` with the reason."""
    limit = asyncio.timeout(request.timeout_s)
    try:
        async with limit:
            return await _exchange(request, body, environment)
    except TimeoutError:
        if not limit.expired():
            raise HookUnreachable("the connection timed out") from None
        sentence = f"it did not answer within {request.timeout_s:g} s"
        raise HookUnreachable(sentence, timed_out=True) from None
    except (OSError, EOFError, ValueError) as error:
        raise HookUnreachable(
            f"it could not be reached ({error or type(error).__name__})"
        ) from None


async def _exchange(
    request: HookRequest, body: bytes, environment: Mapping[str, str]
) -> HookResponse:
    url = urlsplit(request.url)
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise ValueError("not an http or https address")
    head = _build_head(url, len(body), fill_headers(request, environment))
    context = None
    if url.scheme == "https":
        import ssl

        context = ssl.create_default_context()
    port = url.port or (443 if context else 80)
    reader, writer = await asyncio.open_connection(
        url.hostname, port, ssl=context, limit=MAX_HEAD_BYTES
    )
    try:
        writer.write(head + body)
        # A server may answer before it has taken everything; then its answer counts.
        with suppress(ConnectionError):
            await writer.drain()
        return await _build_reply(reader)
    finally:
        writer.transport.abort()


def fill_headers(request: HookRequest, environment: Mapping[str, str]) -> dict[str, str]:
    """The headers with allowed variables inserted."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        found_value = request.env.get(name, environment.get(name, ""))
        return found_value if name in request.env_names else ""

    headers = {name: _VARIABLE.sub(value, text) for name, text in request.headers.items()}
    for name, text in headers.items():
        if not _NAME.fullmatch(name) or any(sign in text for sign in "\r\n\0"):
            raise ValueError(f"the header {name!r} cannot be sent")
    return headers


def _build_head(url: SplitResult, size_bytes: int, own: Mapping[str, str]) -> bytes:
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    host = url.netloc.rpartition("@")[2]
    headers = {
        "Host": host,
        "User-Agent": "handaxe",
        "Accept": "application/json",
        "Content-Type": "application/json",
    }
    taken = {name.lower() for name in headers}
    headers |= {name: text for name, text in own.items() if name.lower() not in taken}
    headers |= {"Content-Length": str(size_bytes), "Connection": "close"}
    if any(sign in target for sign in " \r\n\0"):
        raise ValueError("the address contains blanks")
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


async def _build_reply(reader: asyncio.StreamReader) -> HookResponse:
    while True:
        status, headers = await _read_head(reader)
        if status >= 200:
            break
    if status in {204, 304}:
        return HookResponse(status, b"")
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return HookResponse(status, await _read_chunks(reader))
    if (length := headers.get("content-length")) is not None:
        return HookResponse(status, await reader.readexactly(_check_body_size(int(length))))
    body = bytearray()
    while piece := await reader.read(1 << 16):
        body += piece
        _check_body_size(len(body))
    return HookResponse(status, bytes(body))


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise ValueError("the head of its answer is too long") from None
    first, *lines = raw.decode("latin-1").split("\r\n")
    parts = first.split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit():
        raise ValueError("its answer is not HTTP")
    pairs = (line.partition(":") for line in lines if line)
    return int(parts[1]), {name.strip().lower(): text.strip() for name, _, text in pairs}


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        _check_body_size(len(body) + size)
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    return bytes(body)


def _check_body_size(size_bytes: int) -> int:
    if not 0 <= size_bytes <= MAX_BODY_BYTES:
        raise ValueError(f"its answer is larger than {MAX_BODY_BYTES:,} bytes")
    return size_bytes
