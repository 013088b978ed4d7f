"""The program that owns processes: one supervisor per host process, and the wardens it forks.

A warden runs one command at a time and is the sub-reaper of whatever that command starts: a
process that loses its parent becomes the warden's own child, however it was started. So "the
warden has no child left" means exactly "nothing of this command lives", and finding that out costs
one system call. A warden that is killed leaves its processes to the supervisor, which is a
sub-reaper too and ends what is not a warden. All of them end when the host does.

This file runs alone, without the rest of handaxe, so that it starts fast and stays small.
"""

import gc
import marshal
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Container
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from typing import Any, NoReturn

CONTROL_FD = 3
CWD_FD = 250
"""Where the shell says, at its end, in which directory it stands."""
START_FD = 251
"""What the shell reads before the command, through `BASH_ENV`."""
START_TEXT = f"""\
unset BASH_ENV
exec {START_FD}<&-
trap '{{ builtin pwd -P; }} 2>&- >&{CWD_FD}' EXIT
"""

LINGER_S = 0.1
"""How long what a shell left behind may take to end by itself."""
GRACE_S = 0.1
"""How long a process may take to end after it was asked to."""
GIVE_UP_S = 5.0
"""After so long a process that cannot be ended is left to the supervisor."""
FAREWELL_S = 8.0

_MESSAGE_BYTES = 1 << 18
_MAX_FDS = 64
_CHASE = 48
_DEFAULTED = [n for n in range(1, 32) if n not in {signal.SIGKILL, signal.SIGSTOP}]

Process = tuple[int, int, bytes]
"""Its number, its group and its state."""


class Watch:
    """What a process waits for: news of its children, a socket, the end of the host."""

    def __init__(self, talk: socket.socket, host: int | None) -> None:
        self._wake, self._wake_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # Only a handler makes the system report the end of a child at all.
        signal.signal(signal.SIGCHLD, _note_nothing)
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        self._host = host
        self._children = select.poll()
        self._children.register(self._wake, select.POLLIN)
        self._all = select.poll()
        for fd in (self._wake, talk.fileno(), host):
            if fd is not None:
                self._all.register(fd, select.POLLIN)
        self.host_is_gone = False

    def wait(self) -> bool:
        """Wait for any news; whether somebody said something or is gone."""
        is_said = False
        for fd, _ in self._all.poll():
            if fd == self._wake:
                self._calm()
            else:
                is_said = True
                self.host_is_gone = self.host_is_gone or fd == self._host
        return is_said

    def wait_for_children(self, timeout_s: float) -> None:
        """Wait until a child ends, at most so long."""
        if self._children.poll(max(timeout_s, 0) * 1000):
            self._calm()

    def close(self) -> None:
        """Let go of its descriptors."""
        signal.set_wakeup_fd(-1)
        os.close(self._wake)
        os.close(self._wake_end)

    def _calm(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake, 4096)


