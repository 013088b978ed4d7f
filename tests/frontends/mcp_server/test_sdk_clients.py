"""The official SDK's client drives the server, as a process on stdio and over HTTP."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager

import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from tests.expected_types import expect_type, require
from tests.frontends.mcp_server.raw_client import blueprint_of, stopped
from tests.waiting import HANG_S, blocked_until, until

from handaxe.frontends.mcp_server.http import HttpSessions, bind, build_app, serve

TOKEN = "a-token-that-is-long-enough"
MODES = ["auto", "legacy"]


def process(project, *words):
    """The command that starts the server, with the environment of the tests."""
    kept = {name: os.environ[name] for name in os.environ if "HANDAXE" in name or "CLAUDE" in name}
    kept["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    return StdioServerParameters(
        command=sys.executable, args=["-m", "handaxe", "mcp", *words], cwd=project, env=kept
    )


@asynccontextmanager
async def served(project, **options):
    """A server in this process; its address."""
    listening = bind(0)
    port = listening.getsockname()[1]
    stopped.clear()
    server = asyncio.ensure_future(serve(blueprint_of(project, **options), listening, TOKEN))
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            break
        except OSError:
            await asyncio.sleep(0.01)
    writer.close()
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)


@asynccontextmanager
async def client_of(address, **options):
    """The SDK's client with our token."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as web,
        Client(streamable_http_client(address, http_client=web), **options) as client,
    ):
        yield client


async def yes(context, params):
    assert params.requested_schema["properties"]["answer"]["enum"]
    return types.ElicitResult(action="accept", content={"answer": "once"})


@pytest.mark.proves("AR-2")
@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_drives_the_server_on_stdio(project, mode):
    (project / "a.py").write_text("x = 1\n")
    async with Client(process(project), mode=mode, elicitation_callback=yes) as client:
        listed = await client.list_tools()
        assert {"Read", "Edit", "Grep"} <= {tool.name for tool in listed.tools}
        read = await client.call_tool("Read", {"file_path": "a.py"})
        assert expect_type(types.TextContent, read.content[0]).text == "     1→x = 1"
        change = {"file_path": "a.py", "old_string": "1", "new_string": "2"}
        edited = await client.call_tool("Edit", change)
        assert not edited.is_error
        assert (project / "a.py").read_text() == "x = 2\n"
        undone = await client.call_tool("Undo", {})
        assert not undone.is_error


@pytest.mark.proves("AR-2")
@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_drives_the_server_over_http(project, mode):
    (project / "a.py").write_text("x = 1\n")
    told = []

    async def note(progress, total, message):
        told.append((progress, message))

    async with (
        served(project) as address,
        client_of(address, mode=mode, elicitation_callback=yes) as client,
    ):
        listed = await client.list_tools()
        assert {"Read", "Edit", "count_up"} <= {tool.name for tool in listed.tools}
        await client.call_tool("Read", {"file_path": "a.py"})
        change = {"file_path": "a.py", "old_string": "1", "new_string": "2"}
        assert not (await client.call_tool("Edit", change)).is_error
        assert (project / "a.py").read_text() == "x = 2\n"
        await client.call_tool("count_up", {"to": 2}, progress_callback=note)
        assert told == [(1, "1 of 2"), (2, "2 of 2")]
        failed = await client.call_tool("Read", {"file_path": "missing"})
        assert failed.is_error
        assert failed.structured_content["code"] == "file.not_found"


async def test_clients_over_http_have_sessions_of_their_own(project):
    (project / "a.py").write_text("x = 1\n")
    change = {"file_path": "a.py", "old_string": "1", "new_string": "2"}
    async with (
        served(project, permission_mode="acceptEdits") as address,
        client_of(address, mode="legacy") as one,
        client_of(address, mode="legacy") as two,
    ):
        await one.call_tool("Read", {"file_path": "a.py"})
        unread = await two.call_tool("Edit", change)
        assert unread.structured_content["code"] == "file.not_read"
        assert not (await one.call_tool("Edit", change)).is_error


async def test_roots_are_asked_for_over_http(project, tmp_path):
    (project / "a.py").write_text("x = 1\n")

    async def roots(_context):
        return types.ListRootsResult(roots=[types.Root(uri=project.as_uri())])

    async with (
        served(None) as address,
        client_of(address, mode="legacy", list_roots_callback=roots) as client,
    ):
        assert not (await client.call_tool("Read", {"file_path": "a.py"})).is_error


