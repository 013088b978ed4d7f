"""Ways out of a sandbox that people have found, tried for real as root and as a user."""

import os
import signal
import socket
import subprocess
import threading

import pytest
from tests.waiting import HANG_S

PYTHON = "/usr/bin/python3"


@pytest.mark.proves("SH-7")
@pytest.mark.parametrize(
    "command",
    [
        "echo x > new.txt && cat new.txt",
        "mkdir -p a/b && mv file.txt a/b/ && cat a/b/file.txt",
        "cat $HOME/note /etc/passwd > /dev/null",
        "git status --short > out && git add file.txt && git -c user.name=a -c user.email=a@b commit -qm x && git log --oneline",
        f"{PYTHON} -c 'print(sum(range(10)))'",
        "printf 'all:\\n\\techo made > made\\n' > Makefile && make -s && cat made",
        'echo x > "$TMPDIR/t" && cat "$TMPDIR/t" && mktemp',
        "echo x | tee /dev/null | cat",
        "for i in 1 2 3; do (exit 0) & done; wait",
        f"{PYTHON} -c 'import threading as t; a = t.Thread(target=print); a.start(); a.join()'",
        f"{PYTHON} -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); b.recv(1)'",
        f"{PYTHON} -c 'import subprocess; subprocess.run([\"true\"], check=True)'",
        "ln -s file.txt link && cat link && ln file.txt hard && cat hard",
        "chmod +x file.txt && rm file.txt",
        'test -z "$(git status --short | grep -v file.txt)"',
    ],
)
def test_ordinary_work_is_not_hindered(field, command):
    code, output = field.run(command)
    assert code == 0, output
    assert field.told == ()


SHELL_ESCAPES = {
    "write to etc": "echo x > /etc/handaxe-escape",
    "write to usr": "echo x > /usr/bin/handaxe-escape",
    "write beside the project": "echo x > $OUTSIDE/escape",
    "write to a start-up file": "echo evil >> $HOME/.bashrc",
    "replace a start-up file": "rm -f $HOME/.bashrc; echo evil > $HOME/.bashrc",
    "through a link": "ln -s $OUTSIDE out && echo x > out/escape",
    "through a link to a file": "ln -s $HOME/.bashrc rc && echo evil >> rc",
    "by a hard link": "ln $HOME/.bashrc rc && echo evil >> rc",
    "by renaming": "echo evil > e && mv -f e $HOME/.bashrc",
    "remount the machine": "mount -o remount,rw / && echo x > /etc/handaxe-escape",
    "remount a bind": "mount -o remount,rw,bind / && echo x > /etc/handaxe-escape",
    "bind over a file": "mount --bind file.txt $HOME/.bashrc",
    "bind the root elsewhere": "mkdir m && mount --bind / m && echo x > m/etc/handaxe-escape",
    "unmount a protection": "umount -l .git/config && echo evil >> .git/config",
    "unmount everything": "umount -a -l; umount -l / && echo x > /etc/handaxe-escape",
    "a nested user namespace": "unshare -Ur true",
    "a nested user namespace with mounts": "unshare -Urm sh -c 'mount -o remount,rw /; echo x > /etc/handaxe-escape'",
    "a nested mount namespace": "unshare -m true",
    "a nested network": "unshare -n true",
    "the namespaces of the first process": "nsenter -t 1 -m -u -n -p echo x > out && test -s out",
    "the root of the first process": "echo x > /proc/1/root/etc/handaxe-escape",
    "the directory of the first process": "cd /proc/1/cwd && echo x > ../etc/handaxe-escape",
    "chroot": "chroot / sh -c 'echo x > /etc/handaxe-escape'",
    "a new device": "mknod disk b 254 0 && head -c 1 disk",
    "the disk itself": "head -c 1 /dev/vda || head -c 1 /dev/sda",
    "kernel settings": "cat /proc/sys/kernel/shmmni > n; cat n > /proc/sys/kernel/shmmni",
    "what runs when a control group is empty": "cat /sys/fs/cgroup/memory/release_agent > r; cat r > /sys/fs/cgroup/memory/release_agent",
    "kernel settings in sys": "cat /sys/kernel/mm/transparent_hugepage/defrag > r; echo madvise > /sys/kernel/mm/transparent_hugepage/defrag",
    "what runs on a crash": "cat /proc/sys/kernel/core_pattern > c; cat c > /proc/sys/kernel/core_pattern",
    "a control group": "mkdir /sys/fs/cgroup/handaxe-escape",
    "another user": "su -s /bin/sh nobody -c true",
    "a program of root": "cp /bin/sh s && chmod u+s s && ./s -p -c 'echo x > /etc/handaxe-escape'",
    "the git configuration": "git config core.fsmonitor evil",
    "the git configuration, plainly": "echo evil >> .git/config",
    "the git configuration, replaced": "rm -f .git/config; echo evil > .git/config",
    "a git hook": "echo evil > .git/hooks/pre-commit",
    "the hooks moved away": "mv .git/hooks .git/h && mkdir .git/hooks && echo evil > .git/hooks/pre-commit",
    "another configuration for git": "mkdir c && echo evil > c/config && echo ../c > .git/commondir && false",
    "editor settings that are not there": "mkdir -p .vscode; echo evil > .vscode/tasks.json",
    "agent settings that are not there": "mkdir -p .claude; echo evil > .claude/settings.json",
    "servers that are not there": "echo evil > .mcp.json",
    "a mask removed": "rmdir .vscode; rm -rf .vscode; mkdir .vscode && echo evil > .vscode/tasks.json",
    "a mask opened": "chmod 777 .vscode && echo evil > .vscode/tasks.json; false",
    "a mask moved": "mv .vscode v && mkdir .vscode && echo evil > .vscode/tasks.json",
    "a secret": "cat $HOME/.ssh/id",
    "a secret through a link": "ln -s $HOME/.ssh s && cat s/id",
    "a secret by the first process": "cat /proc/1/root$HOME/.ssh/id",
    "a secret by a hard link": "ln $HOME/.ssh/id id && cat id",
    "a secret uncovered": "umount $HOME/.ssh; chmod 777 $HOME/.ssh; cat $HOME/.ssh/id",
    "the network by name": f"{PYTHON} -c 'import socket; socket.create_connection((\"1.1.1.1\", 53), 2)'",
    "the network by datagram": f'{PYTHON} -c \'import socket; socket.socket(2, 2).sendto(b"x", ("1.1.1.1", 53))\'',
    "raw packets": f"{PYTHON} -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'",
    "the host of a virtual machine": f"{PYTHON} -c 'import socket; socket.socket(socket.AF_VSOCK)'",
    "a Unix socket": f"{PYTHON} -c 'import socket; socket.socket(socket.AF_UNIX)'",
}


