"""Test what the sandbox protects on this machine, per dimension, by trying to break it."""

import os
import subprocess
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from handaxe.contract.ports.shell import ConfinedCommand
from handaxe.process import landlock_launcher
from handaxe.process.temp_dir import TempDirectory
from handaxe.shell.sandbox.backend import Name, SandboxBackend, find_backend
from handaxe.shell.sandbox.confiner import LocalConfiner, SandboxRequirements
from handaxe.shell.sandbox.sandbox_policy import SandboxPolicy

Standing = Literal["ok", "weak", "no"]

_TRIALS = """
t() {
    name=$1; shift
    if "$@" >/dev/null 2>&1; then echo "$name=broken"; else echo "$name=held"; fi
}
has() { if grep -q "$2" /proc/self/status; then echo "$1=held"; else echo "$1=broken"; fi; }
if echo x > inside && echo x > "$TMPDIR/inside"; then echo works=held; else echo works=broken; fi
t write sh -c 'echo x > "$OUTSIDE/file"'
t hidden sh -c 'cat "$OUTSIDE/secret/key"'
t protected sh -c 'mkdir -p .vscode && echo x > .vscode/tasks.json'
t namespaces unshare -Ur true
t mounts mount -t tmpfs none /mnt
t signals kill -0 "$OUTSIDE_PID"
t processes test -r "/proc/$OUTSIDE_PID/environ"
has seccomp '^Seccomp:.2'
has privileges '^NoNewPrivs:.1'
has capabilities '^CapEff:.0000000000000000'
t network bash -c 'exec 3<>/dev/tcp/127.0.0.1/'"$OUTSIDE_PORT"
"""


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a sandbox protects."""

    name: str
    standing: Standing
    means: Name
    reason: str = ""
    """Why it is not or not fully protected."""


_HELD_BY: dict[str, tuple[str, ...]] = {
    "filesystem_write": ("write", "mounts"),
    "filesystem_read": ("hidden",),
    "protected_files": ("protected",),
    "network": ("network",),
    "namespaces": ("namespaces",),
    "processes": ("signals", "processes"),
    "seccomp": ("seccomp",),
    "privileges": ("privileges", "capabilities"),
}
"""The tests for each dimension. Unix sockets depend on the filter only."""
DIMENSIONS = (*_HELD_BY, "unix_sockets")
_WEAK_UNDER_LANDLOCK = {
    "filesystem_write": "modes and times of the user's files outside can still be changed",
    "filesystem_read": "names in hidden directories are still listed",
    "protected_files": "changed ones are restored after the command",
    "processes": "processes outside can be seen",
}


def probe(means: SandboxBackend | None = None) -> tuple[Dimension, ...]:
    """Probe the protection on this machine. Takes milliseconds, once per process."""
    return _probe_backend(means or find_backend())


@lru_cache(maxsize=4)
def _probe_backend(means: SandboxBackend) -> tuple[Dimension, ...]:
    if means.name == "none":
        return tuple(
            Dimension(name=name, standing="no", means="none", reason=means.problem)
            for name in DIMENSIONS
        )
    held, problem = _try(means)
    found = [
        _build_dimension(name, [trial for trial in trials if not held.get(trial)], means, problem)
        for name, trials in _HELD_BY.items()
    ]
    broken = [] if held.get("seccomp") else ["seccomp"]
    return (*found, _build_dimension("unix_sockets", broken, means, problem))


def _build_dimension(
    name: str, broken: Sequence[str], means: SandboxBackend, problem: str
) -> Dimension:
    if problem:
        return Dimension(name=name, standing="no", means=means.name, reason=problem)
    weakness = _WEAK_UNDER_LANDLOCK.get(name, "") if means.name == "landlock" else ""
    if weakness and (name == "protected_files" or not broken or broken == ["processes"]):
        return Dimension(name=name, standing="weak", means=means.name, reason=weakness)
    if broken:
        reason = f"the trial {', '.join(broken)} was not stopped"
        return Dimension(name=name, standing="no", means=means.name, reason=reason)
    return Dimension(name=name, standing="ok", means=means.name)


def _try(means: SandboxBackend) -> tuple[dict[str, bool], str]:
    """The tests that were blocked, or the reason why there is no result."""
    import socket

    with (
        # Not below /tmp, which commands do not see: that would prove nothing.
        TempDirectory("probe", _find_outside_directory()) as scratch,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        top = scratch.path
        for name in ("root", "temp", "outside/secret"):
            (Path(top) / name).mkdir(parents=True)
        (Path(top) / "outside/secret/key").write_text("secret")
        policy = SandboxPolicy(
            roots=(f"{top}/root",),
            temp_directory=f"{top}/temp",
            aside_directory=f"{top}/aside",
            deny_read=(f"{top}/outside/secret",),
            masked_names=(".vscode",),
        )
        env = {
            "PATH": os.defpath + ":/usr/sbin:/sbin",
            "OUTSIDE": f"{top}/outside",
            "OUTSIDE_PID": str(os.getpid()),
            "OUTSIDE_PORT": str(server.getsockname()[1]),
        }
        confiner = LocalConfiner(
            lambda: SandboxRequirements(enabled=True), lambda: policy, means=means
        )
        confined = confiner.confine(["/bin/sh", "-c", _TRIALS], cwd=f"{top}/root", env=env)
        output, problem = _run(confined, f"{top}/root")
        wrote = (Path(top) / "outside/file").exists()
    held = {
        name: word == "held"
        for name, _, word in (line.partition("=") for line in output.splitlines())
    }
    held["write"] = held.get("write", False) and not wrote
    if not problem and not held.get("works"):
        problem = "a command could not write into its own directory"
    return held, problem


def _find_outside_directory() -> str | None:
    place = "/var/tmp"  # noqa: S108 - a fresh directory in it
    return place if os.access(place, os.W_OK | os.X_OK) else None


def _run(confined: ConfinedCommand, cwd: str) -> tuple[str, str]:
    try:
        done = subprocess.run(  # noqa: S603 - our own trials
            confined.argv,
            env=confined.env,
            cwd=cwd,
            pass_fds=confined.pass_fds,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return "", str(error)
    finally:
        confined.close()
    said = done.stderr.decode("utf-8", "replace").strip()
    return done.stdout.decode(
        "utf-8", "replace"
    ), "" if done.stdout else said or "there was no output"


def query_landlock_abi() -> int:
    """The Landlock version of this kernel; 0 without Landlock."""
    return _call_or_zero(landlock_launcher.query_abi)


def _call_or_zero(ask: Callable[[], int]) -> int:
    try:
        return ask()
    except (OSError, AttributeError):
        return 0
