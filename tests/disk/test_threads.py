"""Work in threads comes to its end."""

import subprocess
import sys


def test_the_end_of_a_process_waits_for_work_that_has_begun() -> None:
    program = """
import asyncio, os, time
from handaxe.disk.threads import start_in_thread

async def main():
    start_in_thread(lambda: (time.sleep(0.3), os.write(1, b"done")))

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "done", done.stderr
