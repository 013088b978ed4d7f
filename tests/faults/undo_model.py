"""What a project has to be after every undo: a second and simpler account of the promises."""

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

_LARGE_BYTES = 1024
_TEMPORARY = ".handaxe-"


class Thing(NamedTuple):
    """What is at a path."""

    kind: str
    content: bytes = b""
    """Of a file, or its digest where it is large; the target of a link."""
    mode: int = 0
    names: tuple[str, ...] = ()
    """All names of the file in the project, if it has several."""

    def is_same(self, other: "Thing") -> bool:
        """Whether both are the same kind of thing with the same content."""
        return self[:2] == other[:2]


Tree = dict[str, Thing]
ABSENT = Thing("absent")


def look_at(root: Path) -> Tree:
    """All there is in a project but temporary files of handaxe."""
    found: Tree = {}
    inodes: dict[int, list[str]] = {}
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            if name.startswith(_TEMPORARY):
                continue
            info = os.lstat(path)
            shown = os.path.relpath(path, root)
            mode = stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                found[shown] = Thing("link", os.fsencode(os.readlink(path)))
            elif stat.S_ISDIR(info.st_mode):
                found[shown] = Thing("directory", b"", mode)
            else:
                found[shown] = Thing("file", summarize(Path(path).read_bytes()), mode)
                inodes.setdefault(info.st_ino, []).append(shown)
    for names in inodes.values():
        if len(names) > 1:
            for name in names:
                found[name] = found[name]._replace(names=tuple(sorted(names)))
    return found


def summarize(content: bytes) -> bytes:
    """The content, or what stands for it where it is large."""
    return content if len(content) <= _LARGE_BYTES else hashlib.sha256(content).digest()


def find_leftovers(root: Path) -> list[str]:
    """Temporary files of handaxe in a project."""
    return [str(path) for path in root.rglob(f"{_TEMPORARY}*")]


