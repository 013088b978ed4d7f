"""Headers that a program prints: used, renewed when they are refused, told when they are missing."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.expected_types import expect_type

from handaxe import Session
from handaxe.mcp import header_helper

TOOL = {"name": "greet", "inputSchema": {"type": "object"}}
ANSWERS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "guarded", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "welcome"}]},
}


class Guarded(ThreadingHTTPServer):
    """A server that knows one token."""

    token = "first"
    refused = 0


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        guarded = expect_type(Guarded, self.server)
        is_known = self.headers.get("authorization") == f"Bearer {guarded.token}"
        if not is_known:
            guarded.refused += 1
        if not is_known or "id" not in message:
            self._answer(202 if is_known else 401, b"")
            return
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[message["method"]]}
        self._answer(200, json.dumps(answer).encode())

    def do_GET(self) -> None:
        self._answer(405, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with Guarded(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield server
        server.shutdown()
        serving.join()


@pytest.fixture
def open_one(guarded: Guarded, project: Path):
    url = f"http://127.0.0.1:{guarded.server_port}/mcp"

    def make(helper: str) -> Session:
        entry = {"type": "http", "url": url, "headersHelper": helper}
        return Session(project, mcp_servers={"g": entry}, strict_mcp=True, allow=["mcp__g"])

    return make


def helper_for(file: Path) -> str:
    return (
        f"""[ "$CLAUDE_CODE_MCP_SERVER_NAME" = g ] && echo x >> {file}.runs && """
        f"""printf '{{"Authorization": "Bearer %s"}}' "$(cat {file})" """
    )


@pytest.mark.proves("AR-2")
async def test_a_program_gives_the_headers_and_is_asked_again_when_they_are_refused(
    open_one, guarded, tmp_path
):
    file = tmp_path / "token"
    file.write_text("first")
    async with open_one(helper_for(file)) as session:
        assert (await session.call("mcp__g__greet")).text == "welcome"
        assert guarded.refused == 0
        assert Path(f"{file}.runs").read_text().count("x") == 1
        guarded.token = "second"
        file.write_text("second")
        assert (await session.call("mcp__g__greet")).text == "welcome"
        assert guarded.refused == 1
        assert Path(f"{file}.runs").read_text().count("x") == 2
        (state,) = session.mcp.status()
        assert state.status == "connected"


@pytest.mark.parametrize(
    ("helper", "why"),
    [
        ("echo secret-token", "did not print a JSON object"),
        ("echo '{\"a\": 1}'", "did not print a JSON object"),
        ("echo '{}'; exit 4", "exit code 4"),
        ("sleep 60", "took longer"),
    ],
)
async def test_a_program_without_headers_is_told_and_not_quoted(open_one, monkeypatch, helper, why):
    if helper == "sleep 60":
        monkeypatch.setattr(header_helper, "LIMIT_S", 0.5)
    async with open_one(helper) as session:
        result = await session.call("mcp__g__greet")
        (state,) = session.mcp.status()
    assert not result.ok
    assert why in str(state.error)
    assert "secret-token" not in str(state.error) + result.text


async def test_headers_that_stay_wrong_want_a_login(open_one, tmp_path):
    file = tmp_path / "token"
    file.write_text("wrong")
    async with open_one(helper_for(file)) as session:
        result = await session.call("mcp__g__greet")
        (state,) = session.mcp.status()
    assert not result.ok
    assert state.status == "needs-auth"