@pytest.mark.proves("SH-7")
@pytest.mark.parametrize("command", SHELL_ESCAPES.values(), ids=SHELL_ESCAPES.keys())
def test_no_command_gets_out(field, command):
    config = (field.root / ".git/config").read_bytes()
    # Each line tries, and says so if it thinks it succeeded; what counts is what is there after.
    code, output = field.run(command)
    assert "SECRET" not in output
    assert not os.path.exists("/etc/handaxe-escape")
    assert not os.path.exists("/usr/bin/handaxe-escape")
    assert not os.path.exists("/sys/fs/cgroup/handaxe-escape")
    assert not (field.top / "escape").exists()
    assert (field.home / ".bashrc").read_text() == "# mine\n"
    assert (field.root / ".git/config").read_bytes() == config
    assert not (field.root / ".git/hooks/pre-commit").exists()
    assert not (field.root / ".git/commondir").exists()
    for name in (".vscode", ".claude", ".mcp.json"):
        assert not (field.root / name).exists()
    # Under Landlock the last lines may succeed, and are taken back.
    assert code != 0 or field.told, output


def test_git_files_that_are_missing_cannot_be_made(field):
    subprocess.run(["rm", "-r", field.root / ".git/hooks"], check=True)
    field.run("mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit")
    assert not (field.root / ".git/hooks/pre-commit").exists()


def test_a_repository_cannot_be_made_where_there_was_none(field):
    subprocess.run(["rm", "-r", field.root / ".git"], check=True)
    field.run("git init -q . ; mkdir .git; echo '[core]' > .git/config")
    assert not (field.root / ".git/config").exists()


def test_what_is_protected_further_down_is_found(field, means):
    deep = field.root / "packages/one"
    (deep / ".vscode").mkdir(parents=True)
    (deep / ".vscode/tasks.json").write_text("{}")
    field.own()
    field.run("echo evil > packages/one/.vscode/tasks.json")
    assert (deep / ".vscode/tasks.json").read_text() == "{}"


