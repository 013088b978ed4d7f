"""Many commands in one session: memory and descriptors after each tenth. Prints, never judges.

`python bench/shell_soak.py [calls]`

The second number is the memory of the processes that run the commands. At the end the result of
the first call is asked for again, by its id.
"""

import asyncio
import os
import sys
import tempfile

from measure import processes_below, resident_mb

from handaxe import Session, ToolCall


def tell(number: int) -> None:
    below = sum(resident_mb(pid) for pid in processes_below(os.getpid()))
    descriptors = len(os.listdir("/proc/self/fd"))
    print(
        f"{number:7,} calls  {resident_mb():7.2f} MB  {below:6.2f} MB  {descriptors:4} descriptors",
        flush=True,
    )


async def main(calls: int) -> None:
    with tempfile.TemporaryDirectory() as top:
        async with Session(top, home=f"{top}/home", permission_mode="bypassPermissions") as session:
            first = ToolCall("the first", "Bash", {"command": "date +%N"})
            said = await session.run(first)
            for number in range(calls + 1):
                if number % max(1, calls // 10) == 0:
                    tell(number)
                result = await session.call("Bash", command=f"echo {number}")
                assert result.ok, result.text
            assert (await session.run(first)).text == said.text


asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
