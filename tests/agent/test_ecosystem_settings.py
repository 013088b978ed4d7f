"""Settings that the ecosystem's files hold, and what an agent does differently because of them."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from players import Player, calls, says
from tests.expected_types import expect_type
from tests.models.serving import Reply, model_server
from tests.models.test_anthropic import ANSWER

from handaxe import Agent, Session, SetupError
from handaxe.agent.events import RunFinished
from handaxe.contract.events import Compacted
from handaxe.contract.ports.model import ModelFailed

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


@pytest.mark.proves("ST-2")
async def test_a_conversation_is_only_summed_up_on_demand_where_that_is_wished(project: Path):
    (project / "a.txt").write_text("some words here\n" * 400)
    reads = [calls((f"c{i}", "Read", {"file_path": "a.txt", "offset": i})) for i in range(1, 9)]
    too_long = ModelFailed("too_long", "The prompt is too long.", status=400)
    model = Player(*reads, [too_long], says("SUMMARY"), context_tokens=14_000)
    settings = {"autoCompactEnabled": False}
    async with Session(project, tools="read-only", settings=settings) as session:
        agent = Agent(model, session, memory=False)
        events = [event async for event in agent.run("Read.")]
        assert not any(isinstance(event, Compacted) for event in events)
        assert expect_type(RunFinished, events[-1]).terminal_reason == "prompt_too_long"
        assert await agent.compact() is not None


@pytest.mark.proves("ST-2")
async def test_effort_language_and_repository_are_as_the_settings_wish(project: Path):
    subprocess.run(["git", "init", "-q", "-b", "trunk"], cwd=project, check=True)

    async def asked(settings: dict[str, object], **options: Any):
        model = Player(says("Hi."))
        async with Session(project, settings=settings) as session:
            await Agent(model, session, memory=False, **options).ask("Hello.")
        return model.requests[0].effort, "\n".join(model.requests[0].system)

    effort, system = await asked({})
    assert (effort, "Branch: trunk" in system, "# Language" in system) == (None, True, False)
    wishes = {"effortLevel": "high", "language": "german", "includeGitInstructions": False}
    effort, system = await asked(wishes)
    assert effort == "high"
    assert "Talk to the person in german." in system
    assert "trunk" not in system
    assert (await asked(wishes, effort="low"))[0] == "low"


@pytest.mark.proves("ST-2")
async def test_ignore_files_count_as_the_ecosystem_spells_it(project: Path):
    (project / ".ignore").write_text("hidden.txt\n")
    (project / "hidden.txt").write_text("needle\n")

    async def found(settings: dict[str, object]) -> bool:
        async with Session(project, settings=settings) as session:
            return bool((await session.call("Glob", pattern="*.txt")).data["filenames"])

    assert not await found({})
    assert await found({"respectGitignore": False})
    assert not await found({"respectGitignore": False, "search": {"respect_ignore": True}})


@pytest.mark.proves("ST-2")
async def test_a_question_that_nobody_answers_in_time_is_given_up(project: Path):
    async def away(_questions: object) -> None:
        await asyncio.Event().wait()

    settings = {"askUserQuestionTimeout": "1s"}
    choices = [{"label": label, "description": "d"} for label in ("Left", "Right")]
    question = {"question": "Which way?", "header": "Way", "options": choices}
    async with Session(project, on_question=away, settings=settings) as session:
        result = await session.call("AskUserQuestion", questions=[question])
    assert result.code == "user.no_answer"
    with pytest.raises(SetupError, match="askUserQuestionTimeout"):
        Session(project, settings={"askUserQuestionTimeout": "soon"})


@pytest.mark.proves("ST-2")
async def test_a_helper_gives_the_key_where_the_environment_has_none(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    helper = project / "helper"
    helper.write_text("#!/bin/sh\necho asked >> asked.txt\necho '  key-of-helper  '\n")
    helper.chmod(0o755)
    settings = {"apiKeyHelper": f"cd {project} && ./helper"}
    reply = Reply(pieces=(ANSWER,))
    async with model_server(reply) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Agent("claude-x", root=project, settings=settings) as agent:
            await agent.ask("Hello.")
        words = ["-p", "hello", "--model", "claude-x", "--settings", json.dumps(settings)]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "handaxe", *words, cwd=project, stdin=asyncio.subprocess.DEVNULL
        )
        assert await process.wait() == 0
        assert [each.headers["authorization"] for each in server.asked] == [
            "Bearer key-of-helper"
        ] * 2
        assert "ANTHROPIC_API_KEY" not in os.environ
        assert (project / "asked.txt").read_text() == "asked\n" * 2
        monkeypatch.setenv("ANTHROPIC_API_KEY", "own")
        async with Agent("claude-x", root=project, settings=settings) as agent:
            await agent.ask("Hello.")
        assert server.asked[-1].headers["authorization"] == "Bearer own"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(SetupError, match=r"apiKeyHelper printed no key \(exit code 3\)"):
        Agent("claude-x", root=project, settings={"apiKeyHelper": "exit 3"})


@pytest.mark.proves("ST-2")
def test_a_project_cannot_choose_the_program_that_gives_the_key(project: Path):
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text('{"apiKeyHelper": "touch started"}')
    session = Session(project, settings={"trusted_folders": [str(project)]})
    assert session.settings.api_key_helper is None
    assert any("apiKeyHelper" in warning for warning in session.warnings)


async def test_what_ends_commits_and_pull_requests_is_told_where_it_is_set(project: Path):
    line = "Co-Authored-By: Somebody <somebody@example.org>"
    told: list[str] = []
    for settings in ({}, {"attribution": {"commit": line, "pr": "", "sessionUrl": False}}):
        model = Player(says("Hi."))
        async with Session(project, settings=settings) as session:
            assert session.warnings == ()
            await Agent(model, session).ask("Hello.")
        told.append("\n".join(model.requests[0].system))
    assert "# Attribution" not in told[0]
    assert f"End every commit message you write with these lines:\n\n{line}" in told[1]
    assert "pull request" not in told[1].partition("# Attribution")[2].partition("# Env")[0]
