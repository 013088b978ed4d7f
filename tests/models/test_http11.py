"""Answers come out of the bytes of a connection as they do for h11, however they were cut."""

from itertools import pairwise

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handaxe.models.http.http11 import BadResponse, ResponseHead, ResponseParser, post_request

# A busy machine is no reason to fail.

NAME = st.sampled_from(["x-a", "X-B", "retry-after", "Server", "date"])
VALUE = st.text(alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=8)
STATUS = st.sampled_from([200, 200, 201, 204, 304, 400, 429, 500, 529, 599])
CHUNKS = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
KEEPING = st.sampled_from(
    ["", "Connection: keep-alive", "Connection: close", "connection: Close, x"]
)


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """One whole answer; one that ends with its connection is told apart by having no length."""
    chunks = draw(CHUNKS)
    version = draw(st.sampled_from(["1.1", "1.1", "1.0"]))
    lines = [
        f"{name}: {value}" for name, value in draw(st.lists(st.tuples(NAME, VALUE), max_size=4))
    ]
    keeping = draw(KEEPING)
    lines += [keeping] if keeping else []
    framing = draw(
        st.sampled_from(["length", "chunked", "close"] if version == "1.1" else ["length", "close"])
    )
    body = b"".join(chunks)
    if framing == "length":
        lines.append(f"Content-Length: {len(body)}")
    elif framing == "chunked":
        extra = draw(st.sampled_from([b"", b";a=b", b"; x"]))
        trailer = draw(st.sampled_from([b"", b"x-sum: 1\r\n"]))
        lines.append("Transfer-Encoding: chunked")
        pieces = [b"%x%b\r\n%b\r\n" % (len(chunk), extra, chunk) for chunk in chunks]
        body = b"".join([*pieces, b"0\r\n", trailer, b"\r\n"])
    status = draw(STATUS)
    if status in (204, 304):
        body = b""
    before = draw(
        st.sampled_from(
            [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n"]
        )
    )
    if version == "1.0":
        before = b""
    head = "\r\n".join((f"HTTP/{version} {status} Some words", *lines, "", ""))
    return before + head.encode() + body


Read = tuple[int, dict[str, str], bytes, bool]


def ours(pieces: list[bytes]) -> Read:
    """What our parser reads; the last fact is whether the connection may be used again."""
    parser = ResponseParser()
    found: list[bytes] = []
    head: ResponseHead | None = None
    may_go_on: bool | None = None
    for piece in (*pieces, b""):
        if may_go_on is not None:
            break
        parser.feed(piece)
        head = head or parser.head()
        if head is not None:
            found.append(parser.body())
            if parser.is_over:
                may_go_on = parser.start_next_response()
    assert head is not None
    assert may_go_on is not None
    return head.status, head.headers, b"".join(found), may_go_on


def theirs(pieces: list[bytes]) -> Read:
    """What h11 reads."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(
        h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")])
    )
    connection.send(h11.EndOfMessage())
    status, headers, found = 0, {}, []
    for piece in (*pieces, b""):
        connection.receive_data(piece)
        while (event := connection.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                status = event.status_code
                for name, value in event.headers:
                    known = headers.get(name.decode())
                    headers[name.decode()] = (
                        value.decode() if known is None else f"{known}, {value.decode()}"
                    )
            elif isinstance(event, h11.Data):
                found.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                may_go_on = connection.their_state is h11.DONE and not connection.trailing_data[1]
                return status, headers, b"".join(found), may_go_on
    raise AssertionError("h11 did not come to an end")


def cut(raw: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(raw), *(at for at in cuts if at < len(raw))})
    return [raw[a:b] for a, b in pairwise(edges)]


@given(answers(), st.lists(st.integers(0, 300), max_size=8))
@example(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello", [])
@example(b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", [])
@example(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nontent-", [])
def test_the_same_as_h11(raw: bytes, cuts: list[int]):
    expected = theirs([raw])
    if raw.partition(b"\r\n\r\n")[0].count(b"ontent-") == 2:
        # h11 makes one field of two equal lengths.
        expected = (expected[0], {"content-length": "5, 5"}, *expected[2:])
    assert ours(cut(raw, cuts)) == expected
    assert ours([bytes([byte]) for byte in raw]) == expected


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"", "closed before"), (b"HTTP/1.1 200 O", "closed before"), (b"SSH-2.0-x\r\n\r\n", "SSH"),
        (b"HTTP/2 200\r\n\r\n", "HTTP/2"), (b"HTTP/1.1 2x0 OK\r\n\r\n", "2x0"), (b"HTTP/1.1 20\r\n\r\n", "20"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "2000"), (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "no colon"),
        (b"HTTP/1.1 200 OK\r\nname : x\r\n\r\n", "name"), (b"HTTP/1.1 200 OK\r\n: x\r\n\r\n", "holds"),
        (b"HTTP/1.1 101 Switching\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel", "in the middle"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5, 6\r\n\r\nhello", "length"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello", "length"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\nhello", "length"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "transfer encoding"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", "in the middle"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n", "longer than it says"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\nabc\r\n", "chunks"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-3\r\nabc\r\n", "chunks"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n11111111111111111\r\nabc\r\n", "chunks"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"0" * 70_000, "chunks"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, "no end"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(raw: bytes, word: str):
    for pieces in ([raw], [bytes([byte]) for byte in raw[:300]] + [raw[300:]]):
        with pytest.raises(BadResponse, match=word):
            ours([piece for piece in pieces if piece] + [b""])


def test_lines_may_end_without_a_return_and_values_go_on_in_the_next_line():
    parser = ResponseParser()
    parser.feed(b"\r\nHTTP/1.1 200 OK\nX-Long: a\n  b\ncontent-length: 2\n\nok")
    assert parser.head() == ResponseHead(200, {"x-long": "a b", "content-length": "2"})
    assert parser.body() == b"ok"
    assert parser.is_over


def test_what_comes_after_an_answer_unasked_ends_the_connection():
    parser = ResponseParser()
    parser.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n")
    assert parser.head()
    assert parser.body() == b"ok"
    assert not parser.start_next_response()


@pytest.mark.parametrize(
    ("target", "fields"),
    [("/a b", []), ("/a\r\nx: y", []), ("/é€", []), ("/", [("x", "a\r\nevil: b")]), ("/", [("x", "\x00")]),
     ("/", [("bad name", "x")]), ("/", [("bad:", "x")]), ("/", [("x", "€")])],
)  # fmt: skip
def test_a_request_cannot_hold_another(target: str, fields: list[tuple[str, str]]):
    with pytest.raises(ValueError, match="cannot be sent"):
        post_request(target, fields, b"")


def test_a_request_is_its_head_and_its_body():
    raw = post_request("/v1?x=1", [("host", "h"), ("x-name", "Jürgen")], b"{}")
    assert raw == b"POST /v1?x=1 HTTP/1.1\r\nhost: h\r\nx-name: J\xfcrgen\r\n\r\n{}"
