"""A project, its surroundings, and commands run inside the sandbox by root and by a user."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.expected_types import require

from handaxe.contract.ports.shell import ConfinedCommand
from handaxe.process import netns
from handaxe.process.temp_dir import TempDirectory
from handaxe.shell.sandbox.backend import SandboxBackend, find_backend
from handaxe.shell.sandbox.confiner import LocalConfiner, SandboxRequirements
from handaxe.shell.sandbox.readonly_paths import NO_RULES
from handaxe.shell.sandbox.sandbox_policy import SandboxPolicy

ORDINARY = 1000
PYTHON = "/usr/bin/python3"
NAMES = frozenset(
    {".git", ".vscode", ".idea", ".claude", ".handaxe", ".mcp.json", ".envrc", ".bashrc", ".npmrc"}
)
MASKED = (".vscode", ".claude", ".mcp.json", ".git")

TIMEOUT_S = 20

LENDER = """
import os, sys, types
made = types.ModuleType("netns")
exec(open(int(sys.argv[1])).read(), made.__dict__)
assert made.can_have_own_network()
door = int(sys.argv[2]) if sys.argv[2] != "None" else None
made.NetworkNamespace().begin(door, int(sys.argv[3]))
if door is not None: os.close(door)
os.execv(sys.argv[4], sys.argv[4:])
"""
"""What a warden does that lends its network, for a user who cannot read our own files."""


class Field:
    """A project at `root`, a home beside it with secrets, and a way to run commands inside."""

    def __init__(self, top: Path, means: str, uid: int) -> None:
        self.top, self.uid = top, uid
        self.root, self.home, self.temp = top / "project", top / "home", top / "temp"
        for place in (self.root, self.home / ".ssh", self.temp):
            place.mkdir(parents=True)
        (self.root / "file.txt").write_text("plain\n")
        (self.home / ".bashrc").write_text("# mine\n")
        (self.home / ".ssh" / "id").write_text("SECRET\n")
        (self.home / "note").write_text("readable\n")
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.policy = SandboxPolicy(
            roots=(str(self.root),),
            temp_directory=str(self.temp),
            aside_directory=str(self.top / "aside"),
            protected_names=NAMES,
            masked_names=MASKED,
            deny_read=(str(self.home / ".ssh"),),
        )
        self.wanted = SandboxRequirements(enabled=True)
        self.is_lent = means == "lent"
        chosen = SandboxBackend(name="landlock") if means == "landlock" else find_backend()
        self.ruled = NO_RULES
        self.confiner = LocalConfiner(
            lambda: self.wanted,
            lambda: self.policy,
            ruled=lambda: self.ruled,
            means=chosen,
            interpreter=PYTHON,
        )
        self.told: tuple[str, ...] = ()
        self.own()

    def own(self) -> None:
        """Give everything to whoever runs the commands."""
        for place in (self.top, *self.top.rglob("*")):
            os.chown(place, self.uid, self.uid, follow_symlinks=False)

    def start(self, command: str, **more) -> tuple[subprocess.Popen, ConfinedCommand]:
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.home)}
        env["OUTSIDE"] = str(self.top)
        confined = self.confiner.confine(["bash", "-c", command], cwd=str(self.root), env=env)
        argv, passed = confined.argv, confined.pass_fds
        source = os.open(netns.__file__, os.O_RDONLY)
        if self.is_lent:
            lent = require(confined.lent)
            argv = [PYTHON, "-I", "-S", "-c", LENDER, str(source), str(lent.door)]
            argv += [str(lent.port), *lent.argv]
            passed = (*passed, source)
        process = subprocess.Popen(
            argv,
            env=confined.env,
            cwd=self.root,
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            user=self.uid,
            group=self.uid,
            extra_groups=[],
            **more,
        )
        os.close(source)
        return process, confined

    def run(self, command: str) -> tuple[int, str]:
        """The exit code and all output."""
        process, confined = self.start(command)
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
            self.told = confined.close()
        return process.returncode, output.decode(errors="replace")


def _problem(means: str) -> str | None:
    if os.getuid() != 0:
        return "needs root, to run as root and as a user"
    if not os.access(PYTHON, os.X_OK):
        return f"needs {PYTHON}"
    from handaxe.shell.sandbox.backend import find_landlock_problem

    found = find_backend()
    return find_landlock_problem(PYTHON) if means == "landlock" else found.bubblewrap_problem


@pytest.fixture(params=["bubblewrap", "lent", "landlock"])
def means(request):
    return request.param


@pytest.fixture(params=[0, ORDINARY], ids=["root", "user"])
def uid(request):
    return request.param


@pytest.fixture
def field(means, uid):
    """Not below `tmp_path`, which other users cannot enter."""
    problem = _problem(means)
    if problem is not None:
        pytest.skip(problem)
    with TempDirectory("sandbox", "/var/tmp") as scratch:
        Path(scratch.path).chmod(0o755)
        top = Path(scratch.path, "top")
        top.mkdir()
        made = Field(top, means, uid)
        try:
            yield made
        finally:
            made.confiner.close()
