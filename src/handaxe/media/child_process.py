"""Work on media in a child process, within the memory that all such children may take together."""

from collections.abc import Sequence
from typing import Any

from handaxe.media.memory_budget import MEDIA_MEMORY
from handaxe.process.bounded_child import Answer, run_bounded_child

LIMIT_S = 15
"""How long one call may take, in seconds of the clock and of the processor."""
MEMORY_BYTES = 1 << 29
"""Its default memory limit, beside twice the size of the file."""


async def run_media_child(
    module: str,
    request: dict[str, Any],
    data: bytes,
    packages: Sequence[str],
    *,
    ceiling_bytes: int,
    memory_bytes: int | None = None,
) -> list[Answer]:
    """All that the child in `module` said; it can import `packages`, which have to be there.

    It starts as soon as all children together stay below `ceiling_bytes` of memory.
    """
    wanted_bytes = (MEMORY_BYTES if memory_bytes is None else memory_bytes) + 2 * len(data)
    async with MEDIA_MEMORY.reserve(wanted_bytes, ceiling_bytes) as room_bytes:
        return await run_bounded_child(
            module, request, data, packages, limit_s=LIMIT_S, memory_bytes=room_bytes
        )
