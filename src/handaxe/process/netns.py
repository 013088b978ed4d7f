"""A private network namespace for a worker that runs sandboxed commands one after the other.

Creating one for each command takes a millisecond, and destroying it as long again. A worker lends
its namespace, because no process of a command is left when the next one starts.
"""

import ctypes
import os
import socket
import struct
from contextlib import suppress
from fcntl import ioctl

_NEW_NETWORK, _NEW_USER, _NEW_MOUNTS = 0x40000000, 0x10000000, 0x00020000
_PRIVATE = 1 << 18 | 1 << 14
_SET_FLAGS = 0x8914
_UP = 1
_libc = ctypes.CDLL(None, use_errno=True)


class NetworkNamespace:
    """The private network of this process; raises `OSError` if it is not possible."""

    def __init__(self) -> None:
        """Enter a new one. Without root this needs a user namespace."""
        self._is_used_up = False
        if os.geteuid() == 0:
            _check(_libc.unshare(_NEW_NETWORK))
        else:
            _leave_users(_NEW_NETWORK)
        _enable_loopback()

    def begin(self, door: int | None, port: int) -> None:
        """Prepare for a command; with a `door`, a process outside gets a socket that listens here.

        After that, the next command gets a new network.
        """
        if door is not None or self._is_used_up:
            _check(_libc.unshare(_NEW_NETWORK))
            _enable_loopback()
            self._is_used_up = door is not None
        if door is not None:
            _send_listener(door, port)


def can_have_own_network() -> bool:
    """Whether a program that creates namespaces works in such a network; tested in a child."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1] == 0
    with suppress(BaseException):
        NetworkNamespace()
        if os.geteuid() != 0:
            _leave_users(_NEW_MOUNTS)
            _check(_libc.mount(None, b"/", None, _PRIVATE, None))
            _check(_libc.mount(b"none", b"/", b"tmpfs", 0, None))
        os._exit(0)
    os._exit(1)


def _send_listener(door: int, port: int) -> None:
    """Listen in this network, and send the socket through `door`."""
    with socket.socket(fileno=os.dup(door)) as out, socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        socket.send_fds(out, [b"x"], [listener.fileno()])


def _enable_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


def _leave_users(more: int) -> None:
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(_NEW_USER | more))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        place = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(place, text.encode())
        os.close(place)


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
