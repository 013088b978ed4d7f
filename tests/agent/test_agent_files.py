"""Every key of an agent's file does what it says."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from players import Player, calls, says
from tests.expected_types import expect_type, get_result_text, get_text

from handaxe import Agent, Session
from handaxe.agent.events import Told, ToolAnswered
from handaxe.agent.subagents.definition_files import AgentDefinitions
from handaxe.agent.subagents.definitions import BadAgentFile, parse_agent_file
from handaxe.contract.messages import ToolResultBlock
from handaxe.contract.ports.model import ModelRequest


def write_agent(project: Path, head: str, body: str = "Work.", name: str = "helper") -> Path:
    folder = project / ".claude/agents"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(f"---\nname: {name}\ndescription: Helps.\n{head}\n---\n{body}\n")
    return path


def task(kind: str = "helper", **more: object):
    return "t1", "Agent", {"description": "x", "prompt": "Do it.", "subagent_type": kind, **more}


def tools_of(request: ModelRequest) -> set[str]:
    return {spec.name for spec in request.tools}


async def told_at_the_start(session: Session, **options: Any) -> str:
    agent = Agent(Player(says("x")), session, **options)
    return "\n".join(
        [event.sentence async for event in agent.run("Go.") if isinstance(event, Told)]
    )


@pytest.mark.proves("BT-12")
def test_a_file_is_read_key_by_key():
    wish, remarks = parse_agent_file(
        "---\nname: a\ndescription: d\ntools: [Read, Grep]\ndisallowedTools: Bash, Write\n"
        "model: inherit\npermissionMode: plan\nmaxTurns: 3\nskills: one, two\n"
        "mcpServers: [files, {own: {command: x}}]\nhooks: {Stop: []}\nmemory: user\n"
        "background: yes\neffort: high\nisolation: worktree\ncolor: red\n"
        "initialPrompt: Begin.\n---\nBody",
        "a.md",
        owner="own",
    )
    kind = wish.grant(None)
    assert remarks == ()
    assert kind.tools == ("Read", "Grep")
    assert kind.disallowed_tools == ("Bash", "Write")
    assert kind.model is None
    assert (kind.permission_mode, kind.max_turns, kind.effort) == ("plan", 3, "high")
    assert kind.skills == ("one", "two")
    assert kind.mcp_servers == ("files", {"own": {"command": "x"}})
    assert (kind.memory, kind.background, kind.isolation) == ("user", True, "worktree")
    assert (kind.color, kind.initial_prompt, kind.prompt) == ("red", "Begin.", "Body")


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("skils: x", "skills"),
        ("max-turns: 3", "maxTurns"),
        ("permission_mode: plan", "permissionMode"),
    ],
)
def test_a_misspelt_key_names_the_one_that_was_meant(line: str, near: str):
    _, remarks = parse_agent_file(f"---\nname: a\ndescription: d\n{line}\n---\n", "a.md")
    assert f"Did you mean {near!r}?" in remarks[0]


@pytest.mark.parametrize(
    "line",
    [
        "maxTurns: 0",
        "maxTurns: yes",
        "permissionMode: god",
        "isolation: worktre",
        "tools: 3",
        "hooks: x",
    ],
)
def test_a_wrong_limit_makes_no_agent(line: str):
    with pytest.raises(BadAgentFile, match=line.partition(":")[0]):
        parse_agent_file(f"---\nname: a\ndescription: d\n{line}\n---\n", "a.md")


@pytest.mark.parametrize(
    "line", ["color: rde", "effort: hihg", "memory: usr", "skills: 3", "model: 3"]
)
def test_a_wrong_wish_is_named_and_the_agent_is_there(line: str):
    wish, remarks = parse_agent_file(f"---\nname: a\ndescription: d\n{line}\n---\n", "a.md")
    assert wish.grant(None).name == "a"
    assert line.partition(":")[0] in remarks[0]


@pytest.mark.parametrize("name", ["../x", "a/b", "-x", "p:q", ".x"])
def test_a_name_that_leads_astray_is_none(name: str):
    with pytest.raises(BadAgentFile):
        parse_agent_file(f"---\nname: '{name}'\ndescription: d\n---\n", "a.md")


async def test_skills_are_in_sight_from_the_start(session: Session, project: Path):
    skill = project / ".claude/skills/tidy/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: Tidies.\n---\nSweep the floor.\n")
    write_agent(project, "skills: [tidy, tidyy]")
    model = Player(calls(task()), says("a"), says("b"))
    agent = Agent(model, session)
    told = [event.sentence async for event in agent.run("Go.") if isinstance(event, Told)]
    assert "Sweep the floor." in "\n".join(model.requests[1].system)
    assert "Sweep the floor." not in "\n".join(model.requests[0].system)
    assert any("there is no skill 'tidyy'. Did you mean 'tidy'?" in text for text in told)


@pytest.mark.parametrize(
    ("scope", "place"),
    [
        ("project", "{project}/.claude/agent-memory/helper"),
        ("local", "{project}/.claude/agent-memory-local/helper"),
        ("user", "{user}/agent-memory/helper"),
    ],
)
async def test_an_agent_remembers(
    project: Path, scope: str, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "user"))
    memory = Path(place.format(project=project, user=tmp_path / "user"))
    write_agent(project, f"memory: {scope}\ntools: Grep")
    async with Session(project, trusted=True) as session:
        model = Player(
            calls(task()),
            calls(("w1", "Write", {"file_path": f"{memory}/MEMORY.md", "content": "Tabs!\n"})),
            says("a"),
            calls(task()),
            says("b"),
            says("c"),
        )
        await Agent(model, session).ask("Go.")
    assert (memory / "MEMORY.md").read_text() == "Tabs!\n"
    assert {"Read", "Write", "Edit", "Grep"} == tools_of(model.requests[1])
    assert "Tabs!" not in "\n".join(model.requests[1].system)
    assert "Tabs!" in "\n".join(model.requests[4].system)


async def test_only_the_memory_is_free_to_write(project: Path):
    write_agent(project, "memory: project")
    (project / ".claude/agent-memory").mkdir(parents=True)
    (project / "elsewhere").mkdir()
    (project / ".claude/agent-memory/helper").symlink_to("/tmp")
    outside = "/tmp/handaxe-astray.md"
    async with Session(project) as session:
        model = Player(
            calls(task()),
            calls(
                ("w1", "Write", {"file_path": "other.txt", "content": "x"}),
                ("w2", "Write", {
                    "file_path": ".claude/agent-memory/helper/handaxe-astray.md", "content": "x"
                }),
                ("w3", "Write", {"file_path": ".claude/agent-memory/other/x.md", "content": "x"}),
            ),
            says("a"),
            says("b"),
        )  # fmt: skip
        await Agent(model, session).ask("Go.")
    assert all(
        expect_type(ToolResultBlock, block).is_error
        for block in model.requests[2].messages[-1].content
    )
    assert not Path(outside).exists()


def hook(project: Path, name: str) -> dict[str, object]:
    command = f"cat >> {project}/{name}; echo >> {project}/{name}"
    return {"hooks": [{"type": "command", "command": command}]}


async def test_hooks_live_as_long_as_the_agent(project: Path):
    hooks = {
        "PreToolUse": [{"matcher": "Read", **hook(project, "pre")}],
        "Stop": [hook(project, "end")],
    }
    write_agent(project, f"hooks: {json.dumps(hooks)}")
    (project / "a.txt").write_text("x")
    async with Session(project, trusted=True) as session:
        model = Player(
            calls(("r0", "Read", {"file_path": "a.txt"})),
            calls(task()),
            calls(("r1", "Read", {"file_path": "a.txt"}), ("g1", "Glob", {"pattern": "*"})),
            says("a"),
            calls(("r2", "Read", {"file_path": "a.txt"})),
            says("b"),
        )
        await Agent(model, session).ask("Go.")
    heard = [json.loads(line) for line in (project / "pre").read_text().splitlines() if line]
    assert [event["tool_use_id"] for event in heard] == ["r1"]
    ends = [json.loads(line) for line in (project / "end").read_text().splitlines() if line]
    assert [event["hook_event_name"] for event in ends] == ["SubagentStop"]


async def test_a_hook_of_the_agent_can_refuse_beside_the_sessions_own(project: Path):
    heard: list[str] = []

    async def own(event: dict[str, object]) -> None:
        heard.append(str(event["tool_use_id"]))

    deny = {"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}
    write_agent(project, f"hooks: {json.dumps({'PreToolUse': [deny]})}")
    (project / "a.txt").write_text("x")
    async with Session(project, trusted=True, hooks={"PreToolUse": [own]}) as session:
        model = Player(
            calls(task()), calls(("r1", "Read", {"file_path": "a.txt"})), says("a"), says("b")
        )
        await Agent(model, session).ask("Go.")
    assert expect_type(ToolResultBlock, model.requests[2].messages[-1].content[0]).is_error
    assert "r1" in heard


async def test_programs_of_a_projects_agents_need_the_users_word(project: Path):
    hooks = {"PreToolUse": [hook(project, "pre")]}
    path = write_agent(project, f"hooks: {json.dumps(hooks)}")
    (project / "a.txt").write_text("x")
    ran = project / "pre"

    async def work() -> str:
        async with Session(project) as session:
            model = Player(
                calls(task()), calls(("r1", "Read", {"file_path": "a.txt"})), says("a"), says("b")
            )
            agent = Agent(model, session)
            said = [event.sentence async for event in agent.run("Go.") if isinstance(event, Told)]
            return "\n".join(said)

    assert "handaxe trust" in await work()
    assert not ran.exists()
    done = subprocess.run(
        [sys.executable, "-m", "handaxe", "trust", str(project)], check=True, capture_output=True
    )
    assert b"echo >>" in done.stderr
    assert "handaxe trust" not in await work()
    assert ran.exists()
    ran.unlink()
    path.write_text(path.read_text().replace("echo >>", "echo again >>"))
    assert "handaxe trust" in await work()
    assert not ran.exists()


async def test_hooks_can_be_switched_off_for_agents_too(project: Path):
    write_agent(project, f"hooks: {json.dumps({'PreToolUse': [hook(project, 'pre')]})}")
    (project / "a.txt").write_text("x")
    async with Session(project, trusted=True, settings={"disableAllHooks": True}) as session:
        model = Player(
            calls(task()), calls(("r1", "Read", {"file_path": "a.txt"})), says("a"), says("b")
        )
        await Agent(model, session).ask("Go.")
    assert not (project / "pre").exists()


async def test_a_server_of_the_agents_own_is_there_for_it_alone(project: Path):
    server = project / "server.py"
    server.write_text(LITTLE_SERVER)
    entry = {"own": {"command": sys.executable, "args": [str(server)]}}
    write_agent(project, f"tools: Read\nmcpServers: [{json.dumps(entry)}]")
    async with Session(project, trusted=True, allow=["mcp__own"]) as session:
        model = Player(
            calls(task()), calls(("m1", "mcp__own__greet", {"name": "Ann"})), says("a"), says("b")
        )
        async with Agent(model, session) as agent:
            await agent.ask("Go.")
        assert tools_of(model.requests[1]) == {"Read", "mcp__own__greet"}
        assert "hello Ann" in get_result_text(model.requests[2].messages[-1].content[0])
        assert not any(name.startswith("mcp__") for name in tools_of(model.requests[3]))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def pid_in(file: Path) -> int:
    while not (file.exists() and file.read_text().endswith("\n")):
        await asyncio.sleep(0.005)
    return int(file.read_text())


def write_agent_with_server(project: Path, body: str) -> Path:
    """An agent whose own server tells its process id."""
    server, pid_file = project / "server.py", project / "pid"
    server.write_text(
        f"import os\nwith open({str(pid_file)!r}, 'w') as f:\n    print(os.getpid(), file=f)\n{body}"
    )
    entry = {"own": {"command": sys.executable, "args": [str(server)]}}
    write_agent(project, f"tools: Read\nmodel: small\nmcpServers: [{json.dumps(entry)}]")
    return pid_file


@pytest.mark.parametrize("leads", [True, False])
async def test_closing_the_session_alone_ends_the_servers_of_its_agents(
    project: Path, *, leads: bool
):
    pid_file = write_agent_with_server(project, LITTLE_SERVER)
    at_work, never = asyncio.Event(), asyncio.Event()

    def busy(request: ModelRequest):
        at_work.set()
        return [never]

    async with Session(project, trusted=True) as session:
        if leads:
            await Agent(Player(says("x")), session, agent="helper").ask("Go.")
        else:
            model = Player(calls(task(run_in_background=True)), says("Launched."))
            small = Player(busy)
            await Agent(
                model,
                session,
                open_model=lambda name: small if name == "small" else model,
                wait_for_agents_s=0.0,
            ).ask("Go.")
            await at_work.wait()
        pid = await pid_in(pid_file)
        assert is_alive(pid)
    assert not is_alive(pid)


async def test_an_agent_can_be_stopped_while_it_waits_for_its_server(project: Path):
    pid_file = write_agent_with_server(project, "import time\ntime.sleep(1000)\n")
    async with Session(project, trusted=True) as session:
        model = Player(calls(task(run_in_background=True)), says("Launched."), says("Too late."))
        agent = Agent(model, session, wait_for_agents_s=0.0)
        await agent.ask("Go.")
        pid = await pid_in(pid_file)
        state = await agent.agents.stop(agent.agents.listed()[0].agent_id)
        assert state.status == "killed"
    assert len(model.requests) == 2
    assert not is_alive(pid)


async def test_wrong_servers_are_named_and_the_agent_still_works(project: Path):
    write_agent(project, "mcpServers: [{own: {args: 3}}, nobody]")
    async with Session(project, trusted=True) as session:
        told = await told_at_the_start(session)
    assert "own" in told
    assert "there is no MCP server 'nobody'" in told


async def test_effort_reaches_the_model(session: Session, project: Path):
    write_agent(project, "effort: low")
    model = Player(calls(task()), says("a"), says("b"))
    await Agent(model, session).ask("Go.")
    assert [request.effort for request in model.requests] == [None, "low", None]


async def test_an_agent_stops_after_its_turns(session: Session, project: Path):
    write_agent(project, "maxTurns: 1")
    (project / "a.txt").write_text("x")
    model = Player(calls(task()), calls(("r1", "Read", {"file_path": "a.txt"})), says("b"))
    agent = Agent(model, session)
    seen = [event async for event in agent.run("Go.")]
    data = next(event.result for event in seen if isinstance(event, ToolAnswered)).text
    assert "1" in data
    assert len(model.requests) == 3


async def test_background_and_disallowed_tools_count(session: Session, project: Path):
    write_agent(project, "background: true\ndisallowedTools: Bash")
    model = Player(calls(task()), says("a"), says("b"), says("c"))
    agent = Agent(model, session)
    seen = [event async for event in agent.run("Go.")]
    answered = next(event.result for event in seen if isinstance(event, ToolAnswered))
    assert answered.data["status"] == "async_launched"
    child = next(r for r in model.requests if get_text(r.messages[0].content[0]) == "Do it.")
    assert "Bash" not in tools_of(child)
    assert "Read" in tools_of(child)


LITTLE_SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"],
                  "capabilities": {"tools": {}}, "serverInfo": {"name": "own", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        result = {"tools": [{"name": "greet", "description": "Greets.", "inputSchema": schema}]}
    elif method == "tools/call":
        text = "hello " + message["params"]["arguments"]["name"]
        result = {"content": [{"type": "text", "text": text}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_an_organisations_types_count_before_all_others(tmp_path):
    for place in ("managed", "project"):
        (tmp_path / place).mkdir()
        for name in ("one", "two"):
            text = f"---\nname: {name}\ndescription: of the {place}\nmodel: vendor/x\n---\nx"
            (tmp_path / place / f"{name}.md").write_text(text)
    (tmp_path / "managed" / "two.md").unlink()
    (tmp_path / "managed" / "z.md").write_text("---\nname: one\ndescription: later\n---\nx")
    given = {"one": {"description": "given", "prompt": "x"}}
    kinds = AgentDefinitions(given, [tmp_path / "project"], None, [tmp_path / "managed"])
    found = {kind.name: (kind.description, kind.model) for kind in kinds()}
    assert found["one"] == ("of the managed", "vendor/x")
    assert found["two"] == ("of the project", None)
