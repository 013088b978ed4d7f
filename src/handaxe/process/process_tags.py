"""Find processes by a tag in the environment with which they were started.

Children of this process also have a tag of the host, by which the supervisor ends leftovers of a
killed host (`process/orphans.py`).
"""

import os
import secrets
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

HOST_MARK = "HANDAXE_HOST"
_ROUNDS = 5
_FEW = 200
"""Up to this many numbers are tried before all processes are listed."""
_LOADING_S = 2.0
"""How long a program may load before it counts as untagged."""
_EMPTY_S = 0.05
_KERNEL_THREAD = 0x00200000
_token = secrets.token_hex(12)


def get_host_token() -> str:
    """The tag of this host's processes."""
    return _token


def tag_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child that must end with this process."""
    return {**env, HOST_MARK: _token}


def kill_tagged(variable: str, mark: str, *, since: int = 0) -> int:
    """Kill every process of this user with this tag; returns the number.

    `since` is the first possible process number; earlier ones are skipped.
    """
    if sys.platform != "linux":
        return 0
    wanted = f"{variable}={mark}".encode()
    killed = 0
    for _ in range(_ROUNDS):
        found = sum(_kill_if_tagged(pid, wanted) for pid in _list_processes(since))
        killed += found
        # What was found may have started another one meanwhile.
        if not found:
            break
        time.sleep(0.005)
    return killed


def _list_processes(since: int) -> Iterable[int]:
    """The numbers of all processes, or of those started after one of them."""
    try:
        newest = int(Path("/proc/loadavg").read_bytes().split()[-1]) if since else 0
        if 0 < since <= newest < since + _FEW:
            return range(since, newest + 1)
        # Numbers begin again at the end, so a smaller one can be newer.
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except (OSError, ValueError, IndexError):
        return ()


def _kill_if_tagged(pid: int, wanted: bytes) -> bool:
    try:
        # Held by its descriptor, so the number cannot pass to another process in between.
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not is_tagged(pid, wanted):
            return False
        signal.pidfd_send_signal(held, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(held)
    return True


def is_tagged(pid: int, wanted: bytes) -> bool:
    """Whether the environment of a process has an entry with this prefix."""
    try:
        environment = _read_environment(pid)
    except OSError:
        return False
    return any(entry.startswith(wanted) for entry in environment.split(b"\0"))


def _read_environment(pid: int) -> bytes:
    """The initial environment of a process; waits for a program that is being loaded."""
    path = Path(f"/proc/{pid}/environ")
    begun = time.monotonic()
    while not (environment := path.read_bytes()):
        if time.monotonic() - begun >= _choose_timeout(pid):
            break
        time.sleep(0.001)
    return environment


def _choose_timeout(pid: int) -> float:
    """How long to wait for the environment of a process."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    state, flags, start, end = fields[0], int(fields[6]), int(fields[47]), int(fields[48])
    if state in b"ZX" or flags & _KERNEL_THREAD:
        return 0.0
    # While `execve` runs a process has none, and for a moment its place is known and still empty.
    return _LOADING_S if end == 0 or end > start else _EMPTY_S


def get_process_session(pid: int) -> int | None:
    """The session of a process; None if the process does not exist."""
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _take_new_token() -> None:
    """In a forked child, which may outlive this process: use a new tag."""
    global _token  # noqa: PLW0603 - one per process
    _token = secrets.token_hex(12)


os.register_at_fork(after_in_child=_take_new_token)