def find_changes(before: Tree, after: Tree) -> set[str]:
    """The paths that are not as before."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


@dataclass
class Change:
    """One call that changed the project, or an undo."""

    call_id: str
    tool: str
    before: Tree
    after: Tree
    paths: set[str]
    """What belongs to the call; nothing where only others wrote while it ran."""
    undoes: tuple[str, ...] = ()
    is_pruned: bool = False
    is_cut_off: bool = False
    is_first_attempt: bool = False
    """Whether it was an undo that broke off, and a later one finished it."""
    is_listed: bool = True
    """Whether it changed anything, so that the history lists it."""

    @property
    def is_mixed(self) -> bool:
        """Whether others changed something while it ran."""
        return find_changes(self.before, self.after) != self.paths

    @property
    def has_contents(self) -> bool:
        """Whether it changed more than empty directories and which names share a file."""
        return any(
            self.found(path)[:3] != self.left(path)[:3]
            and {self.found(path).kind, self.left(path).kind} != {"absent", "directory"}
            for path in self.paths
        )

    def found(self, path: str) -> Thing:
        """What the call found at a path."""
        return self.before.get(path, ABSENT)

    def left(self, path: str) -> Thing:
        """What the call left at a path."""
        return self.after.get(path, ABSENT)


@dataclass
class Prediction:
    """What an undo has to do: succeed or refuse, and how the project is after a success."""

    tree: Tree
    conflicts: set[str] = field(default_factory=set)
    """Paths that somebody else changed, whose change would be lost."""
    open_paths: set[str] = field(default_factory=set)
    """Paths where a refusal is right as well."""
    is_exact: bool = False
    """Whether nothing happened in between, so that every directory and every name returns."""
    kept: set[str] = field(default_factory=set)
    """Paths that somebody else changed and that a success has to leave alone."""
    spare: set[str] = field(default_factory=set)
    """Directories that may stay, or may get other permission bits than they had."""

    @property
    def may_succeed(self) -> bool:
        return not self.conflicts

    @property
    def may_refuse(self) -> bool:
        return bool(self.conflicts or self.open_paths) and not self.is_exact


def find_undone(changes: Sequence[Change]) -> set[str]:
    """The ids of calls whose change does not stand: an undo that still stands took it back."""
    gone: set[str] = set()
    for change in reversed(changes):
        if change.call_id not in gone and not change.is_first_attempt:
            gone.update(change.undoes)
    return gone


def choose(
    changes: Sequence[Change], call_id: str | None, *, only: bool, redo: bool
) -> list[Change]:
    """The changes that an undo means, oldest first; empty if there is none."""
    standing = [
        change for change in changes if change.is_listed and change.paths and not change.is_pruned
    ]
    if call_id is not None:
        at = [change.call_id for change in standing].index(call_id)
        return standing[at : at + 1] if only else standing[at:]
    gone = find_undone(changes)
    undos = {change.call_id: change.undoes for change in changes}
    for change in reversed(standing):
        is_redo = any(undos.get(taken) for taken in change.undoes)
        fits = change.undoes and not is_redo if redo else not change.undoes
        if fits and change.call_id not in gone:
            return [change]
    return []


def predict(now: Tree, targets: Sequence[Change], *, force: bool = False) -> Prediction:
    """What putting these changes back has to do to the project as it is now."""
    result = Prediction(dict(now))
    result.is_exact = _is_untouched(now, targets)
    paths = {path for target in targets for path in target.paths}
    for path in sorted(paths):
        _predict_path(path, now, [one for one in targets if path in one.paths], result, force=force)
    _settle_directories(paths, targets, result)
    if result.is_exact:
        result.tree, result.spare = dict(targets[0].before), set()
    return result


def _is_untouched(now: Tree, targets: Sequence[Change]) -> bool:
    """Whether the changes followed each other, and nothing else happened between or since."""
    following = pairwise(targets)
    if any(one.is_mixed for one in targets):
        return False
    return now == targets[-1].after and all(one.after == two.before for one, two in following)


def _predict_path(
    path: str, now: Tree, targets: Sequence[Change], result: Prediction, *, force: bool
) -> None:
    wanted, left = targets[0].found(path), targets[-1].left(path)
    there = now.get(path, ABSENT)
    if wanted.kind == "directory" or "directory" in {left.kind, there.kind}:
        if not there.is_same(left) or there.mode != left.mode:
            result.open_paths.add(path)
        return
    has_mode = (wanted.kind, wanted.mode) != (left.kind, left.mode)
    is_done = there.is_same(wanted) and (not has_mode or there.mode == wanted.mode)
    is_shared = any(thing.names for one in targets for thing in (one.found(path), one.left(path)))
    is_shared = is_shared or bool(there.names)
    following = pairwise(targets)
    is_broken = any(not one.left(path).is_same(two.found(path)) for one, two in following)
    is_foreign = is_broken or not there.is_same(left)
    if has_mode and wanted.kind == there.kind == "file" and there.mode != left.mode:
        is_foreign = True
    if is_done:
        result.open_paths |= {path} if is_shared else set()
        return
    if is_foreign and not force:
        if is_shared:
            # Of the names of a file the record need not have all: what others did stays theirs.
            result.open_paths.add(path)
            result.kept.add(path)
        else:
            result.conflicts.add(path)
        return
    if wanted.kind == "absent":
        result.tree.pop(path, None)
    else:
        mode = wanted.mode if has_mode or there.kind != wanted.kind else there.mode
        result.tree[path] = wanted._replace(mode=mode)
    if is_shared:
        result.open_paths.add(path)


def _settle_directories(
    paths: Iterable[str], targets: Sequence[Change], result: Prediction
) -> None:
    """Directories come back for what lies in them, and go when they were made and are empty."""
    for path in sorted(paths, key=lambda path: -path.count("/")):
        first = next(one.found(path) for one in targets if path in one.paths)
        if first.kind == "directory":
            result.tree.setdefault(path, first)
            result.spare.add(path)
        elif first.kind == "absent" and result.tree.get(path, ABSENT).kind == "directory":
            result.spare.add(path)
            if not any(other.startswith(f"{path}/") for other in result.tree):
                del result.tree[path]
    for path in list(result.tree):
        for parent in list(Path(path).parents)[:-1]:
            if str(parent) not in result.tree:
                result.tree[str(parent)] = Thing("directory")
                result.spare.add(str(parent))


def find_differences(prediction: Prediction, now: Tree) -> list[str]:
    """Where a project is not as an undo should have left it."""
    if prediction.is_exact:
        return [
            f"{path}: {prediction.tree.get(path)} was expected, {now.get(path)} is there"
            for path in sorted(find_changes(prediction.tree, now))
        ]
    wrong: list[str] = []
    for path in sorted(prediction.tree.keys() | now.keys()):
        wanted, there = prediction.tree.get(path, ABSENT), now.get(path, ABSENT)
        is_spare = path in prediction.spare and {wanted.kind, there.kind} <= {"absent", "directory"}
        if is_spare or wanted[:3] == there[:3]:
            continue
        wrong.append(f"{path}: {wanted} was expected, {there} is there")
    return wrong
