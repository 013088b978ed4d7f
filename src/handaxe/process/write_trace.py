"""Trace which paths the processes of a command write, by their system calls.

A filter makes the kernel stop every call that can change a file and ask this process first. The
filter is inherited by all processes of the command, and by no others. Every path is recorded before
its call continues.

Runs in a small worker, so it imports only loaded modules.
"""

import _thread
import ctypes
import errno
import os
import select
import stat
import struct
from contextlib import suppress
from fcntl import ioctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_ARCHITECTURES = {"x86_64": (0xC000003E, 0, 317), "aarch64": (0xC00000B7, 1, 277)}
"""The kernel's name, the column below, the number of `seccomp`."""
_CWD, _OTHER_ABI = 0xFFFFFF9C, 0x40000000
_NONE = -1

# name: (x86_64, aarch64), then for each path: the argument of its directory, of the path itself.
_CALLS: dict[str, tuple[tuple[int | None, int | None], tuple[tuple[int, int], ...]]] = {
    "rename": ((82, None), ((_NONE, 0), (_NONE, 1))),
    "renameat": ((264, 38), ((0, 1), (2, 3))),
    "renameat2": ((316, 276), ((0, 1), (2, 3))),
    "unlink": ((87, None), ((_NONE, 0),)),
    "rmdir": ((84, None), ((_NONE, 0),)),
    "unlinkat": ((263, 35), ((0, 1),)),
    "mkdir": ((83, None), ((_NONE, 0),)),
    "mkdirat": ((258, 34), ((0, 1),)),
    "mknod": ((133, None), ((_NONE, 0),)),
    "mknodat": ((259, 33), ((0, 1),)),
    "link": ((86, None), ((_NONE, 1),)),
    "linkat": ((265, 37), ((2, 3),)),
    "symlink": ((88, None), ((_NONE, 1),)),
    "symlinkat": ((266, 36), ((1, 2),)),
    "truncate": ((76, 45), ((_NONE, 0),)),
    "chmod": ((90, None), ((_NONE, 0),)),
    "fchmod": ((91, 52), ((0, _NONE),)),
    "fchmodat": ((268, 53), ((0, 1),)),
    "fchmodat2": ((452, 452), ((0, 1),)),
    "creat": ((85, None), ((_NONE, 0),)),
    "open": ((2, None), ((_NONE, 0),)),
    "openat": ((257, 56), ((0, 1),)),
    "openat2": ((437, 437), ((0, 1),)),
}
_FLAGS_AT = {"open": 1, "openat": 2}
"""Of calls that may be read-only: the argument with the flags."""
_FOLLOWING = frozenset({"truncate", "chmod", "fchmodat", "fchmodat2", "creat"})
"""Calls that change the target of a link."""
_MOVING = frozenset({"rename", "renameat", "renameat2"})
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_UNNAMED = getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_NR, _ARCH, _ARGUMENTS = 0, 4, 16

_SET_FILTER, _SPECULATES, _LISTENS, _WAITS_KILLABLY = 1, 1 << 2, 1 << 3, 1 << 5
_NO_NEW_PRIVS = 38
_RECEIVE, _SEND, _IS_VALID, _SET_MODE = 0xC0502100, 0xC0182101, 0x40082102, 0x40082104
_GO_ON = 1
_ASKED = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_SHORT, _PATH_MAX = 256, 4096
_MOVED_AT_MOST = 20_000
"""Maximum number of recorded names below a moved directory."""
_NO_FILES = (b"/dev/", b"/proc/", b"/sys/")
_SHARED_MEMORY = b"/dev/shm/"

_libc = ctypes.CDLL(None, use_errno=True)


