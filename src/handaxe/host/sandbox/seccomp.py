"""A filter for system calls, assembled here: what no confined command needs, and escapes do.

The program is classic BPF over `struct seccomp_data`. A call of another architecture, or of the
x32 personality, ends the process: its numbers mean other calls.
"""

import errno
import os
import struct
from collections.abc import Iterable
from functools import lru_cache

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# name: (x86_64, aarch64); None where the architecture does not have it.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    "setns": (308, 268),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "sethostname": (170, 161),
    "setdomainname": (171, 162), "lookup_dcookie": (212, 18), "vhangup": (153, 58),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "uselib": (134, None),
}  # fmt: skip
_MISSING = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435}
"""Answered as if the kernel did not know them, so that programs fall back to what can be judged."""
_CLONE, _UNSHARE, _SOCKET, _IOCTL = (56, 220), (272, 97), (41, 198), (16, 29)

_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: type into, or paste to, somebody else's terminal."""

_KILL, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGUMENTS = 0, 4, 16


def machine() -> str:
    """The architecture of this process, as the kernel names it."""
    return os.uname().machine


def is_supported(architecture: str | None = None) -> bool:
    """Whether a filter can be built for an architecture."""
    return (architecture or machine()) in _ARCHITECTURES


@lru_cache(maxsize=16)
def build_filter(
    *, unix_sockets: bool = False, internet: bool = True, architecture: str | None = None
) -> bytes:
    """The program. `internet` says whether internet sockets may be made at all."""
    name = architecture or machine()
    column = list(_ARCHITECTURES).index(name)
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCHITECTURES[name]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NR),
    ]
    if name == "x86_64":
        code += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _KILL)]
    for numbers in _NUMBERS.values():
        number = numbers[column]
        if number is not None:
            code += _answered(number, errno.EPERM)
    for number in _MISSING.values():
        code += _answered(number, errno.ENOSYS)
    for call in (_CLONE, _UNSHARE):
        code += _with_argument(call[column], 0, _refuse_bits(_NEW_NAMESPACES))
    code += _with_argument(_IOCTL[column], 1, _refuse_values(_TERMINAL_INPUT))
    families = [_AF_NETLINK]
    families += [_AF_INET, _AF_INET6] if internet else []
    families += [_AF_UNIX] if unix_sockets else []
    # Everything else too: a virtual machine's socket, for one, knows no network namespace.
    code += _with_argument(_SOCKET[column], 0, _only_values(families, errno.EACCES))
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _answered(number: int, error: int) -> list[tuple[int, int, int, int]]:
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]


def _with_argument(
    number: int, argument: int, body: list[tuple[int, int, int, int]]
) -> list[tuple[int, int, int, int]]:
    """Run `body` on the low half of an argument if the call is this one, then go on as before."""
    load = (_LOAD, 0, 0, _ARGUMENTS + 8 * argument)
    again = (_LOAD, 0, 0, _NR)
    return [(_EQUAL, 0, len(body) + 2, number), load, *body, again]


def _refuse_bits(mask: int) -> list[tuple[int, int, int, int]]:
    return [(_ANY_BIT, 0, 1, mask), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]


def _refuse_values(values: Iterable[int]) -> list[tuple[int, int, int, int]]:
    return [
        step
        for value in values
        for step in [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    ]


def _only_values(values: list[int], error: int) -> list[tuple[int, int, int, int]]:
    found = [(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [*found, (_RETURN, 0, 0, _ERRNO | error)]
