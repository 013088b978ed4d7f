"""The skills a model may run, as it is told of them: names and purposes, never the texts."""

from collections.abc import Sequence

from handaxe.contract.ports.skills import SkillInfo, Skills
from handaxe.text.skill_text import fill

LISTING_CHARS = 8_000


def skill_listing(skills: Sequence[SkillInfo]) -> str:
    """A section of the system prompt; empty if there is nothing to run.

    Where the purposes together are too long all are cut alike, so that every name stays.
    """
    wanted = [skill for skill in skills if skill.for_model]
    if not wanted:
        return ""
    room = max(0, LISTING_CHARS - sum(len(skill.name) + 6 for skill in wanted)) // len(wanted)
    lines = [_line(skill, room) for skill in wanted]
    return "\n".join(("# Skills you can run with the Skill tool", "", *lines))


def _line(skill: SkillInfo, room: int) -> str:
    purpose = " ".join(part for part in (skill.description, skill.when_to_use) if part)
    if len(purpose) > room:
        purpose = purpose[: max(0, room - 3)].rstrip() + "..." if room > 3 else ""
    return f"- {skill.name}: {purpose}" if purpose else f"- {skill.name}"


def skills_in_sight(skills: Skills, names: Sequence[str]) -> str:
    """The texts of skills that an agent has from the start; those only people run stay out."""
    known = {skill.name: skill for skill in skills.all() if skill.for_model}
    sections: list[str] = []
    for name in names:
        if name in known:
            body = fill(skills.body(known[name]), "", variables={})
            sections.append(f"## {name}\n\n{body.strip()}")
    return "\n\n".join(("# Skills that you follow", *sections)) if sections else ""