class Warden:
    """Runs commands one after the other and ends whatever they leave."""

    def __init__(self, talk: socket.socket, host: int | None, start: int) -> None:
        self._talk = talk
        self._watch = Watch(talk, host)
        self._start = start
        # Whatever is written here by whomever, nobody can be made to wait.
        self._cwd_from, self._cwd_to = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._shell = 0
        self._status: int | None = None
        self._last_ended = 0

    def serve(self) -> bool:
        """Run what the host asks for, until it is gone; whether nothing is left then."""
        self._say(("here", os.getpid()))
        while True:
            if not self._watch.wait():
                continue
            message, fds = receive(self._talk)
            if not message or self._watch.host_is_gone:
                return not self._reap()
            if message == b"stop":
                # Too late: what was meant has ended.
                continue
            try:
                has_begun = self._begin(message, fds)
            finally:
                for fd in fds:
                    os.close(fd)
            if has_begun and not self._see_through():
                return not self._reap()

    def _begin(self, message: bytes, fds: list[int]) -> bool:
        if message == b"large":
            message = os.pread(fds[-1], os.fstat(fds[-1]).st_size, 0)
        argv, env, cwd, targets, is_asked = marshal.loads(message)  # noqa: S302 - from our own host
        self._status = None
        self._empty_cwd()
        try:
            os.chdir(cwd)
            given = [(fds[0], 1), (fds[0], 2)]
            if is_asked:
                given += [(self._start, START_FD), (self._cwd_to, CWD_FD)]
            given += zip(fds[1:], targets, strict=False)
            self._shell = _spawn(argv, env, given)
        except (OSError, ValueError) as error:
            self._say(("failed", getattr(error, "errno", None), str(error)))
            return False
        finally:
            # A directory that somebody stands in cannot be unmounted.
            os.chdir("/")
        self._say(("started", self._shell))
        return True

    def _see_through(self) -> bool:
        """Wait for the shell's end, end the rest, and tell; False to take no further command."""
        is_wanted, is_stopped = True, False
        while self._status is None and not is_stopped:
            if self._watch.wait():
                is_wanted = bool(receive(self._talk)[0]) and not self._watch.host_is_gone
                is_stopped = True
            else:
                self._reap()
        survivors, stuck = self._clean_up(linger=not is_stopped)
        words = ("ended", self._status, survivors, stuck, self._empty_cwd())
        return is_wanted and self._say(words) and not stuck

    def _clean_up(self, *, linger: bool) -> tuple[int, int]:
        """End every process of the command; how many there were, and how many are stuck."""
        if not self._reap() or (linger and not self._wait_for_all(LINGER_S)):
            return 0, 0
        family = [process for process in descendants() if process[2] != b"Z"]
        survivors = sum(1 for process in family if process[0] != self._shell)
        # One that hops about is there even if no list shows it.
        survivors = max(survivors, 1 if linger else 0)
        signal_groups(family, signal.SIGTERM)
        signal_groups(family, signal.SIGCONT)
        is_any_left = self._wait_for_all(GRACE_S)
        give_up_at = time.monotonic() + GIVE_UP_S
        while is_any_left:
            self._chase()
            signal_groups(descendants(), signal.SIGKILL)
            is_any_left = self._wait_for_all(0.002)
            if is_any_left and time.monotonic() > give_up_at:
                return survivors, len(descendants())
        return survivors, 0

    def _wait_for_all(self, timeout_s: float) -> bool:
        """Wait until no child is left, at most so long; whether one is."""
        ends_at = time.monotonic() + timeout_s
        while self._reap():
            left_s = ends_at - time.monotonic()
            if left_s <= 0:
                return True
            self._watch.wait_for_children(left_s)
        return False

    def _chase(self) -> None:
        """End a process that hops from number to number faster than all can be listed."""
        me = os.getpid()
        for pid in range(self._last_ended + 1, self._last_ended + _CHASE):
            if (found := _stat(pid)) is not None and found[1] == me:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def _reap(self) -> bool:
        """Take note of ended children; whether any is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            self._last_ended = pid
            if pid == self._shell:
                self._status = status

    def _empty_cwd(self) -> bytes:
        with suppress(BlockingIOError):
            return os.read(self._cwd_from, 1 << 16)
        return b""

    def _say(self, words: tuple[Any, ...]) -> bool:
        try:
            self._talk.send(marshal.dumps(words))
        except OSError:
            return False
        return True


class Supervisor:
    """Forks wardens, and ends what a dead one leaves."""

    def __init__(self, control: socket.socket, host: int | None) -> None:
        self._control = control
        self._host = host
        self._watch = Watch(control, host)
        self._wardens: set[int] = set()
        self._start = os.memfd_create("handaxe-start", os.MFD_CLOEXEC)
        os.write(self._start, START_TEXT.encode())

    def serve(self) -> None:
        """Do what the host asks for, until it is gone; then see everybody out."""
        while True:
            is_said = self._watch.wait()
            self._reap()
            if not is_said:
                continue
            message, fds = receive(self._control)
            if not message or self._watch.host_is_gone:
                break
            if fds:
                self._fork(fds[0])
            else:
                pid, token = marshal.loads(message)  # noqa: S302 - from our own host
                self._end(pid)
                with suppress(OSError):
                    self._control.send(marshal.dumps(token))
        self._control.close()
        self._see_out()

    def _fork(self, talk: int) -> None:
        pid = os.fork()
        if pid:
            os.close(talk)
            self._wardens.add(pid)
            return
        # Anything but zero makes the supervisor look for what was left.
        exit_code = 1
        try:
            self._control.close()
            self._watch.close()
            become_reaper()
            if Warden(socket.socket(fileno=talk), self._host, self._start).serve():
                exit_code = 0
        finally:
            os._exit(exit_code)

    def _end(self, pid: int) -> None:
        """End one warden, dead or alive, and what it had."""
        if pid in self._wardens:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            while pid in self._wardens and self._reap():
                self._watch.wait_for_children(0.05)
        self._sweep()

    def _reap(self) -> bool:
        """Take note of ended children; whether any is left."""
        is_clean = True
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                break
            if pid in self._wardens:
                self._wardens.discard(pid)
                is_clean = is_clean and status == 0
        if not is_clean:
            self._sweep()
        return True

    def _sweep(self) -> None:
        """End every child that is no warden, with all it has."""
        give_up_at = time.monotonic() + GIVE_UP_S
        while (strays := descendants(self._wardens)) and time.monotonic() < give_up_at:
            signal_groups(strays, signal.SIGKILL)
            self._watch.wait_for_children(0.002)
            with suppress(ChildProcessError):
                while pid := os.waitpid(-1, os.WNOHANG)[0]:
                    self._wardens.discard(pid)

    def _see_out(self) -> None:
        ends_at = time.monotonic() + FAREWELL_S
        while self._reap() and time.monotonic() < ends_at:
            self._watch.wait_for_children(0.05)
        for pid in self._wardens:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._wardens.clear()
        self._sweep()


def _spawn(argv: list[str], env: dict[str, str], given: list[tuple[int, int]]) -> int:
    """Start a program that finds each descriptor under the number it is given with."""
    # Out of the way first: a source must not lie where an earlier one is put.
    targets = [target for _, target in given]
    moved = {
        source: fcntl(source, F_DUPFD_CLOEXEC, max(targets) + 1)
        for source, _ in given
        if source in targets
    }
    actions = [(os.POSIX_SPAWN_DUP2, moved.get(source, source), target) for source, target in given]
    try:
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


def receive(talk: socket.socket) -> tuple[bytes, list[int]]:
    """One message with its descriptors; nothing where the other side is gone."""
    try:
        # `socket.recv_fds` loses the flag, and a descriptor must not reach a command by chance.
        message, ancillary, _, _ = talk.recvmsg(
            _MESSAGE_BYTES, socket.CMSG_SPACE(_MAX_FDS * 4), _CLOSED_ON_EXEC
        )
    except OSError:
        return b"", []
    return message, [fd for _, _, data in ancillary for fd in memoryview(data).cast("i")]


def descendants(spared: Container[int] = ()) -> list[Process]:
    """Everything below this process, without those spared and all they have."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := _stat(int(name))) is not None:
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
    """Signal every group that one of them is in: no fork can slip through a group's signal."""
    own = os.getpgrp()
    done: set[int] = set()
    for pid, group, _ in family:
        with suppress(OSError):
            if group == own:
                os.kill(pid, number)
            elif group not in done:
                done.add(group)
                # Each command leads a session, so a group below it holds nobody else.
                os.killpg(group, number)


def become_reaper() -> None:
    """Make every orphan below this process its own child."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_NAME, b"handaxe-shell", 0, 0, 0)


_CLOSED_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0x40000000)
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36


def _stat(pid: int) -> tuple[bytes, int, int] | None:
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


def _note_nothing(_number: int, _frame: object) -> None:
    """Only there so that the end of a child wakes a wait."""


def main() -> NoReturn:
    """Be the supervisor of the process whose number is the only argument."""
    host_pid = int(sys.argv[1])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        # `pkill python` in a command must not take down what owns the command.
        signal.signal(number, signal.SIG_IGN)
    # What the host left open for whomever is not for commands.
    os.closerange(CONTROL_FD + 1, 1 << 20)
    os.chdir("/")
    host = None
    with suppress(OSError):
        # Surer than the end of the socket: a child of the host may hold a copy of that.
        host = os.pidfd_open(host_pid)
    if os.getppid() != host_pid:
        sys.exit(0)
    become_reaper()
    gc.disable()
    gc.freeze()
    Supervisor(socket.socket(fileno=CONTROL_FD), host).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
