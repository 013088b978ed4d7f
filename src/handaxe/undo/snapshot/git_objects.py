"""Do not store again what git already stores.

Git never changes an object, so a hard link to its file keeps the object even if the repository is
deleted. The links are laid out like git's objects, so unchanged files can be read back from there.
The repository itself is only read.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from handaxe.disk.durability import sync_names
from handaxe.disk.errors import DiskFault
from handaxe.disk.private import write_private
from handaxe.disk.versions import find_shared_birth_ns
from handaxe.git.command import GitFailed, make_object_command, start_git
from handaxe.storage.home import make_private_directory
from handaxe.undo.snapshot.git_index import find_unchanged, mark_stored_files
from handaxe.undo.snapshot.nodes import GIT, LINK, Node
from handaxe.undo.snapshot.tree import Tree

_OBJECTS = re.compile(r"(.+)/objects/([0-9a-f]{2}|pack)")
_OBJECT = re.compile(r"[0-9a-f]{38}|pack-[0-9a-f]{40}\.[a-z]+")
# Reading the index costs about a sixteenth of what keeping as many files does.
_LEAST_ASKED, _ASKED_PART = 50, 16


class NotInGit(DiskFault):
    """An object is missing."""


class GitObjects:
    """The objects of the repositories of one project."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._unsynced: set[str] = set()
        self._places: dict[str, str] = {}
        self._reader: _Reader | None = None

    def keep(self, path: str, node: Node) -> bool:
        """Keep an object's file as a hard link; False if that is not possible."""
        directory, _, name = path.rpartition("/")
        place = self._place_for(directory)
        return place is not None and self._keep(directory, name, node, place)

    def keep_all(self, tree: Tree, unkept: dict[str, Node]) -> None:
        """Keep the files of all objects that are not kept yet, and remove them from `unkept`."""
        for directory, listing in tree.directories.items():
            place = self._place_for(directory)
            for name, node in listing.items() if place is not None else ():
                path = f"{directory}/{name}"
                if path in unkept and self._keep(directory, name, node, place or ""):
                    del unkept[path]
                    # Its other names are not written to either.
                    tree.note_links(directory, name, node)

    def _keep(self, directory: str, name: str, node: Node, place: str) -> bool:
        if node.mode & 0o222 or _OBJECT.fullmatch(name) is None:
            return False
        path, second = f"{directory}/{name}", f"{self._directory}/{place}/{name}"
        try:
            self._link(path, second, node.ino)
            info = os.lstat(path)
        except OSError:
            # Another file system, or no more names for it: then it is copied like any file.
            return False
        if (info.st_dev, info.st_ino, info.st_size) != (node.dev, node.ino, node.size_bytes):
            return False
        self._unsynced.add(place)
        node.ctime_ns, node.links = info.st_ctime_ns, info.st_nlink
        node.born_ns = find_shared_birth_ns(path, info)
        node.pack = f"{LINK}{place}/{name}"
        return True

    def adopt(self, tree: Tree, unkept: Mapping[str, Node]) -> None:
        """Mark files whose bytes are a kept object."""
        if len(unkept) < max(_LEAST_ASKED, tree.count // _ASKED_PART):
            return
        roots = tuple(tree.roots)
        for directory, listing in tree.directories.items():
            if directory.endswith("/.git") and "index" in listing:
                mirror = self._open_mirror(directory, make=False)
                if mirror.exists():
                    same = find_unchanged(directory, listing["index"], unkept, roots)
                    mark_stored_files(mirror, same, roots)

    def view(self, node: Node) -> bytes:
        """The bytes of a file that git stores.

        Raises:
            NotInGit: they are missing.
        """
        if node.pack.startswith(LINK):
            return self._read_linked(node)
        mirror = self._directory / node.pack.removeprefix(GIT)
        if self._reader is None or self._reader.mirror != mirror:
            self.release_files()
            self._reader = _Reader(mirror)
        return self._reader.read(node.digest.hex(), node.size_bytes)

    def sync(self) -> None:
        """Make the hard links durable."""
        for place in self._unsynced:
            sync_names(self._directory / place)
        self._unsynced.clear()

    def release_files(self) -> None:
        """Stop the program that reads objects."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def drop_unused(self, nodes: Collection[Node]) -> None:
        """Remove hard links that no file of the tree needs."""
        used = {node.pack.removeprefix(LINK) for node in nodes if node.pack.startswith(LINK)}
        for mirror in self._directory.glob("git-*"):
            dropped = 0
            for place in (mirror / "objects").glob("*/*"):
                if str(place.relative_to(self._directory)) not in used:
                    place.unlink(missing_ok=True)
                    dropped += 1
            for node in nodes if dropped else ():
                # Whether its object is in another file now is asked again.
                if node.pack == GIT + mirror.name:
                    node.pack = ""

    def _open_mirror(self, git_directory: str, *, make: bool = True) -> Path:
        """Handaxe's object-only repository for a git directory."""
        key = hashlib.sha256(os.fsencode(git_directory)).hexdigest()[:12]
        mirror = self._directory / f"git-{key}"
        if make and not (mirror / "HEAD").exists():
            for name in ("refs", "objects/pack"):
                make_private_directory(mirror / name)
            write_private(mirror / "HEAD", b"ref: refs/heads/main\n")
        return mirror

    def _place_for(self, directory: str) -> str | None:
        """Where the objects of a directory get their links; None if it has no repository.

        Most directories have none and are asked for repeatedly.
        """
        if directory not in self._places:
            found = _OBJECTS.fullmatch(directory)
            if found is None or not _is_git_directory(found[1]):
                return None
            mirror = self._open_mirror(found[1])
            (mirror / "objects" / found[2]).mkdir(exist_ok=True, mode=0o700)
            self._places[directory] = f"{mirror.name}/objects/{found[2]}"
        return self._places[directory]

    def _link(self, path: str, second: str, inode: int) -> None:
        try:
            os.link(path, second, follow_symlinks=False)
        except FileExistsError:
            if os.lstat(second).st_ino != inode:
                Path(second).unlink()
                os.link(path, second, follow_symlinks=False)

    def _read_linked(self, node: Node) -> bytes:
        place = self._directory / node.pack.removeprefix(LINK)
        try:
            content = place.read_bytes()
        except OSError as error:
            raise NotInGit("its git object is missing") from error
        if len(content) != node.size_bytes or not _is_whole(place, content):
            raise NotInGit("its git object was changed by another program")
        return content


class _Reader:
    """A `git cat-file` process that reads object after object."""

    def __init__(self, mirror: Path) -> None:
        self.mirror = mirror
        try:
            self._process = start_git(make_object_command(str(mirror), "cat-file", "--batch"), None)
        except GitFailed as error:
            raise NotInGit("git is not available") from error

    def read(self, name: str, size_bytes: int) -> bytes:
        """The bytes of an object."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        try:
            asked.write(f"{name}\n".encode())
            asked.flush()
            head = answers.readline().split()
            if len(head) != 3 or head[1:] != [b"blob", b"%d" % size_bytes]:
                raise NotInGit("git no longer has it")
            content = answers.read(size_bytes + 1)[:-1]
        except OSError as error:
            raise NotInGit("git does not answer") from error
        if hash_blob(content).hex() != name:
            raise NotInGit("git's copy of it is damaged")
        return content

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()


def hash_blob(content: bytes | memoryview) -> bytes:
    """The git object id of a file's content."""
    digest = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.digest()


def _is_whole(place: Path, content: bytes) -> bool:
    """Whether an object's file matches its hash."""
    if place.parent.name == "pack":
        ending = hashlib.sha1(content[:-20], usedforsecurity=False).digest()
        return content[-20:] == ending or place.suffix not in {".pack", ".idx"}
    try:
        inflated = zlib.decompress(content)
    except zlib.error:
        return False
    name = hashlib.sha1(inflated, usedforsecurity=False).hexdigest()
    return name == place.parent.name + place.name


@lru_cache(maxsize=256)
def _is_git_directory(place: str) -> bool:
    return os.path.lexists(f"{place}/HEAD") and os.path.lexists(f"{place}/refs")
