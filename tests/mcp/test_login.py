"""Logging in at a server with OAuth: end to end, against a real authorisation server."""

import asyncio
import json
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from tests.expected_types import require
from tests.mcp.authorising import Guarded, guarded_server, serving_json

from handaxe import Session
from handaxe.contract.faults.mcp import LoginFailed

pytestmark = pytest.mark.proves("AR-2")


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with guarded_server() as server:
        yield server


class Desk:
    """Sessions with the guarded server, all with one data directory."""

    def __init__(self, root: Path, home: Path, guarded: Guarded) -> None:
        self.root, self.home, self.guarded = root, home, guarded

    def session(self, **oauth: Any) -> Session:
        return Session(
            self.root,
            home=self.home,
            setting_sources=[],
            mcp_servers={"g": self.guarded.entry(**oauth)},
            strict_mcp=True,
            allow=["mcp__g"],
        )

    def files(self) -> list[Path]:
        return sorted((self.home / "handaxe-logins").glob("*.json"))

    def kept(self) -> dict[str, Any]:
        (file,) = self.files()
        return json.loads(file.read_text())


@pytest.fixture
def server_session(tmp_path: Path, guarded: Guarded) -> Desk:
    (tmp_path / "project").mkdir()
    return Desk(tmp_path / "project", tmp_path / "home", guarded)


async def browser(address: str) -> None:
    """A person with a browser who says yes at once."""
    async with httpx2.AsyncClient(follow_redirects=True) as http:
        answer = await http.get(address)
        assert answer.status_code == 200, answer.text


async def said(session: Session) -> tuple[str, str | None]:
    assert session.mcp is not None
    await session.mcp.settled()
    (state,) = session.mcp.status()
    return state.status, state.error


async def test_without_a_login_the_status_names_the_command_and_nothing_is_asked(
    server_session, guarded
):
    async with server_session.session() as session:
        status, error = await said(session)
        assert status == "needs-auth"
        assert "run `handaxe mcp login g`" in require(error)
        result = await session.call("mcp__g__echo", text="hi")
        assert not result.ok
    assert guarded.authority.asked == []


async def test_after_a_login_every_session_calls_silently(server_session, guarded):
    async with server_session.session() as session:
        assert (await said(session))[0] == "needs-auth"
        await session.mcp.login("g", browser)
        await session.mcp.reconnect("g")
        assert (await session.call("mcp__g__echo", text="hi")).text == "hi"
    async with server_session.session() as other:
        assert (await other.call("mcp__g__echo", text="again")).text == "again"
    assert len(guarded.authority.asked) == 1
    asked = guarded.authority.asked[0]
    assert asked.resource == guarded.url
    assert asked.scopes == ["use"]
    assert urlsplit(str(asked.redirect_uri)).hostname == "127.0.0.1"


async def test_tokens_lie_in_a_file_for_the_owner_only_and_in_no_log(
    server_session, guarded, caplog
):
    caplog.set_level(logging.DEBUG)
    await server_session.session().mcp.login("g", browser)
    async with server_session.session() as session:
        assert (await session.call("mcp__g__echo", text="hi")).ok
    (file,) = server_session.files()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    kept = server_session.kept()
    for secret in (kept["access_token"], kept["refresh_token"]):
        assert secret not in caplog.text
        others = [one for one in server_session.home.rglob("*") if one.is_file() and one != file]
        assert not any(secret.encode() in one.read_bytes() for one in others)


async def test_a_token_that_has_run_out_is_renewed_where_it_was_given(server_session, guarded):
    guarded.authority.lives_s = 0
    await server_session.session().mcp.login("g", browser)
    first = server_session.kept()
    guarded.authority.lives_s = 3600
    async with server_session.session() as session:
        assert (await session.call("mcp__g__echo", text="hi")).text == "hi"
    assert guarded.authority.renewals == 1
    assert server_session.kept()["refresh_token"] != first["refresh_token"]
    assert server_session.kept()["client"] == first["client"]


async def test_a_token_that_is_refused_is_renewed_once_for_calls_side_by_side(
    server_session, guarded
):
    await server_session.session().mcp.login("g", browser)
    async with server_session.session() as one, server_session.session() as two:
        for session in (one, two):
            assert (await session.call("mcp__g__echo", text="hi")).ok
        guarded.authority.access.clear()
        calls = [s.call("mcp__g__echo", text=str(n)) for n in range(4) for s in (one, two)]
        results = await asyncio.gather(*calls)
    assert [result.text for result in results] == [str(n) for n in range(4) for _ in "ab"]
    assert guarded.authority.renewals == 1


