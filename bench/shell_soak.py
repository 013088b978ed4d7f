"""Many commands in one session: memory and descriptors after each tenth. Prints, never judges.

`python bench/shell_soak.py [calls]`
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from handaxe import Session


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def main(calls: int) -> None:
    with tempfile.TemporaryDirectory() as top:
        async with Session(top, home=f"{top}/home", permission_mode="bypassPermissions") as session:
            for number in range(calls + 1):
                if number % max(1, calls // 10) == 0:
                    descriptors = len(os.listdir("/proc/self/fd"))
                    print(
                        f"{number:7,} calls  {resident_mb():7.1f} MB  {descriptors:4} descriptors"
                    )
                result = await session.call("Bash", command=f"echo {number}")
                assert result.ok, result.text


asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