@pytest.fixture
def outsider(uid):
    """A process outside, of the same user, with a secret in its memory."""
    process = subprocess.Popen(
        [PYTHON, "-c", "s = 'OUTSIDER' + 'SECRET'; print(hex(id(s)), flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=uid, group=uid, extra_groups=[],
    )  # fmt: skip
    assert process.stdout is not None
    yield process, process.stdout.readline().decode().strip()
    process.kill()
    process.communicate()


def test_processes_outside_are_out_of_reach(field, outsider):
    process, address = outsider
    pid = process.pid
    for command in (
        f"kill -TERM {pid}",
        f"kill -KILL {pid}",
        f"{PYTHON} -c 'import os, signal; signal.pidfd_send_signal(os.pidfd_open({pid}), 9)'",
        f'{PYTHON} -c \'f = open("/proc/{pid}/mem", "rb"); f.seek({address}); print(f.read(80))\'',
        f"cat /proc/{pid}/environ",
        f"cd /proc/{pid}/root",
        f"{PYTHON} -c 'import ctypes; l = ctypes.CDLL(None); exit(0 if l.ptrace(16, {pid}, 0, 0) == 0 else 1)'",
        f"{PYTHON} -c 'import ctypes; l = ctypes.CDLL(None); exit(0 if l.ptrace(0x4206, {pid}, 0, 0) == 0 else 1)'",
    ):
        code, output = field.run(command)
        assert code != 0, (command, output)
        assert "OUTSIDERSECRET" not in output
        assert process.poll() is None, command


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_listening_unix_sockets_outside_are_out_of_reach(field, kind):
    name = f"{field.root}/door" if kind == "path" else f"\0handaxe-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(name)
        door.listen()
        if kind == "path":
            os.chmod(name, 0o777)
        code, _ = field.run(
            f"{PYTHON} -c 'import socket; socket.socket(socket.AF_UNIX).connect({name!r})'".replace(
                "\\x00", "\\0"
            )
        )
        door.setblocking(False)
        assert code != 0
        with pytest.raises(BlockingIOError):
            door.accept()


def test_servers_on_this_machine_are_out_of_reach(field):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, _ = field.run(
            f"{PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'"
        )
        server.setblocking(False)
        assert code != 0
        with pytest.raises(BlockingIOError):
            server.accept()


CALLS = {
    "type into a terminal": "fcntl.ioctl(os.open('/dev/ptmx', os.O_RDWR), 0x5412, b'x')",
    "mount": "call(165, b'none', b'/mnt', b'tmpfs', 0, None)",
    "the new mount interface": "call(428, -100, b'/', 1)",
    "a file system context": "call(430, b'tmpfs', 0)",
    "unshare": "call(272, 0x10000000)",
    "clone with a namespace": "call(56, 0x10000000 | 17, 0, 0, 0, 0)",
    "clone3": "call(435, ctypes.create_string_buffer(88), 88)",
    "join a namespace": "call(308, os.open('/proc/self/ns/user', 0), 0)",
    "the kernel's keys": "call(250, 0, -3, 1)",
    "bpf": "call(321, 0, ctypes.create_string_buffer(128), 128)",
    "performance events": "call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0)",
    "user faults": "call(323, 0)",
    "io_uring": "call(425, 8, ctypes.create_string_buffer(120))",
    "another process's memory": "call(310, os.getppid(), None, 0, None, 0, 0)",
    "a handle": "call(304, -100, ctypes.create_string_buffer(64), 0)",
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_the_filter_refuses_what_escapes_need(field, call):
    program = (
        "import ctypes, errno, fcntl, os, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def call(*a):\n"
        "    if libc.syscall(*a) < 0:\n"
        "        raise OSError(ctypes.get_errno(), 'x')\n"
        f"try:\n    {call}\n"
        "except OSError as e:\n    sys.exit(0 if e.errno in (errno.EPERM, errno.ENOSYS) else e.errno)\n"
        "sys.exit(99)\n"
    )
    (field.root / "try.py").write_text(program)
    field.own()
    code, output = field.run(f"{PYTHON} try.py")
    assert code == 0, output


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x32 is a personality of x86_64")
def test_calls_of_another_personality_end_the_process(field):
    code, _ = field.run(
        f"exec {PYTHON} -c 'import ctypes; ctypes.CDLL(None).syscall(0x40000000 + 39)'"
    )
    assert code in {-signal.SIGSYS, 128 + signal.SIGSYS}


def test_capabilities_and_new_privileges_are_gone(field, means, uid):
    code, output = field.run(
        "grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status"
    )
    assert code == 0
    facts = dict(line.split(":\t") for line in output.splitlines())
    if means == "landlock" and uid:
        # Only root can take from this set, and nobody can use it without new privileges.
        del facts["CapBnd"]
    assert all(int(value, 16) == 0 for name, value in facts.items() if name.startswith("Cap"))
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")


def test_no_descriptor_of_ours_is_left_open_inside(field):
    code, output = field.run("ls /proc/self/fd")
    assert code == 0
    # 3 is the directory that ls reads.
    assert set(output.split()) <= {"0", "1", "2", "3"}


def test_commands_side_by_side_share_masks_and_leave_nothing(field, means):
    if means != "bubblewrap":
        pytest.skip("Landlock needs no masks")
    first, one = field.start("read -t 10 < <(sleep 10); true")
    codes = []

    def work() -> None:
        process, confined = field.start("mkdir .vscode 2>/dev/null; echo x > .vscode/tasks.json")
        process.communicate(timeout=HANG_S)
        codes.append(process.returncode)
        confined.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(codes)
    assert (field.root / ".mcp.json").is_socket()
    first.kill()
    first.communicate()
    one.close()
    assert not (field.root / ".vscode").exists()


def test_the_end_of_the_starter_is_the_end_of_the_command(field):
    """Killing what was started leaves nothing behind inside."""
    process, confined = field.start("echo started; exec -a handaxe-left-behind sleep 30")
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    process.kill()
    process.communicate(timeout=HANG_S)
    confined.close()
    left = subprocess.run(["pgrep", "-f", "^handaxe-left-behind"], capture_output=True, check=False)
    assert left.stdout == b""
