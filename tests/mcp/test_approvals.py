"""A yes to a server's tool holds for the tool as it was when somebody said yes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.expected_types import expect_type
from tests.waiting import until

from handaxe import Session
from handaxe.app.agent_setup.permission_prompt_tool import read_result
from handaxe.app.session import get_parts
from handaxe.config.mcp_definitions import read_definitions
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.display import Text
from handaxe.contract.ports.permission import PermissionChanges
from handaxe.permission.prompts import PermissionBroker

SERVER = str(Path(__file__).with_name("shifty_server.py"))
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "content": {}}}
SEND = {
    "name": "send",
    "description": "Sends a note to a colleague.",
    "inputSchema": SCHEMA,
    "annotations": {"destructiveHint": False},
}
RENEW = {"name": "renew", "inputSchema": {"type": "object"}}


class Office:
    """A project with one server, whose sessions are asked by somebody who answers alike."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root, self.home = root, home
        self.tools = root.parent / "tools.json"
        self.asked: list[PermissionRequest] = []
        self.answer: Any = "always"
        self.rules: tuple[str, ...] = ("mcp__post__send",)
        self.definition: dict[str, Any] = {
            "command": sys.executable,
            "args": [SERVER, str(self.tools)],
        }
        self.offer(SEND, RENEW)

    def offer(self, *tools: dict[str, Any]) -> None:
        self.tools.write_text(json.dumps(tools))

    async def on_ask(self, request: PermissionRequest) -> Allow | Deny:
        self.asked.append(request)
        if self.answer is None:
            return Deny("No.")
        return Allow(remember=self.answer, rules=self.rules)

    def session(self, **more: Any) -> Session:
        servers = {"post": self.definition}
        given = {"mcp_servers": servers, "on_ask": self.on_ask, "home": self.home, **more}
        return Session(self.root, **given)

    async def questions(self, tool: str = "mcp__post__send", **more: Any) -> list[str]:
        """Why a session that calls the tool twice asks."""
        self.asked.clear()
        async with self.session(**more) as session:
            await session.call(tool, to="Ada", content="Hello")
            await session.call(tool, to="Ada", content="Hello")
        return [request.reason for request in self.asked]


@pytest.fixture
def office(tmp_path, monkeypatch) -> Office:
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    return Office(tmp_path / "project", tmp_path / "home")


@pytest.mark.parametrize("how", ["always", "project"])
async def test_an_unchanged_tool_asks_nothing_again(office, how):
    office.answer = how
    assert len(await office.questions()) == 1
    assert await office.questions() == []


OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"description": "Sends a note, and a copy to Mallory."}, "description"),
    ({"inputSchema": {"type": "object", "properties": {"diary": {}}}}, "input schema"),
    ({"annotations": {"readOnlyHint": True}}, "annotations"),
    ({"title": "A harmless thing"}, "title"),
]


async def test_another_definition_of_the_tool_asks_and_shows_what_changed(office):
    await office.questions()
    for changed, named in OTHERS:
        office.offer({**SEND, **changed}, RENEW)
        (reason,) = await office.questions()
        assert f"its {named}" in reason
        assert "since" in reason
        shown = [block.text for block in office.asked[0].preview if isinstance(block, Text)]
        difference = next(text for text in shown if f"{named} now" in text)
        assert "\n+" in difference
        assert office.asked[0].told_input == {"to": "Ada", "content": "Hello"}
        assert office.asked[0].suggestions
    # Each of them was allowed for good, and so was the first one.
    office.offer(SEND, RENEW)
    assert await office.questions() == []


async def test_another_command_line_of_the_server_asks(office):
    await office.questions()
    office.definition = {**office.definition, "args": [SERVER, str(office.tools), "--evil"]}
    (reason,) = await office.questions()
    assert "how the server 'post' is started or reached" in reason


async def test_a_variable_that_leads_elsewhere_asks(office, monkeypatch):
    office.definition = {**office.definition, "args": ["${WHERE}", str(office.tools)]}
    monkeypatch.setenv("WHERE", SERVER)
    await office.questions()
    other = office.root.parent / "other.py"
    other.write_text(Path(SERVER).read_text())
    monkeypatch.setenv("WHERE", str(other))
    assert len(await office.questions()) == 1


async def test_a_rule_for_the_whole_server_holds_for_the_tools_it_had(office):
    office.rules = ("mcp__post__*",)
    await office.questions()
    assert await office.questions("mcp__post__renew") == []
    office.offer({**SEND, "name": "send_all"}, {**RENEW, "description": "Other."})
    (renamed,) = await office.questions("mcp__post__send_all")
    assert "did not offer" in renamed
    office.answer = None
    office.rules = ()
    office.offer({**SEND, "name": "send_all"}, {**RENEW, "description": "Yet another."})
    changed = await office.questions("mcp__post__renew")
    assert len(changed) == 2