@pytest.mark.parametrize("mode", MODES)
async def test_cancelling_over_http_stops_the_tool(project, mode):
    began = asyncio.Event()

    async def note(progress, total, message):
        began.set()

    async with served(project) as address, client_of(address, mode=mode) as client:
        call = asyncio.ensure_future(client.call_tool("wait_long", {}, progress_callback=note))
        await asyncio.wait_for(began.wait(), HANG_S)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until(lambda: stopped)


@pytest.mark.parametrize("mode", MODES)
async def test_a_hundred_calls_at_once_over_http(project, mode):
    for number in range(100):
        (project / f"{number}.txt").write_text(f"{number}\n")
    async with served(project) as address, client_of(address, mode=mode) as client:
        results = await asyncio.gather(
            *(client.call_tool("Read", {"file_path": f"{number}.txt"}) for number in range(100))
        )
    found = [result.structured_content["file"]["content"] for result in results]
    assert found == [str(number) for number in range(100)]


GOOD = {"authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": "Bearer ä"}, 401),
        ({**GOOD, "host": "evil.example"}, 421),
        ({**GOOD, "host": "127.0.0.1.evil.example:80"}, 421),
        ({**GOOD, "host": "127.0.0.1"}, 421),
        ({**GOOD, "origin": "https://evil.example"}, 403),
        ({**GOOD, "origin": "null"}, 403),
        ({**GOOD, "origin": "http://127.0.0.1:1"}, 403),
        (GOOD, 400),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
async def test_only_this_machines_programs_with_the_token_get_in(project, headers, status, method):
    port = 45_678
    app = build_app(HttpSessions(blueprint_of(project)), port=port, token=TOKEN)
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    raw = [(b"host", f"127.0.0.1:{port}".encode())] if "host" not in headers else []
    raw += [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": method,
        "path": "/elsewhere",
        "headers": raw,
        "query_string": b"",
    }
    if status == 400:
        # Past the guard the SDK answers; here nothing lives at the path.
        status = 404
        scope |= {
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
            "raw_path": b"/elsewhere",
        }
    await app(scope, receive, send)
    assert sent[0]["status"] == status


def test_a_taken_port_is_told():
    from handaxe import SetupError

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SetupError, match="Cannot use port"):
            bind(taken.getsockname()[1])


def test_it_listens_on_loopback_only():
    with bind(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("given", [None, TOKEN, "short"])
def test_the_command_serves_http_until_it_is_ended(project, given):
    words = [sys.executable, "-m", "handaxe", "mcp", "--http", "0"]
    env = dict(os.environ) if given is None else {**os.environ, "HANDAXE_MCP_TOKEN": given}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=project, env=env) as server:
        heard = require(server.stderr)
        first = heard.readline()
        if given == "short":
            assert "printable ASCII" in first
            assert server.wait(HANG_S) == 2
            return
        address = first.partition(" on ")[2].strip()
        token = given or heard.readline().rpartition(" ")[2].strip()
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        }
        accept = {"accept": "application/json, text/event-stream"}
        with httpx2.Client(timeout=HANG_S) as web:
            assert post(web, address, body, accept).status_code == 401
            good = {**accept, "authorization": f"Bearer {token}"}
            answer = post(web, address, body, good)
            assert answer.status_code == 200
            assert "handaxe" in answer.text
        server.terminate()
        assert server.wait(HANG_S) == 143


def post(web: httpx2.Client, address, body, headers) -> httpx2.Response:
    """A request, as soon as the server listens."""

    def answer():
        try:
            return web.post(address, json=body, headers=headers)
        except httpx2.ConnectError:
            return None

    return require(blocked_until(answer))


def test_the_loss_of_the_terminal_ends_the_http_server(project):
    words = [sys.executable, "-m", "handaxe", "mcp", "--http", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, cwd=project) as server:
        address = require(server.stderr).readline().split()[-1].decode()
        port = int(address.split(":")[2].partition("/")[0])

        def is_listening() -> bool:
            with socket.socket() as asking:
                return asking.connect_ex(("127.0.0.1", port)) == 0

        try:
            blocked_until(is_listening)
            server.send_signal(signal.SIGHUP)
            assert server.wait(HANG_S) == 129
        finally:
            server.kill()
