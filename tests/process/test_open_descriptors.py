"""What is opened for a call is closed, however the call ends."""

import asyncio
import os
import threading

from tests import waiting

from handaxe.disk.threads import start_in_thread


def open_on(path) -> int:
    """How many descriptors of this process are open on a file."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{name}") == str(path)
        except OSError:
            continue
    return found


async def test_a_large_file_is_closed_when_its_read_is_cancelled_before_a_thread_is_free(
    session, project
):
    file = project / "large.txt"
    file.write_text("line\n" * 300_000)
    release = threading.Event()
    busy = [start_in_thread(release.wait).result for _ in range(64)]
    try:
        read = asyncio.ensure_future(session.call("Read", file_path="large.txt", limit=1))
        await waiting.until(lambda: open_on(file) == 1)
        session.cancel()
        assert (await read).code == "call.cancelled"
    finally:
        release.set()
        await asyncio.gather(*busy)
    await waiting.until(lambda: open_on(file) == 0)
