"""The trace of what commands write: every way to change a path, and nobody else's."""

import asyncio
import ctypes
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.waiting import HANG_S, blocked_until

from handaxe.contract.ports.shell import ShellCommand
from handaxe.contract.ports.undo import TRACE_ENDED, TRACED
from handaxe.process.write_trace import WriteTrace
from handaxe.shell.exec.bash_binary import can_be_restricted
from handaxe.shell.exec.local_shell import LocalShell
from handaxe.shell.sandbox.backend import SandboxBackend, find_backend, find_landlock_problem
from handaxe.shell.sandbox.confiner import LocalConfiner, SandboxRequirements
from handaxe.shell.sandbox.sandbox_policy import SandboxPolicy

CALLS = """
import ctypes, os
os.chdir("here")
at = os.open("../there", os.O_RDONLY)
open("/dev/null", "w").close()
open("read").read()
open("plain", "w").close()
open("link", "a").close()
os.open("at", os.O_WRONLY | os.O_CREAT, dir_fd=at)
os.truncate("cut", 0)
os.rename("old", "new")
os.rename("a", "b", src_dir_fd=at)
os.unlink("gone")
os.unlink("gone", dir_fd=at)
os.mkdir("made")
os.rmdir("made")
os.mkdir("made", dir_fd=at)
os.link("read", "linked")
os.symlink("x", "pointing")
os.symlink("x", "pointing", dir_fd=at)
os.mkfifo("pipe")
os.chmod("mode", 0o600)
os.fchmod(os.open("held", os.O_RDONLY), 0o600)
os.chmod("link2", 0o600)
os.rename("tree", "moved")
open(b"caf\\xe9", "w").close()
open("y" * 255, "w").close()
class How(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]
how = How(os.O_WRONLY | os.O_CREAT, 0o644, 0)
ctypes.CDLL(None).syscall(437, -100, b"openat2", ctypes.byref(how), ctypes.sizeof(how))
if not os.fork():
    os.setsid()
    if not os.fork():
        open("../there/orphan", "w").close()
    os._exit(0)
os.wait()
"""
WRITTEN = """
here/plain target there/at here/cut here/old here/new there/a here/b here/gone there/gone here/made
there/made here/linked here/pointing there/pointing here/pipe here/mode here/held target2 here/tree
here/moved here/tree/leaf here/moved/leaf here/tree/in here/moved/in here/tree/in/leaf
here/moved/in/leaf here/openat2 there/orphan
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("here/tree/in", "there"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("cut", "old", "gone", "mode", "held", "read", "tree/leaf", "tree/in/leaf"):
        (tmp_path / "here" / name).touch()
    for name in ("a", "gone"):
        (tmp_path / "there" / name).touch()
    for link, target in (("link", "target"), ("link2", "target2")):
        (tmp_path / target).touch()
        (tmp_path / "here" / link).symlink_to(f"../{target}")
    return tmp_path


def traced(argv: list[str], cwd: Path, file: Path) -> set[str]:
    """What a program writes, below its directory."""
    trace = WriteTrace(
        os.open(file, os.O_WRONLY | os.O_CREAT), TRACED, TRACE_ENDED, may_restrict=True
    )
    here = Path.cwd()
    os.chdir(cwd)
    try:
        pid = trace.spawn(lambda: os.posix_spawn(argv[0], argv, os.environ))
        assert os.waitpid(pid, 0)[1] == 0
        if (cwd / "there").exists():
            blocked_until((cwd / "there/orphan").exists)
    finally:
        os.chdir(here)
        trace.close()
    first, *paths, end, rest = file.read_bytes().split(b"\0")
    assert (first + b"\0", end + b"\0", rest) == (TRACED, TRACE_ENDED, b"")
    below = os.fsencode(os.path.realpath(cwd)) + b"/"
    return {os.fsdecode(path.removeprefix(below)) for path in paths if path.startswith(below)}


@pytest.mark.proves("SH-8")
def test_every_way_to_change_a_path_is_traced_and_nothing_else(place, tmp_path):
    found = traced([sys.executable, "-B", "-c", CALLS], place, tmp_path.parent / "trace")
    assert found == {*WRITTEN.split(), os.fsdecode(b"here/caf\xe9"), f"here/{'y' * 255}"}


def test_what_another_process_writes_meanwhile_is_not_in_it(tmp_path):
    command = "echo > mine; until [ -e theirs ]; do sleep 0.01; done"
    other = subprocess.Popen(
        ["bash", "-c", "until [ -e mine ]; do sleep 0.01; done; echo > theirs"], cwd=tmp_path
    )
    try:
        found = traced(["/bin/bash", "-c", command], tmp_path, tmp_path.parent / "trace")
    finally:
        other.wait()
    assert found == {"mine"}


def test_a_program_that_cannot_be_started_says_so_as_without_a_trace(tmp_path):
    file = os.open(tmp_path / "trace", os.O_WRONLY | os.O_CREAT)
    trace = WriteTrace(file, TRACED, TRACE_ENDED, may_restrict=True)
    with pytest.raises(FileNotFoundError):
        trace.spawn(lambda: os.posix_spawn("/nowhere", ["nowhere"], {}))
    trace.close()


def test_who_is_not_root_is_traced_where_no_more_rights_can_be_wanted(tmp_path):
    """Without the capability the kernel demands that nobody traced can gain rights."""
    program = textwrap.dedent(
        """
        import ctypes, os, sys
        from handaxe.process.write_trace import WriteTrace
        for may_restrict in (False, True):
            file = os.open(f"trace-{may_restrict}", os.O_WRONLY | os.O_CREAT)
            trace = WriteTrace(file, b"begin\\0", b"\\0", may_restrict=may_restrict)
            argv = ["/bin/bash", "-c", "echo > written; grep NoNewPrivs /proc/self/status"]
            os.waitpid(trace.spawn(lambda: os.posix_spawn(argv[0], argv, os.environ)), 0)
            trace.close()
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        preexec_fn=_drop_administration,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["NoNewPrivs:", "0", "NoNewPrivs:", "1"]
    assert (tmp_path / "trace-False").read_bytes() == b""
    written = f"{os.path.realpath(tmp_path)}/written".encode()
    assert (tmp_path / "trace-True").read_bytes() == b"begin\0" + written + b"\0\0"


