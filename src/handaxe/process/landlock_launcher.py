"""The program that restricts itself with Landlock and a call filter, and becomes the command.

Run as `python -I -S landlock_launcher.py PLAN_FD FILTER_FD COMMAND...`, or in a child of a worker;
it imports nothing of handaxe. The plan is NUL-separated: a letter and a path each. Nothing runs if
any step fails.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PATH_BENEATH = 1
_FILE_RIGHTS = 0b1100_0000_0000_0111
_READ, _LIST = 0b0101, 0b1000
_NETWORK, _SCOPES = 0b11, 0b11
_SET_PDEATHSIG, _SET_NO_NEW_PRIVS, _SET_SECCOMP, _DROP_BOUND, _SECCOMP_FILTER = 1, 38, 22, 24, 2

_libc = ctypes.CDLL(None, use_errno=True)


def query_abi() -> int:
    """The Landlock version of this kernel; 0 without Landlock."""
    return max(0, _libc.syscall(_CREATE, None, 0, 1))


def _compute_rights(version: int) -> int:
    """All file rights that this version can restrict."""
    count = {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    return (1 << count) - 1


def _check(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def _restrict_files(plan: list[str], *, network: bool) -> None:
    version = query_abi()
    if version < 1:
        raise OSError("Landlock is not available")
    everything = _compute_rights(version)
    # No device is ever made: what a file system shows, its owner would reach through it.
    writing = everything & ~(1 << 6) & ~(1 << 11)
    granted = {"r": _READ | _LIST, "l": _LIST, "w": writing, "d": writing & _FILE_RIGHTS | _LIST}
    has_files = "-" not in (item[:1] for item in plan)
    fields = [everything if has_files else 0]
    if version >= 4:
        fields.append(0 if network else _NETWORK)
    if version >= 6:
        fields.append(_SCOPES)
    attributes = (ctypes.c_uint64 * len(fields))(*fields)
    rules = _check(
        _libc.syscall(_CREATE, attributes, ctypes.sizeof(attributes), 0), "landlock_create_ruleset"
    )
    for item in plan if has_files else ():
        _allow(rules, item[1:], granted[item[0]])
    _check(_libc.syscall(_RESTRICT, rules, 0), "landlock_restrict_self")
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(f"/proc/self/fd/{place}"):
        rights &= _FILE_RIGHTS
    rule = rights.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
    if rights:
        _check(_libc.syscall(_ADD, rules, _PATH_BENEATH, rule, 0), f"landlock_add_rule {path}")
    os.close(place)


def _drop_capabilities() -> None:
    for capability in range(64):
        if _libc.prctl(_DROP_BOUND, capability, 0, 0, 0) != 0:
            break
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, nothing), "capset")


def _filter_calls(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))

    loaded = Program(len(program) // 8, program)
    _check(_libc.prctl(_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(loaded), 0, 0), "PR_SET_SECCOMP")


def _read_descriptor(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def main(arguments: list[str], env: Mapping[str, str] | None = None) -> None:
    """Restrict this process, then become the command, optionally in another environment."""
    plan = [
        item
        for item in _read_descriptor(int(arguments[0]))
        .decode("utf-8", "surrogateescape")
        .split("\0")
        if item
    ]
    program = _read_descriptor(int(arguments[1]))
    try:
        _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _drop_capabilities()
        _check(_libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
        _restrict_files([item for item in plan if item != "n"], network="n" in plan)
        _filter_calls(program)
        # Ignored by Python, and so it would be by the command.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        env = os.environ if env is None else env
        os.execvpe(arguments[2], arguments[2:], env)  # noqa: S606 - the command that was judged
    except OSError as error:
        sys.stderr.write(f"handaxe: the command was not run: {error}\n")
        os._exit(126)


if __name__ == "__main__":
    main(sys.argv[1:])
