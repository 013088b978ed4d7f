"""Compare a command's write extent with the links and files on disk.

The extent is an upper bound only if every path means what it seems to. Links must lead where they
lead now, and no earlier step may change the meaning of a later path. If that is uncertain, the
whole tree of the working directories is compared instead. Known writes outside are saved in any
case.
"""

import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from handaxe.contract.effects import Act, Extent
from handaxe.text.paths import is_within
from handaxe.undo.directory_trees import MAX_BYTES, MAX_FILES, TooBig, list_descendants

TOO_LARGE = "too large"
CANNOT_READ = "it cannot be read"
OWN_DATA = "the data directory of handaxe"
SYSTEM = "a directory of the system"
HOLDS_MORE = "it contains a working directory or the data directory of handaxe"
OTHER_NAMES = "a hard-linked file"
SPECIAL = "a special file"
_SYSTEM_DIRECTORIES = ("/proc", "/sys", "/dev")
_STREAMS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/fd", "/dev/pts",
            "/dev/stdin", "/dev/stdout", "/dev/stderr")  # fmt: skip
"""Writing there loses nothing."""
_SHARED_MEMORY = ("/dev/shm",)  # noqa: S108 - a file system like any other below /dev
_MAX_LINKS = 40
_MAX_NAMES = 20_000
"""How many names are checked for links."""

Places = dict[str, tuple[str, ...] | None]
"""Real paths. Of a directory only new names that match these patterns count; None: all."""


class UnboundedWrite(Exception):
    """The state of the disk makes the writes of the command uncertain."""

    def __init__(self, doubt: str, reason: str = "") -> None:
        super().__init__(doubt)
        self.reason = reason
        """Why it cannot be saved either, in a few words."""


class ExtentLimits(msgspec.Struct, frozen=True):
    """How much may be saved for a command with known writes."""

    files: int
    size_bytes: int


ROOM_OUTSIDE = ExtentLimits(MAX_FILES, MAX_BYTES)
"""The limit outside the working directories, as for tools that name a directory."""


class WriteTargets(msgspec.Struct):
    """The paths that a command can change."""

    inside: Places = {}
    outside: Places = {}
    """Outside the working directories, if it can be saved."""
    lost: dict[str, str] = {}
    """Other paths it can change there, with the reason why they are not saved."""
    doubt: str = ""
    """Why it could change more in the working directories; empty if it cannot."""
    is_too_much: bool = False
    """Whether the only doubt is the size."""


class _Way(msgspec.Struct):
    """How a path leads to its target."""

    passed: list[str] = []
    """Every name on the way, with real directories above it."""
    links: list[str] = []
    missing: list[str] = []
    ends: list[str] = []
    """The name itself, and its target if it is a link."""


class _Step(msgspec.Struct):
    """One act with real paths."""

    act: Act
    ways: list[_Way] = []
    places: Places = {}
    doubts: list[str] = []

    def holds(self, path: str) -> bool:
        """Whether the act may change a path; some file systems ignore case."""
        deep = [place.casefold() for place, names in self.places.items() if names is None]
        exact = {place.casefold() for place in self.places}
        return path.casefold() in exact or is_within(path.casefold(), deep)


def resolve_extent(
    extent: Extent,
    roots: Sequence[str],
    own: str,
    room: ExtentLimits,
    outside: ExtentLimits = ROOM_OUTSIDE,
) -> WriteTargets:
    """The paths that the command can change in the roots and elsewhere. `own` is handaxe's."""
    roots, own = [os.path.realpath(root) for root in roots], os.path.realpath(own)
    steps = [_resolve_act(act) for act in extent.acts]
    doubts = list(_find_doubts(extent, steps, roots))
    places: Places = {}
    for step in steps:
        for path, names in (*step.places.items(), *_find_scratch(step)):
            _add(places, names, path)
    found = WriteTargets()
    inside = {path: names for path, names in places.items() if is_within(path, roots)}
    elsewhere = {path: names for path, names in places.items() if path not in inside}
    try:
        for path, names in inside.items():
            _check_own(path, names, own)
        _check_files(inside, room)
    except TooBig:
        found.is_too_much = not doubts
        doubts.append("it exceeds the limit")
    except (UnboundedWrite, OSError) as error:
        doubts.append(str(error))
    found.inside = _drop_inner(inside)
    _split_outside(_drop_inner(elsewhere), found, (*roots, own), outside, doubts)
    found.is_too_much = found.is_too_much and len(doubts) == 1
    found.doubt = next(iter(doubts), "")
    return found


