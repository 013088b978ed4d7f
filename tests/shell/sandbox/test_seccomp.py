"""The call filter, run step by step as the kernel would."""

import errno
import struct

import pytest

from handaxe.shell.sandbox import seccomp
from handaxe.shell.sandbox.seccomp import build_filter, is_supported

X86, ARM, I386 = 0xC000003E, 0xC00000B7, 0x40000003
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def answer(program: bytes, nr: int, *arguments: int, arch: int = X86) -> int:
    """Run the program over one call."""
    padded = (*arguments, *[0] * 6)[:6]
    data = struct.pack("=iIQ6Q", nr if nr < 1 << 31 else nr - (1 << 32), arch, 0, *padded)
    steps = list(struct.iter_unpack("=HBBI", program))
    at, value = 0, 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, k)
        elif code == 0x54:
            value &= k
        elif code == 0x06:
            return k
        else:
            holds = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[code]
            at += yes if holds else no


def refused(program: bytes, *call: int, arch: int = X86) -> bool:
    return answer(program, *call, arch=arch) & 0xFFFF0000 == ERRNO


@pytest.mark.parametrize(("name", "arch", "calls"), [
    ("x86_64", X86, {"read": 0, "mount": 165, "clone": 56, "unshare": 272, "socket": 41, "socketpair": 53, "ioctl": 16}),
    ("aarch64", ARM, {"read": 63, "mount": 40, "clone": 220, "unshare": 97, "socket": 198, "socketpair": 199, "ioctl": 29}),
])  # fmt: skip
def test_calls_are_judged_by_number_and_argument(name, arch, calls):
    program = build_filter(architecture=name)
    assert answer(program, calls["read"], arch=arch) == ALLOW
    assert refused(program, calls["mount"], arch=arch)
    assert answer(program, calls["clone"], 17, arch=arch) == ALLOW
    assert answer(program, calls["clone"], 0x3D0F00, arch=arch) == ALLOW
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert refused(program, calls["clone"], flag | 17, arch=arch)
        assert refused(program, calls["unshare"], flag, arch=arch)
    assert answer(program, calls["unshare"], 0x400, arch=arch) == ALLOW
    assert refused(program, calls["ioctl"], 0, 0x5412, arch=arch)
    assert refused(program, calls["ioctl"], 0, 0x5412 | 1 << 32, arch=arch)
    assert answer(program, calls["ioctl"], 0, 0x5401, arch=arch) == ALLOW
    assert answer(program, 435, arch=arch) == ERRNO | errno.ENOSYS
    for family in (2, 10, 16):
        assert answer(program, calls["socket"], family, 1, arch=arch) == ALLOW
    for family in (0, 1, 17, 38, 40, 44):
        assert refused(program, calls["socket"], family, 1, arch=arch)
    for kind, is_refused in {1: False, 5 | 0x80800: False, 2: True, 3 | 0x80800: True}.items():
        assert refused(program, calls["socketpair"], 1, kind, arch=arch) is is_refused
    whole = build_filter(architecture=name, unix_sockets=True)
    assert answer(whole, calls["socketpair"], 1, 2, arch=arch) == ALLOW


def test_sockets_follow_what_was_asked_for():
    assert answer(build_filter(unix_sockets=True, architecture="x86_64"), 41, 1) == ALLOW
    without = build_filter(internet=False, architecture="x86_64")
    assert refused(without, 41, 2)
    assert refused(without, 41, 10)
    assert refused(without, 41, 1)


def test_other_architectures_and_x32_end_the_process():
    program = build_filter(architecture="x86_64")
    assert answer(program, 0, arch=I386) == KILL
    assert answer(program, 0, arch=ARM) == KILL
    assert answer(program, 0x40000000) == KILL
    assert answer(build_filter(architecture="aarch64"), 0, arch=X86) == KILL


@pytest.mark.parametrize("name", ["x86_64", "aarch64"])
def test_a_filter_fits_what_the_kernel_takes(name):
    program = build_filter(architecture=name)
    assert len(program) % 8 == 0
    assert len(program) // 8 < 4096


def test_machines_without_a_table_are_said():
    assert is_supported("x86_64")
    assert not is_supported("riscv64")


@pytest.mark.parametrize(("name", "arch", "column"), [("x86_64", X86, 0), ("aarch64", ARM, 1)])
def test_every_call_of_the_table_is_refused_and_its_neighbours_are_not(name, arch, column):
    program = build_filter(architecture=name)
    listed = {numbers[column] for numbers in seccomp._NUMBERS.values()} - {None}
    missing = set(seccomp._MISSING.values())
    judged = (
        seccomp._CLONE,
        seccomp._UNSHARE,
        seccomp._SOCKET,
        seccomp._SOCKETPAIR,
        seccomp._IOCTL,
    )
    by_argument = {call[column] for call in judged}
    by_argument |= {call[column] for call in (*seccomp._MODES.values(), *seccomp._OPENS.values())}
    for number in range(600):
        if number in listed:
            assert answer(program, number, arch=arch) == ERRNO | errno.EPERM
        elif number in missing:
            assert answer(program, number, arch=arch) == ERRNO | errno.ENOSYS
        elif number not in by_argument:
            assert answer(program, number, arch=arch) == ALLOW


@pytest.mark.parametrize(("name", "arch", "column"), [("x86_64", X86, 0), ("aarch64", ARM, 1)])
def test_no_file_gets_the_rights_of_its_owner(name, arch, column):
    program = build_filter(architecture=name)
    for *numbers, argument in seccomp._MODES.values():
        if numbers[column] is not None:
            for mode in (0o4755, 0o2755, 0o6000):
                call = [0] * argument + [mode]
                assert refused(program, numbers[column], *call, arch=arch)
            assert answer(program, numbers[column], *[0] * argument, 0o1777, arch=arch) == ALLOW
    for *numbers, argument in seccomp._OPENS.values():
        if numbers[column] is not None:
            before = [0] * argument
            for flags in (0o100, 0o101, 0o20200000):
                assert refused(program, numbers[column], *before, flags, 0o4755, arch=arch)
            assert answer(program, numbers[column], *before, 0o100, 0o755, arch=arch) == ALLOW
            assert answer(program, numbers[column], *before, 0, 0o4755, arch=arch) == ALLOW
            assert answer(program, numbers[column], *before, 0o200000, 0o4755, arch=arch) == ALLOW


@pytest.mark.parametrize(("name", "arch", "column"), [("x86_64", X86, 0), ("aarch64", ARM, 1)])
def test_where_processes_are_shared_only_the_caller_is_named(name, arch, column):
    apart = build_filter(architecture=name)
    shared = build_filter(architecture=name, shares_processes=True)
    for numbers in seccomp._ONLY_ITSELF.values():
        assert answer(shared, numbers[column], 0, arch=arch) == ALLOW
        assert refused(shared, numbers[column], 4711, arch=arch)
        assert refused(shared, numbers[column], 0xFFFFFFFF, arch=arch)
        assert answer(apart, numbers[column], 4711, arch=arch) == ALLOW
    for call, own in ((seccomp._SETPRIORITY[column], 0), (seccomp._IOPRIO_SET[column], 1)):
        assert answer(shared, call, own, 0, arch=arch) == ALLOW
        assert refused(shared, call, own, 4711, arch=arch)
        assert refused(shared, call, own + 1, 0, arch=arch)
        assert refused(shared, call, 2, 0, arch=arch)
    for numbers in seccomp._SHARED_MEMORY.values():
        assert refused(shared, numbers[column], arch=arch)
        assert answer(apart, numbers[column], arch=arch) == ALLOW
