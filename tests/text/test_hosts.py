"""Addresses of web sockets: one host for every reader, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.uri import parse_uri

from handaxe.text.urls import BadSocketAddress, is_local_name, read_socket_address


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("ws://example.org", "example.org", 80),
        ("wss://example.org", "example.org", 443),
        ("WSS://Example.ORG.:8443/a/b?c=d@e", "example.org", 8443),
        ("ws://localhost:3000/", "localhost", 3000),
        ("ws://my_host-1/", "my_host-1", 80),
        ("ws://127.0.0.1:1/x", "127.0.0.1", 1),
        ("ws://[::1]:65535", "[::1]", 65535),
        ("ws://[0:0:0:0:0:0:0:1]", "[::1]", 80),
        ("ws://[2001:DB8::1]?x", "[2001:db8::1]", 80),
        ("ws://xn--bcher-kva.example/", "xn--bcher-kva.example", 80),
    ],
)
def test_the_host_and_port_of_an_address(url, host, port):
    address = read_socket_address(url)
    assert (address.url, address.host, address.port) == (url, host, port)


@pytest.mark.parametrize(
    "url",
    [
        "", "example.org", "//example.org", "http://example.org", "https://example.org",
        "file:///etc/passwd", "ws:example.org", "ws:/example.org", "ws://", "ws:///x", "wss://:80",
        "ws://user@example.org", "ws://user:pw@example.org", "ws://good.org@evil.org",
        "ws://good.org\\@evil.org", "ws://good.org\\.evil.org", "ws://a#b", "ws://a/x#b",
        "ws://a b", "ws://a\n", "ws://a\t.b", "ws://a\0", "ws://bücher.example", "ws://exаmple.org",
        "ws://a:0", "ws://a:65536", "ws://a:-1", "ws://a:x", "ws://a:", "ws://a:1:2",
        "ws://.a", "ws://a..b", "ws://..", "ws://a%2eb", "ws://*.a", "ws://" + "a" * 64,
        "ws://" + "a." * 150 + "b", "ws://127.1", "ws://2130706433", "ws://0x7f.0.0.1",
        "ws://127.0.0.01", "ws://127.0.0.256", "ws://1.2.3.4.5", "ws://a.0x1", "ws://[::1", "ws://::1",
        "ws://[::ffff:127.0.0.1]", "ws://[fe80::1%25eth0]", "ws://[fe80::1%eth0]", "ws://[]",
        "ws://[::1]x", "ws://x[::1]", "ws://a/" + "x" * 9_000,
    ],
)  # fmt: skip
def test_what_could_be_read_in_two_ways_is_no_address(url):
    with pytest.raises(BadSocketAddress):
        read_socket_address(url)


@given(
    st.text(alphabet="ws:/@[].%\\#?0127x-aB ", max_size=24).map(lambda rest: f"ws://{rest}")
    | st.text(max_size=30)
)
def test_who_connects_reads_the_same_host(url):
    try:
        address = read_socket_address(url)
    except BadSocketAddress:
        return
    read = parse_uri(url)
    assert read.port == address.port
    host = address.host.strip("[]")
    if ":" not in host:
        assert read.host.removesuffix(".") == host


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("example.org", False),
        ("local.example.org", False),
        ("localhost", True),
        ("app.localhost", True),
        ("build", True),
        ("db.internal", True),
        ("127.0.0.1", True),
        ("8.8.8.8", True),
        ("[::1]", True),
        ("::1", True),
        ("1.0x7f", True),
    ],
)
def test_what_lies_near_is_told_by_the_name(host, expected):
    assert is_local_name(host) is expected
