"""Run work in a child process with limits on time and memory.

The child gets a request as JSON and data on standard input. It answers with lines of facts, each
followed by the announced number of bytes. All complete answers count.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from handaxe.process.child_environment import build_child_argv
from handaxe.process.process_tags import tag_environment
from handaxe.process.worker_pool import WORKERS

Answer = tuple[dict[str, Any], bytes]

_LINE_BYTES = 16 << 20
_PIECE_BYTES = 1 << 20


async def run_bounded_child(
    module: str,
    request: dict[str, Any],
    data: bytes,
    packages: Sequence[str],
    *,
    limit_s: int,
    memory_bytes: int,
) -> list[Answer]:
    """The answers of the child in `module`; it can import `packages`, which must be installed.

    The time limit applies to wall clock and CPU time.
    """
    program = build_child_argv(module, packages)
    answers: list[Answer] = []
    limits = {"cpu_s": limit_s, "memory_bytes": memory_bytes, "size_bytes": len(data)}
    with contextlib.suppress(TimeoutError):
        async with (
            asyncio.timeout(limit_s),
            _start_child(program, {**request, **limits}) as child,
        ):
            async for answer in _exchange_messages(child, data):
                # One by one: what has come counts even if the time is up before the next.
                answers.append(answer)  # noqa: PERF401
    return answers


async def _exchange_messages(
    child: asyncio.subprocess.Process, data: bytes
) -> AsyncIterator[Answer]:
    """Send the data, then yield the answers."""
    assert child.stdin is not None
    assert child.stdout is not None
    with contextlib.suppress(ConnectionError):
        # Piece by piece, because what is written at once is also copied at once.
        for begin in range(0, len(data), _PIECE_BYTES):
            child.stdin.write(memoryview(data)[begin : begin + _PIECE_BYTES])
            await child.stdin.drain()
        child.stdin.close()
    try:
        while line := await child.stdout.readline():
            header = json.loads(line)
            yield header, await child.stdout.readexactly(header["bytes"])
    except (asyncio.IncompleteReadError, ValueError):
        # It died in the middle of an answer: the complete answers count.
        return


@contextlib.asynccontextmanager
async def _start_child(
    program: list[str], request: dict[str, Any]
) -> AsyncGenerator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        *program,
        json.dumps(request),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=tag_environment({}),
        start_new_session=True,
        limit=_LINE_BYTES,
    )
    WORKERS.keep_watch()
    try:
        yield child
        await child.wait()
    finally:
        if child.returncode is None:
            # Not by `child.kill`, which looks for the exit status itself and takes it from asyncio.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            await asyncio.shield(child.wait())
