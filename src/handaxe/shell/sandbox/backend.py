"""Find the sandbox backend that works on this machine, by trying it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from handaxe.process import landlock_launcher
from handaxe.shell.sandbox import bubblewrap, seccomp
from handaxe.shell.sandbox.landlock import LAUNCHER
from handaxe.shell.sandbox.seccomp import open_content_fd

TRIAL_TIMEOUT_S = 10.0
_KEEPS_SIGNALS = 6
"""The Landlock version from which a command cannot kill handaxe before it restores files."""
Name = Literal["bubblewrap", "landlock", "none"]


class SandboxBackend(msgspec.Struct, frozen=True, kw_only=True):
    """The strongest working backend, and why stronger ones do not work."""

    name: Name
    program: str | None = None
    """Bubblewrap's path."""
    bubblewrap_problem: str | None = None
    landlock_problem: str | None = None
    landlock_weakness: str | None = None
    """A restriction that this kernel's Landlock cannot enforce, so that commands need approval."""

    @property
    def problem(self) -> str:
        """Why no backend works."""
        return f"{self.bubblewrap_problem}; {self.landlock_problem}"


def find_backend(roots: Sequence[str] = (), *, bwrap: str | None = None) -> SandboxBackend:
    """The backend for these roots; tried once per process and program."""
    if not sys.platform.startswith("linux"):
        why = f"there is no sandbox for {sys.platform} yet"
        return SandboxBackend(name="none", bubblewrap_problem=why, landlock_problem=why)
    if not seccomp.is_supported():
        why = f"there is no system call filter for {seccomp.get_architecture()}"
        return SandboxBackend(name="none", bubblewrap_problem=why, landlock_problem=why)
    program = bwrap or bubblewrap.find_bubblewrap(roots)
    problem = "bubblewrap is not installed" if program is None else find_bubblewrap_problem(program)
    if problem is None:
        return SandboxBackend(name="bubblewrap", program=program)
    second = find_landlock_problem(sys.executable)
    name: Name = "landlock" if second is None else "none"
    return SandboxBackend(
        name=name,
        bubblewrap_problem=problem,
        landlock_problem=second,
        landlock_weakness=None if second else find_landlock_weakness(landlock_launcher.query_abi()),
    )


def find_landlock_weakness(version: int) -> str | None:
    """The gaps of a Landlock version that prevent restoring files. None means no gap."""
    if version >= _KEEPS_SIGNALS:
        return None
    return (
        f"version {version} of Landlock does not block signals to other processes, so "
        "protected files may not be restored; `sandbox.failIfWeak: false` accepts that"
    )


@lru_cache(maxsize=8)
def find_bubblewrap_problem(program: str) -> str | None:
    """Why bubblewrap does not work here; None if it does."""
    options = [*bubblewrap.ISOLATION, bubblewrap.OWN_NETWORK, "--ro-bind", "/", "/"]
    options += [*bubblewrap.KERNEL_FILES, "--tmpfs", "/run"]
    filter_fd = open_content_fd(seccomp.build_filter())
    try:
        argv = [program, *options, "--seccomp", str(filter_fd), "--", "/bin/sh", "-c", "exit 0"]
        return _run_trial(argv, (filter_fd,), "bubblewrap does not work here")
    finally:
        os.close(filter_fd)


@lru_cache(maxsize=8)
def find_landlock_problem(interpreter: str) -> str | None:
    """Why Landlock does not work here; None if it does."""
    plan_fd = open_content_fd(b"r/\0d/dev/null")
    filter_fd = open_content_fd(seccomp.build_filter(internet=False, shares_processes=True))
    try:
        argv = [interpreter, "-I", "-S", LAUNCHER, str(plan_fd), str(filter_fd)]
        argv += ["/bin/sh", "-c", "exit 0"]
        return _run_trial(argv, (plan_fd, filter_fd), "Landlock does not work here")
    finally:
        os.close(plan_fd)
        os.close(filter_fd)


def _run_trial(argv: list[str], descriptors: tuple[int, ...], failure: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - a program of the system or of ours, fixed options
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRIAL_TIMEOUT_S,
            check=False,
            env={},
            cwd="/",
            pass_fds=descriptors,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{failure}: {error}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"{failure}: {said[-1] if said else f'it ended with {done.returncode}'}"
