"""Skills and commands in files: frontmatter, texts, and overrides by settings."""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from handaxe.contract.faults.configuration import SkillUnreadable
from handaxe.contract.ports.skills import NO_POWERS, SkillCapabilities, SkillInfo, Skills
from handaxe.contract.trust_gate import TrustRequest
from handaxe.skills.listing import find_commands
from handaxe.skills.locations import SkillFile, SkillFiles, SkillLocations
from handaxe.text.frontmatter import (
    BadFrontmatter,
    get_text,
    parse_bool,
    parse_word_list,
    split_frontmatter,
)
from handaxe.text.globs import GlobPattern

MAX_BYTES = 4 << 20

Stamp = tuple[int, int]


class _Version(msgspec.Struct, frozen=True):
    stamp: Stamp
    text: str | None
    """None: it could not be read, and is tried again on demand."""


class SkillVersions:
    """The active versions of skill files in a session."""

    def __init__(self) -> None:
        self._since_ns: int | None = None
        self._settled: dict[str, _Version] = {}
        self._refused: dict[str, Stamp] = {}
        self._pending: dict[str, Stamp | None] = {}

    def counts(self, path: Path) -> bool:
        """Whether a file is active; a new one is not yet."""
        return self._since_ns is None or str(path) in self._settled

    def stamp(self, path: Path) -> Stamp:
        """The identity of a version."""
        version = self._settled.get(str(path))
        return _read_stamp(path) if version is None else version.stamp

    def text(self, path: Path) -> str:
        """The active text; `OSError` or `ValueError` if it cannot be read."""
        version = self._settled.get(str(path))
        held = None if version is None else version.text
        return read_text(path) if held is None else held

    def news(self, files: Iterable[Path]) -> tuple[str, ...]:
        """The files that were added, changed or removed since the last check; none at first."""
        is_first = self._since_ns is None
        if is_first:
            self._since_ns = time.time_ns()
        for path in files:
            self._look_at(path, is_first=is_first)
        gone = [name for name in self._settled if not Path(name).exists()]
        self._pending |= dict.fromkeys(gone)
        return tuple(self._pending)

    def settle(self, refused: Collection[str]) -> None:
        """Activate the changes, except refused ones; removed files become inactive."""
        for name, stamp in self._pending.items():
            if stamp is None:
                self._settled.pop(name, None)
            elif name in refused:
                self._refused[name] = stamp
            else:
                self._take(Path(name), stamp)
        self._pending = {}

    def _look_at(self, path: Path, *, is_first: bool) -> None:
        name = str(path)
        try:
            stamp, changed_ns = _read_stamp(path), path.stat().st_ctime_ns
        except OSError:
            return
        known = self._settled.get(name)
        if known is not None and known.stamp == stamp:
            self._refused.pop(name, None)
        elif is_first or (known is None and changed_ns < (self._since_ns or 0)):
            # It was there before, and comes in sight only now.
            self._take(path, stamp)
        elif self._refused.get(name) != stamp:
            self._pending[name] = stamp

    def _take(self, path: Path, stamp: Stamp) -> None:
        try:
            text = read_text(path)
        except (OSError, ValueError):
            text = None
        self._settled[str(path)] = _Version(stamp, text)


