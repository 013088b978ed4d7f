"""Running one change under strace: to see its system calls, or to spoil one of them."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

VICTIM = Path(__file__).with_name("one_change.py")
_CALL = re.compile(
    r"\d+ +(?P<name>\w+)\((?P<arguments>.*?)(?:\) += (?P<result>-?\w+).*| <unfinished \.\.\.>)$"
)
_BEGUN = " <unfinished ...>"
_RESUMED = re.compile(r"\d+ +<\.\.\. \w+ resumed>(?P<rest>.*)")


class Call(NamedTuple):
    """One system call of the change itself."""

    name: str
    arguments: str
    result: str
    nth: int
    """Which call of that name it is since the process began."""


def why_not() -> str | None:
    """Why nothing can be traced here."""
    if not shutil.which("strace"):
        return "strace is not installed"
    probe = subprocess.run(["strace", "-qq", "true"], capture_output=True, check=False)
    return None if probe.returncode == 0 else "strace may not trace here"


@contextmanager
def prepared(change: str) -> Generator[Path]:
    """A fresh place for one change."""
    import one_change

    place = Path(os.path.realpath(tempfile.mkdtemp(prefix="handaxe-faults-")))
    try:
        one_change.prepare(change, place)
        yield place
    finally:
        shutil.rmtree(place)


def run(
    change: str, place: Path, *options: str, preload: Path | None = None
) -> tuple[int, dict[str, Any] | None]:
    """Do the change under strace; gives the exit status and what the victim said."""
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", *options] if options else []
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    if preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    # Without site packages start-up is short and always the same.
    command = [*strace, sys.executable, "-S", str(VICTIM), change, str(place)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "Traceback" in done.stderr:
        return done.returncode, {"fault": "Traceback", "reason": done.stderr}
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def spoil(change: str, place: Path, call: Call, how: str) -> tuple[int, dict[str, Any] | None]:
    """Do the change with one of its system calls killed, failed or faked."""
    return run(change, place, "-e", f"inject={call.name}:{how}:when={call.nth}")


@functools.cache
def calls_of(change: str) -> list[Call]:
    """The system calls of a change that goes well, in order, from one thread."""
    with prepared(change) as place:
        trace = place / "trace"
        status, answer = run(change, place, "-o", str(trace))
        assert (status, answer) == (0, {"fault": None}), (status, answer)
        return list(between_marks(trace.read_text(errors="replace").splitlines()))


def between_marks(lines: list[str]) -> Iterator[Call]:
    """The calls of the main thread between the first mark of the victim and the second."""
    seen: dict[str, int] = {}
    marks = 0
    for line in _lines_of_the_main_thread(lines):
        found = _CALL.match(line)
        if found is None:
            continue
        name = found["name"]
        seen[name] = seen.get(name, 0) + 1
        marks += name == "sched_yield"
        if marks == 1 and name != "sched_yield":
            yield Call(name, found["arguments"], found["result"] or "", seen[name])


def _lines_of_the_main_thread(lines: list[str]) -> Iterator[str]:
    """One line for each call, also where the line of another thread came between its halves."""
    main_thread = lines[0].split()[0]
    begun = ""
    for line in lines:
        if line.split()[0] != main_thread:
            continue
        if line.endswith(_BEGUN):
            begun = line
        elif begun and (resumed := _RESUMED.match(line)):
            yield begun.removesuffix(_BEGUN) + resumed["rest"]
            begun = ""
        else:
            yield line
    if begun:
        yield begun
