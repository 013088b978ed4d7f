"""What is kept of one project between sessions: its last known tree, and the packs it needs.

Sessions of the same project share the packs. Nobody removes one while anybody else is there, or
while a session that crashed has left a manifest that may need it.
"""

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

from handaxe.disk import locks
from handaxe.disk.durability import close
from handaxe.storage.home import make_durable_directory
from handaxe.undo.snapshot.git_objects import GitObjects
from handaxe.undo.snapshot.manifest import Damaged, Manifest, ManifestFile, read_manifest
from handaxe.undo.snapshot.pack_files import EMPTY

INDEX_NAME = "index"
LOCK_NAME = "lock"
MANIFEST_ENDING = ".manifest"
PREPARED_ENDING = ".prepared"
PACK_ENDING = ".pack"
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def get_snapshots_directory(home: Path) -> Path:
    """Where the trees of all projects are kept."""
    return home / "snapshots"


class ProjectStore:
    """One project's directory below the data directory, while a session uses it."""

    def __init__(self, home: Path, root: str) -> None:
        key = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        self.home, self.root = home, root
        self.directory = get_snapshots_directory(home) / key
        self._lock_fd = -1

    def open(self) -> None:
        """Begin to use it; nobody removes anything from now on."""
        if self._lock_fd >= 0:
            return
        make_durable_directory(self.directory)
        self._lock_fd = os.open(self.directory / LOCK_NAME, _LOCK, 0o600)
        with contextlib.suppress(locks.LockTimeout):
            locks.hold(self._lock_fd, wait_s=0)
            # Whoever began these is not here any more.
            for left in self.directory.glob(f"*{PREPARED_ENDING}"):
                self.drop_prepared(left.name.removesuffix(PREPARED_ENDING))
        locks.hold(self._lock_fd, shared=True)

    def get_manifest_path(self, session_id: str) -> Path:
        """Where a session writes down what it sees."""
        return self.directory / f"{session_id}-{os.urandom(4).hex()}{MANIFEST_ENDING}"

    def get_prepared_path(self, token: str) -> Path:
        """Where a tree is written down that no session has taken over yet."""
        return self.directory / f"{token}{PREPARED_ENDING}"

    def drop_prepared(self, token: str) -> None:
        """Throw away a tree that nobody took over, the contents that were kept for it first."""
        for pack in self.directory.glob(f"{token}-*{PACK_ENDING}"):
            pack.unlink(missing_ok=True)
        self.get_prepared_path(token).unlink(missing_ok=True)

    def adopt_prepared(self, token: str) -> None:
        """Make such a tree the one that the next session begins with."""
        self.get_prepared_path(token).replace(self.directory / INDEX_NAME)

    def read_last_tree(self) -> Manifest:
        """The tree as the last session left it; empty if there was none."""
        try:
            return read_manifest(self.directory / INDEX_NAME)
        except Damaged:
            return Manifest()

    def packs(self) -> set[str]:
        """The packs that are there."""
        return set(os.listdir(self.directory)) | {EMPTY}

    def save(self, tree: Manifest) -> None:
        """Keep a tree for the next session, and throw away what nobody needs."""
        with self._alone() as is_alone:
            if is_alone:
                self._drop_packs(tree)
            unnamed = self.directory / f".new-{os.urandom(8).hex()}"
            try:
                file = ManifestFile(unnamed)
                file.write(tree, tree.directories)
                file.close()
                unnamed.replace(self.directory / INDEX_NAME)
            except OSError:
                unnamed.unlink(missing_ok=True)
                raise

    def close(self) -> None:
        """Use it no more."""
        if self._lock_fd >= 0:
            close(self._lock_fd)
            self._lock_fd = -1

    @contextlib.contextmanager
    def _alone(self) -> Generator[bool]:
        """Whether no other session is here, and no crashed one waits to be completed."""
        try:
            locks.hold(self._lock_fd, wait_s=0)
        except locks.LockTimeout:
            yield False
            return
        try:
            yield not any(self.directory.glob(f"*{MANIFEST_ENDING}"))
        finally:
            locks.hold(self._lock_fd, shared=True)

    def _drop_packs(self, tree: Manifest) -> None:
        """Remove packs that are mostly waste; what was still good in them is kept anew later."""
        used: Counter[str] = Counter()
        nodes = [node for listing in tree.directories.values() for node in listing.values()]
        GitObjects(self.directory).drop_unused(nodes)
        for node in nodes:
            if node.pack:
                used[node.pack] += node.size_bytes
        wasted = {
            path.name
            for path in self.directory.glob(f"*{PACK_ENDING}")
            if used[path.name] * 2 < path.stat().st_size
        }
        for node in nodes:
            if node.pack in wasted:
                node.pack = ""
        for name in wasted:
            (self.directory / name).unlink(missing_ok=True)


def measure_snapshots(home: Path) -> int:
    """How much the trees of all projects take; what has another name takes nothing."""
    return sum(_measure_own_bytes(directory) for directory in _list_stores(home))


def prune_snapshots(home: Path, *, oldest: float, excess_bytes: int, dry_run: bool = False) -> int:
    """Throw away trees that were not used since `oldest`, and then the oldest; the bytes freed.

    A tree that is gone is kept anew with the next command; one in use is left alone.
    """
    freed = 0
    for directory in sorted(_list_stores(home), key=_read_used_at):
        is_old = _read_used_at(directory) < oldest
        if not is_old and (freed >= excess_bytes or any(directory.glob(f"*{MANIFEST_ENDING}"))):
            continue
        size_bytes = _measure_own_bytes(directory)
        if dry_run or _remove(directory):
            freed += size_bytes
    return freed


def _list_stores(home: Path) -> list[Path]:
    try:
        return [place for place in get_snapshots_directory(home).iterdir() if place.is_dir()]
    except OSError:
        return []


def _read_used_at(directory: Path) -> float:
    try:
        return directory.stat().st_mtime
    except OSError:
        return 0.0


def _measure_own_bytes(directory: Path) -> int:
    total = 0
    for place, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                info = os.lstat(f"{place}/{name}")
                total += info.st_size if info.st_nlink <= 1 else 0
    return total


def _remove(directory: Path) -> bool:
    from shutil import rmtree

    try:
        fd = os.open(directory / LOCK_NAME, _LOCK, 0o600)
    except OSError:
        return False
    try:
        locks.hold(fd, wait_s=0)
        rmtree(directory, ignore_errors=True)
    except locks.LockTimeout:
        return False
    finally:
        close(fd)
    return True
