"""Where the writes of a command end up: its extent held against the links and files that are there.

An upper bound stays one only if every path means what it seems to: a link leads where it leads now,
and no earlier step of the command makes a later path mean something else. Where that is not sure
the answer is `Unbounded`, and the whole tree is looked at instead.
"""

import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from handaxe.contract.effects import Act, Extent
from handaxe.storage.tree_snapshots.nodes import is_within
from handaxe.storage.undo.trees import TooBig, below

_MAX_LINKS = 40

Places = dict[str, tuple[str, ...] | None]
"""Real paths. Of a directory only new names in it that fit these patterns count, None: all."""


class Unbounded(Exception):
    """What is on the disk leaves open what the command would write."""


class Room(msgspec.Struct, frozen=True):
    """How much may be kept for a command whose extent is known."""

    files: int
    size_bytes: int


class _Way(msgspec.Struct):
    """How a path leads to what it names."""

    passed: list[str] = []
    """Every name on the way, each behind real directories only."""
    links: list[str] = []
    missing: list[str] = []
    ends: list[str] = []
    """The name itself, and what it leads to if it is a link."""


class _Step(msgspec.Struct):
    """One act with real paths."""

    act: Act
    ways: list[_Way] = []
    places: Places = {}

    def holds(self, path: str) -> bool:
        """Whether the act may change what stands at a path; some disks read letters alike."""
        deep = [place.casefold() for place, names in self.places.items() if names is None]
        exact = {place.casefold() for place in self.places}
        return path.casefold() in exact or is_within(path.casefold(), deep)


def places_of(extent: Extent, roots: Sequence[str], own: str, room: Room) -> Places:
    """What in the roots the command can change; `own` are files of ours.

    Raises:
        Unbounded: that is not certain.
        TooBig: there is more than the room is for.
        OSError: something could not be looked at.
    """
    if os.path.realpath(extent.cwd) != extent.cwd:
        raise Unbounded(f"{extent.cwd} is behind a link")
    roots = [os.path.realpath(root) for root in roots]
    steps = [_step(act) for act in extent.acts]
    for step in steps if extent.is_confined else ():
        _check_inside(step, roots)
    for at, step in enumerate(steps):
        for later in steps[at + 1 :]:
            _check_meaning(step, later)
    places: Places = {}
    for step in steps:
        for path, names in (*step.places.items(), *_scratch(step)):
            _add(places, names, path)
    ours = [path for path, names in places.items() if _is_ours(path, names, roots, own)]
    # A file elsewhere may have another name here.
    _check_files(places, room)
    deep = [path for path in ours if places[path] is None]
    return {path: places[path] for path in sorted(ours) if not is_within(_parent(path), deep)}


def _add(places: Places, names: tuple[str, ...] | None, *paths: str) -> None:
    """Take in paths; with everything below is more than without."""
    for path in paths:
        known = places.get(path, ())
        if known is None or names is None:
            places[path] = None
        else:
            places[path] = tuple(dict.fromkeys((*known, *names)))


def _step(act: Act) -> _Step:
    step = _Step(act)
    for path in act.places:
        way = _follow(path)
        step.ways.append(way)
        _add(step.places, (), *way.ends, *(way.missing if act.makes_parents else ()))
        if act.files_only and os.path.isdir(way.ends[-1]):
            raise Unbounded(f"{path} is a directory")
    for path in act.trees:
        way = _follow(path)
        step.ways.append(way)
        _add(step.places, None, *way.ends)
    for target, name in act.into:
        _add_target(step, target, name)
    return step


def _add_target(step: _Step, target: str, name: str) -> None:
    way = _follow(target)
    step.ways.append(way)
    if name and os.path.isdir(way.ends[-1]):
        # A link to a directory may be replaced itself, too.
        _add(step.places, (), *way.ends[:-1])
        way = _follow(f"{way.ends[-1]}/{name}")
        step.ways.append(way)
    for end in way.ends:
        if os.path.isdir(end) and any(map(os.path.islink, below(end))):
            raise Unbounded(f"what is copied may be written through a link in {end}")
    _add(step.places, None, *way.ends)


