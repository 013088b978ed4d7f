"""Facts about this machine: programs, limits, kernel features."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from handaxe.process.temp_dir import TempDirectory

VERSION_TIMEOUT_S = 5.0
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.-]*")


class Program(msgspec.Struct, frozen=True):
    """A program with its version."""

    path: str
    version: str


def find_program(
    name: str, *, option: str = "--version", path: str | None = None
) -> Program | None:
    """A program on the search path or at `path`; None if it does not run."""
    place = path or shutil.which(name)
    if place is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - asks a program of the user's own for its version
            [place, option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = (done.stdout or done.stderr).decode("utf-8", "replace")
    found = _VERSION.search(said)
    return Program(place, found[0] if found else said.strip().partition("\n")[0][:40] or "unknown")


def is_bash_utf8(bash: str, environment: Mapping[str, str]) -> bool:
    """Whether bash handles UTF-8 in this environment."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own bash, a fixed script
            # As bytes: with ASCII file names the character could not be passed.
            [bash, "-c", 'word=$1; echo "${#word}"', "bash", b"\xc3\xa9"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.stdout.strip() == b"1"


def read_kernel_setting(name: str) -> int | None:
    """A number below `/proc/sys`."""
    try:
        return int(Path("/proc/sys", name).read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def read_soft_limit(name: str) -> int | None:
    """A soft limit of this process, such as `NOFILE`; None if unlimited."""
    import resource

    kind = getattr(resource, f"RLIMIT_{name}", None)
    if kind is None:
        return None
    soft, _ = resource.getrlimit(kind)
    return None if soft == resource.RLIM_INFINITY else soft


def find_delegated_cgroup() -> tuple[bool, str]:
    """Whether this process can make control groups, with the path or the reason."""
    for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if not Path(mount, "cgroup.controllers").exists():
            continue
        try:
            lines = Path("/proc/self/cgroup").read_text().splitlines()
        except OSError as error:
            return False, str(error)
        own = next((line[3:] for line in lines if line.startswith("0::")), "/")
        place = f"{mount}{own}".rstrip("/")
        if os.access(place, os.W_OK) and os.access(f"{place}/cgroup.procs", os.W_OK):
            return True, place
        return False, f"{place} is not writable"
    return False, "there is no cgroup v2 hierarchy"


def find_overlay_problem(bwrap: str | None) -> str | None:
    """Why commands cannot run in an overlay, or None; tries it."""
    if bwrap is None:
        return "bubblewrap is not installed"
    with TempDirectory("overlay") as scratch:
        top = scratch.path
        argv = [bwrap, "--unshare-user", "--ro-bind", "/", "/", "--overlay-src", top]
        argv += ["--tmp-overlay", top, "--", "/bin/sh", "-c", 'echo x > "$0/file"', top]
        try:
            done = subprocess.run(  # noqa: S603 - a fixed trial
                argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.returncode != 0:
            return said.rpartition("\n")[2] or f"it ended with {done.returncode}"
        return "a write reached the real file" if Path(top, "file").exists() else None
