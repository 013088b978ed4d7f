"""A process is killed while a question is open; another one answers, and the call runs once."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from handaxe import Agent, Allow, PermissionRequest, Session

CALL = '{"call": [{"tool": "Write", "id": "w1", "input": {"file_path": "a", "content": "hi"}}]}'


async def on_ask(request: PermissionRequest) -> Allow:
    os.kill(os.getpid(), signal.SIGKILL)  # the question is open now
    return Allow(request.reason)  # nobody gets here


async def main(*words: str) -> None:
    if not words:
        Path("turns.jsonl").write_text(f'{CALL}\n{{"text": "Written."}}\n')  # noqa: ASYNC240
        await (await asyncio.create_subprocess_exec(sys.executable, __file__, "Write!")).wait()
    async with Session(".", session_id="s", on_ask=on_ask if words else None) as session:
        answers = {request.call_id: Allow() for request in session.pending}
        agent = Agent("scripted:turns.jsonl", session)
        print(*answers, (await agent.ask(words[0] if words else None, answers=answers)).result)


asyncio.run(main(*sys.argv[1:]))
