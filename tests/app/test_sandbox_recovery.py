"""Protected files of a project after commands of a session, and after its process was killed."""

import subprocess
import sys

import pytest
from tests.waiting import until

from handaxe import Session
from handaxe.shell.sandbox.backend import find_backend

pytestmark = pytest.mark.skipif(
    find_backend().name == "none", reason="nothing can be confined here"
)
WEAK = {"enabled": True, "bwrapPath": "/bin/false"}
"""Leaves only Landlock."""
STARTED = """
import asyncio, sys
from handaxe import Session

async def main():
    async with Session(sys.argv[1], settings={"sandbox": %r}) as session:
        await session.call("Bash", command=sys.argv[2])

asyncio.run(main())
"""


@pytest.mark.proves("SH-7")
@pytest.mark.parametrize("sandbox", [{"enabled": True}, WEAK], ids=["strong", "weak"])
async def test_what_a_command_made_is_moved_aside_and_told(project, sandbox):
    subprocess.run(["git", "init", "-q", project], check=True)
    evil = "sub/.mcp.json .MCP.json new/.git/hooks/pre-commit sub/a.code-workspace"
    making = f"mkdir sub; git init -q new; for f in {evil}; do echo evil > $f; done"
    # Nobody knows from its text what this command does.
    (project / "evil.sh").write_text(making)
    async with Session(project, settings={"sandbox": sandbox}) as session:
        result = await session.call("Bash", command="sh ./evil.sh")
    assert not [name for name in evil.split() if (project / name).exists()]
    assert (project / "new/.git/config").exists()
    for name in evil.split():
        assert f"{project}/{name} is protected from sandboxed commands" in result.text


@pytest.mark.proves("SH-7")
async def test_a_killed_process_leaves_nothing_to_the_next(project):
    subprocess.run(["git", "init", "-q", project], check=True)
    config = project / ".git/config"
    before = config.read_bytes()
    evil = "echo evil > .git/config; mkdir -p sub/.vscode; echo evil > sub/.vscode/tasks.json"
    evil += "; mkdir .claude; echo evil > .claude/settings.json"
    (project / "evil.sh").write_text(f"{evil}; touch ready; sleep 20")
    process = subprocess.Popen([sys.executable, "-c", STARTED % WEAK, str(project), "sh ./evil.sh"])
    try:
        await until((project / "ready").exists)
    finally:
        process.kill()
        process.wait()
    assert config.read_text() == "evil\n"
    async with Session(project, settings={"sandbox": WEAK}) as session:
        # Before anything runs.
        assert config.read_bytes() == before
        assert not (project / "sub/.vscode").exists()
        # Before it read its settings, too.
        assert not (project / ".claude").exists()
        assert session.warnings == ()
        result = await session.call("Bash", command="true")
    assert f"{config} is protected from sandboxed commands and was restored" in result.text
