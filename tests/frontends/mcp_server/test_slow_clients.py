"""Clients that send half a request cost the HTTP server nothing for long."""

import asyncio

import pytest
from tests.frontends.mcp_server.test_sdk_clients import TOKEN, client_of, served
from tests.waiting import HANG_S, until

from handaxe.frontends.mcp_server import request_deadlines as deadlines

HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n"
HALVES = {
    "nothing": b"",
    "half_a_header": HEAD + b"X-More: ",
    "half_a_body": HEAD
    + f"Authorization: Bearer {TOKEN}\r\nAccept: application/json, text/event-stream\r\n".encode()
    + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
}


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def open_half(address: str, half: bytes) -> Streams:
    port = address.split(":")[2].partition("/")[0]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    writer.write(half.replace(b"PORT", port.encode()))
    await writer.drain()
    return reader, writer


def still_open(readers: list[asyncio.StreamReader]) -> int:
    return sum(not reader.at_eof() for reader in readers)


async def drain(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


@pytest.mark.parametrize("half", HALVES)
async def test_half_a_request_is_not_waited_for_for_ever(project, monkeypatch, half):
    monkeypatch.setattr(deadlines, "REQUEST_S", 0.2)
    async with served(project) as address:
        reader, writer = await open_half(address, HALVES[half])
        said = await asyncio.wait_for(drain(reader), 2)
        assert said.startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_three_hundred_half_requests_keep_nobody_out(project):
    (project / "a.py").write_text("x = 1\n")
    async with served(project) as address:
        opened = [await open_half(address, HALVES["half_a_header"]) for _ in range(300)]
        readers = [reader for reader, _ in opened]
        reading = [asyncio.ensure_future(drain(reader)) for reader in readers]
        await until(lambda: still_open(readers) <= 64)
        async with client_of(address) as client:
            read = await asyncio.wait_for(client.call_tool("Read", {"file_path": "a.py"}), HANG_S)
            assert not read.is_error
        for _, writer in opened:
            writer.close()
        await asyncio.gather(*reading)


async def test_a_second_request_on_a_connection_has_its_time_as_well(project, monkeypatch):
    monkeypatch.setattr(deadlines, "REQUEST_S", 0.3)
    async with served(project) as address:
        whole = HALVES["half_a_body"].replace(b"Length: 100\r\n\r\n{", b"Length: 2\r\n\r\n{}")
        reader, writer = await open_half(address, whole)
        assert b" 400 " in await reader.readline()
        writer.write(b"POST /mcp HT")
        said = await asyncio.wait_for(drain(reader), 2)
        assert b"HTTP/1.1 408 " in said
        writer.close()