async def test_a_login_that_was_revoked_needs_a_new_one_and_the_session_goes_on_with_it(
    server_session, guarded
):
    await server_session.session().mcp.login("g", browser)
    async with server_session.session() as session:
        assert (await session.call("mcp__g__echo", text="hi")).ok
        guarded.authority.access.clear()
        guarded.authority.refresh.clear()
        lost = await session.call("mcp__g__echo", text="hi")
        assert lost.code == "mcp.not_connected"
        assert "run `handaxe mcp login g`" in lost.text
        assert "access_token" not in server_session.kept()
        await session.mcp.login("g", browser)
        await session.mcp.reconnect("g")
        assert (await session.call("mcp__g__echo", text="back")).text == "back"
        assert session.mcp.status()[0].status == "connected"


async def test_a_server_that_cannot_renew_just_now_does_not_cost_the_login(server_session, guarded):
    guarded.authority.lives_s = 0
    await server_session.session().mcp.login("g", browser)
    (file,) = server_session.files()
    before = json.loads(file.read_text())
    file.write_text(json.dumps({**before, "token_endpoint": f"{guarded.issuer}/nowhere"}))
    async with server_session.session() as session:
        status, error = await said(session)
    assert status == "failed"
    assert "could not be renewed (HTTP 404)" in require(error)
    assert server_session.kept()["refresh_token"] == before["refresh_token"]


async def test_logging_out_forgets_and_revokes(server_session, guarded):
    await server_session.session().mcp.login("g", browser)
    assert guarded.authority.refresh
    assert await server_session.session().mcp.logout("g") is True
    assert server_session.files() == []
    assert guarded.authority.refresh == {}
    assert await server_session.session().mcp.logout("g") is False
    async with server_session.session() as session:
        assert (await said(session))[0] == "needs-auth"


async def test_the_next_login_uses_the_registration_again(server_session, guarded):
    await server_session.session().mcp.login("g", browser)
    await server_session.session().mcp.login("g", browser)
    assert guarded.authority.registrations == 1


async def test_an_answer_with_another_state_is_not_believed(server_session, guarded):
    seen: list[int] = []

    async def attacked(address: str) -> None:
        (back,) = parse_qs(urlsplit(address).query)["redirect_uri"]
        async with httpx2.AsyncClient() as http:
            for forged in ("?code=evil", "?code=evil&state=guess", "?state=", "?error=x", ""):
                seen.append((await http.get(back + forged)).status_code)
            seen.append((await http.get(back.replace("/callback", "/"))).status_code)
            seen.append((await http.post(back)).status_code)
        await browser(address)

    await server_session.session().mcp.login("g", attacked)
    assert seen == [400, 400, 400, 400, 400, 404, 404]
    assert server_session.kept()["access_token"] in guarded.authority.access


async def test_a_person_who_says_no_ends_the_login_with_the_reason(server_session, guarded):
    guarded.authority.says_no = True
    with pytest.raises(LoginFailed, match=r"it was refused \(the person said no\)"):
        await server_session.session().mcp.login("g", browser)
    assert server_session.files() == []


async def test_a_login_that_nobody_finishes_ends(server_session):
    async def nobody(_: str) -> None:
        pass

    with pytest.raises(LoginFailed, match=r"within 0\.3 s"):
        await server_session.session().mcp.login("g", nobody, wait_s=0.3)
    assert server_session.files() == []


async def test_a_port_that_is_taken_is_named(server_session, guarded):
    taken = guarded.sockets[0].getsockname()[1]
    with pytest.raises(LoginFailed, match=f"the port {taken} of this machine"):
        await server_session.session(callbackPort=taken).mcp.login("g", browser)


async def test_scopes_and_the_authorisation_server_of_the_entry_are_used(server_session, guarded):
    where = f"{guarded.issuer}/.well-known/oauth-authorization-server"
    session = server_session.session(scopes="use more", authServerMetadataUrl=where)
    await session.mcp.login("g", browser)
    assert guarded.authority.asked[0].scopes == ["use", "more"]
    assert server_session.kept()["scope"] == "use more"
    async with server_session.session(scopes="use more", authServerMetadataUrl=where) as session:
        assert (await session.call("mcp__g__echo", text="hi")).ok


async def test_a_client_that_was_registered_by_hand_logs_in_with_its_secret(
    server_session, guarded
):
    made = {"client_name": "mine", "redirect_uris": ["http://localhost:1/callback"]}
    async with httpx2.AsyncClient() as http:
        answer = await http.post(
            f"{guarded.issuer}/register",
            json={**made, "token_endpoint_auth_method": "client_secret_basic"},
        )
    client = answer.json()
    oauth = {"clientId": client["client_id"]}
    addresses: list[str] = []

    async def person(address: str) -> None:
        (back,) = parse_qs(urlsplit(address).query)["redirect_uri"]
        addresses.append(back)
        registered = guarded.authority.clients[client["client_id"]]
        assert registered.redirect_uris is not None
        registered.redirect_uris[0] = type(registered.redirect_uris[0])(back)
        await browser(address)

    session = server_session.session(**oauth)
    await session.mcp.login("g", person, client_secret=client["client_secret"])
    assert urlsplit(addresses[0]).hostname == "localhost"
    assert guarded.authority.registrations == 1
    async with server_session.session(**oauth) as session:
        assert (await session.call("mcp__g__echo", text="hi")).ok


