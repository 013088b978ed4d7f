"""Process functions for the supervisor and its workers: start, find, signal, wait."""

import os
import select
import signal
import socket
from collections.abc import Container
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl

_MESSAGE_BYTES = 1 << 18
_MAX_FDS = 250
_CLOSED_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0x40000000)
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_DEFAULTED = [n for n in range(1, 32) if n not in {signal.SIGKILL, signal.SIGSTOP}]

Process = tuple[int, int, bytes]
"""Its number, its group and its state."""


class ProcessPoller:
    """Waits for events of children, a socket, or the end of the host."""

    def __init__(self, talk: socket.socket, host: int | None) -> None:
        self._wake, self._wake_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # Only a handler makes the system report the end of a child at all.
        signal.signal(signal.SIGCHLD, _ignore_signal)
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        self._host = host
        self._children = select.poll()
        self._children.register(self._wake, select.POLLIN)
        self._all = select.poll()
        for fd in (self._wake, talk.fileno(), host):
            if fd is not None:
                self._all.register(fd, select.POLLIN)
        self._talk = talk
        self._host_is_gone = False

    def hear(self) -> tuple[bytes, list[int]]:
        """The next message with its descriptors; empty if the host ended."""
        # Not to be asked for then: with a copy of the socket in other hands it would never come.
        return (b"", []) if self._host_is_gone else receive(self._talk)

    def wait(self) -> bool:
        """Wait for any event and return whether it is a message or the end of the host."""
        is_said = False
        for fd, _ in self._all.poll():
            if fd == self._wake:
                self._drain_wakeups()
            else:
                is_said = True
                self._host_is_gone = self._host_is_gone or fd == self._host
        return is_said

    def wait_for_children(self, timeout_s: float) -> None:
        """Wait until a child ends, at most this long."""
        if self._children.poll(max(timeout_s, 0) * 1000):
            self._drain_wakeups()

    def close(self) -> None:
        """Close its descriptors."""
        signal.set_wakeup_fd(-1)
        os.close(self._wake)
        os.close(self._wake_end)

    def _drain_wakeups(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake, 4096)


def spawn(
    argv: list[str],
    env: dict[str, str],
    given: list[tuple[int, int]],
    plan: tuple[int, int] | None = None,
) -> int:
    """Start a program with the given descriptors under the given numbers.

    With a `plan` (the numbers of two of them) it is restricted by Landlock first.
    """
    # Out of the way first: a source must not lie where an earlier one is put.
    targets = [target for _, target in given]
    moved = {source: _move(source, targets) for source, _ in given if source in targets}
    actions = [(os.POSIX_SPAWN_DUP2, moved.get(source, source), target) for source, target in given]
    try:
        if plan is not None:
            return _fork_confined(argv, env, [action[1:] for action in actions], plan)
        return os.posix_spawn(
            argv[0],
            argv,
            env,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULTED,
        )
    finally:
        for source in moved.values():
            os.close(source)


def _move(source: int, targets: Container[int]) -> int:
    """Copy a descriptor to a number outside the targets."""
    copy = fcntl(source, F_DUPFD_CLOEXEC, 3)
    while copy in targets:
        wrong, copy = copy, fcntl(source, F_DUPFD_CLOEXEC, copy + 1)
        os.close(wrong)
    return copy


def _fork_confined(
    argv: list[str], env: dict[str, str], given: list[tuple[int, int]], plan: tuple[int, int]
) -> int:
    """Spawn with a forked child that restricts itself, so that no launcher has to start."""
    from handaxe.process import landlock_launcher

    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in _DEFAULTED:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for source, target in given:
            os.dup2(source, target)
        landlock_launcher.main([*map(str, plan), *argv], env)
    finally:
        os._exit(126)


def receive(talk: socket.socket) -> tuple[bytes, list[int]]:
    """One message with its descriptors; empty if the other side is closed."""
    try:
        # `socket.recv_fds` loses the flag, and a descriptor must not reach a command by chance.
        message, ancillary, _, _ = talk.recvmsg(
            _MESSAGE_BYTES, socket.CMSG_SPACE(_MAX_FDS * 4), _CLOSED_ON_EXEC
        )
    except OSError:
        return b"", []
    return message, [fd for _, _, data in ancillary for fd in memoryview(data).cast("i")]


def list_descendants(spared: Container[int] = ()) -> list[Process]:
    """All descendants of this process, without `spared` and their descendants."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := read_process_stat(int(name))) is not None:
            state, parent, group = found
            children.setdefault(parent, []).append((int(name), group, state))
    family: list[Process] = []
    waiting = [os.getpid()]
    while waiting:
        for process in children.get(waiting.pop(), ()):
            if process[0] not in spared:
                family.append(process)
                waiting.append(process[0])
    return family


def signal_groups(family: list[Process], number: int) -> None:
    """Signal every group with one of these members: forks cannot escape a group's signal."""
    own = os.getpgrp()
    done: set[int] = set()
    for pid, group, _ in family:
        with suppress(OSError):
            if group == own:
                os.kill(pid, number)
            elif group not in done:
                done.add(group)
                # Each command leads a session, so a group below it has no other members.
                os.killpg(group, number)


def enable_subreaper() -> None:
    """Make orphans below this process its own children."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_NAME, b"handaxe-shell", 0, 0, 0)


def read_process_stat(pid: int) -> tuple[bytes, int, int] | None:
    """The state, the parent and the group of a process."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        state, parent, group, _ = os.read(file, 512).rpartition(b")")[2].split(None, 3)
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)
    return state, int(parent), int(group)


def _ignore_signal(_number: int, _frame: object) -> None:
    """Exists so that the end of a child interrupts a wait."""
