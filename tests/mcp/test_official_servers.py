"""Servers on the official SDK and the reference server, over every transport."""

import asyncio
import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.expected_types import require
from tests.waiting import blocked_until, until

from handaxe.app.session import Session, get_parts
from handaxe.contract.decision import Allow, Deny
from handaxe.contract.events import CallProgress

SERVER = str(Path(__file__).with_name("sdk_server.py"))
NODE_CACHE = Path(os.environ.get("HANDAXE_TEST_CACHE", "/tmp/handaxe-test-cache"))


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class HttpServer:
    """A server in a process of its own on loopback."""

    def __init__(self, transport: str, port: int) -> None:
        self.port, self._transport = port, transport
        self.url = f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, SERVER, self._transport, str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        blocked_until(self._listens)

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def http_server() -> Iterator[HttpServer]:
    server = HttpServer("streamable-http", free_port())
    server.start()
    yield server
    server.kill()


def session_with(tmp_path: Path, servers: dict[str, Any], **more: Any) -> Session:
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    return Session(
        root,
        home=tmp_path / "home",
        setting_sources=[],
        allow=["mcp__a"],
        mcp_servers=servers,
        **more,
    )


async def begun(session: Session, tool: str, **given: Any) -> asyncio.Future[Any]:
    """A call that the server is known to be working at."""
    heard = []
    session.subscribe(lambda e: heard.append(e) if isinstance(e, CallProgress) else None)
    running = asyncio.ensure_future(session.call(tool, **given))
    await until(lambda: heard)
    return running


@pytest.mark.proves("AR-2")
async def test_an_official_server_on_standard_input_and_output(tmp_path):
    answers = [Allow(), Deny()]
    asked = []

    async def on_ask(request):
        asked.append(request.reason)
        return answers.pop(0)

    servers = {"a": {"command": sys.executable, "args": [SERVER]}}
    async with session_with(tmp_path, servers, on_ask=on_ask) as session:
        assert (await session.call("mcp__a__echo", text="ab", times=2)).text == "abab"
        assert (await session.call("mcp__a__grow")).ok
        await until(lambda: get_parts(session).catalog.has("mcp__a__grown"))
        assert (await session.call("mcp__a__grown")).text == "I am new"
        assert (await session.call("mcp__a__confirm")).text == "accept sure=True"
        assert (await session.call("mcp__a__confirm")).text == "decline None"
        assert asked == ["The MCP server 'a' asks: Shall I?"] * 2
        (resource,) = await require(session.mcp).resources("a")
        (content,) = await require(session.mcp).read("a", resource.uri, "call")
        assert Path(require(content.blob_saved_to)).read_bytes() == b"\x00\x01\x02"
        assert await require(session.mcp).prompt("mcp__a__greet", {"who": "Bo"}) == "Greet Bo."


async def test_nobody_there_to_fill_in_a_form_declines_or_refuses_it(tmp_path):
    async with session_with(
        tmp_path, {"a": {"command": sys.executable, "args": [SERVER]}}
    ) as session:
        result = await session.call("mcp__a__confirm")
        assert not result.ok


@pytest.mark.proves("AR-2")
async def test_an_official_server_over_streamable_http(tmp_path, http_server):
    async with session_with(tmp_path, {"a": {"type": "http", "url": http_server.url}}) as session:
        assert (await session.call("mcp__a__echo", text="ab", times=2)).text == "abab"
        results = await session.call_many([("mcp__a__echo", {"text": str(n)}) for n in range(20)])
        assert [result.text for result in results] == [str(n) for n in range(20)]
        assert require(require(session.mcp).status()[0].server_info)["name"] == "official"


async def test_a_call_over_http_can_be_cancelled(tmp_path, http_server):
    async with session_with(tmp_path, {"a": {"type": "http", "url": http_server.url}}) as session:
        await require(session.mcp).settled()
        running = await begun(session, "mcp__a__slow", seconds=600)
        session.cancel()
        assert (await running).code == "call.cancelled"
        assert (await session.call("mcp__a__echo", text="x")).ok


async def test_an_answer_over_http_that_would_fill_the_memory_is_refused(tmp_path, http_server):
    async with session_with(tmp_path, {"a": {"type": "http", "url": http_server.url}}) as session:
        result = await session.call("mcp__a__huge", megabytes=40)
        assert result.code == "mcp.too_large"
        assert (await session.call("mcp__a__echo", text="x")).ok


async def test_a_server_over_http_that_was_restarted_is_found_again(tmp_path):
    server = HttpServer("streamable-http", free_port())
    server.start()
    try:
        async with session_with(tmp_path, {"a": {"type": "http", "url": server.url}}) as session:
            assert (await session.call("mcp__a__echo", text="one")).text == "one"
            running = await begun(session, "mcp__a__slow", seconds=600)
            server.kill()
            assert (await running).code == "mcp.connection_lost"
            down = await session.call("mcp__a__echo", text="x")
            assert down.code == "mcp.not_connected"
            server.start()

            async def answer():
                said = await session.call("mcp__a__echo", text="two")
                return said.text if said.ok else None

            assert await until(answer) == "two"
            server.kill()
            server.start()
            assert (await session.call("mcp__a__echo", text="three")).text == "three"
    finally:
        server.kill()


