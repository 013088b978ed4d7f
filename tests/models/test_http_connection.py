"""Answers come out of the bytes of a connection whole, however they were cut."""

import asyncio
import itertools
import socket
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handaxe.contract.faults import SetupError
from handaxe.models.http.connection import HttpConnection, build_request
from handaxe.models.http.transport import TransportFailed

NAME = st.sampled_from(["x-a", "X-B", "retry-after", "Server", "date"])
VALUE = st.text(alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=8)
STATUS = st.sampled_from([200, 200, 201, 204, 304, 400, 429, 500, 529, 599])
CHUNKS = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
KEEPING = st.sampled_from(
    ["", "Connection: keep-alive", "Connection: close", "connection: Close, x"]
)


class Read(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    can_go_on: bool


class CutReader(asyncio.StreamReader):
    """Gives the bytes in just these pieces; an empty piece is the end."""

    def __init__(self, pieces: list[bytes]):
        super().__init__()
        self.pieces = pieces

    async def read(self, n: int = -1) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def read(pieces: list[bytes]) -> Read:
    """What a connection reads, up to the end of one answer."""

    async def talk() -> Read:
        near, far = socket.socketpair()
        _, writer = await asyncio.open_connection(sock=near)
        connection = HttpConnection(("http", "x", 80), CutReader([*pieces]), writer)
        try:
            status, headers = await connection.send(build_request("http://x/", {}, b""), b"")
            body = b""
            while piece := await connection.read_piece():
                body += piece
            assert connection.is_over
            return Read(status, headers, body, connection.start_next_request())
        finally:
            connection.drop()
            far.close()
            await asyncio.sleep(0)

    return asyncio.run(talk())


class Answer(NamedTuple):
    raw: bytes
    means: Read


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """One whole answer; one without a length ends with its connection."""
    chunks = draw(CHUNKS)
    version = draw(st.sampled_from(["1.1", "1.1", "1.0"]))
    lines = [
        f"{name}: {value}" for name, value in draw(st.lists(st.tuples(NAME, VALUE), max_size=4))
    ]
    keeping = draw(KEEPING)
    lines += [keeping] if keeping else []
    ways = ["length", "chunked", "close"] if version == "1.1" else ["length", "close"]
    framing = draw(st.sampled_from(ways))
    plain = body = b"".join(chunks)
    if framing == "length":
        lines.append(f"Content-Length: {len(body)}")
    elif framing == "chunked":
        extra = draw(st.sampled_from([b"", b";a=b", b"; x"]))
        trailer = draw(st.sampled_from([b"", b"x-sum: 1\r\n"]))
        lines.append("Transfer-Encoding: chunked")
        pieces = [b"%x%b\r\n%b\r\n" % (len(chunk), extra, chunk) for chunk in chunks]
        body = b"".join([*pieces, b"0\r\n", trailer, b"\r\n"])
    status = draw(STATUS)
    has_body = status not in (204, 304)
    before = b""
    if version == "1.1":
        early = b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n"
        before = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", early]))
    head = "\r\n".join((f"HTTP/{version} {status} Some words", *lines, "", ""))
    headers: dict[str, str] = {}
    for line in lines:
        name, value = line.lower().partition(": ")[0], line.partition(": ")[2]
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    is_closing = version == "1.0" or "close" in keeping.lower()
    can_go_on = not is_closing and not (framing == "close" and has_body)
    means = Read(status, headers, plain if has_body else b"", can_go_on)
    return Answer(before + head.encode() + (body if has_body else b""), means)


def cut(raw: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(raw), *(at for at in cuts if at < len(raw))})
    return [raw[a:b] for a, b in pairwise(edges)]


TWO_LENGTHS = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello"
NO_WORDS = b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n"


@given(answers(), st.lists(st.integers(0, 300), max_size=8))
@example(Answer(TWO_LENGTHS, Read(200, {"content-length": "5"}, b"hello", True)), [])
@example(Answer(NO_WORDS, Read(200, {"content-length": "0"}, b"", True)), [])
def test_an_answer_is_the_same_however_it_was_cut(answer: Answer, cuts: list[int]):
    for pieces in ([answer.raw], cut(answer.raw, cuts), [bytes([b]) for b in answer.raw]):
        assert read(pieces) == answer.means


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"HTTP/1.1 200 O", b"SSH-2.0-x\r\n\r\n",
        b"HTTP/2 200\r\n\r\n", b"HTTP/1.1 2x0 OK\r\n\r\n", b"HTTP/1.1 20\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nname : x\r\n\r\n", b"HTTP/1.1 200 OK\r\n: x\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5, 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n111111111111111111111\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"0" * 140_000,
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000,
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_what_is_not_an_answer_is_a_failure(raw: bytes):
    for pieces in ([raw], [*(bytes([byte]) for byte in raw[:300]), raw[300:]]):
        with pytest.raises(TransportFailed, match="cannot be read") as caught:
            read([piece for piece in pieces if piece])
        assert caught.value.how == "broken_stream"


def test_lines_may_end_without_a_return_and_values_go_on_in_the_next_line():
    raw = b"HTTP/1.1 200 OK\nX-Long: a\n  b\ncontent-length: 2\n\nok"
    assert read([raw]) == Read(200, {"x-long": "a b", "content-length": "2"}, b"ok", True)


def test_what_comes_after_an_answer_unasked_ends_the_connection():
    raw = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"
    assert read([raw]) == Read(200, {"content-length": "2"}, b"ok", False)


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/a b", {}), ("/é€", {}), ("/", {"x": "a\r\nevil: b"}), ("/", {"x": "\x00"}),
     ("/", {"bad name": "x"}), ("/", {"bad:": "x"}), ("/", {"x": "€"})],
)  # fmt: skip
def test_a_request_cannot_hold_another(path: str, headers: dict[str, str]):
    with pytest.raises(SetupError, match="cannot be sent"):
        build_request(f"http://x{path}", headers, b"")


async def test_a_request_is_its_head_and_its_body():
    near, far = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=near)
    connection = HttpConnection(("http", "h", 80), reader, writer)
    far.sendall(b"HTTP/1.1 204 X\r\n\r\n")
    request = build_request("http://me@h/v1?x=1", {"x-name": "Jürgen"}, b"{}")
    assert await connection.send(request, b"{}") == (204, {})
    assert far.recv(1000) == (
        b"POST /v1?x=1 HTTP/1.1\r\nhost: h\r\nx-name: J\xfcrgen\r\ncontent-length: 2\r\n\r\n{}"
    )
    connection.drop()
    far.close()
