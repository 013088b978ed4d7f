"""The system prompt: the same bytes for the same arguments, stable parts first."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from players import Player, says

from handaxe import Agent, Session
from handaxe.agent.subagents.definitions import list_builtin_definitions
from handaxe.agent.system_prompt import Environment, MemoryText, PromptParts, build_system_prompt

PARTS = PromptParts(
    tools=("Agent", "Read"),
    environment=Environment(directory="/p", platform="Linux", date="2026-01-02", git="Branch: x"),
    memory=(MemoryText("/p/CLAUDE.md", "project", "Use tabs."),),
    kinds=list_builtin_definitions(),
    style="Short.",
    append="Always test.",
)


@pytest.mark.proves("AR-4")
def test_equal_arguments_give_equal_bytes_in_every_process():
    code = (
        "import msgspec, sys; from handaxe.agent.system_prompt import *; "
        "parts = msgspec.json.decode(sys.stdin.buffer.read(), type=PromptParts); "
        "sys.stdout.buffer.write(msgspec.json.encode(build_system_prompt(parts)))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        input=msgspec.json.encode(PARTS),
        capture_output=True,
        check=True,
    )
    assert other.stdout == msgspec.json.encode(build_system_prompt(PARTS))


def test_all_parts_are_there_in_their_order():
    whole = "\n".join(build_system_prompt(PARTS))
    places = [
        whole.index(piece)
        for piece in (
            "coding agent", "# How to work", "# Tools", "- Explore:", "Short.", "Use tabs.",
            "Always test.", "2026-01-02", "Branch: x",
        )
    ]  # fmt: skip
    assert places == sorted(places)


@given(st.text(), st.text(), st.text())
def test_what_varies_leaves_the_parts_before_it_alone(date: str, directory: str, memory: str):
    changed = msgspec.structs.replace(
        PARTS,
        environment=Environment(directory=directory, date=date),
        memory=(MemoryText("/m", "user", memory),),
    )
    assert build_system_prompt(changed)[:2] == build_system_prompt(PARTS)[:2]


def test_a_replaced_prompt_keeps_tools_and_environment():
    parts = msgspec.structs.replace(PARTS, replace="You are a poet.")
    prompt = build_system_prompt(parts)
    assert prompt[0] == "You are a poet."
    assert "coding agent" not in "\n".join(prompt)
    assert "/p" in prompt[-1]


async def test_a_session_sends_the_same_prompt_and_tools_every_time(project: Path):
    (project / "CLAUDE.md").write_text("Use tabs.")
    seen = []
    for _ in range(2):
        async with Session(project) as session:
            model = Player(says("a"), says("b"))
            agent = Agent(model, session)
            await agent.ask("One.")
            await agent.ask("Two.")
            seen += [(request.system, request.tools) for request in model.requests]
    assert all(msgspec.json.encode(pair) == msgspec.json.encode(seen[0]) for pair in seen)
    assert "Use tabs." in "".join(seen[0][0])


async def test_what_differs_from_place_to_place_can_stand_in_the_first_message(tmp_path: Path):
    prompts: list[tuple[str, ...]] = []
    for name in ("one", "two"):
        project = tmp_path / name
        project.mkdir()
        (project / "CLAUDE.md").write_text(f"Speak of {name}.")
        heard: list[str] = []

        async def hear(event: dict[str, object], heard: list[str] = heard) -> None:
            heard.append(str(event["prompt"]))

        model = Player(says("Hi."), says("Again."), says("A summary."), says("Still here."))
        hooks = {"UserPromptSubmit": [hear]}
        async with Session(project, hooks=hooks) as session:
            agent = Agent(model, session, context_apart=True, append_system_prompt="Be kind.")
            await agent.ask("Hello.")
            await agent.ask("Go on.")
            first = str(model.requests[0].messages)
            assert f"Working directory: {project}" in first
            assert f"Speak of {name}." in first
            assert str(model.requests[1].messages).count("Working directory") == 1
            assert heard == ["Hello.", "Go on."]
            await agent.compact()
            await agent.ask("Are you there?")
            assert f"Speak of {name}." in str(model.requests[-1].messages)
        prompts.append(model.requests[0].system)
        assert "Be kind." in str(prompts[-1])
    assert prompts[0] == prompts[1]


def run_prompt(project: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    keys = {name for name in os.environ if name.endswith(("_API_KEY", "_AUTH_TOKEN"))}
    return subprocess.run(
        [sys.executable, "-m", "handaxe", "prompt", "--root", str(project), *words],
        capture_output=True, check=False,
        env={name: value for name, value in os.environ.items() if name not in keys},
    )  # fmt: skip


@pytest.mark.parametrize("agent", [None, "reviewer"])
async def test_the_prompt_command_shows_what_a_model_gets(project: Path, agent: str | None):
    (project / "CLAUDE.md").write_text("Use tabs.\n")
    folder = project / ".claude" / "agents"
    folder.mkdir(parents=True)
    text = "---\nname: reviewer\ndescription: reviews\ntools: Read\n---\nYou review.\n"
    (folder / "reviewer.md").write_text(text)
    model = Player(says("hi"))
    async with Agent(model, root=project, agent=agent, append_system_prompt="Be kind.") as used:
        await used.ask("hello")
    chosen = () if agent is None else ("--agent", agent)
    out = run_prompt(
        project, "--json", "--model", "openai/player", "--append-system-prompt", "Be kind.", *chosen
    )
    shown = json.loads(out.stdout)
    blocks: dict[int, list[str]] = {}
    for part in shown["parts"]:
        assert part["chars"] == len(part["text"])
        blocks.setdefault(part["block"], []).append(part["text"])
    assert tuple("\n\n".join(texts) for texts in blocks.values()) == model.requests[0].system
    assert (shown["agent"], shown["model"]) == (agent, "player")
    assert shown["chars"] == sum(part["chars"] for part in shown["parts"])
    names = [part["name"] for part in shown["parts"]]
    assert names[0] == ("replacement" if agent else "identity")
    assert {"instructions", "appended", "environment"} < set(names)


def test_the_prompt_command_runs_no_hook_and_keeps_no_session(project: Path):
    (project / "CLAUDE.md").write_text("Use tabs.\n")
    hook = {"hooks": [{"type": "command", "command": "touch ran"}]}
    settings = {"hooks": {name: [hook] for name in ("SessionStart", "InstructionsLoaded")}}
    out = run_prompt(project, "--settings", json.dumps(settings))
    assert (out.returncode, out.stderr) == (0, b"")
    assert b"----- instructions: " in out.stdout
    assert not (project / "ran").exists()
    listed = subprocess.run(
        [sys.executable, "-m", "handaxe", "sessions", "--root", str(project), "--json"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert b'"id"' not in listed.stdout
    unknown = run_prompt(project, "--agent", "reviewr")
    assert unknown.returncode == 2
    assert b"There is no agent" in unknown.stderr
