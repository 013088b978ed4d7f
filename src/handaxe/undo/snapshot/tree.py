"""The tree below the roots as last listed, and comparing it again.

A check lists directories and compares the metadata of each name; contents are compared elsewhere.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableMapping

from handaxe.undo.snapshot.inotify import CannotWatch, InotifyWatcher, can_be_watched
from handaxe.undo.snapshot.nodes import LINK, Node, NodeChange, from_stat

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OTHER_DEVICE = "another file system"
UNREADABLE = "it cannot be read"
TOO_MUCH = "too much to remember"


class Tree:
    """All paths below some roots."""

    def __init__(
        self,
        *,
        max_entries: int,
        make_room: "Callable[[Tree], None]" = lambda _: None,
        apart: Iterable[str] = (),
        watches: InotifyWatcher | None = None,
    ) -> None:
        """`make_room` leaves something out if there is too much.

        `apart` names directories that are silently skipped. `watches` replaces its own.
        """
        self.roots: dict[str, Node | None] = {}
        self.directories: MutableMapping[str, dict[str, Node]] = {}
        self.left_out: dict[str, str] = {}
        """Paths that are left out, with reasons."""
        self.touched: set[str] = set()
        """Directories whose listing differs from the saved one."""
        self.count = 0
        self._apart = frozenset(apart)
        self._max_entries = max_entries
        self._make_room = make_room
        self.linked: set[tuple[str, str]] = set()
        """Hard-linked files, by directory and name."""
        self.watches = watches
        self._may_watch = True
        self._devices: dict[str, int] = {}

    @property
    def is_watched(self) -> bool:
        """Whether changes are watched."""
        return self.watches is not None

    def follow(self, roots: Iterable[str]) -> None:
        """Include these roots from the next check on."""
        wanted = sorted(set(roots) | self.roots.keys())
        outer = [root for root in wanted if not any(_is_below(root, other) for other in wanted)]
        for root in outer:
            if root not in self.roots:
                self.roots[root] = None
                if self.watches is not None:
                    self.watches.is_begun = False
        for root in self.roots.keys() - set(outer):
            # A wider root holds it now.
            del self.roots[root]

    def look(self) -> list[NodeChange]:
        """The changes since the last check; updates the tree."""
        dirty, lost = (None, set[str]()) if self.watches is None else self.watches.take()
        look = _Look(self)
        for root in self.roots.keys() - self.left_out.keys():
            self._look_at_root(root, look)
        if dirty is None:
            self._watch_anew()
            look.again.extend(root for root, node in self.roots.items() if node is not None)
            look.is_full = True
            look.run()
        else:
            for directory, name in self.linked:
                dirty.setdefault(directory, set()).add(name)
            look.run()
            for directory in sorted(dirty, key=len):
                if directory in self.directories:
                    look.compare_names(directory, dirty[directory])
                    look.run()
            # Another one of the same name, and even of the same inode, may have come in its place.
            look.again.extend(lost & self.directories.keys())
            look.run()
        return look.finish()

    def look_at(self, paths: Iterable[str]) -> list[NodeChange]:
        """The changes at these paths, and below new directories on the way to them."""
        look = _Look(self)
        for path in sorted(paths):
            directory, _, name = path.rpartition("/")
            while directory and directory not in self.directories:
                directory, _, name = directory.rpartition("/")
            if (directory or "/") in self.directories:
                look.compare_names(directory or "/", (name,))
                look.run()
        return look.finish()

    def adopt(
        self, directories: MutableMapping[str, dict[str, Node]], left_out: dict[str, str]
    ) -> None:
        """Start with the tree of an earlier session."""
        self.directories, self.left_out = directories, left_out
        self.count = sum(map(len, directories.values()))
        for directory, listing in directories.items():
            for name, node in listing.items():
                if node.links > 1:
                    self.note_links(directory, name, node)

    def leave_out(self, path: str, reason: str) -> None:
        """Exclude a path and everything below, for a reason."""
        self.left_out[path] = reason
        self.forget(path)

    def forget(self, path: str) -> None:
        """Remove a path and everything below from the tree."""
        directory, _, name = path.rpartition("/")
        listing = self.directories.get(directory or "/")
        if listing is not None and name in listing:
            self.count -= 1
            node = listing.pop(name)
            self.linked.discard((directory or "/", name))
            self.touched.add(directory or "/")
            if node.is_directory:
                for _ in self.drop(path):
                    pass
        elif path in self.roots:
            self.roots[path] = None
            for _ in self.drop(path):
                pass

    def drop(self, directory: str) -> Iterator[NodeChange]:
        """Remove everything below a directory."""
        listing = self.directories.pop(directory, None)
        if listing is None:
            return
        self.touched.add(directory)
        self.count -= len(listing)
        for name, node in listing.items():
            path = join_path(directory, name)
            yield NodeChange(path, node, None)
            self.linked.discard((directory, name))
            if node.is_directory:
                yield from self.drop(path)

    def nodes(self) -> Iterator[tuple[str, Node]]:
        """Every path with its node, the roots first."""
        for root, node in self.roots.items():
            if node is not None:
                yield root, node
        for directory, listing in self.directories.items():
            for name, node in listing.items():
                yield join_path(directory, name), node

    def list_linked_nodes(self) -> Iterator[tuple[str, Node]]:
        """Every hard-linked file."""
        for directory, name in self.linked:
            node = self.directories.get(directory, {}).get(name)
            if node is not None:
                yield join_path(directory, name), node

    def note_links(self, directory: str, name: str, node: Node | None) -> None:
        """Record hard-linked files, which can change under other names."""
        if node is not None and node.has_other_names:
            self.linked.add((directory, name))
        elif self.linked:
            self.linked.discard((directory, name))

    def find_names(self, inodes: set[tuple[int, int]]) -> dict[str, list[str]]:
        """The other names of newly linked files, which cause no event."""
        found: dict[str, list[str]] = {}
        for directory, listing in self.directories.items() if inodes else ():
            for name, node in listing.items():
                if (node.dev, node.ino) not in inodes or node.pack.startswith(LINK):
                    continue
                if (directory, name) not in self.linked:
                    self.linked.add((directory, name))
                    found.setdefault(directory, []).append(name)
        return found

    def is_entered(self, path: str, info: os.stat_result) -> bool:
        """Whether to enter a directory; records the reason if not."""
        if path in self._apart or path in self.left_out:
            return False
        if info.st_dev not in self._devices.values():
            self.left_out[path] = OTHER_DEVICE
            return False
        return True

    def has_room(self, directory: str, more: int) -> bool:
        """Whether a directory of this size fits; otherwise it is left out."""
        if self.count + more <= self._max_entries:
            return True
        self._make_room(self)
        if not self.is_known(directory):
            return False
        if self.count + more > self._max_entries:
            self.leave_out(directory, TOO_MUCH)
            return False
        return True

    def is_known(self, directory: str) -> bool:
        """Whether a directory is still part of the tree."""
        if directory in self.roots:
            return directory not in self.left_out
        above, _, name = directory.rpartition("/")
        return name in self.directories.get(above or "/", ())

    def watch(self, directory: str) -> None:
        """Watch a directory."""
        if self.watches is not None:
            try:
                self.watches.add(directory)
            except CannotWatch:
                self._may_watch = False
                self._stop_watching()

    def close(self) -> None:
        """Remove all watches."""
        self._stop_watching()

    def _look_at_root(self, root: str, look: "_Look") -> None:
        old = self.roots[root]
        try:
            info = os.lstat(root)
        except OSError:
            info = None
        new = None
        if info is not None and stat.S_ISDIR(info.st_mode):
            new = from_stat(root, info, look.now_ns)
            self._devices[root] = info.st_dev
        self.roots[root] = new
        if (old is None) != (new is None) or (old and new and old.mode != new.mode):
            look.changes.append(NodeChange(root, old, new))
        if new is None:
            look.changes.extend(self.drop(root))
        elif old is None or old.ino != new.ino:
            look.again.append(root)

    def _watch_anew(self) -> None:
        if self.watches is None and self._may_watch and all(map(can_be_watched, self.roots)):
            try:
                self.watches = InotifyWatcher()
            except CannotWatch:
                self._may_watch = False
        if self.watches is not None:
            # Later events count as soon as the directories are watched again.
            self.watches.begin()

    def _stop_watching(self) -> None:
        if self.watches is not None:
            self.watches.close()
            self.watches = None


class _Look:
    """One check of a tree, directory by directory."""

    def __init__(self, tree: Tree) -> None:
        self.changes: list[NodeChange] = []
        self.again: deque[str] = deque()
        self.is_full = False
        self.now_ns = time.time_ns()
        self._tree = tree
        self._seen: set[str] = set()

    def run(self) -> None:
        """Check all waiting directories."""
        while self.again:
            directory = self.again.popleft()
            if directory not in self._seen:
                self._seen.add(directory)
                self._whole(directory)

    def compare_names(self, directory: str, names: Iterable[str]) -> None:
        """Compare some names of a directory, whatever their times."""
        if directory in self._seen:
            return
        try:
            fd = os.open(directory, _LIST)
        except OSError:
            # Its own parent has the news, if it is gone.
            self.again.append(directory)
            return
        try:
            listing = self._tree.directories[directory]
            for name in names:
                self._compare_name(directory, fd, name, listing, is_told=True)
        finally:
            os.close(fd)

    def finish(self) -> list[NodeChange]:
        """The changes; a file that moved with its directory keeps its content."""
        if not self.is_full:
            names = self._tree.find_names(
                {(n.dev, n.ino) for _, _, n in self.changes if n and n.links > 1 and n.is_file}
            )
            for directory, others in names.items():
                # If one of them is removed, the other names must be known.
                self.compare_names(directory, others)
        gone: dict[tuple[int, int], Node] = {}
        for change in self.changes:
            if change.old is not None and change.old.pack:
                gone[change.old.dev, change.old.ino] = change.old
        for change in self.changes:
            new = change.new
            if new is not None and new.needs_content:
                old = gone.get((new.dev, new.ino))
                if old is not None and old.is_stamp_like(new) and not (old.racy or new.racy):
                    new.take_content_of(old)
        return self.changes

    def _whole(self, directory: str) -> None:
        tree = self._tree
        if not tree.is_known(directory):
            return
        tree.watch(directory)
        listing = tree.directories.get(directory)
        try:
            fd = os.open(directory, _LIST)
        except PermissionError:
            # What is in a directory that was closed a moment ago is taken to be as it was.
            if listing is None:
                tree.left_out[directory] = UNREADABLE
            return
        except OSError:
            self.changes.extend(tree.drop(directory))
            return
        try:
            names = os.listdir(fd)
            if listing is None:
                if not tree.has_room(directory, len(names)):
                    return
                listing = tree.directories[directory] = {}
                tree.touched.add(directory)
            for name in names:
                self._compare_name(directory, fd, name, listing, is_told=False)
            for name in listing.keys() - names:
                self._gone(directory, name, listing, listing[name])
        finally:
            os.close(fd)

    def _compare_name(
        self, directory: str, fd: int, name: str, listing: dict[str, Node], *, is_told: bool
    ) -> None:
        """Compare one name with its known state."""
        old = listing.get(name)
        try:
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            if old is not None:
                self._gone(directory, name, listing, old)
            return
        if old is not None and old.is_stamp_of(info):
            if stat.S_ISDIR(info.st_mode):
                if self.is_full:
                    self.again.append(join_path(directory, name))
                return
            if not (is_told or old.racy):
                return
        self._new(directory, fd, name, listing, info)

    def _new(
        self, directory: str, fd: int, name: str, listing: dict[str, Node], info: os.stat_result
    ) -> None:
        tree, path, old = self._tree, join_path(directory, name), listing.get(name)
        is_directory = stat.S_ISDIR(info.st_mode)
        if tree.left_out or is_directory:
            if path in tree.left_out and not is_directory:
                return
            if is_directory and not tree.is_entered(path, info):
                return
        node = from_stat(path, info, self.now_ns)
        if stat.S_ISLNK(info.st_mode):
            node.target = os.fsencode(_read_link_target(name, fd))
        tree.count += old is None
        listing[name] = node
        tree.touched.add(directory)
        tree.note_links(directory, name, node)
        self.changes.append(NodeChange(path, old, node))
        if old is not None and old.is_directory and not is_directory:
            self.changes.extend(tree.drop(path))
        elif is_directory and (self.is_full or not _is_known_directory(old, node)):
            self.again.append(path)

    def _gone(self, directory: str, name: str, listing: dict[str, Node], old: Node) -> None:
        tree = self._tree
        del listing[name]
        tree.count -= 1
        tree.touched.add(directory)
        tree.note_links(directory, name, None)
        path = join_path(directory, name)
        self.changes.append(NodeChange(path, old, None))
        if old.is_directory:
            self.changes.extend(tree.drop(path))


def join_path(directory: str, name: str) -> str:
    """The path of a name in a directory."""
    return directory + name if directory == "/" else f"{directory}/{name}"


def _is_known_directory(old: Node | None, new: Node) -> bool:
    """Whether a directory is the one that was listed at its path."""
    # A directory often gets the very inode of the file that was removed for it.
    return old is not None and old.is_directory and old.ino == new.ino


def _read_link_target(name: str, fd: int) -> str:
    try:
        return os.readlink(name, dir_fd=fd)
    except OSError:
        return ""


def _is_below(path: str, ancestor: str) -> bool:
    return path != ancestor and path.startswith(ancestor if ancestor == "/" else ancestor + "/")
