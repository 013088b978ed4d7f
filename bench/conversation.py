"""One conversation of an agent, started as a process, with a model server on loopback.

It is given calls to make, one after the other, and the time is taken from each answer with a call to the
request that carries the result.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from model_server import Call, ModelServer, Request
from rivals import Contender

_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
_LIMIT_S = 300


class ConversationFailed(Exception):
    """The agent did not do what it was asked to do."""


class Conversation(NamedTuple):
    """How long everything took, in milliseconds."""

    first_ms: float
    """From spawning the agent to its first request."""
    calls_ms: list[float]
    memory_mb: float
    """The most that the process and its children held at once."""
    requests: list[Request]
    said: str
    """The end of what it printed."""

    @property
    def heard(self) -> bytes:
        """Everything the model was told."""
        return b"".join(request.body for request in self.requests)


async def converse(
    contender: Contender, calls: Sequence[Call], root: Path, home: Path
) -> Conversation:
    """Let an agent make calls in a directory.

    Raises:
        ConversationFailed: it did not make them all, or did not end.
    """
    home.mkdir(parents=True, exist_ok=True)
    server = ModelServer(calls)
    start = contender.start(await server.start(), home)
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *contender.program, *start.arguments, cwd=root, stdin=subprocess.DEVNULL,
        env={**environment, "HOME": str(home), "TERM": "dumb", **start.environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    watching = asyncio.ensure_future(_peak_mb(process.pid))
    try:
        out, errors = await asyncio.wait_for(process.communicate(), _LIMIT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise ConversationFailed(f"{contender.name} did not end within {_LIMIT_S} s") from None
    finally:
        server.stop()
    said = (out + errors).decode(errors="replace")[-600:]
    requests = server.requests
    if len(requests) != len(calls) + 1:
        number = f"{len(requests)} requests instead of {len(calls) + 1}"
        raise ConversationFailed(f"{contender.name}: {number}. It said: {said}")
    taken = [
        (request.at - answered) * 1000
        for request, answered in zip(requests[1:], server.answered, strict=False)
    ]
    return Conversation((requests[0].at - began) * 1000, taken, await watching, requests, said)


async def _peak_mb(pid: int) -> float:
    """The most that a process and its children held at once, until it ends."""
    most = 0.0
    while pages := sum(_resident_pages(pid)):
        most = max(most, pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20))
        await asyncio.sleep(0.05)
    return most


def _resident_pages(pid: int) -> Iterable[int]:
    """What each of a process and its descendants holds."""
    place = Path(f"/proc/{pid}")
    try:
        yield int((place / "statm").read_text().split()[1])
        children = [task.read_text().split() for task in place.glob("task/*/children")]
    except OSError:
        return
    for child in {int(number) for numbers in children for number in numbers}:
        yield from _resident_pages(child)