@pytest.mark.parametrize("release", ["5.4.0-150-generic", "4.19.0", "odd", ""])
def test_a_kernel_that_cannot_let_a_stopped_call_go_on_traces_nothing(
    tmp_path, monkeypatch, release
):
    told = os.uname()
    fields = (told.sysname, told.nodename, release, told.version, told.machine)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(fields))
    file = tmp_path / "trace"
    trace = WriteTrace(
        os.open(file, os.O_WRONLY | os.O_CREAT), TRACED, TRACE_ENDED, may_restrict=True
    )
    os.waitpid(trace.spawn(lambda: os.posix_spawn("/bin/true", ["true"], {})), 0)
    trace.close()
    assert file.read_bytes() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
async def test_a_command_runs_and_ends_where_there_is_no_room_for_its_trace(tmp_path):
    shell = LocalShell(tmp_path / "tasks", environment=dict(os.environ))
    shell.open_trace = lambda _: os.open("/dev/full", os.O_WRONLY)
    wanted = ShellCommand(call_id="c", command="echo x > x; /bin/cat x", cwd=str(tmp_path))
    try:
        async with asyncio.timeout(HANG_S):
            running = await shell.start(wanted)
            await running.wait()
        assert running.end is not None
        assert (running.end.exit_code, running.output(1000).head) == (0, "x\n")
    finally:
        await shell.close()


def test_a_trace_ends_with_the_last_whole_entry_where_room_runs_out(tmp_path):
    """Half a path and the next one would name a path that nobody wrote."""
    room = len(TRACED) + len(f"{os.path.realpath(tmp_path)}/first\0") + 5
    program = textwrap.dedent(
        f"""
        import os, resource, signal
        from handaxe.process.write_trace import WriteTrace
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        file = os.open("trace", os.O_WRONLY | os.O_CREAT)
        trace = WriteTrace(file, {TRACED!r}, {TRACE_ENDED!r}, may_restrict=True)
        argv = ["/bin/bash", "-c", ": > first; : > second; : > third"]
        resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))
        os.waitpid(trace.spawn(lambda: os.posix_spawn(argv[0], argv, os.environ)), 0)
        trace.close()
        """
    )
    subprocess.run([sys.executable, "-B", "-c", program], cwd=tmp_path, check=True, timeout=HANG_S)
    written = (tmp_path / "trace").read_bytes()
    assert written[: written.rfind(b"\0") + 1] == (
        TRACED + f"{os.path.realpath(tmp_path)}/first\0".encode()
    )
    assert (tmp_path / "third").exists()


def _drop_administration() -> None:
    drop_bound, sys_admin = 24, 21
    ctypes.CDLL(None).prctl(drop_bound, sys_admin, 0, 0, 0)


@pytest.mark.parametrize(
    ("command", "may"),
    [
        ("make -j4 && ./configure --with-sudo-docs", True),
        ("cat sudo.txt pseudo", True),
        ("sudo make install", False),
        ("make && /usr/bin/sudo make install", False),
        ('bash -c "podman run x"', False),
        ("env A=1 doas ls", False),
    ],
)
def test_commands_that_want_more_rights_are_known_by_their_words(command, may):
    assert can_be_restricted(command) is may


@pytest.mark.parametrize("means", ["none", "bubblewrap", "landlock"])
async def test_a_confined_command_is_traced_as_any_other(tmp_path, means):
    root, temp = tmp_path / "project", tmp_path / "temp"
    for place in (root, temp):
        place.mkdir()
    problem = (
        find_landlock_problem(sys.executable)
        if means == "landlock"
        else find_backend().bubblewrap_problem
    )
    if means != "none" and problem is not None:
        pytest.skip(problem)
    policy = SandboxPolicy(
        roots=(str(root),), temp_directory=str(temp), aside_directory=str(tmp_path / "aside")
    )
    chosen = SandboxBackend(name="landlock") if means == "landlock" else find_backend()
    confiner = LocalConfiner(
        lambda: SandboxRequirements(enabled=means != "none"), lambda: policy, means=chosen
    )
    shell = LocalShell(tmp_path / "tasks", environment=dict(os.environ), confiner=confiner)
    trace = tmp_path / "trace"
    shell.open_trace = lambda _: os.open(trace, os.O_WRONLY | os.O_CREAT)
    wanted = ShellCommand(call_id="c", command="mkdir d; echo x > d/x; rm d/x", cwd=str(root))
    try:
        running = await shell.start(wanted)
        await running.wait()
        assert running.end is not None
        assert (running.end.exit_code, running.output(1000).head) == (0, "")
    finally:
        await shell.close()
        confiner.close()
    paths = trace.read_bytes().removeprefix(TRACED).split(b"\0")
    inside = {os.fsdecode(path) for path in paths if path.startswith(os.fsencode(root))}
    assert inside >= {f"{root}/d", f"{root}/d/x"}
