"""Monitor and web sockets: every frame is told, every end is told, and nothing survives."""

import contextlib
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
from http import HTTPStatus
from pathlib import Path

import pytest
from tests.expected_types import require
from tests.socket_servers import answering, gone, has_ipv6, serving, shake_hands
from tests.waiting import HANG_S, blocked_until, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection

from handaxe import Session
from handaxe.contract.events import JobEnded, JobSaid
from handaxe.contract.ports.shell import Socket
from handaxe.shell.exec import local_shell as listening
from handaxe.shell.exec import socket_child
from handaxe.tools.shell import monitor as sockets

pytestmark = pytest.mark.proves("BT-30")
MIB = 1 << 20


@pytest.fixture
async def free(project):
    async with Session(
        project, allow=["Monitor(domain:127.0.0.1)", "Monitor(domain:localhost)"]
    ) as opened:
        yield opened


class Listening:
    """A handler that holds its connection until the other side ends it."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.has_ended = threading.Event()

    def __call__(self, connection: ServerConnection) -> None:
        self.is_open.set()
        with contextlib.suppress(ConnectionClosed):
            connection.send("ready")
            connection.recv()
        self.has_ended.set()


async def watched(session, port, path="", *, scheme="ws", host="127.0.0.1", **more):
    """All lines of a watch until its end, and the state it ended in."""
    said: list[str] = []
    listening_to = {"url": f"{scheme}://{host}:{port}/{path}", **more.pop("ws", {})}
    session.subscribe(lambda event: said.append(event.line) if isinstance(event, JobSaid) else None)
    result = await session.call("Monitor", description="d", ws=listening_to, **more)
    assert result.ok, result.text
    job_id = result.data["taskId"]
    await until(lambda: job_id in session.jobs._ended)
    return said, session.jobs.named(job_id)[0]


async def last_words(session, port, path="", **more):
    said, state = await watched(session, port, path, **more)
    assert (state.status, state.exit_code) == ("failed", 1)
    return said[-1]


async def test_every_frame_is_an_event_and_the_end_is_told(free):
    def handler(connection: ServerConnection) -> None:
        connection.send("one")
        connection.send("two\nlines\r\nand \x1b[31mcolour\x1b[0m, größer")
        connection.send(b"\x00" * 1234)
        connection.send(["in ", "three ", "parts"])
        connection.send([b"12", b"345"])
        connection.send("")
        connection.ping().wait(HANG_S)
        connection.send("after a pong")
        connection.close(1001, "going home")

    events = []
    free.subscribe(events.append)
    with serving(handler) as port:
        said, state = await watched(free, port)
    assert said == [
        "one",
        "two\\nlines\\nand colour, größer",
        "[binary frame, 1234 bytes]",
        "in three parts",
        "[binary frame, 5 bytes]",
        "[empty frame]",
        "after a pong",
        "[watch ended: the server closed the connection: code 1001, going home]",
    ]
    assert (state.status, state.kind) == ("completed", "monitor")
    assert state.command == f"ws://127.0.0.1:{port}/"
    await until(lambda: [e for e in events if isinstance(e, JobEnded)])
    lines, end = free.jobs.take_notices()
    assert "<event>one\ntwo\\nlines" in lines
    assert '<summary>Monitor "d" completed (exit code 0)</summary>' in end
    assert "größer" in Path(state.output_path).read_text()


async def test_the_words_of_the_end_pass_every_pattern(free):
    def handler(connection: ServerConnection) -> None:
        for text in ("fine", "ERROR 1", "fine"):
            connection.send(text)
        connection.close(4000, "enough")

    with serving(handler) as port:
        said, state = await watched(free, port, pattern="ERR")
    assert said == [
        "ERROR 1",
        "[watch ended: the server closed the connection: code 4000, enough]",
    ]
    assert state.status == "failed"


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
async def test_an_address_of_the_newer_kind_is_listened_to(project):
    def handler(connection: ServerConnection) -> None:
        connection.send(require(connection.request).headers["Host"])
        connection.close()

    async with Session(project, allow=["Monitor(domain:[::1])"]) as session:
        with serving(handler, host="::1") as port:
            said, state = await watched(session, port, host="[0::1]")
    assert said[0] == f"[0::1]:{port}"
    assert state.status == "completed"


async def test_what_is_watched_is_said(free):
    with serving(Listening()) as port:
        result = await free.call(
            "Monitor", description="events", ws={"url": f"ws://127.0.0.1:{port}"}, persistent=True
        )
        assert result.data == {
            "taskId": result.data["taskId"],
            "timeoutMs": 0,
            "persistent": True,
        }
        assert "watches 'events' until it is stopped. You get every frame" in result.text
        stopped = await free.call("TaskStop", task_id=result.data["taskId"])
        assert stopped.data["task_type"] == "monitor"
        assert stopped.data["command"] == f"ws://127.0.0.1:{port}"


async def test_a_frame_of_one_mebibyte_is_told_and_a_larger_one_ends_the_watch(free):
    def handler(connection: ServerConnection) -> None:
        connection.send("x" * MIB)
        connection.send("y" * (MIB + 1))

    with serving(handler) as port:
        said, state = await watched(free, port)
    assert said[0] == "x" * 2_000 + "..."
    assert said[1:] == ["[watch ended: a frame is larger than 1 MiB]"]
    assert state.output_bytes == MIB + 1 + len(said[1]) + 1


async def test_a_frame_in_endless_parts_ends_the_watch(free):
    def handler(connection: ServerConnection) -> None:
        def parts():
            while True:
                yield "part " * 100

        with contextlib.suppress(ConnectionClosed):
            connection.send(parts())

    with serving(handler) as port:
        assert await last_words(free, port) == "[watch ended: a frame is larger than 1 MiB]"


async def test_a_hundred_thousand_empty_parts_are_no_frames_of_their_own(free):
    count = 100_000

    def handler(connection: socket.socket) -> None:
        shake_hands(connection)
        connection.sendall(b"\x01\x00" + b"\x00\x00" * count + b"\x80\x04done")
        connection.sendall(b"\x88\x02\x03\xe8")
        gone(connection)

    with answering(handler) as port:
        said, _ = await watched(free, port)
    assert said == ["done", "[watch ended: the server closed the connection: code 1000]"]


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        (b"\x81\x04\xff\xfe\xfd\xfc", "a text frame is not valid UTF-8"),
        (b"\x83\x00", "the server violated the protocol: code 1002"),
        (b"\x80\x01x", "the server violated the protocol: code 1002"),
        (b"\x89\x7e\x00\x7e" + b"p" * 126, "the server violated the protocol: code 1002"),
        (b"\x81\x7f" + (1 << 62).to_bytes(8, "big"), "a frame is larger than 1 MiB"),
        (b"", "the connection was lost"),
        (b"\x81\x05ha", "the connection was lost"),
    ],
)
async def test_a_broken_server_ends_the_watch(free, frames, words):
    def handler(connection: socket.socket) -> None:
        shake_hands(connection)
        connection.sendall(frames)
        if "lost" not in words:
            gone(connection)

    with answering(handler) as port:
        assert (await last_words(free, port)).startswith(f"[watch ended: {words}")


async def test_a_reset_is_told(free):
    def handler(connection: socket.socket) -> None:
        shake_hands(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with answering(handler) as port:
        words = await last_words(free, port)
    assert words == "[watch ended: the connection was lost]"


async def test_a_hundred_thousand_frames_do_not_flood_the_model(free):
    def handler(connection: ServerConnection) -> None:
        for number in range(100_000):
            connection.send(f"frame {number}")

    with serving(handler) as port:
        said, state = await watched(free, port)
    assert len(said) == 100_001
    lines = free.jobs.take_notices()[0]
    assert "(99,801 earlier lines are only in the output file)" in lines
    assert lines.count("\n") < 220
    assert Path(state.output_path).read_text().count("\n") == 100_001


async def test_nobody_there_is_told(free):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    words = await last_words(free, port)
    assert words == f"[watch ended: 127.0.0.1 port {port} cannot be reached: connection refused]"


async def test_a_host_without_an_address_is_told(project):
    async with Session(project, allow=["WebFetch(domain:*.invalid)"]) as session:
        words = await last_words(session, 80, host="nobody.invalid")
    assert words.startswith("[watch ended: nobody.invalid has no address: ")


async def test_a_server_that_never_agrees_is_given_up(free, monkeypatch):
    monkeypatch.setattr(listening, "OPEN_S", 0.3)
    with answering(gone) as port:
        words = await last_words(free, port)
    assert words == "[watch ended: the server did not answer within 0.3 s]"


SILENT_NAMES = """
import fcntl, os, socket, struct, subprocess, sys
whole = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(whole, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
whole.bind(("127.0.0.1", 53))
with open("names", "w") as names:
    names.write("nameserver 127.0.0.1\\noptions timeout:30 attempts:2\\n")
subprocess.run(["mount", "--bind", "names", os.path.realpath("/etc/resolv.conf")], check=True)
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""


def test_a_name_server_that_never_answers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(listening, "OPEN_S", 0.3)
    argv, env = listening.build_listener(
        Socket(url="ws://example.com/", host="example.com", port=80)
    )
    apart = ["unshare", "--user", "--map-root-user", "--mount", "--net", sys.executable, "-c"]
    done = subprocess.run(
        [*apart, SILENT_NAMES, *argv],
        env={**env, "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    words = "[watch ended: the address of example.com was not found within 0.3 s]\n"
    assert (done.stdout, done.returncode) == (words, 1), done.stderr


async def test_a_server_that_answers_no_ping_is_gone(free, monkeypatch):
    monkeypatch.setattr(listening, "PING_S", 0.05)
    monkeypatch.setattr(listening, "SILENT_S", 0.2)

    def handler(connection: socket.socket) -> None:
        shake_hands(connection)
        connection.sendall(b"\x81\x02hi")
        gone(connection)

    with answering(handler) as port:
        said, _ = await watched(free, port)
    assert said == ["hi", "[watch ended: the server answered no ping for 0.2 s]"]


async def test_a_server_that_answers_pings_is_listened_to_however_long_it_is_silent(
    free, monkeypatch
):
    monkeypatch.setattr(listening, "PING_S", 0.01)
    monkeypatch.setattr(listening, "SILENT_S", 5)
    pings = 0

    def handler(connection: socket.socket) -> None:
        nonlocal pings
        shake_hands(connection)
        while pings < 5:
            head = connection.recv(2)
            masked = connection.recv(4 + (head[1] & 0x7F))
            mask, content = masked[:4], masked[4:]
            payload = bytes(byte ^ mask[i % 4] for i, byte in enumerate(content))
            assert head[0] == 0x89
            connection.sendall(bytes([0x8A, len(payload)]) + payload)
            pings += 1
        connection.sendall(b"\x88\x02\x03\xe8")
        gone(connection)

    with answering(handler) as port:
        said, state = await watched(free, port)
    assert (pings, state.status) == (5, "completed")
    assert said == ["[watch ended: the server closed the connection: code 1000]"]


async def test_a_server_that_agrees_letter_by_letter_is_given_up(free, monkeypatch):
    monkeypatch.setattr(listening, "OPEN_S", 0.3)

    def handler(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\n")
        connection.settimeout(0.01)
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            while True:
                connection.sendall(b"X: y\r\n")
                with contextlib.suppress(TimeoutError):
                    connection.recv(4096)

    with answering(handler) as port:
        words = await last_words(free, port)
    assert words.startswith("[watch ended: the server d")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "the server does not support web sockets"),
        (b"", "the server does not support web sockets"),
        (b"HTTP/1.1 101 OK\r\n\r\n", "the server's answer is not a handshake: "),
    ],
)
async def test_who_speaks_something_else_is_told(free, answer, words):
    def handler(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(answer)

    with answering(handler) as port:
        assert (await last_words(free, port)).startswith(f"[watch ended: {words}")


async def test_a_refusal_is_told_with_its_status(free):
    def process_request(connection, _request):
        return connection.respond(HTTPStatus.UNAUTHORIZED, "who are you?\n")

    with serving(Listening(), process_request=process_request) as port:
        words = await last_words(free, port)
    assert words == "[watch ended: the server refused with HTTP status 401 Unauthorized]"


async def test_a_server_that_points_elsewhere_is_not_followed(free):
    elsewhere = Listening()
    with serving(elsewhere) as other:

        def process_request(connection, _request):
            response = connection.respond(HTTPStatus.FOUND, "")
            response.headers["Location"] = f"ws://127.0.0.1:{other}/"
            return response

        with serving(Listening(), process_request=process_request) as port:
            words = await last_words(free, port)
        assert not elsewhere.is_open.is_set()
    assert words == (
        "[watch ended: the server refused with HTTP status 302 Found; it points to "
        f"ws://127.0.0.1:{other}/, which is not followed]"
    )


async def test_a_subprotocol_has_to_be_agreed_on(free):
    def handler(connection: ServerConnection) -> None:
        connection.send(f"speaks {connection.subprotocol}")
        connection.close()

    wanted = {"protocols": ["v2.events", "v1.events"]}
    with serving(handler, subprotocols=["v1.events"]) as port:
        said, _ = await watched(free, port, ws=wanted)
    assert said[0] == "speaks v1.events"
    with serving(handler, select_subprotocol=lambda *_: None) as port:
        assert await last_words(free, port, ws=wanted) == (
            "[watch ended: the server accepted none of the subprotocols v2.events, v1.events]"
        )
    with serving(handler, select_subprotocol=lambda *_: "other") as port:
        words = await last_words(free, port, ws=wanted)
    assert words.startswith("[watch ended: the server's answer does not match the request: ")


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl to make a certificate")
async def test_only_a_trusted_certificate_is_good_enough(free, tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def handler(connection: ServerConnection) -> None:
        connection.send("secret")
        connection.close()

    with serving(handler, tls=context) as port:
        words = await last_words(free, port, scheme="wss", host="localhost")
        assert words.startswith("[watch ended: the server's certificate is not trusted: self")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        said, _ = await watched(free, port, scheme="wss", host="localhost")
        assert said[0] == "secret"
        words = await last_words(free, port, scheme="wss")
        assert words.startswith("[watch ended: the server's certificate is not trusted: IP address")
    with serving(handler) as port:
        words = await last_words(free, port, scheme="wss")
    assert words.startswith("[watch ended: there is no secure connection: ")


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "100.100.100.200", "[fd00:ec2::254]"]
)
async def test_where_no_server_can_be_meant_nothing_connects(project, host):
    async with Session(project, permission_mode="bypassPermissions") as session:
        words = await last_words(session, 80, host=host)
    assert words == (
        f"[watch ended: {host.strip('[]')} is a link-local, metadata or group address, "
        "which is never allowed]"
    )


@pytest.mark.parametrize(
    ("host", "address", "is_right"),
    [
        ("example.org", "93.184.215.14", True),
        ("example.org", "10.0.0.1", False),
        ("example.org", "127.0.0.1", False),
        ("example.org", "::ffff:127.0.0.1", False),
        ("example.org", "fe80::1%eth0", False),
        ("localhost", "127.0.0.1", True),
        ("app.localhost", "::1", True),
        ("build", "10.0.0.1", True),
        ("build.internal", "192.168.1.2", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("::1", "::1", True),
        ("build", "169.254.169.254", False),
        ("build", "64:ff9b::a9fe:a9fe", False),
    ],
)
def test_a_public_name_does_not_lead_into_the_own_network(host, address, is_right):
    with contextlib.nullcontext() if is_right else pytest.raises(socket_child._Ended):
        socket_child._refuse_wrong_place(host, address)


async def test_proxies_of_the_environment_are_not_used(free, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    handler = Listening()
    with serving(handler) as port:
        result = await free.call(
            "Monitor", description="d", ws={"url": f"ws://localhost:{port}/"}, persistent=True
        )
        await until(handler.is_open.is_set)
        await free.call("TaskStop", task_id=result.data["taskId"])
        await until(handler.has_ended.is_set)


async def test_a_watch_ends_at_its_time(free):
    handler = Listening()
    with serving(handler) as port:
        said, state = await watched(free, port, timeout_ms=1_000)
        await until(handler.has_ended.is_set)
    assert (state.status, state.ended_by) == ("killed", "time_up")
    assert 'Monitor "d" was ended because its time was up' in free.jobs.take_notices()[-1]
    assert said in (["ready"], [])


async def test_nothing_is_left_when_the_session_ends(project):
    handler = Listening()
    with serving(handler) as port:
        async with Session(project, allow=["WebFetch(domain:localhost)"]) as session:
            ws = {"url": f"ws://localhost:{port}/"}
            await session.call("Monitor", description="d", ws=ws, persistent=True)
            await until(handler.is_open.is_set)
            assert not handler.has_ended.is_set()
        await until(handler.has_ended.is_set)


HOST = """
import asyncio, sys
from handaxe import Session

async def main():
    async with Session(sys.argv[1], allow=["Monitor"]) as session:
        ws = {"url": sys.argv[2]}
        result = await session.call("Monitor", description="d", ws=ws, persistent=True)
        print(result.ok, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_host_dies(project, number):
    handler = Listening()
    with serving(handler) as port:
        host = subprocess.Popen(
            [sys.executable, "-c", HOST, str(project), f"ws://127.0.0.1:{port}/"],
            stdout=subprocess.PIPE,
        )
        assert host.stdout is not None
        try:
            assert host.stdout.readline() == b"True\n"
            blocked_until(handler.is_open.is_set)
            assert not handler.has_ended.is_set()
        finally:
            os.kill(host.pid, number)
            host.wait(HANG_S)
            host.stdout.close()
        blocked_until(handler.has_ended.is_set)


async def test_a_sandbox_for_commands_keeps_no_socket_from_being_watched(project):
    def handler(connection: ServerConnection) -> None:
        connection.send("hello")
        connection.close()

    settings = {"sandbox": {"enabled": True, "network": {"deniedDomains": ["localhost"]}}}
    async with Session(project, permission_mode="bypassPermissions", settings=settings) as session:
        with serving(handler) as port:
            said, _ = await watched(session, port)
            closed = {"url": f"ws://localhost:{port}/"}
            refused = await session.call("Monitor", description="d", ws=closed)
    assert said[0] == "hello"
    assert refused.code == "shell.bad_socket"
    assert "localhost is not usable, it is in sandbox.network.deniedDomains" in refused.text


async def test_a_missing_library_is_said_before_anybody_is_asked(session, monkeypatch):
    monkeypatch.setattr(sockets, "find_spec", lambda _: None)
    refused = await session.call("Monitor", description="d", ws={"url": "ws://example.org"})
    assert refused.code == "shell.no_socket_client"
    assert "pip install 'handaxe[sockets]'" in refused.text