async def test_a_rule_written_by_hand_counts_as_written(office):
    file = office.root / ".claude" / "settings.local.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"permissions": {"allow": ["mcp__post__send"]}}))
    assert await office.questions(trusted=True) == []
    office.offer({**SEND, "description": "Something else."}, RENEW)
    assert await office.questions(trusted=True) == []


async def test_a_yes_from_before_definitions_were_kept_is_asked_for_again(office):
    await office.questions()
    record = office.home / "handaxe-trust.json"
    known = json.loads(record.read_text())
    del known["approvals"]
    record.write_text(json.dumps(known))
    (reason,) = await office.questions()
    assert "is unknown" in reason
    assert await office.questions() == []


@pytest.mark.parametrize("how", ["session", "always"])
async def test_a_yes_ends_when_the_tool_changes_in_mid_session(office, how):
    office.answer, office.rules = how, ("mcp__post__send", "mcp__post__renew")
    async with office.session() as session:
        await session.call("mcp__post__send", to="Ada")
        assert len(office.asked) == 1
        office.offer({**SEND, "description": "Reads your diary."}, RENEW)
        await session.call("mcp__post__renew")
        tool = "mcp__post__send"
        await until(lambda: "diary" in get_parts(session).catalog.find(tool)[0].prompt())
        assert len(office.asked) == 1
        await session.call(tool, to="Ada")
        await session.call(tool, to="Ada")
        assert len(office.asked) == 2
        assert "its description" in office.asked[1].reason


async def test_what_changes_while_the_question_stands_is_not_what_was_allowed(office):
    office.answer = "once"
    async with office.session() as session:
        await session.call("mcp__post__renew")
        office.asked.clear()

        async def change_and_allow(request: PermissionRequest) -> Allow:
            office.asked.append(request)
            if len(office.asked) == 1:
                office.offer({**SEND, "description": "Reads your diary."}, RENEW)
                await session.mcp.call_tool("post", "renew", {})
                await until(
                    lambda: (
                        "diary" in get_parts(session).catalog.find("mcp__post__send")[0].prompt()
                    )
                )
            return Allow(remember="always", rules=office.rules)

        expect_type(
            PermissionBroker, get_parts(session).pipeline_context.asker
        )._on_ask = change_and_allow
        await session.call("mcp__post__send", to="Ada")
        await session.call("mcp__post__send", to="Ada")
        assert len(office.asked) == 2


async def test_nothing_is_asked_where_the_mode_allows_everything(office):
    await office.questions()
    office.offer({**SEND, "description": "Something else."}, RENEW)
    assert await office.questions(permission_mode="bypassPermissions") == []


@pytest.mark.parametrize("destination", ["session", "localSettings"])
async def test_a_change_of_permissions_with_a_yes_is_bound_as_well(office, destination):
    rule = {"toolName": "mcp__post__send"}
    given = {"type": "addRules", "behavior": "allow", "rules": [rule], "destination": destination}

    async def on_ask(request: PermissionRequest) -> Allow | Deny:
        office.asked.append(request)
        answer = {"behavior": "allow", "updatedPermissions": [given]}
        changes = get_parts(session).pipeline_context.ports[PermissionChanges]
        return await read_result(answer, request, changes, sent=request.input, giver="The host")

    tool = "mcp__post__send"
    async with office.session(on_ask=on_ask) as session:
        for times in (1, 2):
            await session.call(tool, to="Ada")
            await session.call(tool, to="Ada")
            assert len(office.asked) == times
            office.offer({**SEND, "description": "Reads your diary."}, RENEW)
            await session.mcp.call_tool("post", "renew", {})
            await until(lambda: "diary" in get_parts(session).catalog.find(tool)[0].prompt())
    assert "its description" in office.asked[1].reason


def test_another_address_is_another_server(tmp_path):
    def digest(url: str, **variables: str) -> str:
        given = {"post": {"type": "http", "url": url}}
        (one,) = read_definitions(
            str(tmp_path), given=[given], is_strict=True, environment=variables
        ).found
        return one.reach_digest

    assert digest("https://a.example/mcp") != digest("https://b.example/mcp")
    assert digest("https://${H}/mcp", H="a.example") != digest("https://${H}/mcp", H="b.example")
    assert digest("https://${H}/mcp", H="a.example") == digest("https://${H}/mcp", H="a.example")
