"""Skill: load a written procedure into the conversation."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.faults.agent import AgentFailed
from handaxe.contract.faults.configuration import NoSkill, SkillCommandFailed, UserOnlySkill
from handaxe.contract.permission_subjects import Subject, TextSubject
from handaxe.contract.ports.agents import AgentOutcome, AgentRequest, Agents
from handaxe.contract.ports.skills import SkillCapabilities, SkillInfo, Skills
from handaxe.contract.ports.tools import ToolCaller
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.contract.trust_gate import TrustGate
from handaxe.session.invoked_skills import InvokedSkills, SkillHooks
from handaxe.session.permission_state import PermissionState
from handaxe.session.turn_overrides import TurnOverrides
from handaxe.session.workdir import SessionIdentity
from handaxe.skills.listing import fill_placeholders, find_commands, insert_outputs
from handaxe.text.escape import find_closest_name

COMMAND_TIMEOUT_MS = 120_000
NOT_RUN = "[shell command execution disabled by policy]"
NOT_TRUSTED = "[command not run: the user has not approved it for this project]"


class SkillArgs(ToolArgs, kw_only=True):
    skill: Annotated[str, "The skill's name, as listed."]
    args: Annotated[str, "Its arguments, as one line."] = ""


class LoadedSkillData(TypedDict):
    """A skill that was loaded into the conversation."""

    success: bool
    commandName: str
    path: str
    allowedTools: NotRequired[Annotated[list[str], "Rules that apply for this turn."]]


class ForkedSkillData(TypedDict):
    """A skill that a subagent runs."""

    success: bool
    commandName: str
    status: Literal["forked", "async_launched"]
    agentId: str
    result: str


class Skill(Tool[SkillArgs]):
    aliases = ("SlashCommand",)
    search_hint = "run a written procedure or slash command"
    output_type = LoadedSkillData | ForkedSkillData
    uses = (Skills, InvokedSkills, SessionIdentity)
    may_use = (ToolCaller, PermissionState, Settings, Agents, TurnOverrides, SkillHooks, TrustGate)
    effects = Effects.on_state("skills")

    def subjects(self, args: SkillArgs) -> tuple[Subject, ...]:
        return (TextSubject(f"{_parse_name(args)} {args.args}".strip()),)

    async def validate(self, args: SkillArgs, ctx: ToolContext) -> None:
        skill = _find(ctx[Skills], _parse_name(args))
        if not skill.for_model:
            raise UserOnlySkill(name=skill.name)

    async def call(self, args: SkillArgs, ctx: ToolContext) -> ToolResult:
        skill = _find(ctx[Skills], _parse_name(args))
        text, notes = await enter_skill(skill, args.args, ctx)
        agents = ctx.find(Agents)
        if skill.forks and agents is not None:
            outcome = await fork_skill(skill, text, agents, ctx.report, ctx.call_id)
            return msgspec.structs.replace(_report(skill, outcome), notes=notes)
        if (wishes := ctx.find(TurnOverrides)) is not None:
            wishes.request_override(skill.model, skill.effort, skill.path)
        data: LoadedSkillData = {
            "success": True,
            "commandName": skill.name,
            "path": skill.path,
        }
        if allowed := _grant_powers(skill, ctx).allowed_tools:
            data["allowedTools"] = list(allowed)
        if not ctx[InvokedSkills].enter(skill.name, text):
            told = f"The skill {skill.name} is already loaded; follow it."
            return ToolResult(told, data=data, notes=notes)
        where = f"\n\nBase directory for this skill: {skill.directory}" if skill.directory else ""
        return ToolResult(
            f"Launching skill: {skill.name}",
            data=data,
            messages=(text.rstrip() + where,),
            notes=notes,
        )

    def title(self, partial_input: dict[str, Any]) -> str:
        said = f"{partial_input.get('skill', '')} {partial_input.get('args', '')}"
        return f"Skill({said.strip()})"


async def enter_skill(
    skill: SkillInfo, arguments: str, ctx: ToolContext
) -> tuple[str, tuple[str, ...]]:
    """Load a skill: its text and the rules that were refused.

    Its permission rules apply for this turn, also to the commands in its text. Its hooks become
    active.
    """
    permissions = ctx.find(PermissionState) or PermissionState()
    allowed = _grant_powers(skill, ctx).allowed_tools
    with permissions.apply_turn_grants(allowed, skill.disallowed_tools):
        text = await render_skill(skill, arguments, ctx)
    gate, hooks = ctx.find(TrustGate), ctx.find(SkillHooks)
    told = (
        gate.refusal(skill.powers) if gate is not None else None,
        hooks.enter(skill) if hooks is not None else None,
    )
    return text, tuple(filter(None, told))


def _grant_powers(skill: SkillInfo, ctx: ToolContext) -> SkillCapabilities:
    return skill.powers.grant(ctx.find(TrustGate))


async def fork_skill(
    skill: SkillInfo,
    text: str,
    agents: Agents,
    report: Callable[[str], None],
    call_id: str | None = None,
) -> AgentOutcome:
    """Run a skill as the task of a subagent."""
    request = AgentRequest(
        description=f"/{skill.name}",
        prompt=text.strip(),
        kind=skill.agent_type or None,
        model=skill.model,
        effort=skill.effort,
        in_background=skill.in_background,
        call_id=call_id,
    )
    return await agents.start(request, report)


def format_outcome(skill: SkillInfo, outcome: AgentOutcome) -> str:
    """Format the result of a skill that a subagent ran."""
    state = outcome.state
    if outcome.in_background:
        return (
            f"The skill {skill.name} runs in the background as agent {state.agent_id}. "
            f"You get a notice when it ends; its output so far: {state.output_file}"
        )
    wrong = f"It ended with an error: {'; '.join(outcome.errors)}\n\n" if outcome.errors else ""
    return f"Agent {state.agent_id} ran the skill {skill.name}. {wrong}{outcome.text}"


def _report(skill: SkillInfo, outcome: AgentOutcome) -> ToolResult:
    data: ForkedSkillData = {
        "success": not outcome.errors,
        "commandName": skill.name,
        "status": "async_launched" if outcome.in_background else "forked",
        "agentId": outcome.state.agent_id,
        "result": outcome.text,
    }
    if outcome.has_failed:
        raise AgentFailed(format_outcome(skill, outcome), data={**data})
    return ToolResult(format_outcome(skill, outcome), data=data)


def _parse_name(args: SkillArgs) -> str:
    return args.skill.strip().removeprefix("/")


def _find(skills: Skills, name: str) -> SkillInfo:
    known = {skill.name: skill for skill in skills.all()}
    if name not in known:
        listed = [skill.name for skill in known.values() if skill.for_model]
        raise NoSkill(name, find_closest_name(name, listed), listed)
    return known[name]


async def render_skill(skill: SkillInfo, arguments: str, ctx: ToolContext) -> str:
    """The skill's text with its arguments and the output of its commands."""
    body = ctx[Skills].body(skill)
    # The commands come from the file; text from an argument is never one.
    approved = _grant_powers(skill, ctx).commands
    outputs = {
        command: await _run_command(command, skill, ctx) if command in approved else NOT_TRUSTED
        for command in find_commands(body)
    }
    wishes = ctx.find(TurnOverrides)
    variables = {
        "CLAUDE_SESSION_ID": ctx[SessionIdentity].session_id,
        "CLAUDE_PROJECT_DIR": ctx[SessionIdentity].root,
        "CLAUDE_SKILL_DIR": skill.directory,
        "CLAUDE_EFFORT": skill.effort or (wishes.effort if wishes is not None else ""),
    }
    pieces = insert_outputs(body, {command: f"\0{at}\0" for at, command in enumerate(outputs)})
    filled = fill_placeholders(pieces, arguments, names=skill.arguments, variables=variables)
    for at, output in enumerate(outputs.values()):
        filled = filled.replace(f"\0{at}\0", output)
    return filled + _describe_variants(skill)


def _describe_variants(skill: SkillInfo) -> str:
    """Describe skills of the same name in parts of the project."""
    if not skill.variants:
        return ""
    lines = [f"- {name}: for files below {name.rpartition(':')[0]}" for name in skill.variants]
    head = "Parts of this project also have a skill of this name. Run it too for files there:"
    return "\n\n" + "\n".join((head, *lines, ""))


async def _run_command(command: str, skill: SkillInfo, ctx: ToolContext) -> str:
    settings, caller = ctx.find(Settings), ctx.find(ToolCaller)
    if settings is not None and settings.disable_skill_shell_execution:
        return NOT_RUN
    if caller is None:
        raise SkillCommandFailed(skill.name, command, "this session cannot run commands")
    call_input = {"command": command, "timeout": COMMAND_TIMEOUT_MS}
    result = await caller.call(ctx.call_id, "Bash", call_input)
    if not result.ok:
        was_refused = (result.code or "").startswith(("permission.", "hook."))
        raise SkillCommandFailed(skill.name, command, result.text, was_refused=was_refused)
    # Only its output: the duration is not part of the skill's text.
    data: dict[str, Any] = result.data or {}
    return str(data.get("stdout", result.text)).rstrip("\n")
