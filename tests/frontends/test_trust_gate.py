"""One table: kinds of project files, interfaces, and before trust, after it, after a change."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.agent.players import Player, calls, says
from tests.expected_types import require
from tests.frontends.terminals import Terminal

from handaxe import Agent, Session
from handaxe.app.agent_setup.agent_builder import find_output_styles
from handaxe.app.agent_setup.main_agent import find_agent_definitions
from handaxe.app.services.configuration import open_configuration
from handaxe.app.slash_commands import expand_prompt
from handaxe.config.trust_store import TrustRecord
from handaxe.storage.home import find_data_home

pytestmark = pytest.mark.proves("ST-1")

HANDAXE = [sys.executable, "-m", "handaxe"]
ALLOW = ("--allowedTools", "Skill")


def mark(kind: str, version: str) -> str:
    return f"touch marks/{kind}-{version}"


def write_project(root: Path, version: str) -> None:
    """Every kind of file, each of which leaves a mark if it acts."""
    hook = {"hooks": [{"type": "command", "command": mark("hook", version)}]}
    settings = {
        "permissions": {"allow": [f"Bash({mark('allow', version)})"]},
        "env": {"MODE": version, "PYTEST_PLUGINS": "evil", "CC": "evil"},
        "hooks": {"SessionStart": [hook]},
        "statusLine": {"type": "command", "command": mark("status", version)},
        "apiKeyHelper": mark("key", version),
        "outputStyle": "Learning",
    }
    server = {"command": "/bin/sh", "args": ["-c", mark("server", version)]}
    files = {
        ".claude/settings.json": json.dumps(settings),
        ".mcp.json": json.dumps({"mcpServers": {"evil": server}}),
        ".claude/skills/sk/SKILL.md": f"---\nallowed-tools: Bash({mark('skill', version)})\n"
        f"---\nText of the skill. !`{mark('skill', version)}`",
        ".claude/commands/cmd.md": f"---\nallowed-tools: Bash({mark('command', version)})\n---\n"
        f"Text of the command. !`{mark('command', version)}`",
        ".claude/agents/gp.md": "---\nname: general-purpose\ndescription: x\nmemory: user\n"
        f"hooks: {json.dumps({'PreToolUse': [hook]})}\n---\nA project's own words.",
        ".claude/output-styles/c.md": "---\nname: Concise\n---\nA project's own style.",
        "CLAUDE.md": "Plain instructions. @../outside.md",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "marks").mkdir(exist_ok=True)
    (root.parent / "outside.md").write_text("What lies outside.")


def acted(root: Path) -> set[str]:
    """What left a mark since the last look."""
    found = {path.name for path in (root / "marks").iterdir()}
    for name in found:
        (root / "marks" / name).unlink()
    return found


def tool_calls(version: str) -> list[tuple[str, dict]]:
    return [
        ("Bash", {"command": "echo mode=$MODE"}),
        ("Bash", {"command": mark("allow", version)}),
        ("Skill", {"skill": "sk"}),
    ]


def run(root: Path, *words: str, lines: list[dict] | None = None) -> str:
    sent = "".join(json.dumps(line) + "\n" for line in lines or ())
    done = subprocess.run(
        [*HANDAXE, *words], input=sent, capture_output=True, text=True, cwd=root, timeout=60,
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def one_call(root: Path, version: str) -> str:
    return run(root, "call", "Skill", '{"skill": "sk"}', *ALLOW)


def many_calls(root: Path, version: str) -> str:
    lines = [{"tool": tool, "input": given} for tool, given in tool_calls(version)]
    return run(root, "run", *ALLOW, lines=lines)


def script(root: Path, version: str) -> str:
    turns = [{"call": [{"tool": tool, "input": given}]} for tool, given in tool_calls(version)]
    path = root.parent / f"script-{root.name}.jsonl"
    path.write_text("".join(json.dumps(turn) + "\n" for turn in (*turns, {"text": "That is all."})))
    return f"scripted:{path}"


def print_mode(root: Path, version: str) -> str:
    words = ("--output-format", "stream-json", "--verbose", "--model", script(root, version))
    return run(root, "-p", "/cmd", *words, *ALLOW)


def stream(root: Path, version: str) -> str:
    words = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
    said = {"type": "user", "message": {"role": "user", "content": "/cmd"}}
    return run(root, "-p", *words, "--model", script(root, version), *ALLOW, lines=[said])


def mcp(root: Path, version: str) -> str:
    def request(number: int, method: str, **params: object) -> dict:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    about = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "x", "version": "1"}}  # fmt: skip
    asked = [
        request(2 + at, "tools/call", name=tool, arguments=given)
        for at, (tool, given) in enumerate(tool_calls(version))
    ]
    asked += [request(9, "prompts/get", name="cmd", arguments={})]
    server = subprocess.Popen(
        [*HANDAXE, "mcp", *ALLOW], cwd=root, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    told = ""
    pipe, output = require(server.stdin), require(server.stdout)
    with server:
        for one in (request(1, "initialize", **about), *asked):
            pipe.write(json.dumps(one) + "\n")
            pipe.flush()
            while line := output.readline():
                told += line
                if json.loads(line).get("id") == one["id"]:
                    break
        pipe.close()
        return told + output.read() + require(server.stderr).read()


QUESTIONS = ("into the instructions that the agent gets", "wants to start the MCP server")


def terminal(root: Path, version: str) -> str:
    words = ("--model", script(root, version), "--permission-mode", "dontAsk")
    me = Terminal(*words, *ALLOW, cwd=root, columns=400)
    try:
        if me.wait_for_one("Trust these files?", "›") != "›":
            me.type("n\n")
            me.wait_for("›")
        me.type("/cmd\r")
        end = "That is all."
        while (shown := me.wait_for_one(*QUESTIONS, end)) != "›":
            if shown == end:
                end = "›"
            else:
                me.wait_for("Allow?")
                me.type("n later\n")
        me.type("/exit\r")
        me.end()
        return me.shown
    finally:
        me.close()


INTERFACES = {
    "call": (one_call, {"hook", "skill"}),
    "run": (many_calls, {"hook", "skill", "allow"}),
    "-p": (print_mode, {"hook", "skill", "allow", "command"}),
    "stream-json": (stream, {"hook", "skill", "allow", "command"}),
    "mcp": (mcp, {"hook", "allow"}),
    "terminal": (terminal, {"hook", "skill", "allow", "command"}),
}


async def library(root: Path, version: str) -> tuple[str, set[str]]:
    """The same with the library in this process; what is told, and whose place was taken."""
    taken: set[str] = set()
    async with Session(root, allow=["Skill"]) as session:
        asked = [(f"c{at}", *one) for at, one in enumerate(tool_calls(version))]
        model = Player(*(calls(one) for one in asked), says("x"))
        agent = Agent(model, session)
        events = [event async for event in agent.run(await expand_prompt(session, "/cmd"))]
        kinds = find_agent_definitions(session, None)
        kind = next(one for one in kinds() if one.name == "general-purpose")
        if "own words" in kind.prompt or kind.hooks or kind.memory:
            taken.add("agent")
        if "own style" in find_output_styles(session).find("Concise").text:
            taken.add("style")
        if require(session.mcp).status()[0].status != "disabled":
            taken.add("server")
        if session.settings.output_style is not None:
            taken.add("outputStyle")
        assert session.settings.api_key_helper is None
        assert session.settings.env.keys() <= {"MODE"}
        said = str(model.requests)
        assert "Plain instructions." in said
        assert "What lies outside." not in said
        return f"{said} {events} {session.warnings} {kinds.problems}", taken


def all_interfaces(root: Path, version: str) -> dict[str, tuple[str, set[str]]]:
    """What each interface said, and what acted, each in a copy of the project."""

    def use(name: str) -> tuple[str, set[str]]:
        told = INTERFACES[name][0](root / name, version)
        return told, acted(root / name)

    with ThreadPoolExecutor() as pool:
        return dict(zip(INTERFACES, pool.map(use, INTERFACES), strict=True))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (*INTERFACES, "library"):
        write_project(tmp_path / name, "v1")
    return tmp_path


def approve(root: Path) -> None:
    for name in (*INTERFACES, "library"):
        folder = str(root / name)
        wishes = open_configuration(folder, home=find_data_home()).find_requests()
        TrustRecord(find_data_home()).trust(folder, {wish.key: wish.note for wish in wishes})


async def test_nothing_of_a_project_acts_before_trust_or_after_a_change(root: Path):
    for name, (told, marks) in all_interfaces(root, "v1").items():
        assert marks == set(), name
        assert "mode=v1" not in told, name
        assert "handaxe trust" in told, name
    told, taken = await library(root / "library", "v1")
    assert (taken, acted(root / "library")) == (set(), set())

    approve(root)
    for name in INTERFACES:
        # That a server starts after trust is seen below, where nobody waits for it to fail.
        (root / name / ".mcp.json").unlink()
    for name, (told, marks) in all_interfaces(root, "v1").items():
        assert {f"{kind}-v1" for kind in INTERFACES[name][1]} <= marks, (name, told)
        assert "has not been trusted" not in told, name
        assert not {"this is not approved", "is not approved yet"}.intersection(told), name
    told, taken = await library(root / "library", "v1")
    assert taken == {"agent", "style", "server", "outputStyle"}
    assert "handaxe trust" not in told
    assert {"hook-v1", "skill-v1", "command-v1", "allow-v1"} <= acted(root / "library")

    for name in (*INTERFACES, "library"):
        write_project(root / name, "v2")
    for name, (told, marks) in all_interfaces(root, "v2").items():
        assert not {one for one in marks if one.endswith("v2")}, name
        assert "mode=v2" not in told, name
        assert ("env.MODE = " if name == "terminal" else "`env.MODE` = ") in told, name
        if name in {"-p", "stream-json", "mcp", "terminal"}:
            assert "marks/command-v1" in told, name
            assert "marks/command-v2" in told, name
    told, taken = await library(root / "library", "v2")
    assert taken == {"style", "outputStyle"}
    assert not {one for one in acted(root / "library") if one.endswith("v2")}
    for kind in ("hook", "skill", "command", "server"):
        assert f"marks/{kind}-v1" in told, kind
        assert f"marks/{kind}-v2" in told, kind
