"""The directories of skills and commands, and their precedence.

Skills in a subdirectory of a project apply after a file there was used; then they stay.
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
    """Where to search, in order of precedence."""

    managed: tuple[str, ...] = ()
    """Directories of an organisation, which contain a folder such as `.claude`."""
    users: tuple[str, ...] = ()
    """The user's folders, which contain `skills` directly."""
    directories: Callable[[], Sequence[str]] = _get_none
    """The working directories; those above apply too, up to the top of the repository."""
    added: Callable[[], Sequence[str]] = _get_none
    """Directories that the user added."""
    root: str = ""
    touched: Callable[[], Sequence[str]] = _get_none
    """The used files; they activate parts of the project below `root`."""
    commands: bool = True
    trusted_as: str = ""
    """The folder whose trust applies below `root`, if another: a worktree shares the trust of its
    project.
    """


class SkillFile(msgspec.Struct, frozen=True):
    """A file that may contain a skill."""

    path: Path
    name: str
    base: str
    """The base directory of its patterns."""
    part: str = ""
    """The part of the project it belongs to, relative to the root."""
    is_command: bool = False
    owner: Owner = "project"
    root: str = ""
    """The folder that it belongs to."""
    trusted_as: str = ""
    """The folder whose trust applies to it."""

    @property
    def leads_astray(self) -> bool:
        """Whether a project's link leads to a file outside the project."""
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
    """Finds the files; active parts of a project stay active."""

    def __init__(self, places: SkillLocations) -> None:
        self._places = places
        self._looked_at: set[str] = set()
        self._parts: dict[str, None] = {}

    def all(self) -> Iterator[SkillFile]:
        """Every file, skills before commands, by precedence."""
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
        """The permanent folders, each with its owner."""
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
        """Activate the parts of the project in which files were used since the last call."""
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
    """The skills of one folder; one with several paths counts at the first."""
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
