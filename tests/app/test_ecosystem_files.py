"""The ecosystem's own files are read as they are, side by side with ours."""

import json
from pathlib import Path

import pytest

from handaxe import Agent, Session
from handaxe.app.session import get_parts
from handaxe.contract.messages import TokenUsage
from handaxe.contract.ports.model import MessageEnded, Model, TextDelta
from handaxe.contract.ports.skills import Skills

FILES = {
    ".claude/settings.json": json.dumps({"permissions": {"deny": ["Read(*.pem)"]}}),
    ".claude/settings.local.json": json.dumps({"permissions": {"deny": ["Read(*.key)"]}}),
    ".handaxe/settings.json": json.dumps({"read": {"line_format": "tab"}}),
    ".mcp.json": json.dumps({"mcpServers": {"files": {"command": "no-such-program"}}}),
    "CLAUDE.md": "Always answer in rhymes.\n@AGENTS.md\n",
    "AGENTS.md": "Tests run with make.\n",
    ".claude/skills/review/SKILL.md": "---\ndescription: Review a change\n---\nReview it.\n",
    ".claude/commands/fix.md": "Fix $ARGUMENTS.\n",
    ".claude/agents/tester.md": "---\nname: tester\ndescription: Runs tests\n---\nRun tests.\n",
    "a.pem": "x\n",
    "b.key": "x\n",
    "a.txt": "x\n",
}


class Listening(Model):
    name = "listening"

    async def stream(self, request):
        self.request = request
        yield TextDelta("Done.")
        yield MessageEnded("end_turn", TokenUsage())


@pytest.mark.proves("ST-1")
async def test_every_file_of_the_ecosystem_counts_where_it_lies(project: Path):
    for name, text in FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    async with Session(project, trusted=True) as session:
        assert (await session.call("Read", file_path="a.pem")).code == "permission.denied"
        assert (await session.call("Read", file_path="b.key")).code == "permission.denied"
        assert (await session.call("Read", file_path="a.txt")).text.startswith("1\tx")
        names = [skill.name for skill in get_parts(session).pipeline_context.ports[Skills].all()]
        assert names == ["fix", "review"]
        assert session.mcp is not None
        assert [server.name for server in session.mcp.status()] == ["files"]
        model = Listening()
        async with Agent(model, session) as agent:
            await agent.ask("Hello.")
        said = "\n".join(model.request.system)
        for piece in ("in rhymes", "Tests run with make.", "- review: Review a change", "tester"):
            assert piece in said, piece
        assert said.count("Tests run with make.") == 1
