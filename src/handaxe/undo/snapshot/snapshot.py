"""The tree of a session's roots: saved before a command, compared after it."""

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import msgspec

from handaxe.disk.durability import sync_names
from handaxe.disk.temp_files import is_temporary
from handaxe.text.paths import is_within
from handaxe.undo.snapshot.excess import exclude_excess
from handaxe.undo.snapshot.inotify import InotifyWatcher
from handaxe.undo.snapshot.manifest import Manifest, ManifestFile, read_manifest
from handaxe.undo.snapshot.nodes import GIT, LINK, RACY_NS, Node, NodeChange, from_stat
from handaxe.undo.snapshot.pack_files import StoredContents
from handaxe.undo.snapshot.prewarm import Preparation, PreparationResult, can_prepare
from handaxe.undo.snapshot.project_store import ProjectStore
from handaxe.undo.snapshot.tree import UNREADABLE, Tree, join_path

_ATTEMPTS = 3
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE}


class SnapshotLimits(msgspec.Struct, frozen=True):
    """The limits of a saved tree."""

    max_files: int = 200_000
    max_bytes: int = 1 << 30


class Baseline(msgspec.Struct, frozen=True):
    """Where the tree of one moment is stored durably."""

    manifest: str
    length: int


class TreeSnapshot:
    """The roots' known state, with all bytes stored outside of them."""

    def __init__(
        self,
        home: Path,
        session_id: str,
        root: str,
        limits: SnapshotLimits,
        *,
        token: str = "",
        watches: InotifyWatcher | None = None,
    ) -> None:
        """With `token` it is prepared for another process, which has opened the watches."""
        self.foreign: list[NodeChange] = []
        """Changes while no command ran here, in order."""
        self._limits = limits
        self._store = ProjectStore(home, root)
        self._session_id = session_id
        self._token = token
        self._ahead: Preparation | None = None
        self._tree = Tree(
            max_entries=2 * limits.max_files,
            make_room=self._make_room,
            apart=(str(home),),
            watches=watches,
        )
        self.contents = StoredContents(
            self._store.directory, kept=self._kept, prefix=f"{token}-" if token else ""
        )
        self._manifest: ManifestFile | None = None
        self._unkept: dict[str, Node] = {}
        self._former_names: dict[tuple[int, int], set[str]] = {}
        self._kept_bytes = 0
        self._known = b""
        """The last session's tree, until it is in the manifest of this one."""

    @classmethod
    def from_crashed(
        cls, home: Path, baseline: Baseline, limits: SnapshotLimits
    ) -> tuple[Self, list[NodeChange]]:
        """The tree of a baseline, and the changes since.

        Raises:
            DiskFault: the baseline cannot be read.
        """
        path = Path(baseline.manifest)
        saved = read_manifest(path, baseline.length)
        snapshot = cls(home, "", next(iter(saved.roots), ""), limits)
        snapshot._store.directory = path.parent
        snapshot.contents = StoredContents(path.parent, kept=snapshot._kept)
        tree = snapshot._tree
        tree.adopt(saved.directories, saved.left_out)
        tree.roots = dict(saved.roots)
        return snapshot, snapshot._settled(tree.look())

    @property
    def left_out(self) -> dict[str, str]:
        """Paths that are not saved, with reasons."""
        return self._tree.left_out

    @property
    def is_watched(self) -> bool:
        """Whether changes are watched, so that a check is cheap."""
        return self._tree.is_watched

    def prepare(self, roots: Sequence[str]) -> None:
        """Save everything below the roots in another process, before the first command.

        Raises:
            OSError, DiskFault: it cannot be stored.
        """
        if self._manifest is None and self._ahead is None and can_prepare():
            self._store.open()
            limits = self._limits
            self._ahead = Preparation(
                self._store, roots, max_files=limits.max_files, max_bytes=limits.max_bytes
            )

    def hand_over(self, baseline: Baseline) -> PreparationResult:
        """The data to continue from a baseline with another process's watches."""
        tree = self._tree
        linked = [(os.fsencode(directory), os.fsencode(name)) for directory, name in tree.linked]
        watched = tree.watches and {w: os.fsencode(d) for w, d in tree.watches.paths.items()}
        return PreparationResult(baseline.length, tree.count, self._kept_bytes, linked, watched)

    def begin(self, roots: Sequence[str]) -> Baseline:
        """Save everything below the roots durably.

        Raises:
            OSError: it cannot be saved.
        """
        is_first = self._manifest is None
        if is_first:
            self._open(roots)
        self._tree.follow(roots)
        self._settle_foreign(self._tree.look())
        if is_first:
            self.foreign.clear()
        self._take_from_git()
        self._enforce_limits()
        for path, node in list(self._unkept.items()):
            self._keep_or_leave_out(path, node)
        self._unkept.clear()
        self._former_names.clear()
        return self._write_down()

    def end(self, paths: Sequence[str] | None = None) -> list[NodeChange]:
        """The changes since the last check, compared by content.

        With `paths`, only of these.
        """
        changes = self._tree.look() if paths is None else self._tree.look_at(paths)
        return self._settled(changes)

    def release_files(self) -> None:
        """Release what is needed only while contents are read."""
        self.contents.git.release_files()

    def find_node(self, path: str) -> Node | None:
        """The known node of a path."""
        directory, _, name = path.rpartition("/")
        found = self._tree.directories.get(directory or "/", {}).get(name)
        return found or self._tree.roots.get(path)

    def find_shared_names(self, nodes: Iterable[Node]) -> dict[tuple[int, int], set[str]]:
        """The names in the tree of files that have, or had, several names."""
        wanted = {(node.dev, node.ino) for node in nodes if node.links > 1 and node.is_file}
        names = {key: set(self._former_names.get(key, ())) for key in wanted}
        for path, node in self._tree.list_linked_nodes() if wanted else ():
            if (node.dev, node.ino) in wanted:
                names[node.dev, node.ino].add(path)
        return names

    def close(self, *, keep: bool = True) -> None:
        """Save the tree for the next session, unless recovery may need it unchanged."""
        if self._ahead is not None:
            self._ahead.keep()
            self._ahead = None
        if self._manifest is not None:
            self._manifest.close()
            if keep:
                with contextlib.suppress(OSError):
                    self._save()
        self._tree.close()
        self.contents.close()
        self._store.close()

    def _open(self, roots: Sequence[str]) -> None:
        self._store.open()
        if self._take_over(roots):
            return
        last = self._store.read_last_tree()
        known, self._known = last.directories, last.written
        self._tree.adopt({d: known[d] for d in known if is_within(d, roots)}, {})
        self._tree.touched = known.keys() - self._tree.directories.keys()
        packs = self._store.packs()
        for directory, listing in self._tree.directories.items():
            for name, node in listing.items():
                pack = node.pack
                if (pack in packs and not node.racy) or pack.startswith((GIT, LINK)):
                    self._kept_bytes += node.size_bytes
                    continue
                node.pack = ""
                if node.is_file:
                    self._tree.touched.add(directory)
                    self._unkept[join_path(directory, name)] = node
        self._manifest = ManifestFile(
            self._store.get_prepared_path(self._token)
            if self._token
            else self._store.get_manifest_path(self._session_id)
        )

    def _take_over(self, roots: Sequence[str]) -> bool:
        """Continue from the prepared tree if it is ready or soon will be."""
        ahead, self._ahead = self._ahead, None
        found = ahead.finish(roots) if ahead is not None else None
        if found is None:
            return False
        path = self._store.get_manifest_path(self._session_id)
        found.path.rename(path)
        self._manifest = ManifestFile(path, found.said.length)
        self._kept_bytes = found.said.kept_bytes
        tree = self._tree
        tree.directories, tree.left_out = found.tree.directories, found.tree.left_out
        tree.roots, tree.watches = found.tree.roots, found.watches
        tree.count = found.said.count
        tree.linked = {(os.fsdecode(where), os.fsdecode(name)) for where, name in found.said.linked}
        sync_names(path.parent)
        return True

    def _kept(self) -> Iterator[Node]:
        return (node for _, node in self._tree.nodes())

    def _settle_foreign(self, changes: Iterable[NodeChange]) -> None:
        for path, old, new in _drop_temporary(changes):
            self._unkept.pop(path, None)
            self.foreign.append(NodeChange(path, old, new))
            if new is not None and new.needs_content:
                self._unkept[path] = new

    def _settled(self, changes: Iterable[NodeChange]) -> list[NodeChange]:
        """The changes without those of times only; new contents are stored."""
        found: list[NodeChange] = []
        for path, old, new in _drop_temporary(changes):
            if old is not None and old.links > 1 and old.is_file:
                self._former_names.setdefault((old.dev, old.ino), set()).add(path)
            if new is not None and new.needs_content:
                self._keep_if_possible(path, new)
            if not self.contents.is_same(old, new):
                found.append(NodeChange(path, old, new))
        return found

    def _keep_if_possible(self, path: str, node: Node) -> None:
        """Store what a command left; failures are tried again before the next command."""
        fits = self._kept_bytes + node.size_bytes <= self._limits.max_bytes
        try:
            if fits and self.contents.keep(path, node):
                self._kept_bytes += node.size_bytes
                directory, _, name = path.rpartition("/")
                self._tree.note_links(directory or "/", name, node)
                return
        except OSError:
            pass
        self._unkept[path] = node

    def _keep_or_leave_out(self, path: str, node: Node) -> None:
        """Store the current content; a file that changes all the time is left out."""
        directory, _, name = path.rpartition("/")
        listing = self._tree.directories.get(directory or "/", {})
        for _ in range(_ATTEMPTS):
            if listing.get(name) is not node:
                return
            try:
                if self.contents.packs.keep(path, node):
                    self._kept_bytes += node.size_bytes
                    return
                node = listing[name] = from_stat(path, os.lstat(path), time.time_ns())
                if not node.is_file:
                    return
            except FileNotFoundError:
                self._tree.forget(path)
                return
            except OSError as error:
                if error.errno in _NO_ROOM:
                    raise
                self._tree.leave_out(path, UNREADABLE)
                return
        self._tree.leave_out(path, "it was written to all the time")

    def _take_from_git(self) -> None:
        """Use git's objects: its own files, and files that match its index."""
        if not self._unkept:
            return
        self.contents.git.keep_all(self._tree, self._unkept)
        self.contents.git.adopt(self._tree, self._unkept)
        for path, node in list(self._unkept.items()):
            if node.pack:
                del self._unkept[path]

    def _enforce_limits(self) -> None:
        limits = self._limits
        wanted = self._kept_bytes + sum(node.size_bytes for node in self._unkept.values())
        if wanted > limits.max_bytes or self._tree.count > limits.max_files:
            exclude_excess(self._tree, max_files=limits.max_files, max_bytes=limits.max_bytes)
            self._kept_bytes = sum(n.size_bytes for _, n in self._tree.nodes() if n.pack)

    def _make_room(self, tree: Tree) -> None:
        exclude_excess(tree, max_files=self._limits.max_files, max_bytes=sys.maxsize)

    def _write_down(self) -> Baseline:
        assert self._manifest is not None
        tree = self._tree
        if tree.touched or not self._manifest.length:
            self.contents.sync()
            self._manifest.write(self._to_manifest(), sorted(tree.touched), self._known)
            self._known = b""
            tree.touched.clear()
        return Baseline(str(self._manifest.path), self._manifest.length)

    def _save(self) -> None:
        """Pass the tree to the next session; this session's manifest is no longer needed."""
        assert self._manifest is not None
        tree = self._tree
        if tree.is_watched:
            # No event came for these, so the stored content is current.
            self._settle_foreign(tree.look())
            now_ns = time.time_ns()
            for _, node in tree.nodes():
                node.racy = node.racy and node.ctime_ns > now_ns - RACY_NS
        self.contents.packs.sync()
        self._manifest.path.unlink(missing_ok=True)
        self._store.save(self._to_manifest())

    def _to_manifest(self) -> Manifest:
        tree = self._tree
        return Manifest(tree.roots, tree.directories, tree.left_out)


def _drop_temporary(changes: Iterable[NodeChange]) -> Iterator[NodeChange]:
    """The changes without handaxe's own temporary files."""
    return (change for change in changes if not is_temporary(change.path))
