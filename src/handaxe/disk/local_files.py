"""The file tree of this machine.

Small files are read where we stand, because a hop to a thread costs more than the work. Large ones
are read in a thread, and whatever writes is done in one, since a device may need any time.
"""

import os
import stat
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from handaxe.contract.faults import BadPath
from handaxe.contract.faults import file as faults
from handaxe.contract.permission_subjects import Access
from handaxe.contract.ports.files import (
    FileInfo,
    FileKind,
    Files,
    FileVersion,
    FileWindow,
    IsClosed,
    Judge,
    LoadedFile,
    ResolvedPath,
)
from handaxe.disk.errors import DiskFault, DiskWriteFailed, NotRegularFile, UnexpectedSymlink
from handaxe.disk.safe_open import open_regular_at, resolve_links, stat_without_links
from handaxe.disk.threads import SMALL, start_in_thread, start_large
from handaxe.disk.versions import (
    ABSENT,
    Absent,
    Version,
    VersionChanged,
    build_version,
    read_open_file,
)
from handaxe.text.encoding import NotText, decode
from handaxe.text.line_window import slice_lines
from handaxe.text.paths import is_inside, normalize

if TYPE_CHECKING:
    from handaxe.disk.atomic import Ahead, Journal, OwnLinks
    from handaxe.disk.threads import Unfinished


SMALL_BYTES = 1 << 20
LARGE_BYTES = 1 << 23
MAX_LINKS = 40

T = TypeVar("T")


def _allow_all(_path: str, _access: Access) -> None:
    """The judge of an unrestricted tree."""