def read_text(path: Path) -> str:
    """The text of a skill's file."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES:,} bytes")
    return content.decode()


def _read_stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


DESCRIPTION_CHARS = 1_536


class _Read(msgspec.Struct, frozen=True):
    stamp: tuple[int, int]
    skill: SkillInfo | None
    problem: str = ""
    patterns: tuple[GlobPattern, ...] = ()


class DiskSkills(Skills):
    """Skills of an organisation, the user, the project and added directories, in this order."""

    def __init__(
        self,
        places: SkillLocations,
        override_of: Callable[[str], str] = lambda _: "on",
        versions: SkillVersions | None = None,
    ) -> None:
        """`override_of` returns by name who may see a skill, whatever its file says.

        `versions` are shared by all users of skills in a session.
        """
        self._versions = versions or SkillVersions()
        self._touched = places.touched
        self._files = SkillFiles(places)
        self._override_of = override_of
        self._read: dict[str, _Read] = {}
        self._awake: set[str] = set()

    def all(self) -> tuple[SkillInfo, ...]:
        """Every skill by name; the more general location wins."""
        found: dict[str, SkillInfo] = {}
        variants: dict[str, list[str]] = {}
        for file in self._files.all():
            read = self._read_info(file)
            if read.skill is None or not self._versions.counts(file.path):
                continue
            name = file.name
            if name not in found:
                found[name] = self._now(read.skill, file, read.patterns)
                if file.part and name.startswith(f"{file.part}:"):
                    variants.setdefault(file.path.parent.name, []).append(name)
        for name, others in variants.items():
            if name in found:
                found[name] = msgspec.structs.replace(found[name], variants=tuple(others))
        shown = (_apply_override(found[name], self._override_of(name)) for name in sorted(found))
        return tuple(skill for skill in shown if skill is not None)

    def body(self, skill: SkillInfo) -> str:
        """The complete text of a skill without its frontmatter."""
        try:
            return split_frontmatter(self._versions.text(Path(skill.path)))[1]
        except (OSError, ValueError) as error:
            raise SkillUnreadable(path=skill.path, problem=str(error)) from None

    def problems(self) -> tuple[str, ...]:
        """Files that were skipped, one sentence each."""
        read = (self._read_info(file) for file in self._files.all())
        return tuple(found.problem for found in read if found.problem)

    def news(self) -> tuple[str, ...]:
        """Files that were added, changed or removed since the last check and are not active yet."""
        return self._versions.news(file.path for file in self._files.all())

    def settle(self, refused: Collection[str]) -> None:
        """Activate the changes, except for files whose change was refused."""
        self._versions.settle(refused)

    def _now(self, skill: SkillInfo, file: SkillFile, patterns: Sequence[GlobPattern]) -> SkillInfo:
        """The skill under its current name, and whether it is active."""
        if patterns and skill.path not in self._awake:
            base = file.base.rstrip("/") + "/"
            near = (path[len(base) :] for path in self._touched() if path.startswith(base))
            if any(pattern.matches(path) for path in near for pattern in patterns):
                self._awake.add(skill.path)
        is_due = not patterns or skill.path in self._awake
        return msgspec.structs.replace(skill, name=file.name, is_due=is_due)

    def _read_info(self, file: SkillFile) -> _Read:
        path = file.path
        if file.leads_astray:
            return _Read((0, 0), None, f"{path} leads out of the project, so it is ignored.")
        try:
            stamp = self._versions.stamp(path)
            known = self._read.get(str(path))
            if known is None or known.stamp != stamp:
                fields, body = split_frontmatter(self._versions.text(path))
                patterns = (
                    ()
                    if file.is_command
                    else _compile_patterns(parse_word_list(fields.get("paths")))
                )
                skill = _build_skill(file, fields, body)
                known = _Read(stamp, skill, patterns=patterns)
        except (OSError, ValueError) as error:
            problem = error if isinstance(error, BadFrontmatter) else str(error)
            known = _Read((0, 0), None, f"{path} is not a valid skill: {problem}")
        self._read[str(path)] = known
        return known


def _build_skill(file: SkillFile, fields: dict[str, Any], body: str) -> SkillInfo:
    described = get_text(fields, "description") or _extract_first_paragraph(body)
    return SkillInfo(
        name=file.name,
        description=described[:DESCRIPTION_CHARS],
        when_to_use=get_text(fields, "when_to_use")[:DESCRIPTION_CHARS],
        argument_hint=get_text(fields, "argument-hint"),
        arguments=parse_word_list(fields.get("arguments")),
        powers=_build_powers(file, fields, body),
        disallowed_tools=parse_word_list(fields.get("disallowed-tools")),
        model=_omit_default(get_text(fields, "model"), "inherit"),
        effort=get_text(fields, "effort") or None,
        in_background=parse_bool(fields.get("background"), default=False),
        for_model=not parse_bool(fields.get("disable-model-invocation"), default=False),
        for_user=parse_bool(fields.get("user-invocable"), default=True),
        forks=get_text(fields, "context") == "fork",
        agent_type=get_text(fields, "agent"),
        directory="" if file.is_command else str(file.path.parent),
        path=str(file.path),
    )


def _build_powers(
    file: SkillFile, fields: dict[str, Any], body: str
) -> TrustRequest[SkillCapabilities]:
    wanted = SkillCapabilities(
        allowed_tools=parse_word_list(fields.get("allowed-tools")),
        hooks=_to_dict(fields.get("hooks")),
        commands=tuple(find_commands(body)),
    )
    path = str(file.path)
    key = f"skill:{path.removeprefix(f'{file.root}/')}"
    return TrustRequest(
        wanted, NO_POWERS, key=key, file=path, root=file.trusted_as, owner=file.owner
    )


def _apply_override(skill: SkillInfo, override: str) -> SkillInfo | None:
    """The skill with the override of the settings."""
    match override:
        case "off":
            return None
        case "user-invocable-only":
            return msgspec.structs.replace(skill, for_model=False)
        case "name-only":
            return msgspec.structs.replace(skill, description="", when_to_use="")
        case _:
            return skill


def _compile_patterns(texts: Sequence[str]) -> tuple[GlobPattern, ...]:
    return tuple(GlobPattern(text) for text in texts)


def _to_dict(given: object) -> dict[str, Any]:
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _omit_default(text: str, standard: str) -> str | None:
    return None if text in {"", standard} else text


def _extract_first_paragraph(body: str) -> str:
    lines = [line.strip() for line in body.strip().split("\n\n")[0].splitlines()]
    return " ".join(line.lstrip("# ") for line in lines)
