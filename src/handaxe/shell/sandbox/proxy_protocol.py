"""Parse proxy requests: the head of an HTTP request, or the start of SOCKS5."""

import asyncio
import re
from contextlib import suppress
from typing import Literal

import msgspec

MOST_HEAD_BYTES = 65_536
_TARGET = re.compile(
    r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[^\[\]/:@?#\s]+))(?::(?P<port>\d{1,5}))?"
)
_DROPPED = ("proxy-connection:", "proxy-authorization:", "connection:", "keep-alive:", "host:")


class Target(msgspec.Struct, frozen=True):
    """The target of a request, and what was read on the way."""

    kind: Literal["http", "connect", "socks"]
    host: str
    port: int
    forward: bytes = b""
    """The first data to send to the host."""


class BadProxyRequest(Exception):
    """The data is not a valid proxy request."""

    def __init__(self, sentence: str, target: Target | None = None) -> None:
        super().__init__(sentence)
        self.target = target


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Target:
    """The first request of a connection."""
    first = await reader.readexactly(1)
    return await (_read_socks(reader, writer) if first == b"\x05" else _read_http(reader, first))


async def _read_http(reader: asyncio.StreamReader, first: bytes) -> Target:
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadProxyRequest("The head of the request is too long.") from None
    if len(head) > MOST_HEAD_BYTES or b"\0" in head:
        raise BadProxyRequest("The request is not readable.")
    lines = head.decode("latin-1").split("\r\n")
    try:
        method, where, version = lines[0].split(" ")
    except ValueError:
        raise BadProxyRequest("The request line is not readable.") from None
    if method == "CONNECT":
        return _parse_target("connect", where, None, b"")
    if not where.lower().startswith("http://"):
        raise BadProxyRequest("The proxy of the sandbox accepts CONNECT and http:// only.")
    authority, slash, path = where[len("http://") :].partition("/")
    kept = [line for line in lines[1:] if line and not line.lower().startswith(_DROPPED)]
    start = [f"{method} {slash or '/'}{path} {version}", f"Host: {authority}", "Connection: close"]
    forward = "\r\n".join([*start, *kept, "", ""]).encode("latin-1")
    return _parse_target("http", authority, 80, forward)


def _parse_target(
    kind: Literal["http", "connect"], authority: str, port: int | None, forward: bytes
) -> Target:
    found = _TARGET.fullmatch(authority)
    number = int(found["port"]) if found is not None and found["port"] else port
    if found is None or number is None or not 0 < number < 65_536:
        raise BadProxyRequest(f"{authority[:200]!r} is not a host and a port.")
    return Target(kind, found["six"] or found["host"], number, forward)


async def _read_socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Target:
    await reader.readexactly((await reader.readexactly(1))[0])
    writer.write(b"\x05\x00")
    await writer.drain()
    version, command, _, kind = await reader.readexactly(4)
    nowhere = Target("socks", "", 0)
    if version != 5 or command != 1:
        raise BadProxyRequest("The proxy only supports connections with version 5.", nowhere)
    if kind == 3:
        name = await reader.readexactly((await reader.readexactly(1))[0])
        host = name.decode("latin-1")
    elif kind in {1, 4}:
        import ipaddress

        packed = await reader.readexactly(4 if kind == 1 else 16)
        host = str(ipaddress.ip_address(packed))
    else:
        raise BadProxyRequest("The address type is unknown.", nowhere)
    return Target("socks", host, int.from_bytes(await reader.readexactly(2), "big"))


async def confirm_connection(writer: asyncio.StreamWriter, target: Target) -> None:
    """Confirm the connection."""
    if target.kind == "connect":
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    elif target.kind == "socks":
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
    await writer.drain()


async def refuse_connection(
    writer: asyncio.StreamWriter, target: Target | None, sentence: str, *, gone: bool = False
) -> None:
    """Refuse the connection, with the reason."""
    if target is not None and target.kind == "socks":
        writer.write(b"\x05" + (b"\x04" if gone else b"\x02") + b"\x00\x01" + bytes(6))
    else:
        body = sentence.encode("utf-8", "replace") + b"\n"
        status = b"502 Bad Gateway" if gone else b"403 Forbidden"
        writer.write(
            b"HTTP/1.1 " + status + b"\r\nContent-Type: text/plain; charset=utf-8\r\n"
            b"Connection: close\r\nX-Handaxe-Sandbox: refused\r\n"
            b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
        )
    with suppress(OSError):
        await writer.drain()