class WriteTrace:
    """The writes of one command, from its start to its end."""

    def __init__(self, file: int, begins: bytes, ends: bytes, *, may_restrict: bool) -> None:
        """Write NUL-terminated paths to `file`, between these two entries.

        With `may_restrict` the command may lose the ability to gain privileges (`sudo`).
        """
        self._file = file
        self._begins, self._ends = begins, ends
        self._may_restrict = may_restrict
        self._listener = -1
        self._stop, self._stop_end = os.pipe2(os.O_CLOEXEC)
        self._started = _thread.allocate_lock()
        self._ended = _thread.allocate_lock()
        self._outcome: int | BaseException = 0
        self._seen: set[bytes] = set()
        self._is_broken_off = False

    def spawn(self, start: "Callable[[], int]") -> int:
        """Start a program with `start`, traced if possible."""
        self._started.acquire()
        self._ended.acquire()
        try:
            _thread.start_new_thread(self._run, (start,))
        except RuntimeError:
            # The system gives no thread.
            self._end()
            return start()
        self._started.acquire()
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome

    def close(self) -> None:
        """End the trace after the command."""
        os.close(self._stop_end)
        self._ended.acquire()
        os.close(self._stop)

    def _run(self, start: "Callable[[], int]") -> None:
        """Start the program in a thread that must stay alive, because it is its parent."""
        try:
            try:
                self._listener = _install_filter(may_restrict=self._may_restrict)
                if self._listener >= 0:
                    self._write(self._begins)
                self._outcome = start()
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                self._outcome = error
            finally:
                self._started.release()
            self._serve()
        finally:
            self._end()

    def _end(self) -> None:
        """Close everything; called by the closing thread, which waits for it."""
        try:
            if self._listener >= 0:
                self._write(self._ends)
                os.close(self._listener)
            os.close(self._file)
        finally:
            self._ended.release()

    def _write(self, entries: bytes) -> None:
        """Write entries; on a full disk the trace ends as if nothing followed."""
        if self._is_broken_off:
            return
        # Half an entry would merge with the next one into a wrong path.
        self._is_broken_off = True
        with suppress(OSError):
            self._is_broken_off = os.write(self._file, entries) < len(entries)

    def _serve(self) -> None:
        """Answer until the command ends; must make no traced call itself."""
        news = select.poll()
        news.register(self._stop, select.POLLIN)
        if self._listener >= 0:
            news.register(self._listener, select.POLLIN)
        while True:
            for fd, _ in news.poll():
                if fd == self._stop:
                    return
                self._answer()

    def _answer(self) -> None:
        asked = bytearray(_ASKED.size)
        try:
            ioctl(self._listener, _RECEIVE, asked, True)  # noqa: FBT003 - its API
        except OSError:
            return
        number, pid, _, call, _, _, *arguments = _ASKED.unpack(asked)
        try:
            found = _find_written(pid, call, arguments)
            # The process may have gone meanwhile, and another have its number.
            ioctl(self._listener, _IS_VALID, asked[:8])
            if new := [path for path in found if path not in self._seen]:
                self._seen.update(new)
                self._write(b"".join([path + b"\0" for path in new]))
        except Exception:  # noqa: BLE001, S110 - or every process that asks would wait for ever
            # The writer is unknown, so the change is attributed to no call.
            pass
        finally:
            # The process may be gone.
            with suppress(OSError):
                ioctl(self._listener, _SEND, bytearray(_ANSWER.pack(number, 0, 0, _GO_ON)))


def _install_filter(*, may_restrict: bool) -> int:
    """Trace this thread and its children; the listener, or -1 on failure."""
    name = os.uname().machine
    if name not in _ARCHITECTURES or not _can_continue(os.uname().release):
        return -1
    code = _build_filter(name)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    seccomp = _ARCHITECTURES[name][2]
    flags = _LISTENS | _SPECULATES | _WAITS_KILLABLY
    while True:
        listener = _libc.syscall(seccomp, _SET_FILTER, flags, program)
        if listener >= 0:
            # Both sides take turns: faster if they stay on one processor. Old kernels do not.
            with suppress(OSError):
                ioctl(listener, _SET_MODE, 1)
            return listener
        error = ctypes.get_errno()
        if error == errno.EINVAL and flags & _WAITS_KILLABLY:
            flags &= ~_WAITS_KILLABLY
        elif error == errno.EACCES and may_restrict:
            may_restrict = False
            _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
        else:
            return -1


def _can_continue(release: str) -> bool:
    """Whether a stopped call can be continued, as in kernels since 5.5."""
    numbers = release.replace("-", ".").split(".")[:2]
    return all(map(str.isdigit, numbers)) and [int(number) for number in numbers] >= [5, 5]


