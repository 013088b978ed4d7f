"""What an empty call costs alone and among others: `uv run python bench/calls_at_once.py`.

Prints wall time and processor time per call for calls that start together. Processor time is what
handaxe needs; wall time also counts what other processes of the machine take away.
"""

import asyncio
import statistics
import tempfile
import time

from handaxe import Effects, Session, Tool, ToolArgs, ToolContext, ToolResult

COUNTS = (1, 10, 100)
CALLS = 6_000


class NothingArgs(ToolArgs):
    pass


class Nothing(Tool[NothingArgs]):
    """Does nothing."""

    search_hint = "nothing at all here"
    effects = Effects.pure()

    async def call(self, args: NothingArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult("")


async def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        async with Session(root, tools=[Nothing], permission_mode="bypassPermissions") as session:
            for count in COUNTS:
                wall: list[float] = []
                cpu: list[float] = []
                for _ in range(CALLS // count):
                    began, used = time.perf_counter(), time.thread_time()
                    await asyncio.gather(*(session.call("Nothing") for _ in range(count)))
                    wall.append((time.perf_counter() - began) / count * 1e6)
                    cpu.append((time.thread_time() - used) / count * 1e6)
                print(
                    f"{count:>4} at once, each: {statistics.median(wall):6.1f} µs wall, "
                    f"{statistics.median(cpu):6.1f} µs processor"
                )


if __name__ == "__main__":
    asyncio.run(main())
