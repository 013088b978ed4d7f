"""`/name arguments` typed by a person: the text of a skill or command in its place."""

import re

import msgspec

from handaxe.app.session import Session
from handaxe.contract.context import ToolContext
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.skills import SkillInfo, Skills
from handaxe.session.invoked_skills import InvokedSkills
from handaxe.text.near_names import nearest

_COMMAND = re.compile(r"/([A-Za-z][\w.:-]*)(?:\s+(.*))?", re.DOTALL)


class Typed(msgspec.Struct, frozen=True):
    """A command as it was typed."""

    name: str
    arguments: str = ""


def typed_command(text: str) -> Typed | None:
    """The command that a line is; None for anything else, such as a path."""
    found = _COMMAND.fullmatch(text.strip())
    return None if found is None else Typed(found[1], (found[2] or "").strip())


def commands_of(session: Session) -> tuple[SkillInfo, ...]:
    """Every skill and command that a person may type."""
    skills: Skills = session.collaborators.offers[Skills]
    return tuple(skill for skill in skills.all() if skill.for_user)


async def expanded(session: Session, text: str) -> str:
    """What a prompt says: a typed command becomes its text, all else stays.

    Raises:
        SetupError: no such command, but one with nearly that name.
        ToolFault: the command's text cannot be made.
    """
    typed = typed_command(text)
    if typed is None:
        return text
    known = {skill.name: skill for skill in commands_of(session)}
    skill = known.get(typed.name)
    if skill is None:
        near = nearest(typed.name, list(known))
        if near is None:
            return text
        raise SetupError(f"There is no command /{typed.name}. Did you mean /{near}?")
    return await _text_of(session, skill, typed.arguments)


async def command_text(session: Session, skill: SkillInfo, arguments: str) -> str:
    """What a skill or command says with these arguments; nothing is permitted by it."""
    return _framed(skill, arguments, await _body(session, skill, arguments))


async def _text_of(session: Session, skill: SkillInfo, arguments: str) -> str:
    body = await _body(session, skill, arguments)
    if skill.allowed_tools:
        session.permissions.grant_for_turn(skill.allowed_tools)
    invoked: InvokedSkills = session.collaborators.offers[InvokedSkills]
    invoked.enter(skill.name, body)
    return _framed(skill, arguments, body)


async def _body(session: Session, skill: SkillInfo, arguments: str) -> str:
    from handaxe.tools.meta.skill import Skill, skill_text

    offers = session.collaborators.offers
    ctx = ToolContext(session.new_call_id(), offers, Skill().reach, lambda _: None)
    return await skill_text(skill, arguments, ctx)


def _framed(skill: SkillInfo, arguments: str, body: str) -> str:
    said = f"/{skill.name} {arguments}".strip()
    where = f"\n\nBase directory for this skill: {skill.directory}" if skill.directory else ""
    return f"The user runs `{said}`. Follow this:\n\n{body.strip()}{where}"