def _build_filter(name: str) -> bytes:
    architecture, column, _ = _ARCHITECTURES[name]
    allow, notify = (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOTIFY)
    code = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, architecture), allow, (_LOAD, 0, 0, _NR)]
    code += [(_AT_LEAST, 0, 1, _OTHER_ABI), allow]
    for call, (numbers, _) in _CALLS.items():
        number = numbers[column]
        if number is None:
            continue
        if call in _FLAGS_AT:
            flags = (_LOAD, 0, 0, _ARGUMENTS + 8 * _FLAGS_AT[call])
            code += [(_EQUAL, 0, 4, number), flags, (_ANY_BIT, 0, 1, _WRITES), notify, allow]
        else:
            code += [(_EQUAL, 0, 1, number), notify]
    code.append(allow)
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _list_call_numbers() -> dict[int, tuple[str, tuple[tuple[int, int], ...]]]:
    column = _ARCHITECTURES.get(os.uname().machine, (0, 0, 0))[1]
    return {
        number: (call, paths)
        for call, (numbers, paths) in _CALLS.items()
        if (number := numbers[column]) is not None
    }


_BY_NUMBER = _list_call_numbers()


def _find_written(pid: int, number: int, arguments: list[int]) -> list[bytes]:
    """The real paths that a call is about to change."""
    call, named = _BY_NUMBER[number]
    with _Memory(pid) as memory:
        follows = call in _FOLLOWING
        if call.startswith("open"):
            flags = arguments[_FLAGS_AT[call]] if call in _FLAGS_AT else memory.number(arguments[2])
            if not flags & _WRITES or flags & _UNNAMED:
                return []
            is_exclusive = flags & os.O_CREAT and flags & os.O_EXCL
            follows = not is_exclusive and not flags & os.O_NOFOLLOW
        paths = [
            _resolve(
                pid,
                _CWD if directory == _NONE else arguments[directory] & 0xFFFFFFFF,
                b"" if path == _NONE else memory.text(arguments[path]),
                follows=follows,
            )
            for directory, path in named
        ]
    if call in _MOVING:
        paths += [*_list_moved(paths[0], paths[1]), *_list_moved(paths[1], paths[0])]
    return [path for path in paths if _is_file_place(path)]


def _is_file_place(path: bytes) -> bool:
    return path.startswith(_SHARED_MEMORY) or not path.startswith(_NO_FILES)


class _Memory:
    """The memory of a stopped process."""

    def __init__(self, pid: int) -> None:
        self._file = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def text(self, address: int) -> bytes:
        """The bytes up to the first NUL."""
        text, ended, _ = os.pread(self._file, _SHORT, address).partition(b"\0")
        if not ended:
            text, ended, _ = os.pread(self._file, _PATH_MAX, address).partition(b"\0")
        if not ended:
            raise OSError(errno.ENAMETOOLONG, "a path without an end")
        return text

    def number(self, address: int) -> int:
        """The eight bytes as a number."""
        return int.from_bytes(os.pread(self._file, 8, address), "little")


def _resolve(pid: int, directory: int, path: bytes, *, follows: bool) -> bytes:
    """The target of a process's path, by current links."""
    if not path.startswith(b"/"):
        place = "cwd" if directory == _CWD else f"fd/{directory}"
        base = os.readlink(f"/proc/{pid}/{place}".encode())
        if not path:
            return base
        above, _, name = path.rpartition(b"/")
        above = base + b"/" + above if above else b""
    else:
        above, _, name = path.rpartition(b"/")
        above, base = above or b"/", b""
    if name in (b"", b".", b".."):
        return os.path.realpath(above + b"/" + name if above else base + b"/" + name)
    real = _resolve_directory(above) if above else base
    found = real.rstrip(b"/") + b"/" + name
    if follows:
        try:
            os.readlink(found)
        except OSError:
            return found
        return os.path.realpath(found)
    return found


def _resolve_directory(path: bytes) -> bytes:
    held = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return os.readlink(b"/proc/self/fd/%d" % held)
    finally:
        os.close(held)


def _list_moved(source: bytes, target: bytes) -> list[bytes]:
    """Every path below a directory, at its old and its new place."""
    try:
        if not stat.S_ISDIR(os.lstat(source).st_mode):
            return []
    except OSError:
        return []
    found: list[bytes] = []
    waiting = [source]
    while waiting and len(found) < _MOVED_AT_MOST:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    found += (entry.path, target + entry.path[len(source) :])
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return found
