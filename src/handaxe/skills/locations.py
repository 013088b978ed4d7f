"""The places where people keep skills and commands, and in which order they count.

Skills of a part of a project, below the directory one works in, count since a file there was
touched; then they stay.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from handaxe.contract.trust_gate import Owner
from handaxe.git.discovery import find_top

SKILL_FILE = "SKILL.md"
RESERVED = "synced"

_FOLDERS = (".claude", ".handaxe")


def _get_none() -> tuple[str, ...]:
    return ()


class SkillLocations(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look, the place that counts most first."""

    managed: tuple[str, ...] = ()
    """Directories of an organisation; a folder such as `.claude` lies in them."""
    users: tuple[str, ...] = ()
    """The user's own folders: `skills` lies right in them."""
    directories: Callable[[], Sequence[str]] = _get_none
    """Where one works; those above count too, up to the top of the repository."""
    added: Callable[[], Sequence[str]] = _get_none
    """Directories that were added by hand."""
    root: str = ""
    touched: Callable[[], Sequence[str]] = _get_none
    """The files that were read or changed; parts of the project below `root` count by them."""
    commands: bool = True
    trusted_as: str = ""
    """The folder whose trust counts below `root`, if that is another one: a checkout of the same
    project is recognised by its files."""


class SkillFile(msgspec.Struct, frozen=True):
    """A file that may hold a skill."""

    path: Path
    name: str
    base: str
    """The directory that its patterns start at."""
    part: str = ""
    """The part of the project it belongs to, by its path from the root."""
    is_command: bool = False
    owner: Owner = "project"
    root: str = ""
    """The folder that it belongs to."""
    trusted_as: str = ""
    """The folder whose trust counts for it."""

    @property
    def leads_astray(self) -> bool:
        """Whether a project's link leads to a file that is not the project's."""
        if self.owner != "project":
            return False
        real = os.path.realpath(self.path)
        places = (os.path.realpath(place) for place in (self.base, self.root) if place)
        return not any(real.startswith(f"{place.rstrip('/')}/") for place in places)


class _Folder(msgspec.Struct, frozen=True):
    base: str
    owner: Owner = "project"
    root: str = ""
    trusted_as: str = ""

    def to_file(self, path: Path, name: str, *, is_command: bool = False) -> SkillFile:
        """A file in this folder."""
        return SkillFile(
            path,
            name,
            self.base,
            is_command=is_command,
            owner=self.owner,
            root=self.root,
            trusted_as=self.trusted_as or self.root,
        )


class SkillFiles:
    """Finds the files; parts of a project that counted once go on counting."""

    def __init__(self, places: SkillLocations) -> None:
        self._places = places
        self._looked_at: set[str] = set()
        self._parts: dict[str, None] = {}

    def all(self) -> Iterator[SkillFile]:
        """Every file, skills before commands, what counts more before what counts less."""
        folders = self._list_folders()
        seen: set[str] = set()
        known: set[str] = set()
        for folder, place in folders.items():
            for found in _find_skills(folder, place, seen):
                known.add(found.name)
                yield found
        for part, found in self._find_part_skills(seen):
            is_taken = found.name in known
            known.add(found.name)
            name = f"{part}:{found.name}" if is_taken else found.name
            yield msgspec.structs.replace(found, name=name, part=part)
        if self._places.commands:
            for folder, place in folders.items():
                for path in sorted((folder / "commands").glob("**/*.md")):
                    yield place.to_file(path, path.stem, is_command=True)

    def _list_folders(self) -> dict[Path, _Folder]:
        """Folders that always count, each with whose it is."""
        places = self._places
        own = _Folder(places.root, "own")
        folders: dict[Path, _Folder] = {}
        for directory in places.managed:
            folders |= {Path(directory) / name: own for name in _FOLDERS}
        folders |= {Path(user): own for user in places.users}
        for directory in _walk_up(places.directories()):
            for name in _FOLDERS:
                folders.setdefault(directory / name, self._build_project_folder(str(directory)))
        for added in places.added():
            for name in _FOLDERS:
                folders.setdefault(Path(added) / name, _Folder(added, root=added))
        return folders

    def _build_project_folder(self, base: str) -> _Folder:
        places = self._places
        return _Folder(base, root=places.root, trusted_as=places.trusted_as)

    def _find_part_skills(self, seen: set[str]) -> Iterator[tuple[str, SkillFile]]:
        self._follow()
        for directory in self._parts:
            part = directory[len(self._places.root) :].strip("/")
            place = self._build_project_folder(directory)
            for name in _FOLDERS:
                for found in _find_skills(Path(directory) / name, place, seen):
                    yield part, found

    def _follow(self) -> None:
        """Note the parts of the project in which files were touched since the last time."""
        root = self._places.root.rstrip("/")
        for path in self._places.touched() if root else ():
            above: list[str] = []
            directory = path.rpartition("/")[0]
            while directory.startswith(f"{root}/") and directory not in self._looked_at:
                self._looked_at.add(directory)
                above.append(directory)
                directory = directory.rpartition("/")[0]
            self._parts |= dict.fromkeys(reversed(above))


def _find_skills(folder: Path, place: _Folder, seen: set[str]) -> Iterator[SkillFile]:
    """The skills of one folder; one that several places lead to counts in the first."""
    for directory in _list_children(folder / "skills"):
        real = os.path.realpath(directory / SKILL_FILE)
        is_free = directory.name.casefold() != RESERVED and real not in seen
        if is_free and Path(real).is_file():
            seen.add(real)
            yield place.to_file(directory / SKILL_FILE, directory.name)


def _list_children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _walk_up(directories: Sequence[str]) -> Iterator[Path]:
    """Each directory and those above it, up to the top of its repository."""
    for directory in directories:
        place = Path(directory)
        above = [place, *place.parents]
        top = above.index(Path(find_top(directory) or directory))
        yield from above[: top + 1]
