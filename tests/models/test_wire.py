"""Bytes to a server and back: connections, proxies, certificates."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.models.serving import Reply, model_server
from tests.waiting import HANG_S

from handaxe.contract.faults import SetupError
from handaxe.models.http.asyncio_transport import DirectTransport
from handaxe.models.http.connect import open_transport
from handaxe.models.http.httpx_transport import ClientTransport
from handaxe.models.http.transport import TransportFailed
from handaxe.net.proxy import find_proxy

PROXY = {
    "HTTPS_PROXY": "http://proxy:3128",
    "http_proxy": "plain:1",
    "NO_PROXY": "a.com, .b.com,c.com:8443,*.d.com",
}


def look(url: str, env: dict[str, str]) -> str | None:
    parts = urlsplit(url)
    return find_proxy(parts.scheme, parts.hostname or "", parts.port, env)


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://x.com/v1", "http://proxy:3128"), ("http://x.com", "http://plain:1"),
        ("http://127.0.0.1:1", None), ("http://localhost", None), ("http://[::1]:8", None),
        ("https://a.com", None), ("https://sub.a.com", None), ("https://b.com", None), ("https://xa.com", "http://proxy:3128"),
        ("https://c.com:8443", None), ("https://c.com", "http://proxy:3128"), ("https://x.d.com", None),
    ],
)  # fmt: skip
def test_the_proxy_of_the_environment(url: str, proxy: str | None):
    assert look(url, PROXY) == proxy


def test_all_can_go_through_a_proxy_or_none():
    assert look("https://x.com", {"ALL_PROXY": "socks5://p"}) == "socks5://p"
    assert look("https://x.com", {"ALL_PROXY": "p", "no_proxy": "*"}) is None
    assert look("https://x.com", {}) is None


async def body_of(wire, url: str) -> bytes:
    answer = await wire.post(url, {"content-type": "application/json"}, b"{}")
    return await answer.body()


async def test_a_proxy_or_a_client_means_httpx2():
    import httpx2

    assert isinstance(open_transport("https://x.com", PROXY), ClientTransport)
    assert isinstance(open_transport("https://x.com", {}), DirectTransport)
    async with httpx2.AsyncClient() as client, model_server(Reply(pieces=(b"a", b"b"))) as server:
        wire = open_transport(server.url, {}, client)
        assert isinstance(wire, ClientTransport)
        assert await body_of(wire, server.url) == b"ab"
        await wire.close()
        assert not client.is_closed


async def test_a_request_goes_through_the_proxy():
    async with model_server(Reply(pieces=(b"via",))) as proxy:
        wire = ClientTransport(proxy=proxy.url)
        assert await body_of(wire, "http://models.invalid/v1") == b"via"
        await wire.close()
    assert proxy.asked[0].path == "http://models.invalid/v1"


async def test_a_proxy_nobody_understands_is_the_persons_to_mend():
    with pytest.raises(SetupError, match="proxy"):
        await body_of(ClientTransport(proxy="gopher://p"), "http://x.invalid")


@pytest.mark.parametrize(
    "make", [lambda: DirectTransport({}), ClientTransport], ids=["direct", "httpx2"]
)
async def test_an_answer_that_breaks_off_says_so(make):
    async with model_server(Reply(pieces=(b"half",), cut=True)) as server:
        wire = make()
        with pytest.raises(TransportFailed) as caught:
            await body_of(wire, server.url)
        await wire.close()
    assert caught.value.how == "broken_stream"


@pytest.mark.parametrize(
    "make", [lambda: DirectTransport({}), ClientTransport], ids=["direct", "httpx2"]
)
async def test_nobody_there_says_so(make):
    wire = make()
    with pytest.raises(TransportFailed) as caught:
        await body_of(wire, "http://127.0.0.1:1/")
    await wire.close()
    assert caught.value.how == "unreachable"


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "no.such.name.invalid"])
async def test_a_name_nobody_can_have_says_so(host: str):
    with pytest.raises(TransportFailed) as caught:
        await body_of(DirectTransport({}), f"http://{host}/")
    assert caught.value.how == "unreachable"


async def test_a_header_that_would_end_the_head_is_the_persons_to_mend():
    for value in ("a\r\nx: y", "€"):
        with pytest.raises(SetupError, match="cannot be sent"):
            await DirectTransport({}).post("http://127.0.0.1:1/", {"x-y": value}, b"{}")


async def test_a_server_that_never_answers_times_out():
    left = asyncio.Event()

    async def silent(reader, writer):
        await reader.read()
        writer.transport.abort()
        left.set()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    wire = DirectTransport({}, answer_timeout_s=0.1)
    with pytest.raises(TransportFailed) as caught:
        await body_of(wire, url)
    await asyncio.wait_for(left.wait(), HANG_S)
    await asyncio.sleep(0.01)
    listening.close()
    assert caught.value.how == "timed_out"


async def test_a_kept_connection_that_was_closed_meanwhile_is_replaced():
    served = 0

    async def once(reader, writer):
        nonlocal served
        served += 1
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        if served == 1:
            # Keep it open, then break it exactly when the next request arrives.
            await reader.readuntil(b"{}")
        writer.transport.abort()

    listening = await asyncio.start_server(once, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    wire = DirectTransport({})
    assert await body_of(wire, url) == b"ok"
    assert await body_of(wire, url) == b"ok"
    await wire.close()
    listening.close()
    await asyncio.sleep(0.01)
    assert served == 2


async def test_many_requests_at_once_have_their_own_connections():
    async with model_server(Reply(pieces=(b"x",), pause_s=0.05)) as server:
        wire = DirectTransport({})
        bodies = await asyncio.gather(*(body_of(wire, server.url) for _ in range(20)))
        await wire.close()
    assert bodies == [b"x"] * 20
    assert server.connections == 20


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl to make a certificate")
async def test_a_server_has_to_prove_who_it_is(tmp_path: Path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    async def serve(reader, writer):
        try:
            await reader.readuntil(b"{}")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    url = f"https://localhost:{listening.sockets[0].getsockname()[1]}"
    trusting = DirectTransport({"SSL_CERT_FILE": str(certificate)})
    assert await body_of(trusting, url) == b"ok"
    await trusting.close()
    with pytest.raises(TransportFailed, match="No trusted TLS connection"):
        await body_of(DirectTransport({}), url)
    listening.close()
    await asyncio.sleep(0.05)


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_certificates_that_cannot_be_read_are_the_persons_to_mend(tmp_path: Path, content):
    file = tmp_path / "certificates.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SetupError, match="SSL_CERT_FILE names no certificates"):
        await body_of(DirectTransport({"SSL_CERT_FILE": str(file)}), "https://127.0.0.1:1/")