def _follow(path: str) -> _Way:
    """Every name that the system looks up for a path; what is missing is taken as it is spelled."""
    way = _Way()
    *above, last = _parts(path) or [""]
    here = _walk("", above, way)
    named = f"{here}/{last}"
    end = _walk(here, [last], way) or "/"
    way.ends = [end] if last in ("", "..") else list(dict.fromkeys((named, end)))
    if any(is_within(passed, ("/proc",)) for passed in way.passed):
        raise Unbounded(f"{path} may mean something else to another process")
    return way


def _walk(here: str, parts: list[str], way: _Way) -> str:
    """Where the parts lead from a real directory, with all links followed."""
    waiting = deque(filter(None, parts))
    while waiting:
        part = waiting.popleft()
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        entry = f"{here}/{part}"
        way.passed.append(entry)
        mode = _mode_at(entry)
        if mode is not None and stat.S_ISLNK(mode):
            way.links.append(entry)
            if len(way.links) > _MAX_LINKS:
                raise Unbounded(f"{entry} leads nowhere")
            target = os.readlink(entry)
            here = "" if target.startswith("/") else here
            waiting.extendleft(reversed(_parts(target)))
            continue
        if mode is None or (waiting and not stat.S_ISDIR(mode)):
            way.missing.append(entry)
        here = entry
    return here


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _mode_at(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _check_meaning(step: _Step, later: _Step) -> None:
    """Whether a later act still finds its paths as they are now."""
    if step.act.kind == "fills":
        return
    for way in later.ways:
        # Something that is gone is nothing new, unless it was a link to somewhere else.
        for path in way.passed if step.act.kind == "moves" else way.links:
            if step.holds(path):
                raise Unbounded(f"{path} may lead elsewhere by then")


def _check_inside(step: _Step, roots: Sequence[str]) -> None:
    for path in (path for way in step.ways for path in way.passed):
        if not is_within(path, roots) and not any(is_within(root, (path,)) for root in roots):
            raise Unbounded(f"{path} may be something else for the command")


def _scratch(step: _Step) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Directories in which a killed program leaves something, and what is there by that name."""
    for directory in sorted(set(map(_parent, step.places))) if step.act.scratch else ():
        yield directory, step.act.scratch
        for name in os.listdir(directory) if os.path.isdir(directory) else ():
            if any(fnmatchcase(name, pattern) for pattern in step.act.scratch):
                yield f"{directory}/{name}", ()


def _is_ours(path: str, names: tuple[str, ...] | None, roots: Sequence[str], own: str) -> bool:
    """Whether a place belongs to the roots, outside of which nothing is kept."""
    inner = (*roots, own) if names is None else ()
    if is_within(path, (own,)) or any(
        place != path and is_within(place, (path,)) for place in inner
    ):
        raise Unbounded(f"{path} holds more than files of the project")
    return is_within(path, roots)


def _check_files(places: Places, room: Room) -> None:
    """Refuse what a change of one name does not tell of, and more than there is room for."""
    count = size_bytes = 0
    for place, names in places.items():
        is_tree = names is None and stat.S_ISDIR(_mode_at(place) or 0)
        inner = below(place, max_files=room.files, max_bytes=room.size_bytes) if is_tree else ()
        for path in (place, *inner):
            try:
                info = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            kind = stat.S_IFMT(info.st_mode)
            if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                raise Unbounded(f"{path} is a special file")
            if kind == stat.S_IFREG and info.st_nlink > 1:
                raise Unbounded(f"{path} has other names")
            count += 1
            size_bytes += info.st_size if kind == stat.S_IFREG else 0
    if count > room.files or size_bytes > room.size_bytes:
        raise TooBig
