"""Listed hosts are reached through the proxy, from inside a real sandbox; others are not."""

import http.server
import shutil
import socket
import threading

import msgspec
import pytest

PYTHON = "/usr/bin/python3"


@pytest.fixture
def server():
    """A server on this machine that tells what it was asked."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"path={self.path} host={self.headers['Host']}\n".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made.server_address[1]
        made.shutdown()
        thread.join()


@pytest.fixture(params=["bubblewrap", "lent"])
def means(request):
    return request.param


@pytest.fixture
def listed(field):
    field.policy = msgspec.structs.replace(
        field.policy, network="listed", allowed_domains=("localhost", "*.example.com")
    )
    return field


FETCH = (
    "import sys, urllib.request as r\n"
    "try: print(r.urlopen(sys.argv[1], timeout=10).read().decode())\n"
    "except r.HTTPError as e: print(e.code, e.read().decode()); sys.exit(1)\n"
)


@pytest.mark.proves("SH-7")
def test_a_listed_host_is_reached_over_http(listed, server):
    (listed.root / "fetch.py").write_text(FETCH)
    code, output = listed.run(f"{PYTHON} fetch.py http://localhost:{server}/a?b=c")
    assert (code, output.strip()) == (0, f"path=/a?b=c host=localhost:{server}")
    assert listed.told == ()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize("option", ["--proxytunnel", "--socks5-hostname 127.0.0.1:47128", ""])
def test_a_listed_host_is_reached_in_every_way_programs_ask(listed, server, option):
    code, output = listed.run(f"curl -sS {option} http://localhost:{server}/x")
    assert code == 0, output
    assert output.startswith("path=/x ")


@pytest.mark.proves("SH-7")
@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1", "localhost.evil.test", "example.com"])
def test_other_hosts_are_refused_and_told(listed, server, host):
    (listed.root / "fetch.py").write_text(FETCH)
    code, output = listed.run(
        f"env -u no_proxy -u NO_PROXY {PYTHON} fetch.py http://{host}:{server}/"
    )
    assert code != 0
    assert "403 The sandbox refused" in output
    assert len(listed.told) == 1
    assert host in listed.told[0]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize("option", ["--proxytunnel", "--socks5-hostname 127.0.0.1:47128"])
def test_other_hosts_are_refused_in_every_way_programs_ask(listed, server, option):
    code, _ = listed.run(f"curl -sS {option} http://evil.test:{server}/x")
    assert code != 0
    assert any("evil.test" in line for line in listed.told)


def test_nothing_goes_past_the_proxy(listed, server):
    code, _ = listed.run(
        f"{PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", {server}), 2)'"
    )
    assert code != 0


HOSTILE = [
    b"\x05\x01\x00\x05\x01\x00\x03\xff",
    b"\x05\x00\x05\x02\x00\x01aaaaaa",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT localhost HTTP/1.1\r\n\r\n",
    b"CONNECT localhost:99999 HTTP/1.1\r\n\r\n",
    b"CONNECT local\0host:80 HTTP/1.1\r\n\r\n",
    b"CONNECT user@localhost:80 HTTP/1.1\r\n\r\n",
    b"\x00\x01\x02\r\n\r\n",
    b"A" * 200_000,
    b"GET http://[::1/ HTTP/1.1\r\n\r\n",
]


def test_hostile_requests_neither_connect_nor_end_the_proxy(listed, server):
    (listed.root / "hostile.py").write_text(
        "import socket\n"
        f"for text in {HOSTILE!r}:\n"
        "    s = socket.create_connection(('127.0.0.1', 47128), 5)\n"
        "    try:\n"
        "        s.sendall(text); s.shutdown(1)\n"
        "        while s.recv(4096): pass\n"
        "    except OSError: pass\n"
        "    s.close()\n"
    )
    (listed.root / "fetch.py").write_text(FETCH)
    code, output = listed.run(
        f"{PYTHON} hostile.py && {PYTHON} fetch.py http://localhost:{server}/after"
    )
    assert code == 0, output
    assert "path=/after" in output


def test_names_that_lead_to_private_addresses_are_refused(server):
    from handaxe.shell.sandbox.proxy import FilteringProxy

    proxy = FilteringProxy(("*",), (), resolve=lambda host, port: ["93.184.216.34", "127.0.0.1"])
    door = proxy.open()
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            inner = socket.socket(fileno=socket.dup(door.descriptor))
            socket.send_fds(inner, [b"x"], [listener.fileno()])
            inner.close()
            with socket.create_connection(listener.getsockname(), 5) as client:
                client.sendall(f"CONNECT rebound.example:{server} HTTP/1.1\r\n\r\n".encode())
                assert b"403 Forbidden" in client.recv(4096)
        assert "not a public one" in door.refusals[0]
    finally:
        door.close()
        proxy.close()