async def test_the_older_transport_with_server_sent_events(tmp_path):
    server = HttpServer("sse", free_port())
    server.start()
    try:
        async with session_with(tmp_path, {"a": {"type": "sse", "url": server.url}}) as session:
            assert (await session.call("mcp__a__echo", text="old")).text == "old"
    finally:
        server.kill()


async def test_nobody_at_an_address_is_a_failed_server(tmp_path):
    async with session_with(
        tmp_path, {"a": {"type": "http", "url": f"http://127.0.0.1:{free_port()}/mcp"}}
    ) as session:
        await require(session.mcp).settled()
        (status,) = require(session.mcp).status()
        assert status.status == "failed"
        assert status.error


@pytest.fixture(scope="module")
def reference_server() -> str:
    """The reference filesystem server, installed once outside the repository."""
    program = NODE_CACHE / "node_modules" / ".bin" / "mcp-server-filesystem"
    if program.exists():
        return str(program)
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    NODE_CACHE.mkdir(parents=True, exist_ok=True)
    command = [
        npm,
        "install",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(NODE_CACHE),
        "@modelcontextprotocol/server-filesystem",
    ]
    done = subprocess.run(command, capture_output=True, check=False, timeout=100)
    if not program.exists():
        pytest.skip(f"npm could not install the server: {done.stderr[-300:]!r}")
    return str(program)


async def test_the_reference_filesystem_server(tmp_path, reference_server):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("from the reference server")
    root = str(tmp_path / "project")
    async with session_with(
        tmp_path, {"a": {"command": reference_server, "args": [root]}}
    ) as session:
        result = await session.call("mcp__a__read_text_file", path=f"{root}/a.txt")
        assert result.text == "from the reference server"
        assert get_parts(session).catalog.find("mcp__a__read_text_file")[0].effects.is_read_only
        written = await session.call("mcp__a__write_file", path=f"{root}/b.txt", content="x")
        assert written.ok
        outside = await session.call("mcp__a__read_text_file", path="/etc/hostname")
        assert outside.code == "mcp.tool_failed"
        assert len(require(session.mcp).status()[0].tools) > 10


class Rude(http.server.BaseHTTPRequestHandler):
    """Answers every request with one status, or never."""

    status = 401
    hung: threading.Event

    def do_POST(self) -> None:
        if self.status == 0:
            self.hung.wait(30)
            return
        self.send_response(self.status)
        self.end_headers()

    do_GET = do_DELETE = do_POST  # noqa: N815 - what the base class calls

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def rude(request) -> Iterator[str]:
    hung = threading.Event()
    handler = type("Handler", (Rude,), {"status": request.param, "hung": hung})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/mcp?key=secret"
    hung.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("rude", [401, 403], indirect=True)
async def test_a_server_that_wants_a_login_says_so(tmp_path, rude):
    async with session_with(tmp_path, {"a": {"type": "http", "url": rude}}) as session:
        await require(session.mcp).settled()
        (status,) = require(session.mcp).status()
        assert status.status == "needs-auth"
        assert "secret" not in require(status.error)


@pytest.mark.parametrize("rude", [500, 302], indirect=True)
async def test_an_address_that_is_no_server_is_a_failed_one(tmp_path, rude):
    async with session_with(tmp_path, {"a": {"type": "http", "url": rude}}) as session:
        await require(session.mcp).settled()
        (status,) = require(session.mcp).status()
        assert status.status == "failed"
        assert "secret" not in require(status.error)


@pytest.mark.parametrize("rude", [0], indirect=True)
async def test_an_address_that_never_answers_holds_up_neither_start_nor_end(
    tmp_path, rude, monkeypatch
):
    monkeypatch.setenv("MCP_TIMEOUT", "500")
    async with session_with(tmp_path, {"a": {"type": "http", "url": rude}}) as session:
        await require(session.mcp).settled()
        assert "did not answer within 0.5 s" in require(require(session.mcp).status()[0].error)


@pytest.mark.proves("HK-1")
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"hookSpecificOutput": {"action": "accept", "content": {"sure": True}}}, None, "accept sure=True"),
        ({"hookSpecificOutput": {"action": "decline"}}, None, "decline None"),
        ({"decision": "block", "reason": "no"}, None, "decline None"),
        (None, {"decision": "block", "reason": "no"}, "decline None"),
        (None, {"hookSpecificOutput": {"action": "accept", "content": {"sure": False}}}, "accept sure=False"),
        (None, None, "accept sure=True"),
    ],
)  # fmt: skip
async def test_hooks_may_fill_in_a_servers_form(project, before, after, said):
    heard = []

    async def first(event):
        heard.append(event)
        return before

    async def last(event):
        heard.append(event)
        return after

    async def on_ask(request):
        return Allow()

    hooks = {
        "Elicitation": [{"matcher": "a", "hooks": [first]}],
        "ElicitationResult": [{"matcher": "a", "hooks": [last]}],
    }
    servers = {"a": {"command": sys.executable, "args": [SERVER]}}
    asker = None if before else on_ask
    async with Session(
        project, mcp_servers=servers, allow="mcp__a", hooks=hooks, on_ask=asker
    ) as session:
        assert (await session.call("mcp__a__confirm")).text == said
    assert heard[0]["mcp_server_name"] == "a"
    assert (heard[0]["message"], heard[0]["mode"]) == ("Shall I?", "form")
    assert "sure" in heard[0]["requested_schema"]["properties"]
    if before is None:
        assert (heard[1]["action"], heard[1]["content"]) == ("accept", {"sure": True})