class LocalFiles(Files):
    """This machine's files, opened without following unchecked links."""

    def __init__(
        self,
        *,
        journal: "Journal | None" = None,
        own_links: "OwnLinks" = lambda _dev, _ino: 0,
        ahead: "Ahead" = lambda: None,
        judge: Judge = _allow_all,
        unfinished: "Unfinished | None" = None,
    ) -> None:
        """`ahead` waits for what has to be durable before a file changes.

        `unfinished` collects writes that go on after their calls.
        """
        self._unfinished: Unfinished = [] if unfinished is None else unfinished
        self._journal = journal
        self._own_links = own_links
        self._ahead = ahead
        self._judge = judge

    def restrict_with(self, judge: Judge) -> "LocalFiles":
        """The same tree, opening only what `judge` lets pass."""
        return LocalFiles(
            journal=self._journal,
            own_links=self._own_links,
            ahead=self._ahead,
            judge=judge,
            unfinished=self._unfinished,
        )

    def locate(self, path: str, roots: Sequence[str], *, beyond: bool = False) -> ResolvedPath:
        """Follow links, looking at nothing outside `roots` unless told to go `beyond`."""
        if beyond:
            return ResolvedPath(path, resolve_links(path), is_final=True)
        real, links = path, 0
        while True:
            for root in roots:
                if is_inside(real, root):
                    break
            else:
                return ResolvedPath(path, real, is_final=False)
            onward = _find_first_link(root, real)
            if onward is None:
                return ResolvedPath(path, real, is_final=True)
            links += 1
            if links > MAX_LINKS:
                raise BadPath(f"{path} leads through a loop of links. Name the file itself.")
            real = onward

    def has_name_outside(self, real: str, roots: Sequence[str], is_closed: IsClosed) -> bool:
        """Whether the file may have a second name (a hard link) outside `roots` or closed."""
        if not self.has_other_names(real):
            return False

        return has_name_outside(real, roots, is_closed, self._own_links)

    def has_other_names(self, real: str) -> bool:
        """Whether the file has a second name (a hard link) anywhere."""
        try:
            info = os.lstat(real)
        except OSError:
            return False
        return info.st_nlink > 1 and stat.S_ISREG(info.st_mode)

    async def look(self, path: str) -> FileInfo | None:
        """The file at the end of the path's links; None if it does not exist."""
        self._judge(path, "read")
        real = path
        try:
            info = stat_without_links(path)
            if info is None:
                real = self._resolve_judged(path, "read")
                info = os.stat(real, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _convert_os_error(path, error) from error
        mode = stat.S_IMODE(info.st_mode)
        number = info.st_dev, info.st_ino
        return FileInfo(real, _get_kind(info.st_mode), info.st_size, info.st_mtime_ns, mode, number)

    async def names(self, directory: str) -> list[str]:
        """The names in a directory; empty if it does not exist."""
        self._judge(directory, "read")
        real = self._resolve_judged(directory, "read")
        try:
            return os.listdir(real)
        except OSError:
            return []

    async def head(self, path: str, size_bytes: int) -> bytes:
        """The first bytes of a regular file, to tell what it is."""
        _, fd, _ = self._open(path)
        try:
            return os.pread(fd, size_bytes, 0)
        except OSError as error:
            raise _convert_os_error(path, error, "read") from error
        finally:
            os.close(fd)

    async def load(self, path: str, *, max_bytes: int | None = None) -> LoadedFile:
        """The whole of a regular file."""
        real, fd, info = self._open(path)
        if max_bytes is not None and info.st_size > max_bytes:
            os.close(fd)
            raise faults.FileTooLarge(path=path, size_bytes=info.st_size, limit_bytes=max_bytes)
        try:
            data, version = await _run_by_size(
                lambda: _read_all(fd, info), info.st_size, self._unfinished
            )
        except OSError as error:
            raise _convert_os_error(path, error, "read") from error
        return LoadedFile(data, _to_file_version(real, version))

    async def read(self, path: str) -> str:
        """The text of a regular file, decoded."""
        loaded = await self.load(path)
        try:
            return decode(loaded.data).text
        except NotText:
            raise faults.Binary(path, len(loaded.data)) from None

    async def read_window(self, path: str, offset: int, limit: int) -> FileWindow:
        """`limit` lines from line `offset` (1-based; negative counts from the end)."""
        real, fd, info = self._open(path)
        try:
            if info.st_size <= SMALL_BYTES or _is_wide(fd):
                data, version = await _run_by_size(
                    lambda: _read_all(fd, info), info.st_size, self._unfinished
                )
                return _build_window(data, _to_file_version(real, version), offset, limit)
            from handaxe.disk.line_windows import read_large_window

            return await _run_by_size(
                lambda: read_large_window(fd, info, real, offset, limit),
                info.st_size,
                self._unfinished,
            )
        except OSError as error:
            raise _convert_os_error(path, error, "read") from error

    async def replace(
        self,
        path: str,
        pieces: Sequence[bytes | memoryview],
        *,
        expect: FileVersion | None,
        mode: int | None = None,
    ) -> FileVersion:
        """Write a file whole or not at all; `expect` is the version it replaces, None for new."""
        # Whoever only reads needs nothing that writes.
        from handaxe.disk.atomic import replace

        expected = ABSENT if expect is None else _to_version(expect)

        def write(real: str) -> FileVersion:
            version = replace(
                real,
                pieces,
                expect=expected,
                mode=mode,
                make_parents=expect is None,
                journal=self._journal,
                own_links=self._own_links,
                ahead=self._ahead,
            )
            return _to_file_version(real, version)

        is_large = sum(map(len, pieces)) > SMALL_BYTES
        return await self._change(path, expect, write, is_large=is_large)

    async def compute(self, work: Callable[[], T], size: int) -> T:
        """Compute on little here, and on much in a thread."""
        if size <= SMALL:
            return work()
        return await start_large(work, self._unfinished).result

    async def remove(self, path: str, *, expect: FileVersion) -> None:
        """Take a regular file away, durably, if it still is the expected version."""
        from handaxe.disk import atomic

        await self._change(
            path,
            expect,
            lambda real: atomic.delete(real, expect=_to_version(expect), ahead=self._ahead),
        )

    def _resolve_judged(self, path: str, access: Access) -> str:
        """Where the links of a judged path lead, judged as well."""
        real = resolve_links(path)
        if real != path:
            self._judge(real, access)
        return real

    async def _change(
        self,
        path: str,
        expect: FileVersion | None,
        change: Callable[[str], T],
        *,
        is_large: bool = False,
    ) -> T:
        """Change exactly the file that was judged; a link is followed once and judged again."""
        from handaxe.disk.threads import write_in_thread

        self._judge(path, "write")
        try:
            try:
                return await write_in_thread(
                    path, lambda: change(path), self._unfinished, is_large=is_large
                )
            except UnexpectedSymlink:
                real = self._resolve_judged(path, "write")
                if real == path:
                    raise
            return await write_in_thread(path, lambda: change(real), self._unfinished)
        except (DiskFault, OSError) as error:
            raise _explain_fault(path, expect, error) from error

    def _open(self, path: str) -> tuple[str, int, os.stat_result]:
        """Open exactly the file that was judged; a link is followed once and judged again."""
        self._judge(path, "read")
        try:
            try:
                return (path, *open_regular_at(_refuse_kernel_file(path)))
            except (UnexpectedSymlink, NotADirectoryError, FileNotFoundError):
                real = resolve_links(path)
                if real == path:
                    raise
                self._judge(real, "read")
                return (real, *open_regular_at(_refuse_kernel_file(real)))
        except NotRegularFile as special:
            raise _make_special_fault(path, special.kind) from None
        except UnexpectedSymlink:
            raise faults.Stale(f"{path} became a link while it was opened. Try again.") from None
        except OSError as error:
            raise _convert_os_error(path, error) from error


def _explain_fault(
    path: str, expect: FileVersion | None, error: DiskFault | OSError
) -> faults.ToolFault:
    """The failure of a change, as a fault for the caller."""
    match error:
        case VersionChanged():
            return _make_conflict_fault(path, expect, error)
        case NotRegularFile():
            return _make_special_fault(path, error.kind)
        case DiskWriteFailed():
            return faults.WriteFailed(path, error.reason, applied=error.applied)
        case DiskFault():
            return faults.WriteFailed(path, str(error))
        case OSError():
            return _convert_os_error(path, error)


async def _run_by_size(work: Callable[[], T], size_bytes: int, owner: object) -> T:
    """Read little here, much in a thread, and very much when it is the turn of its owner."""
    if size_bytes <= SMALL_BYTES:
        return work()
    # It is not cancelled with its call: before it began it would never close what it was given.
    if size_bytes <= LARGE_BYTES:
        return await start_in_thread(work).result
    return await start_large(work, owner).result


def _find_first_link(root: str, path: str) -> str | None:
    """Where the path leads after its first link below `root`; None if there is no link in it."""
    here = root
    parts = path[len(root) :].strip("/").split("/") if path != root else []
    for position, part in enumerate(parts):
        here = f"{here}/{part}" if here != "/" else f"/{part}"
        try:
            if not stat.S_ISLNK(os.lstat(here).st_mode):
                continue
            target = os.readlink(here)
        except OSError:
            # What is not there, or not ours to see, holds no link that we could follow.
            return None
        behind = "/".join(parts[position + 1 :])
        base = target if target.startswith("/") else f"{here.rpartition('/')[0]}/{target}"
        return normalize(f"{base}/{behind}")
    return None


def _refuse_kernel_file(path: str) -> str:
    if path.startswith("/proc/"):
        raise NotRegularFile("kernel file")
    return path


def _read_all(fd: int, info: os.stat_result) -> tuple[bytes, Version]:
    try:
        data = read_open_file(fd, info.st_size)
    finally:
        os.close(fd)
    return data, build_version(info, sha256(data).hexdigest(), len(data))


def _is_wide(fd: int) -> bool:
    """Whether a mark says UTF-16 or UTF-32, whose line breaks are not single bytes."""
    try:
        head = os.pread(fd, 4, 0)
    except OSError:
        os.close(fd)
        raise
    return head[:2] in {b"\xff\xfe", b"\xfe\xff"} or head == b"\x00\x00\xfe\xff"


def _build_window(data: bytes, version: FileVersion, offset: int, limit: int) -> FileWindow:
    try:
        decoded = decode(data)
    except NotText:
        raise faults.Binary(version.path, len(data)) from None
    lines, first, total = slice_lines(decoded.text, offset, limit)
    return FileWindow(
        lines=lines,
        first_line=first,
        total_lines=total,
        version=version,
        encoding=decoded.encoding,
        has_bom=bool(decoded.bom),
        content=data,
    )


def _to_file_version(real: str, version: Version) -> FileVersion:
    return FileVersion(real, version.digest, version.size_bytes, version.mtime_ns)


def _to_version(version: FileVersion) -> Version:
    return Version(
        digest=version.digest, size_bytes=version.size_bytes, mtime_ns=version.mtime_ns, mode=0
    )


def _get_kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISFIFO(mode):
        return "fifo"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "other"


def _make_special_fault(path: str, kind: str) -> faults.ToolFault:
    return (
        faults.IsDirectory(path=path)
        if kind == "directory"
        else faults.NotRegular(path=path, kind=kind)
    )


def _make_conflict_fault(
    path: str, expect: FileVersion | None, changed: VersionChanged
) -> faults.ToolFault:
    if expect is None:
        return faults.Exists(f"{path} was created by another program meanwhile. Read it first.")
    if isinstance(changed.actual, Absent):
        return faults.NotFound(path)
    return faults.Stale(
        "File has been unexpectedly modified. Read it again before attempting to write it."
    )


def _convert_os_error(path: str, error: OSError, done: str = "opened") -> faults.ToolFault:
    """The fault for an operating system error."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return faults.NotFound(path)
    if isinstance(error, IsADirectoryError):
        return faults.IsDirectory(path=path)
    reason = (error.strerror or str(error)).lower()
    if isinstance(error, PermissionError):
        reason = "the system does not permit it to this user"
    return BadPath(f"{path} cannot be {done}: {reason}.")


MAX_ENTRIES = 50_000
"""Where there are more, the missing names are assumed to be elsewhere."""


def has_name_outside(
    real: str, roots: Sequence[str], is_closed: IsClosed, own_links: "OwnLinks"
) -> bool:
    """Whether a file may have a name outside `roots` or a closed one, besides ours."""
    try:
        info = os.lstat(real)
    except OSError:
        return False
    names = info.st_nlink - own_links(info.st_dev, info.st_ino)
    return names > 1 and _count_names_inside(info, roots, is_closed, names) < names


def _count_names_inside(
    wanted: os.stat_result, roots: Sequence[str], is_closed: IsClosed, names: int
) -> int:
    """The number of readable names that the file has below `roots`, from a limited search."""
    found, left = 0, MAX_ENTRIES
    waiting = list(roots)
    while waiting and left > 0 and found < names:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.inode() == wanted.st_ino:
                        is_it = entry.stat(follow_symlinks=False).st_dev == wanted.st_dev
                        found += is_it and not is_closed(entry.path)
        except OSError:
            continue
    return found
