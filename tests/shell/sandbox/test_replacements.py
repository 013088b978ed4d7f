"""Protected files cannot be replaced, and protected names cannot be made, at any depth: for real.

Many attempts run in one command; what counts is what is there afterwards.
"""

import os
import stat
import subprocess

import msgspec
import pytest

PYTHON = "/usr/bin/python3"
LARGE = b"large" * 500_000
"""More than was once saved of a file."""


@pytest.fixture(params=["bubblewrap", "landlock"])
def means(request):
    return request.param


@pytest.fixture
def nested(field, request):
    """A project with protected places further down, and of every kind."""
    sub = field.root / "sub"
    for place in (sub / ".vscode", field.root / "a/b/c/d/e/f/.vscode", field.root / ".idea/deep"):
        place.mkdir(parents=True)
        (place / "tasks.json").write_text("mine\n")
    # More than were once saved of a directory; making so many takes a while.
    for number in range(310 if "deep" in request.node.name else 6):
        (field.root / f".idea/{number}").write_text(f"{number}\n")
    (field.root / ".idea/large").write_bytes(LARGE)
    subprocess.run(["git", "init", "-q", sub], check=True)
    (field.root / ".git/hooks/pre-push").write_text("#!/bin/sh\n")
    (field.root / ".git/hooks/pre-push").chmod(0o755)
    (field.root / ".npmrc").write_text("mine\n")
    (field.root / ".npmrc").chmod(0o640)
    modules = field.root / ".git/modules/libs/one"
    subprocess.run(["git", "init", "-q", "--bare", modules], check=True)
    (field.root / "file.txt").write_text("plain\n")
    field.own()
    return field


def look(place):
    """Everything that is protected in the project: kind, mode, owner, content."""
    found = {}
    for path in sorted(place.rglob("*")):
        parts = path.relative_to(place).parts
        inside = [at for at, part in enumerate(parts) if part in {".vscode", ".idea", ".npmrc"}]
        is_git = ".git" in parts and bool({"config", "hooks"} & set(parts))
        if inside or is_git:
            state = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(state.st_mode) else b""
            found[str(path)] = (state.st_mode, state.st_uid, state.st_gid, content)
    return found


REPLACEMENTS = {
    "ancestors renamed": """
        mv sub gone; mkdir -p sub/.git sub/.vscode; echo evil > sub/.git/config; echo evil > sub/.vscode/tasks.json
        mv a z; mkdir -p a/b/c/d/e/f/.vscode; echo evil > a/b/c/d/e/f/.vscode/tasks.json
        mv .git/modules/libs x; mkdir -p .git/modules/libs/one; echo evil > .git/modules/libs/one/config
    """,
    "the repository made a file": """
        mv .git g; echo 'gitdir: g' > .git; mv sub/.git sub/g; echo 'gitdir: g' > sub/.git; echo evil >> sub/g/config
    """,
    "the repository made a link": "mv .git g; ln -s g .git; mv sub/.git e; ln -s ../e sub/.git; echo evil >> e/config",
    "modes": """
        chmod 777 .npmrc .git/hooks/pre-push .idea .idea/5; chmod 000 .git/config
        chmod 000 sub/.vscode; chmod 000 a/b/c/d; chmod 000 .idea/deep
    """,
    "deep and large": """
        truncate -s 100 .idea/large; echo evil > .idea/309; rm -r .idea/deep; ln -s / .idea/deep
        p=a/b/c/d/e/f/.vscode/n; for i in $(seq 60); do mkdir -p $p; p=$p/n; done; echo evil > $p
    """,
    "removed": "rm -rf .idea .npmrc .git/hooks .git/config sub a",
}


@pytest.mark.proves("SH-7")
@pytest.mark.parametrize("command", REPLACEMENTS.values(), ids=REPLACEMENTS.keys())
def test_no_protected_file_is_replaced(nested, means, command):
    before = look(nested.root)
    _, output = nested.run(command)
    assert look(nested.root) == before, (output, nested.told)
    # Whoever could change something was told of it.
    if means == "landlock":
        assert any("was restored" in line or "was moved back" in line for line in nested.told)
    assert not any("could not" in line for line in nested.told), nested.told


NEW_NAMES = """
    sub/.mcp.json .MCP.json sub/.Vscode/tasks.json a/b/c/d/e/f/g/.envrc .CLAUDE/settings.json
    build/.claude/settings.json sub/.Git/config deep/er/.npmrc x.git/hooks/post-update
    new/.git/hooks/pre-commit new/.git/hooks/post-checkout shaped/hooks/post-update closed/.envrc
    .git/modules/evil/hooks/pre-commit tool.Code-Workspace .config/git/config
"""


