"""Files of a working tree whose bytes are git objects, proved by the index."""

import os
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from handaxe.git.command import GitFailed, make_object_command, run_git
from handaxe.undo.snapshot.nodes import GIT, Node

_ENTRY = re.compile(
    rb"(\d{6}) ([0-9a-f]{40}) 0\t([^\0]*)\0"
    rb"  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: (\d+)\n"
    rb"  uid: \d+\tgid: \d+\n  size: (\d+)\tflags: \w+\n"
)
# With none of these attributes the bytes in the working tree are those of the object.
_UNCHANGED = ":(top,attr:!filter !ident !working-tree-encoding)"
_GIT_S = 60.0


def find_unchanged(
    directory: str, index: Node, unkept: Mapping[str, Node], roots: tuple[str, ...]
) -> dict[str, list[Node]]:
    """By object, the files that the index proves to be unchanged since they were added."""
    root = directory.removesuffix("/.git")
    listing = ("ls-files", "-z", "--stage", "--debug", "--", _UNCHANGED)
    said = _run_git_command(directory, *listing, work_tree=root, roots=roots)
    found: dict[str, list[Node]] = {}
    for entry in _ENTRY.finditer(said):
        node = unkept.get(f"{root}/{os.fsdecode(entry[3])}")
        if node is not None and not node.pack and _is_as_added(entry, node, index):
            found.setdefault(entry[2].decode(), []).append(node)
    return found


def _is_as_added(entry: re.Match[bytes], node: Node, index: Node) -> bool:
    _, _, _, ctime_s, ctime_ns, mtime_s, mtime_ns, inode, size_bytes = entry.groups()
    return (
        node.is_file
        and node.size_bytes == int(size_bytes)
        and node.mtime_ns == int(mtime_s) * 10**9 + int(mtime_ns)
        and node.ctime_ns == int(ctime_s) * 10**9 + int(ctime_ns)
        and node.ino & 0xFFFFFFFF == int(inode)
        and node.mtime_ns < index.mtime_ns
        and not node.racy
    )


def mark_stored_files(
    mirror: Path, same: Mapping[str, Iterable[Node]], roots: tuple[str, ...]
) -> None:
    """Mark the files whose object exists, with the file's size."""
    objects = f"{mirror}/objects"
    loose = {
        start + name
        for start in os.listdir(objects)
        if len(start) == 2
        for name in os.listdir(f"{objects}/{start}")
    }
    sizes = {
        name: _read_loose_size(f"{objects}/{name[:2]}/{name[2:]}") if name in loose else None
        for name in same
    }
    packed = [name for name, size_bytes in sizes.items() if size_bytes is None]
    if packed:
        given = "\n".join([*packed, ""]).encode()
        said = _run_git_command(str(mirror), "cat-file", "--batch-check", given=given, roots=roots)
        for line in said.splitlines():
            name, _, rest = line.decode(errors="replace").partition(" ")
            kind, _, size_bytes = rest.partition(" ")
            sizes[name] = int(size_bytes) if kind == "blob" else None
    for name, nodes in same.items():
        for node in nodes:
            if sizes[name] == node.size_bytes:
                node.pack, node.digest = GIT + mirror.name, bytes.fromhex(name)


def _read_loose_size(place: str) -> int | None:
    """The size in the header of a loose blob; asking git takes twice as long."""
    try:
        fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        start = zlib.decompressobj().decompress(os.read(fd, 64), 32)
        kind, _, size_bytes = start.partition(b"\0")[0].partition(b" ")
        return int(size_bytes) if kind == b"blob" else None
    except (OSError, ValueError, zlib.error):
        return None
    finally:
        os.close(fd)


def _run_git_command(
    git_directory: str,
    *arguments: str,
    roots: tuple[str, ...],
    work_tree: str = "",
    given: bytes = b"",
) -> bytes:
    try:
        command = make_object_command(git_directory, *arguments, work_tree=work_tree, outside=roots)
        return run_git(command, given, timeout_s=_GIT_S)
    except GitFailed:
        return b""
