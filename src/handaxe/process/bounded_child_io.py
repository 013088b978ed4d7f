"""The child's side of `bounded_child`: read the request, set limits, answer.

It imports little, because every call starts a child.
"""

import contextlib
import ctypes
import json
import resource
import signal
import sys
from typing import Any

_DIE_WITH_PARENT = 1


class ChildRequest:
    """The request that a child process reads, and the stream for its answer."""

    def __init__(self) -> None:
        self.request: dict[str, Any] = json.loads(sys.argv[1])
        self._out = sys.stdout.buffer

    def read_input(self) -> ctypes.Array[ctypes.c_char]:
        """The input bytes, in memory that a library can read; the limits apply from now on."""
        data = ctypes.create_string_buffer(self.request["size_bytes"])
        place, at = memoryview(data).cast("B"), 0
        with open(0, "rb", buffering=0, closefd=False) as received:
            while got := received.readinto(place[at:]):
                at += got
        _limit(self.request["memory_bytes"], self.request["cpu_s"])
        return data

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send one line of facts, then the bytes."""
        line = json.dumps({**header, "bytes": len(body)}).encode()
        self._out.write(line + b"\n" + body)
        self._out.flush()


def _limit(memory_bytes: int, cpu_s: int) -> None:
    """Exit with the parent, after a time, and before using all memory."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    with contextlib.suppress(OSError, ValueError):
        # Not every system can limit memory; the time is limited on all of them.
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
