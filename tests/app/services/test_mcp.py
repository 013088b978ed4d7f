"""Which servers of a project may start, and who said so."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agent.players import Player, says
from tests.expected_types import require
from tests.waiting import until

from handaxe.agent.events import RunStarted
from handaxe.app.agent import Agent
from handaxe.app.services.configuration import open_configuration
from handaxe.app.session import Session, get_parts
from handaxe.config.mcp_definitions import make_server_request, read_definitions
from handaxe.config.settings import Settings
from handaxe.config.trust_store import TrustRecord
from handaxe.contract.decision import Allow, Deny
from handaxe.contract.events import McpServerChanged
from handaxe.contract.faults import SetupError
from handaxe.mcp.approval import find_blocking_reason

THIN = str(Path(__file__).parents[2] / "mcp" / "thin_server.py")
SERVER = {"command": sys.executable, "args": [THIN]}


def write(project: Path, **servers: Any) -> None:
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def states(session: Session) -> dict[str, str]:
    assert session.mcp is not None
    return {one.name: one.status for one in session.mcp.status()}


async def test_before_somebody_says_yes_a_project_starts_no_server(project, tmp_path):
    marker = tmp_path / "started"
    write(project, a={"command": "touch", "args": [str(marker)]})
    async with Session(project) as session:
        await asyncio.sleep(0.2)
        assert states(session) == {"a": "disabled"}
        (warning,) = session.warnings
        assert "'a' wait for approval" in warning
        assert "handaxe trust" in warning
        refused = await session.call("ListMcpResources", server="a")
        assert refused.code == "mcp.not_connected"
        assert "it is not approved yet" in refused.text
    assert not marker.exists()


async def test_a_tool_of_a_server_that_is_not_there_is_answered_with_the_reason(project):
    servers = {"my server": {"command": "/no/such/program"}, "there": SERVER}
    async with Session(project, settings={"mcpServers": servers}, allow=["mcp__there"]) as session:
        assert (await session.call("mcp__there__echo", text="x")).text == "x"
        names = ("mcp__my_server__echo", "mcp__there__no", "mcp__nobody__echo", "mcp__my_serve__x")
        told = [await session.call(name) for name in names]
    assert {result.code for result in told} == {"call.unknown_tool"}
    assert "'my server' is not connected (/no/such/program could not" in told[0].text
    assert not any("not connected" in result.text for result in told[1:])


@pytest.mark.parametrize(
    "settings",
    [{"enableAllProjectMcpServers": True}, {"enabledMcpjsonServers": ["a"]}],
)
async def test_settings_of_the_user_can_say_yes(project, settings):
    write(project, a=SERVER)
    async with Session(project, settings=settings, allow=["mcp__a"]) as session:
        assert (await session.call("mcp__a__echo", text="x")).text == "x"


async def test_a_project_cannot_say_yes_to_itself(project):
    write(project, a=SERVER)
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text(
        '{"enableAllProjectMcpServers": true, "mcpServers": {"b": {"command": "x"}}}'
    )
    async with Session(project) as session:
        assert states(session) == {"a": "disabled"}


async def test_a_host_program_that_trusts_the_project_says_yes(project):
    write(project, a=SERVER)
    async with Session(project, trusted=True, allow=["mcp__a"]) as session:
        assert (await session.call("mcp__a__echo", text="x")).ok


async def test_a_yes_holds_for_the_very_definition_it_was_given_for(project, tmp_path):
    write(project, a=SERVER, b=SERVER)
    wishes = [
        make_server_request(one, str(project)) for one in read_definitions(str(project)).found
    ]
    approved = {wish.key: wish.note for wish in wishes}
    TrustRecord(tmp_path / "home").approve(str(project), approved)
    async with Session(project, home=tmp_path / "home") as session:
        assert states(session) == {"a": "pending", "b": "pending"}
    write(project, a=SERVER, b={**SERVER, "env": {"EVIL": "1"}})
    async with Session(project, home=tmp_path / "home") as session:
        assert states(session) == {"a": "pending", "b": "disabled"}
    TrustRecord(tmp_path / "home").revoke(str(project))
    async with Session(project, home=tmp_path / "home") as session:
        assert states(session) == {"a": "disabled", "b": "disabled"}


@pytest.mark.parametrize(("remember", "is_kept"), [("once", False), ("project", True)])
async def test_somebody_who_is_there_is_asked_once_per_server(project, tmp_path, remember, is_kept):
    write(project, a=SERVER)
    asked = []

    async def on_ask(request):
        asked.append(request)
        return Allow(remember=remember)

    async with Session(project, home=tmp_path / "home", on_ask=on_ask) as session:
        await until(lambda: states(session)["a"] == "connected")
        assert session.warnings == ()
    (question,) = asked
    assert question.input == SERVER
    assert "wants to start the MCP server 'a'" in question.reason
    async with Session(project, home=tmp_path / "home") as session:
        assert states(session) == {"a": "pending" if is_kept else "disabled"}


async def test_a_no_keeps_the_server_from_starting(project):
    write(project, a=SERVER)
    asked = asyncio.Event()

    async def on_ask(_):
        asked.set()
        return Deny("not that one")

    async with Session(project, on_ask=on_ask) as session:
        await asked.wait()
        await asyncio.sleep(0.05)
        assert states(session) == {"a": "disabled"}


async def test_an_unapproved_server_does_not_take_the_name_of_the_users_own(project):
    write(project, a={"command": "/project/evil"})
    async with Session(
        project, settings={"mcpServers": {"a": SERVER}}, allow=["mcp__a"]
    ) as session:
        assert (await session.call("mcp__a__echo", text="mine")).text == "mine"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"disabledMcpjsonServers": ["a"]}, "disabledMcpjsonServers"),
        ({"deniedMcpServers": [{"serverName": "a"}]}, "deniedMcpServers"),
        ({"deniedMcpServers": [{"serverCommand": ["run", "it"]}]}, "deniedMcpServers"),
        ({"allowedMcpServers": [{"serverName": "b"}]}, "allowedMcpServers"),
        ({"allowedMcpServers": [{"serverName": "a"}]}, None),
        ({}, None),
    ],
)
def test_lists_of_the_settings_keep_servers_from_starting(project, tmp_path, settings, reason):
    write(project, a={"command": "run", "args": ["it"]})
    (server,) = read_definitions(str(project)).found
    in_force = open_configuration(str(project), home=tmp_path, given=settings).settings
    told = find_blocking_reason(server, in_force)
    assert (told is None) == (reason is None)
    assert reason is None or reason in told


def test_addresses_can_be_denied_by_pattern():
    (server,) = read_definitions(
        "/nowhere", given=[{"a": {"type": "http", "url": "https://x.example.com/mcp"}}]
    ).found
    denied = Settings(denied_mcp_servers=({"serverUrl": "https://*.example.com/*"},))
    assert find_blocking_reason(server, denied)
    assert not find_blocking_reason(
        server, Settings(denied_mcp_servers=({"serverUrl": "https://other/*"},))
    )


async def test_wrong_servers_of_the_caller_are_an_error(project):
    with pytest.raises(SetupError, match="The MCP servers of this session are wrong"):
        Session(project, mcp_servers={"a": {"url": "https://x"}})


async def test_strict_takes_only_the_callers_servers(project):
    write(project, a=SERVER)
    async with Session(project, trusted=True, strict_mcp=True) as session:
        assert session.mcp is None
        assert "ListMcpResources" not in [tool["name"] for tool in session.tools()]


async def test_a_server_of_the_host_program_needs_no_process(project):
    from mcp.client._memory import InMemoryTransport
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("inside")

    @server.tool()
    def double(n: int) -> int:
        """Twice as much."""
        return n * 2

    def opened():
        return InMemoryTransport(server._lowlevel_server)

    async with Session(project, mcp_servers={"inside": opened}, allow=["mcp__inside"]) as session:
        result = await session.call("mcp__inside__double", n=21)
        assert (result.text, result.data) == ("42", {"result": 42})


async def test_a_session_without_servers_loads_nothing_for_them(project):
    code = (
        "import asyncio, sys, handaxe\n"
        "async def main():\n"
        f"    async with handaxe.Session({str(project)!r}) as s: await s.call('Glob', pattern='*')\n"
        "asyncio.run(main())\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('mcp', 'anyio', 'pydantic', 'jsonschema_rs') or m.startswith('handaxe.mcp')])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    assert (await process.communicate())[0].strip() == b"[]"


async def test_changes_of_servers_are_events(project):
    events = []
    session = Session(project, mcp_servers={"a": {"command": "/no/such/program"}})
    session.subscribe(events.append)
    async with session:
        await require(session.mcp).settled()
        await asyncio.sleep(0)
    (event,) = [event for event in events if isinstance(event, McpServerChanged)]
    assert (event.server, event.status) == ("a", "failed")


async def test_without_the_sdk_a_server_says_what_to_install(project):
    code = (
        "import asyncio, sys, handaxe\n"
        "sys.modules['mcp'] = None\n"
        "async def main():\n"
        f"    async with handaxe.Session({str(project)!r}, mcp_servers={{'a': {{'command': 'true'}}}}) as s:\n"
        "        print((await s.call('ListMcpResources', server='a')).text)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    assert b"pip install 'handaxe[mcp]'" in (await process.communicate())[0]


async def test_the_command_line_of_a_server_is_handed_to_the_prefix(project, tmp_path):
    seen = tmp_path / "seen"
    wrapper = tmp_path / "wrapper.sh"
    wrapper.write_text(f'#!/bin/bash\necho "$1" >> {seen}\nexec bash -c "$1"\n')
    wrapper.chmod(0o755)
    settings = {"shell": {"prefix": str(wrapper)}}
    async with Session(
        project, settings=settings, mcp_servers={"a": SERVER}, allow=["mcp__a"]
    ) as session:
        assert (await session.call("mcp__a__echo", text="x")).text == "x"
    assert seen.read_text() == f"{sys.executable} {THIN}\n"


@pytest.mark.parametrize(
    ("entry", "variables", "status"),
    [
        ({}, {}, "pending"),
        ({"alwaysLoad": True}, {}, "connected"),
        ({}, {"MCP_CONNECTION_NONBLOCKING": "0"}, "connected"),
        ({"alwaysLoad": True}, {"MCP_CONNECT_TIMEOUT_MS": "1"}, "pending"),
    ],
)
async def test_a_first_answer_waits_for_what_has_to_be_there(
    project, monkeypatch, entry, variables, status
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    model = Player(says("Hi."))
    servers = {"a": {**SERVER, **entry}}
    async with Session(project, mcp_servers=servers) as session, Agent(model, session) as agent:
        seen: list[str] = []
        async for event in agent.run("Hello."):
            if isinstance(event, RunStarted):
                seen.append(states(session)["a"])
        assert seen == [status]
        # Tools that wait to be loaded are named in the system prompt.
        assert ("mcp__a__" in str(model.requests[0])) == (status == "connected")


async def test_a_search_for_tools_waits_for_servers_and_names_those_that_failed(project):
    servers = {"a": SERVER, "b": {"command": "no-such-program"}}
    settings = {"tool_search": {"when": "always"}}
    async with Session(project, mcp_servers=servers, settings=settings) as session:
        found = await session.call("ToolSearch", query="select:mcp__a__echo")
        assert found.data["matches"] == ["mcp__a__echo"]
        assert found.notes == ()
        missed = await session.call("ToolSearch", query="+zeppelin")
        assert missed.data["matches"] == []
        (note,) = missed.notes
        assert "'b'" in note
        assert "no-such-program" in note


async def test_a_search_that_names_built_in_tools_waits_for_no_server(project):
    servers = {"a": {"command": "sleep", "args": ["1000"]}}
    settings = {"tool_search": {"when": "always"}}
    async with Session(project, mcp_servers=servers, settings=settings) as session:
        get_parts(session).deferral.sent()
        one, two, *_ = get_parts(session).deferral.waiting()
        query = f"select:{one}; Select: {two}"
        found = await session.call("ToolSearch", query=query)
        assert found.data["matches"] == [one, two]
        assert states(session) == {"a": "pending"}


@pytest.mark.parametrize("name", ["a", "a.b", "a" * 60])
async def test_what_a_server_says_about_its_tools_is_told_once_to_who_has_them(project, name):
    servers = {name: SERVER}
    model = Player(says("Hi."), says("Again."))
    async with Session(project, mcp_servers=servers) as session, Agent(model, session) as agent:
        agent.server_wait = "all"
        await agent.ask("Hello.")
        await agent.ask("Go on.")
    (section,) = [part for part in model.requests[0].system if "# MCP servers" in part]
    assert f'<server-instructions server="{name}">\nBe nice.' in section
    assert "Be nice." not in str(model.requests[1].messages)
    assert model.requests[0].system == model.requests[1].system
    model = Player(says("Hi."))
    async with (
        Session(project, mcp_servers=servers, deny=["mcp__*"]) as session,
        Agent(model, session) as agent,
    ):
        agent.server_wait = "all"
        await agent.ask("Hello.")
    assert "Be nice." not in str(model.requests[0])


async def test_a_server_that_comes_later_says_it_then(project, tmp_path):
    model = Player(says("Hi."), says("Again."))
    go = tmp_path / "go"
    os.mkfifo(go)
    waiting = f'read -r _ < "{go}"; exec "$0" "$@"'
    servers = {"a": {"command": "sh", "args": ["-c", waiting, sys.executable, THIN]}}
    async with Session(project, mcp_servers=servers) as session, Agent(model, session) as agent:
        await agent.ask("Hello.")
        assert session.mcp is not None
        await asyncio.to_thread(go.write_text, "\n")
        await session.mcp.settled()
        await agent.ask("Go on.")
    assert "Be nice." not in str(model.requests[0])
    assert "is connected and says about its tools:" in str(model.requests[1].messages)
    assert model.requests[0].system == model.requests[1].system
