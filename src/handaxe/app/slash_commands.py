"""Slash commands: `/name arguments` becomes the text of a skill or command."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import msgspec

from handaxe.app.session import Session, get_parts
from handaxe.contract.context import ToolContext
from handaxe.contract.events import WishRefused
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.agents import Agents
from handaxe.contract.ports.skills import SkillInfo, Skills
from handaxe.hooks.notify import fire_hooks
from handaxe.session.invoked_skills import InvokedSkills
from handaxe.session.turn_overrides import TurnOverrides
from handaxe.text.escape import find_closest_name
from handaxe.text.framing import neutralize

# A name with slashes is a path, unless it is a skill of a part of the project.
_NAME = r"[A-Za-z][\w.:-]*|[\w.-]+(?:/[\w.-]+)+:[\w.-]+"
_COMMAND = re.compile(rf"/({_NAME})(?:\s+(.*))?", re.DOTALL)
MAX_STACKED = 6
_MAX_NAMED = 10
_AS_TEXT = "Put it in quotation marks to send it as text."


class SlashCommand(msgspec.Struct, frozen=True):
    """A typed command."""

    name: str
    arguments: str = ""


def parse_slash_command(text: str) -> SlashCommand | None:
    """The command of a line; None for other text, such as a path."""
    found = _COMMAND.fullmatch(text.strip())
    return None if found is None else SlashCommand(found[1], (found[2] or "").strip())


def list_slash_commands(session: Session) -> tuple[SkillInfo, ...]:
    """Every skill and command that the user may type."""
    skills: Skills = get_parts(session).pipeline_context.ports[Skills]
    return tuple(skill for skill in skills.all() if skill.for_user)


async def expand_prompt(session: Session, text: str) -> str:
    """The prompt with a typed command replaced by its text.

    Raises SetupError for an unknown command that is not a path or that a hook refuses, ToolFault if
    its text cannot be made.
    """
    typed = parse_slash_command(text)
    if typed is None or get_parts(session).configuration.discovery.skills == "none":
        return text
    if typed.name.startswith("mcp__") and (prompt := await _render_mcp_prompt(session, typed)):
        return prompt
    known = {skill.name: skill for skill in list_slash_commands(session)}
    skill = known.get(typed.name)
    if skill is None:
        near = find_closest_name(typed.name, list(known))
        if near is None and _is_path(typed):
            return text
        hint = f"Did you mean /{near}?" if near else _list_known(list(known))
        raise SetupError(f"There is no command /{typed.name}. {hint}")
    stacked, arguments = _parse_stacked(skill, typed.arguments, known)
    for one in stacked:
        await _ask_hooks(session, one, arguments, text)
    return "\n\n".join([await _run_skill(session, one, arguments) for one in stacked])


async def _render_mcp_prompt(session: Session, typed: SlashCommand) -> str | None:
    """The text of a server's prompt, with its arguments in order."""
    get_parts(session).follow()
    servers = session.mcp
    if servers is None:
        return None
    await servers.settled()
    prompt = next((one for one in await servers.prompts() if one.name == typed.name), None)
    if prompt is None:
        return None
    try:
        given = shlex.split(typed.arguments)
    except ValueError:
        given = typed.arguments.split()
    last = len(prompt.arguments) - 1
    values = [*given[:last], " ".join(given[last:])] if len(given) > last >= 0 else given
    filled = dict(zip(prompt.arguments, values, strict=False))
    missing = [name for name in prompt.required if name not in filled]
    if missing:
        raise SetupError(f"/{typed.name} needs: {', '.join(missing)}.")
    return neutralize(await servers.prompt(prompt.name, filled))


def _parse_stacked(
    first: SkillInfo, arguments: str, known: Mapping[str, SkillInfo]
) -> tuple[list[SkillInfo], str]:
    """The commands of a line that starts with several, and their common arguments."""
    stacked = [first]
    while len(stacked) < MAX_STACKED and not first.forks:
        typed = parse_slash_command(arguments)
        skill = None if typed is None else known.get(typed.name)
        if typed is None or skill is None or skill.forks:
            break
        stacked.append(skill)
        arguments = typed.arguments
    return stacked, arguments


async def _ask_hooks(session: Session, skill: SkillInfo, arguments: str, text: str) -> None:
    outcome = await fire_hooks(
        get_parts(session).pipeline_context,
        "UserPromptExpansion",
        expansion_type="slash_command",
        command_name=skill.name,
        command_args=arguments,
        command_source="project" if skill.powers.is_projects else "user",
        prompt=text,
    )
    refusal = outcome.blocked or outcome.stop
    if refusal is not None:
        raise SetupError(f"A hook refuses /{skill.name}: {refusal}")
    get_parts(session).pipeline_context.hooks.late += outcome.messages


def _is_path(typed: SlashCommand) -> bool:
    return Path(f"/{typed.name}").exists()


def _list_known(names: list[str]) -> str:
    """The commands to type instead of an unknown one."""
    if not names:
        return _AS_TEXT
    shown = ", ".join(f"/{name}" for name in sorted(names)[:_MAX_NAMED])
    more = ", ..." if len(names) > _MAX_NAMED else ""
    return f"Commands: {shown}{more}. {_AS_TEXT}"


async def render_command(session: Session, skill: SkillInfo, arguments: str) -> str:
    """The text of a skill or command with these arguments; it grants no permissions."""
    from handaxe.tools.meta.skill import render_skill

    body = await render_skill(skill, arguments, _make_context(session))
    _tell_refusal(session, skill)
    return _frame_command(skill, arguments, body)


async def _run_skill(session: Session, skill: SkillInfo, arguments: str) -> str:
    from handaxe.tools.meta.skill import enter_skill, fork_skill, format_outcome

    body, refused = await enter_skill(skill, arguments, _make_context(session))
    get_parts(session).pipeline_context.hooks.late += refused
    _tell_refusal(session, skill)
    ports = get_parts(session).pipeline_context.ports
    agents: Agents | None = ports.get(Agents)
    if skill.forks and agents is not None:
        outcome = await fork_skill(skill, body, agents, lambda _: None)
        said = neutralize(format_outcome(skill, outcome))
        return f"The user ran `{_format_typed(skill, arguments)}`. {said}"
    wishes: TurnOverrides | None = ports.get(TurnOverrides)
    if wishes is not None:
        wishes.request_override(skill.model, skill.effort, skill.path)
    invoked: InvokedSkills = ports[InvokedSkills]
    invoked.enter(skill.name, body)
    return _frame_command(skill, arguments, body)


def _tell_refusal(session: Session, skill: SkillInfo) -> None:
    """Notify the user of requests of a project's file that were not granted."""
    reason = get_parts(session).configuration.gate.refusal(skill.powers)
    if reason is not None:
        get_parts(session).pipeline_context.emit(WishRefused(file=skill.path, reason=reason))


def _make_context(session: Session) -> ToolContext:
    from handaxe.tools.meta.skill import Skill

    ports = get_parts(session).pipeline_context.ports
    return ToolContext(get_parts(session).new_call_id(), ports, Skill().reach, _report_nothing)


def _report_nothing(*_: object) -> None:
    """Ignore progress."""


def _frame_command(skill: SkillInfo, arguments: str, body: str) -> str:
    text = neutralize(body.strip())
    where = f"\n\nBase directory for this skill: {skill.directory}" if skill.directory else ""
    return f"The user runs `{_format_typed(skill, arguments)}`. Follow this:\n\n{text}{where}"


def _format_typed(skill: SkillInfo, arguments: str) -> str:
    return f"/{skill.name} {arguments}".strip()
