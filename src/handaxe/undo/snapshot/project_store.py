"""The data of one project between sessions: its last known tree, and its packs.

Sessions of a project share the packs. They are deleted only if no other session is open and no
crashed one has a manifest that may need them.
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
    """The directory of all projects' trees."""
    return home / "snapshots"


class ProjectStore:
    """One project's directory in the data directory, opened by a session."""

    def __init__(self, home: Path, root: str) -> None:
        key = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        self.home, self.root = home, root
        self.directory = get_snapshots_directory(home) / key
        self._lock_fd = -1

    def open(self) -> None:
        """Open it; from now on nothing is deleted."""
        if self._lock_fd >= 0:
            return
        make_durable_directory(self.directory)
        self._lock_fd = os.open(self.directory / LOCK_NAME, _LOCK, 0o600)
        with contextlib.suppress(locks.LockTimeout):
            locks.hold(self._lock_fd, wait_s=0)
            # The process that started these has ended.
            for left in self.directory.glob(f"*{PREPARED_ENDING}"):
                self.drop_prepared(left.name.removesuffix(PREPARED_ENDING))
        locks.hold(self._lock_fd, shared=True)

    def get_manifest_path(self, session_id: str) -> Path:
        """The file in which a session stores its tree."""
        return self.directory / f"{session_id}-{os.urandom(4).hex()}{MANIFEST_ENDING}"

    def get_prepared_path(self, token: str) -> Path:
        """The file of a prepared tree that no session has taken over."""
        return self.directory / f"{token}{PREPARED_ENDING}"

    def drop_prepared(self, token: str) -> None:
        """Delete a prepared tree, its contents first."""
        for pack in self.directory.glob(f"{token}-*{PACK_ENDING}"):
            pack.unlink(missing_ok=True)
        self.get_prepared_path(token).unlink(missing_ok=True)

    def adopt_prepared(self, token: str) -> None:
        """Make a prepared tree the start of the next session."""
        self.get_prepared_path(token).replace(self.directory / INDEX_NAME)

    def read_last_tree(self) -> Manifest:
        """The tree as the last session left it; empty if there is none."""
        try:
            return read_manifest(self.directory / INDEX_NAME)
        except Damaged:
            return Manifest()

    def packs(self) -> set[str]:
        """The existing packs."""
        return set(os.listdir(self.directory)) | {EMPTY}

    def save(self, tree: Manifest) -> None:
        """Save a tree for the next session, and delete what is unused."""
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
        """Close it."""
        if self._lock_fd >= 0:
            close(self._lock_fd)
            self._lock_fd = -1

    @contextlib.contextmanager
    def _alone(self) -> Generator[bool]:
        """Whether no other session is open, and no crashed one needs recovery."""
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
        """Delete packs that are mostly unused; their used contents are stored again later."""
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
    """The size of all projects' trees, without hard links."""
    return sum(_measure_own_bytes(directory) for directory in _list_stores(home))


def prune_snapshots(home: Path, *, oldest: float, excess_bytes: int, dry_run: bool = False) -> int:
    """Delete trees unused since `oldest`, then the oldest ones; return the freed bytes.

    A deleted tree is saved again with the next command; open ones stay.
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