@pytest.mark.proves("SH-7")
def test_no_protected_name_is_made(field, means):
    """Also below the top, in another case, in a repository of its own, and behind closed doors."""
    field.policy = msgspec.structs.replace(
        field.policy,
        protected_endings=(".git", ".code-workspace"),
        protected_pairs=frozenset({(".config", "git")}),
    )
    making = "".join(
        f"mkdir -p {os.path.dirname(name) or '.'}; echo evil > {name}; chmod +x {name}\n"
        for name in NEW_NAMES.split()
    )
    _, output = field.run(
        f"""
        git init -q new; git init -q good; git init -q --bare shaped; git init -q --bare .git/modules/evil
        {making}
        git -C new config core.fsmonitor ./evil
        git -C good config user.name me; echo plain > good/file
        mkdir pointing evil; echo 'gitdir: ../evil' > pointing/.git; ln -s ../evil evil/.git
        touch -d '2001-01-01' sub deep/er .; chmod 000 closed
        """
    )
    left = [name for name in NEW_NAMES.split() if (field.root / name).exists()]
    assert not left, (output, field.told)
    assert not os.path.lexists(field.root / "pointing/.git")
    assert not os.path.lexists(field.root / "evil/.git")
    assert not (field.root / "new/.git/config").exists()
    assert (field.root / "new/.git/HEAD").exists()
    # Making a repository is ordinary work.
    assert (field.root / "good/.git/config").exists()
    assert (field.root / "good/file").read_text() == "plain\n"
    assert stat.S_IMODE((field.root / "closed").lstat().st_mode) == 0
    for name in ("sub/.mcp.json", "new/.git/hooks/pre-commit", "closed/.envrc"):
        assert any(f"{field.root}/{name} is protected" in line for line in field.told), field.told
    # Nothing is lost.
    kept = [path for path in (field.top / "aside").rglob("*") if path.is_file()]
    assert len(kept) >= len(NEW_NAMES.split()) - 2


@pytest.mark.proves("SH-7")
def test_no_file_keeps_the_rights_of_its_owner(field):
    _, output = field.run(
        f"""
        cp /bin/true a; chmod u+s a; chmod g+s a; chmod 6755 a; install -m 4755 /bin/true b
        {PYTHON} - <<'E'
import ctypes, os
libc = ctypes.CDLL(None)
for work in (
    lambda: os.open("c", os.O_CREAT | os.O_WRONLY, 0o6755), lambda: os.mknod("d", 0o104755),
    lambda: os.chmod("a", 0o4755), lambda: os.fchmod(os.open("a", 0), 0o4755),
    lambda: libc.syscall(452, -100, b"a", 0o4755, 0), lambda: libc.creat(b"e", 0o4755),
    lambda: libc.syscall(437, -100, b"f", (ctypes.c_uint64 * 3)(0o101, 0o4755, 0), 24),
):
    try:
        work()
    except OSError:
        pass
E
        mkdir fine; chmod 1777 fine; chmod 755 a; echo done
        """
    )
    assert output.endswith("done\n"), output
    modes = {path.name: path.stat().st_mode for path in field.root.iterdir()}
    assert not [name for name, mode in modes.items() if mode & 0o6000 and name != ".git"]
    assert modes["a"] & 0o777 == 0o755
    assert modes["fine"] & 0o7777 == 0o1777


OTHERS = """
import ctypes, errno, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
def syscall(*a):
    if libc.syscall(*a) < 0:
        raise OSError(ctypes.get_errno(), "x")
zero = (ctypes.c_uint64 * 2)(0, 0)
one = ctypes.c_int(0)
tries = {
    "prlimit": lambda: syscall(302, pid, 0, zero, 0),
    "affinity": lambda: os.sched_setaffinity(pid, [0]),
    "scheduler": lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
    "parameter": lambda: os.sched_setparam(pid, os.sched_param(0)),
    "attributes": lambda: syscall(314, pid, (ctypes.c_uint32 * 14)(56, 5), 0),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "disk priority": lambda: syscall(251, 1, pid, 3 << 13),
    "pages": lambda: syscall(279, pid, 0, None, None, None, 0),
    "all pages": lambda: syscall(256, pid, 0, None, None),
    "memory": lambda: syscall(310, pid, None, 0, None, 0, 0),
    "trace": lambda: syscall(101, 16, pid, 0, 0),
    "descriptor": lambda: syscall(438, syscall(434, pid, 0) or 3, 0, 0),
    "reap": lambda: syscall(448, 3, 0),
    "signal": lambda: os.kill(pid, 9),
    "signal to a thread": lambda: syscall(200, pid, 9),
    "signal to a thread of it": lambda: syscall(234, pid, pid, 9),
    "signal with data": lambda: syscall(129, pid, 9, ctypes.create_string_buffer(b"\\x09\\0\\0\\0\\0\\0\\0\\0\\xff\\xff\\xff\\xff", 128)),
    "adjust": lambda: open(f"/proc/{pid}/oom_score_adj", "w").write("1000"),
    "segment": lambda: syscall(29, int(sys.argv[2]), 4096, 0),
}
own = {
    "limit": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    "affinity": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
    "nice": lambda: os.nice(1),
}
for name, work in tries.items():
    try:
        work()
        print("BROKEN", name)
    except OSError:
        pass
try:
    os.setpriority(os.PRIO_USER, 0, 19)
except OSError:
    pass
for name, work in own.items():
    try:
        work()
    except OSError as e:
        print("HINDERED", name, e)
print("done")
"""


@pytest.mark.proves("SH-7")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
def test_no_other_process_can_be_changed(field, uid):
    # As another user everything is refused anyway, so it has to be a process of the same one.
    outside = subprocess.Popen(["sleep", "60"], user=uid, group=uid, extra_groups=[])
    (field.root / "try.py").write_text(OTHERS)
    field.own()
    try:
        _, output = field.run(f"{PYTHON} try.py {outside.pid} 4711")
        assert output == "done\n", output
        assert outside.poll() is None
        assert os.getpriority(os.PRIO_PROCESS, outside.pid) == os.getpriority(os.PRIO_PROCESS, 0)
        with open(f"/proc/{outside.pid}/limits") as limits:
            assert "Max cpu time              unlimited" in limits.read()
    finally:
        outside.kill()
        outside.wait()
