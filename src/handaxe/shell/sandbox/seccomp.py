"""Build the system call filter: blocks calls that sandboxed commands do not need and escapes do.

The program is classic BPF over `struct seccomp_data`. A call of another architecture, or of the x32
personality, kills the process, because its numbers mean other calls.
"""

import errno
import os
import struct
import tempfile
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
    "process_mrelease": (448, 448),
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
_MISSING = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435,
    "openat2": 437,
}  # fmt: skip
"""Reported as unknown to the kernel, so that programs fall back to calls that can be filtered."""
_SHARED_MEMORY: dict[str, tuple[int | None, int | None]] = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195),
    "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
"""Accessible by a key to every process of a user; refused where processes are not isolated
otherwise.
"""
_ONLY_ITSELF: dict[str, tuple[int, int]] = {
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274), "move_pages": (279, 239),
    "migrate_pages": (256, 238),
}  # fmt: skip
"""Calls whose first argument is a process: only 0, the caller, is allowed."""
_SETPRIORITY, _IOPRIO_SET = (141, 140), (251, 30)
_PRIORITY_OF_PROCESS, _IOPRIO_OF_PROCESS = 0, 1
_MODES: dict[str, tuple[int | None, int | None, int]] = {
    "chmod": (90, None, 1), "fchmod": (91, 52, 1), "fchmodat": (268, 53, 2),
    "fchmodat2": (452, 452, 2), "creat": (85, None, 1), "mknod": (133, None, 1),
    "mknodat": (259, 33, 2),
}  # fmt: skip
"""Calls that set a file's mode, and the argument with it."""
_OPENS: dict[str, tuple[int | None, int | None, int]] = {
    "open": (2, None, 1),
    "openat": (257, 56, 2),
}
"""Calls that set the mode of a new file, and the argument that tells whether they create one."""
_SET_IDS = 0o6000
_MAKES_A_FILE = 0x400040
"""O_CREAT and the bit that only O_TMPFILE has."""
_CLONE, _UNSHARE, _SOCKET, _IOCTL = (56, 220), (272, 97), (41, 198), (16, 29)
_SOCKETPAIR = (53, 199)
_SOCK_TYPE, _SOCK_STREAM, _SOCK_SEQPACKET = 0xF, 1, 5

_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: type into, or paste to, another terminal."""

_KILL, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AND = 0x54
_NR, _ARCH, _ARGUMENTS = 0, 4, 16


def get_architecture() -> str:
    """The kernel's name of this process's architecture."""
    return os.uname().machine


def is_supported(architecture: str | None = None) -> bool:
    """Whether a filter can be built for an architecture."""
    return (architecture or get_architecture()) in _ARCHITECTURES


@lru_cache(maxsize=16)
def build_filter(
    *,
    unix_sockets: bool = False,
    internet: bool = True,
    shares_processes: bool = False,
    architecture: str | None = None,
) -> bytes:
    """The program; `internet`: internet sockets are allowed.

    `shares_processes`: the command has no process namespace and may change only itself.
    """
    name = architecture or get_architecture()
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
            code += _build_refusal(number, errno.EPERM)
    for number in _MISSING.values():
        code += _build_refusal(number, errno.ENOSYS)
    for call in (_CLONE, _UNSHARE):
        code += _match_argument(call[column], 0, _refuse_bits(_NEW_NAMESPACES))
    code += _match_argument(_IOCTL[column], 1, _refuse_values(_TERMINAL_INPUT))
    code += _set_ids(column)
    if shares_processes:
        code += _build_process_rules(column)
    families = [_AF_NETLINK]
    families += [_AF_INET, _AF_INET6] if internet else []
    families += [_AF_UNIX] if unix_sockets else []
    # Everything else too: a virtual machine's socket, for one, knows no network namespace.
    code += _match_argument(_SOCKET[column], 0, _allow_values(families, errno.EACCES))
    if not unix_sockets:
        # One of a pair that knows no connection could still send to any other socket.
        kept = _allow_values([_SOCK_STREAM, _SOCK_SEQPACKET], errno.EACCES)
        code += _match_argument(_SOCKETPAIR[column], 1, [(_AND, 0, 0, _SOCK_TYPE), *kept])
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _set_ids(column: int) -> list[tuple[int, int, int, int]]:
    """Refuse the setuid and setgid bits: such a file would run with those rights outside."""
    code: list[tuple[int, int, int, int]] = []
    refused = _refuse_bits(_SET_IDS)
    for *numbers, argument in _MODES.values():
        if (number := numbers[column]) is not None:
            code += _match_argument(number, argument, refused)
    for *numbers, argument in _OPENS.values():
        if (number := numbers[column]) is not None:
            mode = (_LOAD, 0, 0, _ARGUMENTS + 8 * (argument + 1))
            # A mode that no file is made with is whatever the register held.
            checked = [(_ANY_BIT, 0, len(refused) + 1, _MAKES_A_FILE), mode, *refused]
            code += _match_argument(number, argument, checked)
    return code


def _build_process_rules(column: int) -> list[tuple[int, int, int, int]]:
    code: list[tuple[int, int, int, int]] = []
    for numbers in _SHARED_MEMORY.values():
        if (number := numbers[column]) is not None:
            code += _build_refusal(number, errno.EPERM)
    for numbers in _ONLY_ITSELF.values():
        code += _match_argument(numbers[column], 0, _allow_values([0], errno.EPERM))
    for numbers, kind in (
        (_SETPRIORITY, _PRIORITY_OF_PROCESS),
        (_IOPRIO_SET, _IOPRIO_OF_PROCESS),
    ):
        for argument, value in ((0, kind), (1, 0)):
            code += _match_argument(numbers[column], argument, _allow_values([value], errno.EPERM))
    return code


def _build_refusal(number: int, error: int) -> list[tuple[int, int, int, int]]:
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]


def _match_argument(
    number: int, argument: int, body: list[tuple[int, int, int, int]]
) -> list[tuple[int, int, int, int]]:
    """Apply `body` to the low half of an argument if the call matches, then continue."""
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


def _allow_values(values: list[int], error: int) -> list[tuple[int, int, int, int]]:
    found = [(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [*found, (_RETURN, 0, 0, _ERRNO | error)]


def open_content_fd(content: bytes) -> int:
    """A descriptor from which a program reads this content; the caller closes it."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("handaxe", os.MFD_CLOEXEC)
    else:
        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
