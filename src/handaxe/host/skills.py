"""Skills and commands in the places where people keep them."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from handaxe.contract.ports.skills import SkillInfo, Skills
from handaxe.contract.skill_faults import SkillUnreadable
from handaxe.text.frontmatter import BadFrontmatter, split, text_of, truth, words

MAX_BYTES = 4 << 20
DESCRIPTION_CHARS = 1_536
SKILL_FILE = "SKILL.md"
RESERVED = "synced"

_HOMES = (".claude", ".handaxe")


class _Read(msgspec.Struct, frozen=True):
    stamp: tuple[int, int]
    skill: SkillInfo | None
    problem: str = ""


class DiskSkills(Skills):
    """Skills of the user, of the project and of added directories; the user's come first."""

    def __init__(self, home: str, directories: Callable[[], Sequence[str]]) -> None:
        """`directories` gives the current directory and the roots."""
        self._home = home
        self._directories = directories
        self._read: dict[str, _Read] = {}

    def all(self) -> tuple[SkillInfo, ...]:
        """Every skill by name; of two with one name the more general place wins."""
        found: dict[str, SkillInfo] = {}
        for path, name in self._files():
            skill = self._info(path, name).skill
            if skill is not None:
                found.setdefault(skill.name, skill)
        return tuple(found[name] for name in sorted(found))

    def body(self, skill: SkillInfo) -> str:
        """The whole text of a skill, without its head."""
        try:
            return split(_text(Path(skill.path)))[1]
        except (OSError, ValueError) as error:
            raise SkillUnreadable(skill.path, str(error)) from None

    def problems(self) -> tuple[str, ...]:
        """Files that were skipped, one sentence each."""
        read = (self._info(path, name) for path, name in self._files())
        return tuple(found.problem for found in read if found.problem)

    def _files(self) -> Iterator[tuple[Path, str]]:
        """Every file that may hold a skill, with its name; skills before commands."""
        places = [Path(self._home), *_upwards(self._directories())]
        folders = list(dict.fromkeys(place / home for place in places for home in _HOMES))
        seen: set[str] = set()
        for folder in folders:
            for directory in _children(folder / "skills"):
                real = os.path.realpath(directory / SKILL_FILE)
                if directory.name != RESERVED and real not in seen and Path(real).is_file():
                    seen.add(real)
                    yield directory / SKILL_FILE, directory.name
        for folder in folders:
            for path in sorted((folder / "commands").glob("**/*.md")):
                yield path, path.stem

    def _info(self, path: Path, name: str) -> _Read:
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._read.get(str(path))
            if known is None or known.stamp != stamp:
                fields, body = split(_text(path))
                known = _Read(stamp, _skill(path, name, fields, body))
        except (OSError, ValueError) as error:
            problem = error if isinstance(error, BadFrontmatter) else str(error)
            known = _Read((0, 0), None, f"{path} is no skill: {problem}")
        self._read[str(path)] = known
        return known


def _skill(path: Path, name: str, fields: dict[str, object], body: str) -> SkillInfo:
    described = text_of(fields, "description") or _first_paragraph(body)
    return SkillInfo(
        name=name,
        description=described[:DESCRIPTION_CHARS],
        when_to_use=text_of(fields, "when_to_use")[:DESCRIPTION_CHARS],
        argument_hint=text_of(fields, "argument-hint"),
        arguments=words(fields.get("arguments")),
        allowed_tools=words(fields.get("allowed-tools")),
        disallowed_tools=words(fields.get("disallowed-tools")),
        model=_unless(text_of(fields, "model"), "inherit"),
        effort=text_of(fields, "effort") or None,
        in_background=truth(fields.get("background"), default=False),
        for_model=not truth(fields.get("disable-model-invocation"), default=False),
        for_user=truth(fields.get("user-invocable"), default=True),
        forks=text_of(fields, "context") == "fork",
        agent_type=text_of(fields, "agent"),
        directory=str(path.parent) if path.name == SKILL_FILE else "",
        path=str(path),
        hooks=_table(fields.get("hooks")),
    )


def _table(given: object) -> dict[str, Any]:
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _unless(text: str, standard: str) -> str | None:
    return None if text in {"", standard} else text


def _first_paragraph(body: str) -> str:
    lines = [line.strip() for line in body.strip().split("\n\n")[0].splitlines()]
    return " ".join(line.lstrip("# ") for line in lines)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES:,} bytes")
    return content.decode()


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _upwards(directories: Sequence[str]) -> Iterator[Path]:
    """Each directory and those above it, up to the top of its repository."""
    for directory in directories:
        place = Path(directory)
        above = [place, *place.parents]
        top = next((at for at, path in enumerate(above) if (path / ".git").exists()), 0)
        yield from above[: top + 1]
