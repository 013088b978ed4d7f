"""System calls turned into steps of `disk_model`: names become inodes, descriptors offsets."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from disk_model import ACK, ROOT, Ack, Data, Inode, Mode, Names, Recording, Size, Step, Sync
from recorded_calls import Seen


class Recorder:
    """Turns the calls of a program below one directory into steps."""

    def __init__(self, place: Path, before: dict[int, Inode]) -> None:
        self._place = place
        self.inodes = dict(before)
        self.steps: list[Step] = []
        self._names = {n: dict(i.names) for n, i in before.items() if i.kind == "directory"}
        self._contents = {n: bytearray(i.content) for n, i in before.items() if i.kind == "file"}
        self._offsets: dict[tuple[int, str], int] = {}
        self._appending: set[tuple[int, str]] = set()
        self._marks: list[int] = []

    def record(self, calls: Sequence[Seen]) -> Recording:
        """All of them."""
        for call in calls:
            self._take(call)
            self._marks.append(len(self.steps))
        return Recording(self.inodes, self.steps)

    def contents(self) -> dict[str, bytes]:
        """Every file by its path below the directory, as the program left it."""
        return {
            path: bytes(self._contents[inode])
            for path, inode in _walk(self._names, ROOT, "")
            if inode in self._contents
        }

    def paths(self) -> Iterator[tuple[str, int]]:
        """Every path below the directory with its inode, as the program left it."""
        return _walk(self._names, ROOT, "")

    def _take(self, call: Seen) -> None:
        take = _HANDLED.get(call.name, Recorder._change_names)
        take(self, call)

    def _truncate(self, call: Seen) -> None:
        if (inode := self._inode(call)) is not None:
            self._resize(inode, call.numbers()[-1])

    def _allocate(self, call: Seen) -> None:
        if (inode := self._inode(call)) is not None:
            assert "KEEP_SIZE" not in call.arguments, call
            start, length = call.numbers()[-2:]
            self._resize(inode, max(len(self._contents[inode]), start + length))

    def _seek(self, call: Seen) -> None:
        if (inode := self._inode(call)) in self._contents:
            assert inode is not None
            self._offsets[inode, call.files()[0][0]] = call.result

    def _chmod(self, call: Seen) -> None:
        if (inode := self._inode(call)) is not None:
            octal = re.findall(r", (0[0-7]*)", call.arguments)[-1]
            self.steps.append(Mode(inode, int(octal, 8)))

    def _sync(self, call: Seen) -> None:
        if (inode := self._inode(call)) is not None:
            self.steps.append(Sync(inode, self._covered(call)))

    def _sync_all(self, call: Seen) -> None:
        self.steps.append(Sync(None, self._covered(call)))

    def _covered(self, call: Seen) -> int:
        return self._marks[call.began - 1] if call.began else 0

    def _change_names(self, call: Seen) -> None:
        ways = self._ways(call)
        match call.name:
            case "mkdir" | "mkdirat" if ways[0] is not None:
                self._name(ways[0], self._make("directory"))
            case "symlink" | "symlinkat" if ways[-1] is not None:
                target = os.fsdecode(call.texts()[0])
                self._name(ways[-1], self._make("link", target=target))
            case "link" | "linkat" if ways[1] is not None:
                source = ways[0] and self._at(*ways[0])
                assert source is not None, f"a link into the place from outside: {call}"
                self._name(ways[1], source)
            case "unlink" | "rmdir" | "unlinkat" if ways[0] is not None:
                self._name(ways[0], None)
            case "rename" | "renameat" | "renameat2" if ways[0] is not None:
                assert ways[1] is not None, call
                moved = self._at(*ways[0])
                swapped = self._at(*ways[1]) if "RENAME_EXCHANGE" in call.arguments else None
                self._change((*ways[0], swapped), (*ways[1], moved))
            case _:
                assert not any(ways), call

    def _open(self, call: Seen) -> None:
        found = re.match(r"<((?:\\x[0-9a-f]{2})*)>", call.told)
        way = (
            self._split(os.fsdecode(bytes.fromhex(found[1].replace("\\x", "")))) if found else None
        )
        if way is None:
            return
        inode = self._at(*way)
        if inode is None:
            assert "O_CREAT" in call.arguments or call.name == "creat", call
            octal = re.findall(r"(0[0-7]+)\b(?!.*\")", call.arguments)
            inode = self._make("file", mode=int(octal[-1], 8) & ~0o022 if octal else 0o644)
            self._name(way, inode)
        elif "O_TRUNC" in call.arguments and inode in self._contents:
            self._offsets = {key: at for key, at in self._offsets.items() if key[0] != inode}
            if self._contents[inode]:
                self._resize(inode, 0)
        key = inode, str(call.result)
        self._offsets[key] = 0
        self._appending.discard(key)
        if "O_APPEND" in call.arguments:
            self._appending.add(key)

    def _write(self, call: Seen) -> None:
        texts = call.texts()
        if texts and texts[0].startswith(ACK):
            self.steps.append(Ack(texts[0].removeprefix(ACK).decode().strip()))
            return
        inode = self._inode(call)
        if inode is None:
            return
        at = call.numbers()[-1] if call.name.startswith("pwrite") else None
        self._put(inode, call.files()[0][0], b"".join(texts)[: call.result], at)

    def _copy(self, call: Seen) -> None:
        (first, first_path), (second, second_path) = call.files()[:2]
        if call.name == "sendfile":
            first, first_path, second, second_path = second, second_path, first, first_path
        source, target = self._resolved(first_path), self._resolved(second_path)
        if target is None:
            return
        assert source is not None, f"copied from outside: {call}"
        offsets = [int(n) for n in re.findall(r"\[(\d+)\]", call.arguments)]
        at = offsets[0] if offsets else self._offsets.get((source, first), 0)
        data = bytes(self._contents[source][at : at + call.result])
        self._offsets[source, first] = at + call.result
        self._put(target, second, data, offsets[1] if len(offsets) > 1 else None)

    def _put(self, inode: int, fd: str, data: bytes, at: int | None) -> None:
        if not data:
            return
        key, content = (inode, fd), self._contents[inode]
        end = len(content)
        offset = at if at is not None else end if key in self._appending else None
        if offset is None:
            # A descriptor that came here by dup goes on where its file ends.
            offset = self._offsets.get(key, end)
            self._offsets[key] = offset + len(data)
        content.extend(b"\0" * (offset - end))
        content[offset : offset + len(data)] = data
        self.steps.append(Data(inode, offset, data))

    def _resize(self, inode: int, size: int) -> None:
        content = self._contents[inode]
        del content[size:]
        content.extend(b"\0" * (size - len(content)))
        self.steps.append(Size(inode, size))

    def _make(self, kind: str, *, target: str = "", mode: int = 0o755) -> int:
        number = len(self.inodes)
        self.inodes[number] = Inode(kind, target=target, mode=mode)
        if kind == "directory":
            self._names[number] = {}
        elif kind == "file":
            self._contents[number] = bytearray()
        return number

    def _name(self, way: tuple[int, str], inode: int | None) -> None:
        self._change((*way, inode))

    def _change(self, *changes: tuple[int, str, int | None]) -> None:
        for directory, name, inode in changes:
            if inode is None:
                del self._names[directory][name]
            else:
                self._names[directory][name] = inode
        self.steps.append(Names(changes))

    def _inode(self, call: Seen) -> int | None:
        """The inode that a call on a descriptor or one path means; None if it lies elsewhere."""
        if call.name in {"chmod", "fchmodat", "fchmodat2", "truncate"}:
            way = self._ways(call)[0]
            return way and self._at(*way)
        return self._resolved(call.files()[0][1])

    def _resolved(self, path: str) -> int | None:
        if path == str(self._place):
            return ROOT
        way = self._split(path)
        return way and self._at(*way)

    def _ways(self, call: Seen) -> list[tuple[int, str] | None]:
        """The directory and name of every path among the arguments."""
        found: list[tuple[int, str] | None] = []
        pattern = r"(?:(?:-?\d+|AT_FDCWD)<(?P<at>(?:\\x[0-9a-f]{2})*)>, )?\"(?P<name>(?:\\x[0-9a-f]{2})*)\""
        for part in re.finditer(pattern, call.arguments):
            at = bytes.fromhex((part["at"] or "").replace("\\x", ""))
            name = bytes.fromhex(part["name"].replace("\\x", ""))
            path = os.path.normpath(os.path.join(os.fsdecode(at), os.fsdecode(name)))
            found.append(self._split(path))
        return found

    def _split(self, path: str) -> tuple[int, str] | None:
        """A path as the inode of its directory and its name; None if it lies elsewhere."""
        if not path.startswith(f"{self._place}/") or path.endswith(" (deleted)"):
            return None
        *above, name = path[len(str(self._place)) + 1 :].split("/")
        directory = ROOT
        for part in above:
            found = self._names.get(directory, {}).get(part)
            if found is None or found not in self._names:
                return None
            directory = found
        return directory, name

    def _at(self, directory: int, name: str) -> int | None:
        return self._names[directory].get(name)


_HANDLED: dict[str, Callable[[Recorder, Seen], None]] = {
    **dict.fromkeys(("open", "openat", "openat2", "creat"), Recorder._open),
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "pwritev2"), Recorder._write),
    **dict.fromkeys(("truncate", "ftruncate"), Recorder._truncate),
    **dict.fromkeys(("copy_file_range", "sendfile"), Recorder._copy),
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), Recorder._chmod),
    **dict.fromkeys(("fsync", "fdatasync"), Recorder._sync),
    **dict.fromkeys(("sync", "syncfs"), Recorder._sync_all),
    "fallocate": Recorder._allocate,
    "lseek": Recorder._seek,
}


def _walk(names: Mapping[int, Mapping[str, int]], at: int, path: str) -> Iterator[tuple[str, int]]:
    for name, inode in sorted(names[at].items()):
        below = f"{path}/{name}" if path else name
        yield below, inode
        if inode in names:
            yield from _walk(names, inode, below)
