"""A link takes the place of a file or directory while we work: what is outside stays untouched.

uv run python tests/faults/swapped_links.py 20       seconds for each race
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from handaxe.disk.atomic import DiskFault, delete, read_regular, replace

SECRET = b"secret"
EXCHANGE = 2


def exchange_for_ever(one: str, other: str) -> None:
    """Swap two names as fast as the kernel can."""
    libc = ctypes.CDLL(None)
    print("ready", flush=True)
    while True:
        libc.renameat2(-100, one.encode(), -100, other.encode(), EXCHANGE)


def race(place: Path, *, seconds: float, swap_directory: bool) -> Counter[str]:
    """Read, write and delete while a swapper is at work; gives how it went how often."""
    outside, project = place / "outside", place / "project"
    outside.mkdir()
    (outside / "file").write_bytes(SECRET)
    (project / "dir").mkdir(parents=True)
    file = project / "dir" / "file"
    file.write_bytes(b"ours")
    if swap_directory:
        link = project / "link"
        link.symlink_to(outside)
        pair = (project / "dir", link)
    else:
        link = project / "dir" / "link"
        link.symlink_to(outside / "file")
        pair = (file, link)
    command = [sys.executable, __file__, "swap", *map(str, pair)]
    swapper = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert swapper.stdout is not None
    swapper.stdout.readline()
    try:
        seen = _work(file, seconds, [] if swap_directory else [link, outside / "file"])
    finally:
        swapper.kill()
        swapper.wait()
        swapper.stdout.close()
    assert os.listdir(outside) == ["file"]
    assert (outside / "file").read_bytes() == SECRET
    return seen


def _work(file: Path, seconds: float, link: list[Path]) -> Counter[str]:
    seen: Counter[str] = Counter()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        _renew(*link)
        try:
            data, _ = read_regular(file)
            assert data == b"ours"
            seen["read"] += 1
        except (DiskFault, OSError) as error:
            seen[f"read {type(error).__name__}"] += 1
        for name, work in (
            ("replaced", lambda: replace(file, [b"ours"], expect=None)),
            ("new", lambda: replace(file.with_name("new"), [b"x"], expect=None)),
            ("deleted", lambda: delete(file.with_name("new"), expect=None)),
        ):
            try:
                work()
                seen[name] += 1
            except DiskFault as fault:
                seen[f"{name} {type(fault).__name__}"] += 1
    return seen


def _renew(link: Path | None = None, target: Path | None = None) -> None:
    """Put a link back that a replacement has removed together with its name."""
    if link is not None and target is not None and not link.is_symlink():
        with contextlib.suppress(OSError):
            link.unlink()
            link.symlink_to(target)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["swap"]:
        exchange_for_ever(*arguments[1:])
    for swap_directory in (True, False):
        with tempfile.TemporaryDirectory() as directory:
            place = Path(os.path.realpath(directory))
            seconds = float(arguments[0]) if arguments else 20
            print(race(place, seconds=seconds, swap_directory=swap_directory))


if __name__ == "__main__":
    main(sys.argv[1:])
