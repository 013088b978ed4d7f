"""An agent that works until somebody kills it: `python killed_agent.py PROJECT SESSION`."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from players import Player, call, ended, says

from handaxe import Agent, Session
from handaxe.contract.ports.model import TextDelta


async def work(project: str, session_id: str) -> None:
    """Read and write for ever, saying where it is."""

    def turn(number: int):
        name = f"f{number % 7}.txt"
        return [
            TextDelta(f"Round {number}"),
            *call(f"r{number}", "Read", {"file_path": name}),
            0.001,
            *call(f"w{number}", "Write", {"file_path": f"new{number}.txt", "content": "x"}),
            TextDelta(" and more"),
            ended("tool_use"),
        ]

    for number in range(7):
        (Path(project) / f"f{number}.txt").write_text("one\n")
    async with Session(project, permission_mode="acceptEdits", session_id=session_id) as session:
        model = Player(*[turn(number) for number in range(400)], says("Done."))
        async for event in Agent(model, session, memory=False).run("Work."):
            if type(event).__name__ == "ToolAnswered":
                sys.stdout.write(".")
                sys.stdout.flush()


asyncio.run(work(sys.argv[1], sys.argv[2]))
