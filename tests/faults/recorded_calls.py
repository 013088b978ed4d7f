"""The file-system calls of a piece of work, with their data, as strace shows them.

What lies outside one directory is left out. Calls that failed changed nothing and are left out
too. A sync counts from its beginning: what another thread writes meanwhile it may miss.
"""

import ctypes
import functools
import os
import re
import select
import signal
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

_TRACED = (
    "open,openat,openat2,creat,write,pwrite64,writev,pwritev,pwritev2,truncate,ftruncate,"
    "fallocate,lseek,link,linkat,symlink,symlinkat,rename,renameat,renameat2,unlink,unlinkat,"
    "rmdir,mkdir,mkdirat,fsync,fdatasync,syncfs,sync,chmod,fchmod,fchmodat,?fchmodat2,"
    "copy_file_range,sendfile"
)
_LINE = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<rest>.*)$", re.DOTALL)
_BEGUN = " <unfinished ...>"
_RESUMED = re.compile(r"(?P<pid>\d+) +<\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)", re.DOTALL)
_ENDED = re.compile(r"(?P<arguments>.*)\) += (?P<result>-?\d+|0x[0-9a-f]+)(?P<told>.*)$", re.DOTALL)
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_OPEN_FILE = re.compile(r"(?P<fd>-?\d+|AT_FDCWD)<(?P<path>(?:\\x[0-9a-f]{2})*)>")
_MOST_BYTES = 1 << 20
_PR_SET_PDEATHSIG = 1
_PR_SET_PTRACER = 0x59616D61


class Seen(NamedTuple):
    """One call that worked."""

    name: str
    arguments: str
    result: int
    told: str
    """What strace adds to the result, as the path of a new descriptor."""
    began: int
    """How many calls had ended when this one began."""

    def texts(self) -> list[bytes]:
        """The strings among the arguments, whole."""
        found = _TEXT.findall(self.arguments)
        assert not any(cut for _, cut in found), "strace cut the data of a call"
        return [_bytes(text) for text, _ in found]

    def files(self) -> list[tuple[str, str]]:
        """The descriptors among the arguments, each with the path it is open on."""
        return [
            (found["fd"], os.fsdecode(_bytes(found["path"])))
            for found in _OPEN_FILE.finditer(self.arguments)
        ]

    def numbers(self) -> list[int]:
        """The plain numbers among the arguments."""
        plain = _OPEN_FILE.sub("", _TEXT.sub("", self.arguments))
        return [int(part, 0) for part in re.findall(r"(?<![\w.])-?(?:0x[0-9a-f]+|\d+)\b", plain)]


def trace(work: Callable[[], None]) -> list[Seen]:
    """Do the work in a child, and give the calls of all its processes in order of their ends."""
    with tempfile.NamedTemporaryFile() as to:
        options = ["-y", "-xx", "-s", str(_MOST_BYTES), "-o", to.name]
        options += ["-e", f"trace={_TRACED}", "-e", "signal=none"]
        status, told = trace_child(lambda: work, options)
        assert status == 0, (status, told)
        text = Path(to.name).read_text(errors="surrogateescape")
    return list(parse(text.splitlines()))


def trace_child(begin: Callable[[], Callable[[], None]], options: Sequence[str]) -> tuple[int, str]:
    """Have a child begin unseen, and do what `begin` gives under strace; its wait status.

    Returns when every process that it started has ended; what strace had to say comes with it.
    """
    ready, going = os.pipe(), os.pipe()
    child = os.fork()
    if not child:

        def work() -> None:
            # Where only a parent may trace, whoever traces has to be named.
            ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_long(-1), 0, 0, 0)
            os.close(going[1])
            run = begin()
            os.close(ready[1])
            # Not by reading: a fault may be meant for the first read of the work itself.
            going_on = select.poll()
            going_on.register(going[0], select.POLLHUP)
            going_on.poll()
            run()

        run_child(work)
    os.close(ready[1])
    os.close(going[0])
    os.read(ready[0], 1)
    os.close(ready[0])
    command = ["strace", "-f", *options, "-p", str(child)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr is not None
        told = strace.stderr.readline()
        os.close(going[1])
        _, status = os.waitpid(child, 0)
        told += strace.stderr.read()
    return status, told


def end_with_parent() -> None:
    """Have this process killed when the one ends that started it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run_child(work: Callable[[], None]) -> NoReturn:
    """The rest of a forked process: the work, and nothing of what its parent has still to do."""
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - the parent is told by the status
        traceback.print_exc()
    finally:
        os._exit(status)


def parse(lines: Sequence[str]) -> Iterator[Seen]:
    """The calls that worked, whole also where another process came between their halves."""
    begun: dict[str, tuple[str, int]] = {}
    ended = 0
    for line in lines:
        if resumed := _RESUMED.match(line):
            first, began = begun.pop(resumed["pid"])
            line = first + resumed["rest"]  # noqa: PLW2901 - the whole of it
        elif line.endswith(_BEGUN):
            begun[line.split()[0]] = line.removesuffix(_BEGUN), ended
            continue
        else:
            began = ended
        called = _LINE.match(line)
        answered = called and _ENDED.match(called["rest"])
        if called is None or answered is None:
            continue
        result = int(answered["result"], 0)
        if result >= 0:
            yield Seen(called["name"], answered["arguments"], result, answered["told"], began)
            ended += 1


@functools.cache
def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
