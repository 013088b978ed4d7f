"""`handaxe stats`: what tools and servers cost, from the logs of real sessions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import handaxe

CALLS = {
    "call": [
        {"tool": "Read", "input": {"file_path": "a.txt"}},
        {"tool": "Read", "input": {"file_path": "missing.txt"}},
        {"tool": "Glob", "input": {"pattern": "*.txt"}},
    ]
}


def run(*words, cwd):
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=60,
        check=False,
    )


def stats(*words, cwd) -> dict:
    return json.loads(run("stats", "--json", *words, cwd=cwd).stdout)


def by_name(rows) -> dict[str, dict]:
    return {row["name"]: row for row in rows}


@pytest.fixture
def talked(project, script):
    (project / "a.txt").write_text("some words in a line\n" * 1000)
    done = run("-p", "go", "--model", script(CALLS, {"text": "Done."}), cwd=project)
    assert done.returncode == 0, done.stderr
    return project


def test_tools_are_ranked_and_definitions_that_nobody_used_are_named(talked):
    found = stats(cwd=talked)
    assert found["sessions"] == 1
    read, glob = found["tools"]
    assert (read["name"], read["calls"], read["failed"]) == ("Read", 2, 1)
    assert (glob["name"], glob["calls"], glob["failed"]) == ("Glob", 1, 0)
    assert read["result_tokens"] > 4000 > glob["result_tokens"] > 0
    assert read["input_tokens"] > 0
    assert read["definition_tokens"] > 0
    assert (read["sessions"], read["offered_in"]) == (1, 1)
    unused = by_name(found["never_used"])
    assert "Bash" in unused
    assert not unused.keys() & {"Read", "Glob"}
    assert unused["Bash"]["definition_tokens"] > 100

    shown = run("stats", cwd=talked).stdout
    assert shown.startswith("1 session. Tokens are estimates.\n")
    assert shown.index("\nRead") < shown.index("\nGlob") < shown.index("Never called")


def test_the_calls_of_sub_agents_count(project, script):
    turns = (
        {"call": [{"tool": "Agent", "input": {"prompt": "look", "description": "a look"}}]},
        {"text": "Done."},
    )
    agent = {"call": [{"tool": "Glob", "input": {"pattern": "*"}}]}
    model = script(turns[0], agent, {"text": "Seen."}, turns[1])
    done = run("-p", "go", "--model", model, cwd=project)
    assert done.returncode == 0, done.stderr
    found = by_name(stats(cwd=project)["tools"])
    assert found["Agent"]["calls"] == 1
    assert found["Glob"]["calls"] == 1


async def test_servers_are_the_sum_of_their_tools(project):
    class Echo(handaxe.Tool):
        name = "mcp__srv__echo"

        class Args(handaxe.ToolArgs):
            text: str = ""

        args_type = Args

        def prompt(self) -> str:
            return "Say it again."

        async def call(self, args, ctx) -> handaxe.ToolResult:
            return handaxe.ToolResult(args.text * 100)

    class Other(Echo):
        name = "mcp__srv__other"

    async with handaxe.Session(
        project, tools=[Echo, Other], permission_mode="bypassPermissions"
    ) as session:
        for tool in ("mcp__srv__echo", "mcp__srv__other", "mcp__srv__echo"):
            assert (await session.call(tool, text="abc ")).ok
    (server,) = stats(cwd=project)["servers"]
    assert (server["name"], server["calls"], server["sessions"]) == ("srv", 3, 1)


def test_hooks_are_ranked_by_how_long_they_were_waited_for(project, script):
    (project / "a.txt").write_text("x\n")

    def hooks(*commands, **more):
        return [{"hooks": [{"type": "command", "command": c, **more} for c in commands]}]

    given = json.dumps({"hooks": {"PreToolUse": hooks("sleep 0.2", "exit 1"),
                                  "PostToolUse": hooks("sleep 0.3", **{"async": True})}})  # fmt: skip
    words = ("-p", "go", "--model", script(CALLS, {"text": "Done."}), "--settings", given)
    assert run(*words, cwd=project).returncode == 0
    found = stats(cwd=project)["hooks"]
    assert found[-1]["name"] == "sleep 0.3", "nobody waits for what runs in the background"
    slow, failing = (by_name(found)[name] for name in ("sleep 0.2", "exit 1"))
    assert (slow["event"], slow["failed"]) == ("PreToolUse", 0)
    assert slow["runs"] == failing["runs"] == failing["failed"]
    assert "PreToolUse sleep 0.2" in run("stats", cwd=project).stdout


def test_which_sessions_count_can_be_chosen(talked, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    assert stats(cwd=other)["sessions"] == 0
    assert stats("--all", cwd=other)["sessions"] == 1
    assert stats("--root", str(talked), cwd=other)["sessions"] == 1
    assert stats("--days", "1", cwd=talked)["sessions"] == 1
    (log,) = Path(os.environ["HANDAXE_HOME"]).glob("sessions/*/events.jsonl")
    os.utime(log, (1, 1))
    assert stats("--days", "1", cwd=talked)["sessions"] == 0
    assert stats("--session", log.parent.name, cwd=other)["sessions"] == 1
    unknown = run("stats", "--session", "nobody", cwd=other)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "There is no session 'nobody'" in unknown.stderr


def test_a_torn_log_is_counted_as_far_as_it_goes(talked):
    (log,) = Path(os.environ["HANDAXE_HOME"]).glob("sessions/*/events.jsonl")
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) - 40])
    assert by_name(stats(cwd=talked)["tools"])["Read"]["calls"] == 2
