"""`/name arguments` typed by a person: the text of a skill or command in its place."""

import re
from pathlib import Path

import msgspec

from handaxe.app.agent_kinds import is_users_own
from handaxe.app.session import Session
from handaxe.contract.context import ToolContext
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.agents import Agents
from handaxe.contract.ports.skills import SkillInfo, Skills
from handaxe.runtime.pipeline.telling import fire
from handaxe.session.invoked_skills import InvokedSkills
from handaxe.session.turn_wishes import TurnWishes
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
        SetupError: no such command and no such path either; or a hook refuses it.
        ToolFault: the command's text cannot be made.
    """
    typed = typed_command(text)
    if typed is None:
        return text
    known = {skill.name: skill for skill in commands_of(session)}
    skill = known.get(typed.name)
    if skill is None:
        near = nearest(typed.name, list(known))
        if near is None and _may_be_about_a_path(typed):
            return text
        hint = f" Did you mean /{near}?" if near else ""
        raise SetupError(f"There is no command /{typed.name}.{hint}")
    outcome = await fire(
        session.collaborators,
        "UserPromptExpansion",
        expansion_type="slash_command",
        command_name=skill.name,
        command_args=typed.arguments,
        command_source="user" if is_users_own(Path(skill.path)) else "project",
        prompt=text,
    )
    refusal = outcome.blocked or outcome.stop
    if refusal is not None:
        raise SetupError(f"A hook refuses /{skill.name}: {refusal}")
    session.collaborators.hooks.late += outcome.messages
    return await _text_of(session, skill, typed.arguments)


def _may_be_about_a_path(typed: Typed) -> bool:
    return bool(typed.arguments) or Path(f"/{typed.name}").exists()


async def command_text(session: Session, skill: SkillInfo, arguments: str) -> str:
    """What a skill or command says with these arguments; nothing is permitted by it."""
    from handaxe.tools.meta.skill import skill_text

    body = await skill_text(skill, arguments, _context(session))
    return _framed(skill, arguments, body)


async def _text_of(session: Session, skill: SkillInfo, arguments: str) -> str:
    from handaxe.tools.meta.skill import forked, grant, outcome_text, skill_text

    ctx = _context(session)
    body = await skill_text(skill, arguments, ctx)
    session.collaborators.hooks.late += grant(skill, ctx)
    offers = session.collaborators.offers
    agents: Agents | None = offers.get(Agents)
    if skill.forks and agents is not None:
        outcome = await forked(skill, body, agents, lambda _: None)
        return f"The user ran `{_typed(skill, arguments)}`. {outcome_text(skill, outcome)}"
    wishes: TurnWishes | None = offers.get(TurnWishes)
    if wishes is not None:
        wishes.wish(skill.model, skill.effort, skill.path)
    invoked: InvokedSkills = offers[InvokedSkills]
    invoked.enter(skill.name, body)
    return _framed(skill, arguments, body)


def _context(session: Session) -> ToolContext:
    from handaxe.tools.meta.skill import Skill

    offers = session.collaborators.offers
    return ToolContext(session.new_call_id(), offers, Skill().reach, lambda _: None)


def _framed(skill: SkillInfo, arguments: str, body: str) -> str:
    where = f"\n\nBase directory for this skill: {skill.directory}" if skill.directory else ""
    return f"The user runs `{_typed(skill, arguments)}`. Follow this:\n\n{body.strip()}{where}"


def _typed(skill: SkillInfo, arguments: str) -> str:
    return f"/{skill.name} {arguments}".strip()
