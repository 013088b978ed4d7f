"""End what a dead host process had started: hooks, servers, searches.

They have the host's tag in their environment. Members of a session led by a tagged process, and its
descendants, are ended too; only a daemon without tag, session and parents survives.
"""

import os
import signal
import time
from contextlib import suppress

from handaxe.process.process_tags import HOST_MARK, get_process_session, is_tagged
from handaxe.process.spawn import read_process_stat

_LATE_S = (0.0, 0.02, 0.1, 0.3)
"""When to check again, because a host may have started something at its end."""


def end_orphans(token: str) -> None:
    """End the processes with this host's tag."""
    wanted = f"{HOST_MARK}={token}".encode()
    for late_s in _LATE_S:
        time.sleep(late_s)
        for pid in _find_family(wanted):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _find_family(wanted: bytes) -> set[int]:
    children: dict[int, list[int]] = {}
    members: dict[int, list[int]] = {}
    bearers: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := read_process_stat(int(name))) is not None:
            pid = int(name)
            children.setdefault(found[1], []).append(pid)
            members.setdefault(get_process_session(pid) or 0, []).append(pid)
            if is_tagged(pid, wanted):
                bearers.append(pid)
    # Only a session that a bearer leads: in the host's own, others are at home.
    for leader in tuple(bearers):
        bearers += members.get(leader, ())
    family: set[int] = set()
    while bearers:
        pid = bearers.pop()
        if pid not in family:
            family.add(pid)
            bearers += children.get(pid, ())
    return family
