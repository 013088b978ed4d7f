"""The list of skills for the model: names and purposes, without the texts."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from handaxe.config.settings import Settings
from handaxe.contract.ports.skills import SkillInfo, Skills
from handaxe.session.read_ledger import ReadLedger
from handaxe.text.framing import frame, quote_line

BUDGET_VARIABLE = "SLASH_COMMAND_TOOL_CHAR_BUDGET"
"""The ecosystem's variable for the maximum length of the list, in characters."""
LISTING_CHARS = 8_000
PURPOSE_CHARS = 1_536
_CONTEXT_CHARS = 800_000


class SkillAnnouncer:
    """Announces the available skills to a model: most at the start, others when relevant.

    A skill for certain files, or of a part of the project, is announced when such a file was used.
    It is sent as a message, so that earlier content stays unchanged.
    """

    def __init__(self, ports: Mapping[type[Any], Any], settings: Settings) -> None:
        self._ports = ports
        self._settings = settings
        self._told: set[str] = set()
        self._later: dict[str, SkillInfo] = {}
        self._seen = 0

    def first(self) -> str:
        """A section of the system prompt; empty without skills."""
        self._seen = self._touched()
        listed = self._listed()
        self._told = {skill.name for skill in listed}
        self._later = {}
        return format_skill_list(listed, *self._limits())

    def __call__(self) -> tuple[str, ...]:
        """New skills since more files were used; mostly empty."""
        seen = self._touched()
        if seen == self._seen:
            return ()
        self._seen = seen
        new = [skill for skill in self._listed() if skill.name not in self._told]
        self._told.update(skill.name for skill in new)
        self._later |= {skill.name: skill for skill in new}
        return self._news(new)

    def reminders(self) -> tuple[str, ...]:
        """Later announcements again, for a shortened conversation."""
        return self._news(list(self._later.values()))

    def _touched(self) -> int:
        ledger: ReadLedger = self._ports[ReadLedger]
        return len(ledger.paths())

    def _listed(self) -> list[SkillInfo]:
        skills: Skills = self._ports[Skills]
        return _filter_listed(skills.all())

    def _news(self, skills: Sequence[SkillInfo]) -> tuple[str, ...]:
        told = format_skill_list(skills, *self._limits())
        return (f"More skills are now available.\n\n{told}",) if told else ()

    def _limits(self) -> tuple[int, int]:
        settings = self._settings
        given = settings.env.get(BUDGET_VARIABLE, os.environ.get(BUDGET_VARIABLE, "")).strip()
        chars = settings.skill_listing_budget * _CONTEXT_CHARS
        return int(given) if given.isdecimal() else int(chars), settings.skill_purpose_chars


def format_skill_list(
    skills: Sequence[SkillInfo], chars: int = LISTING_CHARS, purpose_chars: int = PURPOSE_CHARS
) -> str:
    """The available skills, one line each; empty if there are none.

    If the purposes are too long in total, all are cut equally, so that every name stays.
    """
    wanted = _filter_listed(skills)
    if not wanted:
        return ""
    room = max(0, chars - sum(len(skill.name) + 6 for skill in wanted)) // len(wanted)
    lines = [_format_skill_line(skill, min(room, purpose_chars)) for skill in wanted]
    return "\n".join(("# Skills you can run with the Skill tool", "", *lines))


def _filter_listed(skills: Sequence[SkillInfo]) -> list[SkillInfo]:
    return [skill for skill in skills if skill.for_model and skill.is_due]


def _format_skill_line(skill: SkillInfo, room: int) -> str:
    given = " ".join(part for part in (skill.description, skill.when_to_use) if part)
    purpose, name = quote_line(given), quote_line(skill.name)
    if len(purpose) > room:
        purpose = purpose[: max(0, room - 3)].rstrip() + "..." if room > 3 else ""
    return f"- {name}: {purpose}" if purpose else f"- {name}"


def format_skill_texts(skills: Skills, names: Sequence[str]) -> str:
    """The texts of an agent's initial skills, without those that only users may run."""
    known = {skill.name: skill for skill in skills.all() if skill.for_model}
    sections: list[str] = []
    for name in names:
        if name in known:
            body = fill_placeholders(skills.body(known[name]), "", variables={})
            sections.append(frame("skill-text", body, name=name))
    return "\n\n".join(("# Skills that you follow", *sections)) if sections else ""


_PLACE = re.compile(
    r"\\(?P<escaped>\$(?:ARGUMENTS|\d+|[A-Za-z_]\w*|\{))"
    r"|\$ARGUMENTS\[(?P<index>\d+)\]"
    r"|\$(?P<all>ARGUMENTS)\b"
    r"|\$(?P<number>\d+)"
    r"|\$\{(?P<variable>[A-Z_]+)\}"
    r"|\$(?P<name>[A-Za-z_]\w*)"
)
_INLINE_COMMAND = re.compile(r"(?<![\\`])!`([^`\n]+)`")
_BLOCK_COMMAND = re.compile(r"^```!\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def fill_placeholders(
    body: str, arguments: str, *, names: Sequence[str] = (), variables: Mapping[str, str]
) -> str:
    """The body with `$ARGUMENTS`, `$0`, `$name` and `${VARIABLE}` replaced.

    Arguments that the body does not mention are appended, so that they are never lost.
    """
    values = _split(arguments)
    used = False

    def value_of(match: re.Match[str]) -> str:
        nonlocal used
        if (escaped := match["escaped"]) is not None:
            return escaped
        if match["all"] is not None:
            used = True
            return arguments
        if (digits := match["index"] or match["number"]) is not None:
            used = True
            at = int(digits) if len(digits) < 4 else len(values)
            return values[at] if at < len(values) else match[0]
        if (variable := match["variable"]) is not None:
            return variables.get(variable, match[0])
        name = match["name"]
        if name in names:
            used = True
            at = list(names).index(name)
            return values[at] if at < len(values) else ""
        return match[0]

    filled = _PLACE.sub(value_of, body)
    if arguments and not used:
        filled = f"{filled.rstrip()}\n\nARGUMENTS: {arguments}\n"
    return filled


def find_commands(body: str) -> list[str]:
    """The shell commands whose output is inserted in the text, in order, each once."""
    found = [(match.start(), match[1].strip()) for match in _INLINE_COMMAND.finditer(body)]
    found += [(match.start(), match[1].strip()) for match in _BLOCK_COMMAND.finditer(body)]
    return list(dict.fromkeys(command for _, command in sorted(found) if command))


def insert_outputs(body: str, outputs: Mapping[str, str]) -> str:
    """The text with every command replaced by its output."""

    def said(match: re.Match[str]) -> str:
        return outputs.get(match[1].strip(), match[0])

    return _INLINE_COMMAND.sub(said, _BLOCK_COMMAND.sub(said, body))


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()
