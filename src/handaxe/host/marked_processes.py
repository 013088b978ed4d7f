"""Finding processes by a mark in the environment they were started with."""

import os
import signal
import sys
import time
from pathlib import Path

_ROUNDS = 5


def kill_marked(variable: str, mark: str) -> int:
    """End every process of ours whose environment bears this mark; how many there were."""
    if sys.platform != "linux":
        return 0
    wanted = f"{variable}={mark}".encode()
    killed = 0
    for _ in range(_ROUNDS):
        found = sum(_kill_if_marked(int(name), wanted) for name in _process_numbers())
        killed += found
        # What was found may have started another one meanwhile.
        if not found:
            break
        time.sleep(0.005)
    return killed


def _process_numbers() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _kill_if_marked(pid: int, wanted: bytes) -> bool:
    try:
        # Held by its descriptor, so the number cannot pass to another process in between.
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if not any(entry.startswith(wanted) for entry in environment):
            return False
        signal.pidfd_send_signal(held, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(held)
    return True
