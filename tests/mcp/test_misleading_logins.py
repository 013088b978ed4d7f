"""A server that wants a login leads the client nowhere but to public places and to itself."""

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.expected_types import expect_type, require

from handaxe import Session
from handaxe.contract.faults.mcp import LoginFailed
from handaxe.contract.ports.mcp_servers import McpLogin
from handaxe.mcp.server_group import ConnectedServers
from handaxe.storage.mcp_logins import DiskMcpLogins

# Two hosts of this machine: to the client they are as different as any others.
EVIL, VICTIM = "127.0.0.2", "127.0.0.1"


class Site:
    """A server that gives what a test says and counts who came."""

    def __init__(self, host: str) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], Any]] = {}
        self.asked: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                self.rfile.read(int(self.headers.get("content-length") or 0))
                status, headers, body = site.answers.get(self.path, (404, {}, {}))
                data = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET  # noqa: N815 - the library's name

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer((host, 0), Handler)
        self.url = f"http://{host}:{self.server.server_address[1]}"


@contextmanager
def standing(host: str) -> Generator[Site]:
    site = Site(host)
    serving = threading.Thread(target=site.server.serve_forever, args=(0.01,), daemon=True)
    serving.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        site.server.server_close()


@pytest.fixture
def evil() -> Iterator[Site]:
    with standing(EVIL) as site:
        yield site


@pytest.fixture
def victim() -> Iterator[Site]:
    with standing(VICTIM) as site:
        yield site


def metadata(site: Site, **more: Any) -> dict[str, Any]:
    return {
        "issuer": site.url,
        "authorization_endpoint": f"{site.url}/authorize",
        "token_endpoint": f"{site.url}/token",
        "registration_endpoint": f"{site.url}/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        **more,
    }


def lead(
    evil: Site, *, resource: str | None = None, issuer: str | None = None, **more: Any
) -> None:
    """Have the server ask for a login at these places."""
    named = f'Bearer resource_metadata="{resource or evil.url + "/resource"}"'
    evil.answers["/mcp"] = 401, {"www-authenticate": named}, {}
    listed = {"resource": f"{evil.url}/mcp", "authorization_servers": [issuer or evil.url]}
    evil.answers["/resource"] = 200, {}, listed
    where = "/.well-known/oauth-authorization-server"
    evil.answers[where] = 200, {}, metadata(evil, **more)
    registered = {"client_id": "us", "redirect_uris": ["http://127.0.0.1:1/callback"]}
    evil.answers["/register"] = 201, {}, registered


def session_with(url: str, place: Path, **oauth: Any) -> Session:
    (place / "project").mkdir(exist_ok=True)
    entry = {"type": "http", "url": url, **({"oauth": oauth} if oauth else {})}
    return Session(
        place / "project",
        home=place / "home",
        setting_sources=[],
        mcp_servers={"e": entry},
        strict_mcp=True,
        allow=["mcp__e"],
    )


async def refused(session: Session) -> str:
    shown: list[str] = []

    async def show(address: str) -> None:
        shown.append(address)

    with pytest.raises(LoginFailed) as failed:
        await require(session.mcp).login("e", show, wait_s=5)
    assert shown == []
    return str(failed.value)


@pytest.mark.parametrize("host", [VICTIM, "localhost"])
@pytest.mark.parametrize("what", ["resource", "issuer", "registration_endpoint"])
async def test_a_server_cannot_have_another_host_of_this_machine_asked(
    evil, victim, tmp_path, what, host
):
    there = victim.url.replace(VICTIM, host)
    lead(evil, **{what: there if what == "issuer" else f"{there}/secret"})
    told = await refused(session_with(f"{evil.url}/mcp", tmp_path))
    assert victim.asked == []
    assert f"{VICTIM}, which is not a public address" in told
    assert "oauth.authServerMetadataUrl" in told


async def test_nobody_is_sent_there_with_a_browser_either(evil, victim, tmp_path):
    lead(evil, authorization_endpoint=f"{victim.url}/authorize")
    told = await refused(session_with(f"{evil.url}/mcp", tmp_path))
    assert VICTIM in told


@pytest.mark.parametrize("target", ["https://169.254.169.254/latest", "https://[fd00:ec2::254]/"])
async def test_places_with_credentials_of_machines_are_never_asked(evil, tmp_path, target):
    lead(evil, resource=target)
    told = await refused(session_with(f"{evil.url}/mcp", tmp_path, authServerMetadataUrl=target))
    assert "never allowed" in told


async def test_a_host_that_the_entry_names_may_be_asked(evil, victim, tmp_path):
    lead(evil)
    victim.answers["/meta"] = 200, {}, metadata(victim)
    session = session_with(f"{evil.url}/mcp", tmp_path, authServerMetadataUrl=f"{victim.url}/meta")
    await refused(session)
    assert victim.asked == ["/meta", "/register"]


async def test_a_kept_login_is_not_renewed_or_revoked_there(evil, victim, tmp_path):
    session = session_with(f"{evil.url}/mcp", tmp_path)
    key = expect_type(ConnectedServers, session.mcp)._definition("e").login_key
    logins = DiskMcpLogins(tmp_path / "home")
    login = McpLogin(
        token_endpoint=f"{victim.url}/token",
        revocation_endpoint=f"{victim.url}/revoke",
        client={"client_id": "us", "redirect_uris": ["http://127.0.0.1:1/callback"]},
        access_token="old",
        refresh_token="secret",
        expires_at=1.0,
    )
    await logins.write(key, login)
    evil.answers["/mcp"] = 401, {}, {}
    async with session:
        await require(session.mcp).settled()
        (state,) = require(session.mcp).status()
        assert state.status != "connected"
    assert await require(session_with(f"{evil.url}/mcp", tmp_path).mcp).logout("e")
    assert victim.asked == []
