"""Run media work in a child process, within the memory budget of all such children."""

from collections.abc import Sequence
from typing import Any

from handaxe.media.memory_budget import MEDIA_MEMORY
from handaxe.process.bounded_child import Answer, run_bounded_child

LIMIT_S = 15
"""The time limit of one call, in seconds of wall clock and CPU time."""
MEMORY_BYTES = 1 << 29
"""The default memory limit, besides twice the size of the file."""


async def run_media_child(
    module: str,
    request: dict[str, Any],
    data: bytes,
    packages: Sequence[str],
    *,
    ceiling_bytes: int,
    memory_bytes: int | None = None,
) -> list[Answer]:
    """The answers of the child in `module`, which can import the installed `packages`.

    It starts when all children together stay below `ceiling_bytes` of memory.
    """
    wanted_bytes = (MEMORY_BYTES if memory_bytes is None else memory_bytes) + 2 * len(data)
    async with MEDIA_MEMORY.reserve(wanted_bytes, ceiling_bytes) as room_bytes:
        return await run_bounded_child(
            module, request, data, packages, limit_s=LIMIT_S, memory_bytes=room_bytes
        )