def _find_doubts(extent: Extent, steps: Sequence[_Step], roots: Sequence[str]) -> Iterator[str]:
    """Why the steps could write elsewhere than their words say."""
    if os.path.realpath(extent.cwd) != extent.cwd:
        yield f"{extent.cwd} is behind a link"
    for at, step in enumerate(steps):
        yield from step.doubts
        if extent.is_confined:
            yield from _find_leaving(step, roots)
        for later in steps[at + 1 :]:
            yield from _find_changed_meaning(step, later)


def _drop_inner(places: Places) -> Places:
    """The sorted paths without those below others that count completely."""
    deep = [path for path, names in places.items() if names is None]
    return {
        path: places[path]
        for path in sorted(places)
        if path == "/" or not is_within(_get_parent(path), deep)
    }


def _split_outside(
    places: Places, found: WriteTargets, ours: Sequence[str], room: ExtentLimits, doubts: list[str]
) -> None:
    """Separate the paths outside the roots that can be saved from the others."""
    for path, names in places.items():
        if is_within(path, _STREAMS):
            doubts.append(f"{path} is not a regular file")
            continue
        reason = _find_obstacle(path, names, ours)
        if not reason:
            try:
                room = _check_files({path: names}, room)
                found.outside[path] = names
                continue
            except TooBig:
                reason = TOO_LARGE
            except UnboundedWrite as unbounded:
                reason = unbounded.reason
                # A file elsewhere may have another name here.
                doubts.append(str(unbounded))
            except OSError:
                reason = CANNOT_READ
        elif reason != SYSTEM:
            doubts.append(f"{path}: {reason}")
        # A directory of which only new names count is lost with the files in it.
        if not names:
            found.lost[path] = reason


def _find_obstacle(path: str, names: tuple[str, ...] | None, ours: Sequence[str]) -> str:
    """Why a path outside the roots is never saved; empty if it may be."""
    if is_within(path, ours):
        return OWN_DATA
    if names is None and any(is_within(place, (path,)) for place in ours):
        return HOLDS_MORE
    is_system = is_within(path, _SYSTEM_DIRECTORIES) and not is_within(path, _SHARED_MEMORY)
    holds_system = names is None and any(is_within(s, (path,)) for s in _SYSTEM_DIRECTORIES)
    return SYSTEM if is_system or holds_system else ""


def _add(places: Places, names: tuple[str, ...] | None, *paths: str) -> None:
    """Add paths; one with everything below includes one without."""
    for path in paths:
        known = places.get(path, ())
        if known is None or names is None:
            places[path] = None
        else:
            places[path] = tuple(dict.fromkeys((*known, *names)))


def _resolve_act(act: Act) -> _Step:
    step = _Step(act)
    for path in act.places:
        for way in _record_way(step, path):
            _add(step.places, (), *way.ends, *(way.missing if act.makes_parents else ()))
            if act.files_only and os.path.isdir(way.ends[-1]):
                step.doubts.append(f"{path} is a directory")
    for path in act.trees:
        for way in _record_way(step, path):
            # Who removes or moves a link leaves alone what it leads to.
            is_taken = act.kind != "fills" and not path.endswith(("/", "/.", "/.."))
            _add(step.places, None, *(way.ends[:1] if is_taken else way.ends))
    for target, name in act.into:
        try:
            _add_target(step, target, name)
        except (UnboundedWrite, TooBig, OSError) as error:
            step.doubts.append(str(error) or f"{target} exceeds the limit")
    return step


def _record_way(step: _Step, path: str) -> Iterator[_Way]:
    """The way of a path; a doubt if it cannot be followed."""
    try:
        way = _follow(path)
    except (UnboundedWrite, OSError) as error:
        step.doubts.append(str(error))
        return
    if any(is_within(passed, ("/proc",)) for passed in way.passed):
        step.doubts.append(f"{path} may mean something else to another process")
    step.ways.append(way)
    yield way


def _add_target(step: _Step, target: str, name: str) -> None:
    for way in _record_way(step, target):
        ways = [way]
        if name and os.path.isdir(way.ends[-1]):
            # A link to a directory may be replaced itself, too.
            _add(step.places, (), *way.ends[:-1])
            ways = list(_record_way(step, f"{way.ends[-1]}/{name}"))
        for end in (end for way in ways for end in way.ends):
            _add(step.places, None, end)
            if os.path.isdir(end):
                _add_linked(step, end)


