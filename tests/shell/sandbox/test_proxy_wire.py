"""What programs say to the proxy, whatever they say."""

import asyncio
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handaxe.shell.sandbox.host_allowlist import explain_refusal, is_host_match, normalize_host
from handaxe.shell.sandbox.proxy_protocol import BadProxyRequest, Target, read_request


class Sink:
    """Takes what would be written to a program."""

    def write(self, _: bytes) -> None:
        pass

    async def drain(self) -> None:
        pass


def parsed(text: bytes) -> Target:
    async def read() -> Target:
        reader = asyncio.StreamReader(limit=65_536)
        reader.feed_data(text)
        reader.feed_eof()
        return await read_request(reader, cast("asyncio.StreamWriter", Sink()))

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("text", "kind", "host", "port"),
    [
        (b"CONNECT a.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", "connect", "a.com", 443),
        (b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "connect", "::1", 443),
        (b"GET http://a.com/x HTTP/1.1\r\nHost: evil\r\n\r\n", "http", "a.com", 80),
        (b"GET HTTP://a.com:81 HTTP/1.0\r\n\r\n", "http", "a.com", 81),
        (b"\x05\x01\x00\x05\x01\x00\x03\x05a.com\x01\xbb", "socks", "a.com", 443),
        (b"\x05\x02\x00\x02\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50", "socks", "127.0.0.1", 80),
    ],
)
def test_every_way_of_asking_is_read(text, kind, host, port):
    found = parsed(text)
    assert (found.kind, found.host, found.port) == (kind, host, port)


def test_a_plain_request_is_sent_on_for_its_own_host_only():
    asked = parsed(
        b"GET http://a.com:81/p?q HTTP/1.1\r\nHost: evil.com\r\nProxy-Authorization: x\r\nX: y\r\n\r\n"
    )
    assert (
        asked.forward == b"GET /p?q HTTP/1.1\r\nHost: a.com:81\r\nConnection: close\r\nX: y\r\n\r\n"
    )


@settings(max_examples=300)
@given(
    st.binary(max_size=200)
    | st.builds(lambda rest: b"\x05" + rest, st.binary(max_size=60))
    | st.builds(lambda host: b"CONNECT " + host + b" HTTP/1.1\r\n\r\n", st.binary(max_size=60))
    | st.builds(lambda host: b"GET http://" + host + b" HTTP/1.1\r\n\r\n", st.binary(max_size=60))
)
def test_whatever_comes_is_read_or_refused(text):
    try:
        found = parsed(text)
    except (BadProxyRequest, asyncio.IncompleteReadError):
        return
    host = normalize_host(found.host)
    # Nothing that reads as a host can carry a second meaning into a request or a look-up.
    assert host is None or (host.isascii() and not set(host) & set("\0\r\n /@?#\\%"))


@settings(max_examples=300)
@given(st.text(max_size=40), st.sampled_from(["example.com", "*.example.com"]))
def test_only_whole_labels_match(text, pattern):
    host = normalize_host(text + "example.com")
    if host is None or not is_host_match(pattern, host):
        return
    assert host == "example.com" if pattern == "example.com" else host.endswith(".example.com")


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["{}", "0x{:x}", "0{:o}", "1.{}", "127.0.{}"]))
def test_no_spelling_of_an_address_passes_for_a_name(number, form):
    host = normalize_host(form.format(number))
    assert host is None or explain_refusal(host, ("*",), ()) is not None