async def test_another_address_is_another_login(server_session, guarded, monkeypatch):
    entry = {"type": "http", "url": "${GUARDED}/mcp"}

    def session() -> Session:
        return Session(
            server_session.root, home=server_session.home, mcp_servers={"g": entry}, strict_mcp=True
        )

    monkeypatch.setenv("GUARDED", guarded.resource)
    await require(session().mcp).login("g", browser)
    with guarded_server() as elsewhere:
        monkeypatch.setenv("GUARDED", elsewhere.resource)
        async with session() as moved:
            assert (await said(moved))[0] == "needs-auth"
    assert elsewhere.authority.access == {}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "true"}, "no address"),
        (
            {"type": "http", "url": "http://127.0.0.1:9/", "headers": {"authorization": "x"}},
            "credentials",
        ),
        (
            {"type": "http", "url": "http://127.0.0.1:9/", "headersHelper": "true"},
            "contain credentials",
        ),
        ({"type": "http", "url": "http://127.0.0.1:9/?key=hush"}, "connection"),
    ],
)
async def test_what_has_no_login_says_why(tmp_path, entry, why):
    session = Session(tmp_path, home=tmp_path / "h", mcp_servers={"g": entry}, strict_mcp=True)
    with pytest.raises(LoginFailed, match=why) as caught:
        await require(session.mcp).login("g", browser)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("oauth", "why"),
    [
        ({"callbackPort": 0}, "callbackPort"),
        ({"callbackPort": "80"}, "callbackPort"),
        ({"clientId": ""}, "clientId"),
        ({"scopes": ['a"b']}, "scopes"),
        ({"authServerMetadataUrl": "file:///x"}, "authServerMetadataUrl"),
        ("yes", "oauth"),
    ],
)
def test_a_wrong_table_is_named(tmp_path, oauth, why):
    from handaxe.contract.faults import SetupError

    entry = {"type": "http", "url": "https://x.example/mcp", "oauth": oauth}
    with pytest.raises(SetupError, match=why):
        Session(tmp_path, home=tmp_path / "h", mcp_servers={"g": entry}, strict_mcp=True)


def test_the_command_line_logs_in_prints_the_address_and_logs_out(server_session, guarded):
    config = json.dumps({"mcpServers": {"g": guarded.entry()}})
    hook = {"type": "command", "command": "cat > told.json"}
    notices = {"Notification": [{"matcher": "auth_success", "hooks": [hook]}]}
    words = [sys.executable, "-m", "handaxe", "mcp", "--mcp-config", config, "--strict-mcp-config",
             "--settings", json.dumps({"hooks": notices})]  # fmt: skip
    env = {**os.environ, "HANDAXE_HOME": str(server_session.home)}
    with subprocess.Popen(
        [*words, "login", "g"],
        cwd=server_session.root,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        address = next(line.strip() for line in process.stderr if "http" in line)
        asyncio.run(browser(address))
        assert process.stdout.read() == "Logged in to g.\n"
        assert process.wait(10) == 0
    told = json.loads((server_session.root / "told.json").read_text())
    assert (told["notification_type"], told["message"]) == ("auth_success", "Logged in to g.")
    assert server_session.kept()["access_token"] in guarded.authority.access
    run = {"cwd": server_session.root, "env": env, "capture_output": True, "text": True}
    assert (
        subprocess.run([*words, "logout", "g"], check=False, **run).stdout == "Logged out of g.\n"
    )
    assert server_session.files() == []
    unknown = subprocess.run([*words, "login", "h"], check=False, **run)
    assert unknown.returncode == 1
    assert "no MCP server named 'h'" in unknown.stderr


async def test_an_address_that_a_browser_must_not_open_is_not_shown(server_session, guarded):
    where = f"{guarded.issuer}/.well-known/oauth-authorization-server"
    shown: list[str] = []

    async def show(address: str) -> None:
        shown.append(address)

    async with httpx2.AsyncClient() as http:
        metadata = (await http.get(where)).json()

    for evil in ("http://evil.example/authorize", "http://evil.example/token"):
        key = evil.rpartition("/")[2]
        name = {"authorize": "authorization_endpoint", "token": "token_endpoint"}[key]
        with serving_json({**metadata, name: evil}) as url:
            session = server_session.session(authServerMetadataUrl=url)
            person = show if key == "authorize" else browser
            with pytest.raises(LoginFailed, match="neither https nor this machine"):
                await session.mcp.login("g", person, wait_s=20)
    assert shown == []
