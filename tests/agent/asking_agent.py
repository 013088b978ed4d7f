"""An agent that asks and never gets an answer: `python asking_agent.py PROJECT SESSION COUNT`."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from players import Player, call, ended

from handaxe import Agent, Allow, PermissionRequest, Session


def turn(count: int):
    """One call that needs no answer, then writes that each need one, then one behind them."""
    steps = [*call("look", "Read", {"file_path": "seen.txt"})]
    for number in range(count):
        steps += call(f"w{number}", "Write", {"file_path": f"{number}.txt", "content": "new\n"})
    behind = {"file_path": "0.txt", "old_string": "new", "new_string": "newer"}
    return [*steps, *call("behind", "Edit", behind), ended("tool_use")]


async def work(project: str, session_id: str, count: int) -> None:
    """Say when all questions are open, then wait for ever."""
    asked: list[str] = []

    async def on_ask(request: PermissionRequest) -> Allow:
        asked.append(request.call_id)
        if len(asked) == count:
            sys.stdout.write("asked\n")
            sys.stdout.flush()
        await asyncio.Event().wait()
        return Allow()

    async with (
        Session(project, session_id=session_id, on_ask=on_ask, ask_in_parallel=True) as session,
        Agent(Player(turn(count)), session, memory=False) as agent,
    ):
        await agent.ask("Work.")


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], int(sys.argv[3])))