def _add_linked(step: _Step, directory: str) -> None:
    """Add the targets of links in a directory, through which copied files may be written."""
    waiting, names = [directory], 0
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                names += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_symlink():
                    step.doubts.append(f"{entry.path} may be written through")
                    for way in _record_way(step, entry.path):
                        _add(step.places, (), *way.ends)
        if names > _MAX_NAMES:
            step.doubts.append(f"there may be more links in {directory}")
            return


def _follow(path: str) -> _Way:
    """Every name that the kernel looks up for a path; missing names are taken literally."""
    way = _Way()
    *above, last = _split_parts(path) or [""]
    here = _walk("", above, way)
    named = f"{here}/{last}"
    end = _walk(here, [last], way) or "/"
    way.ends = [end] if last in ("", "..") else list(dict.fromkeys((named, end)))
    return way


def _walk(here: str, parts: list[str], way: _Way) -> str:
    """The target of the parts from a real directory, with all links followed."""
    waiting = deque(filter(None, parts))
    while waiting:
        part = waiting.popleft()
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        entry = f"{here}/{part}"
        way.passed.append(entry)
        mode = _read_mode(entry)
        if mode is not None and stat.S_ISLNK(mode):
            way.links.append(entry)
            if len(way.links) > _MAX_LINKS:
                raise UnboundedWrite(f"{entry} is a dangling link")
            target = os.readlink(entry)
            here = "" if target.startswith("/") else here
            waiting.extendleft(reversed(_split_parts(target)))
            continue
        if mode is None or (waiting and not stat.S_ISDIR(mode)):
            way.missing.append(entry)
        here = entry
    return here


def _split_parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _get_parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _read_mode(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _find_changed_meaning(step: _Step, later: _Step) -> Iterator[str]:
    """Why a later act may resolve its paths differently."""
    if step.act.kind == "fills":
        return
    for way in later.ways:
        # Something that is gone is nothing new, unless it was a link to somewhere else.
        for path in way.passed if step.act.kind == "moves" else way.links:
            if step.holds(path):
                yield f"{path} may lead elsewhere by then"


def _find_leaving(step: _Step, roots: Sequence[str]) -> Iterator[str]:
    for path in (path for way in step.ways for path in way.passed):
        if not is_within(path, roots) and not any(is_within(root, (path,)) for root in roots):
            yield f"{path} may be something else for the command"


def _find_scratch(step: _Step) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Directories in which a killed program leaves files, and what has such names there."""
    for directory in sorted(set(map(_get_parent, step.places))) if step.act.scratch else ():
        yield directory, step.act.scratch
        for name in _list_names(directory):
            if any(fnmatchcase(name, pattern) for pattern in step.act.scratch):
                yield f"{directory}/{name}", ()


def _list_names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _check_own(path: str, names: tuple[str, ...] | None, own: str) -> None:
    if is_within(path, (own,)) or (names is None and is_within(own, (path,))):
        raise UnboundedWrite(f"{path} also contains files outside the project")


def _check_files(places: Places, room: ExtentLimits) -> ExtentLimits:
    """Refuse hard-linked and special files, and files above the limit.

    Raises:
        UnboundedWrite: a file is hard-linked or special.
        TooBig: the limit is exceeded.
        OSError: it cannot be read.
    """
    files, size_bytes = room.files, room.size_bytes
    for place, names in places.items():
        is_tree = names is None and stat.S_ISDIR(_read_mode(place) or 0)
        inner = list_descendants(place, max_files=files, max_bytes=size_bytes) if is_tree else ()
        for path in (place, *inner):
            try:
                info = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            kind = stat.S_IFMT(info.st_mode)
            if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                raise UnboundedWrite(f"{path} is a special file", SPECIAL)
            if kind == stat.S_IFREG and info.st_nlink > 1:
                raise UnboundedWrite(f"{path} has other names", OTHER_NAMES)
            if kind == stat.S_IFREG and not os.access(path, os.R_OK):
                raise PermissionError(f"{path} cannot be read")
            files -= 1
            size_bytes -= info.st_size if kind == stat.S_IFREG else 0
    if files < 0 or size_bytes < 0:
        raise TooBig
    return ExtentLimits(files, size_bytes)
