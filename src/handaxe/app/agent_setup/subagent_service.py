"""Subagents of a session: starting, finding and resuming them."""

import os
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from handaxe.agent.limits import LoopOptions
from handaxe.agent.loop import AgentLoop
from handaxe.agent.loop_context import LoopContext
from handaxe.agent.subagents.definition_files import AgentDefinitions
from handaxe.agent.subagents.registry import SpawnLimits, SubagentRegistry
from handaxe.agent.subagents.spawn import SpawnedAgents
from handaxe.agent.subagents.worktree import WorktreeIsolation
from handaxe.app.agent_setup.prompt_builder import SystemPromptBuilder
from handaxe.app.agent_setup.subagent_session import SubagentSessionFactory
from handaxe.app.services.background import AGENTS
from handaxe.app.session import Session, get_parts
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.agents import AgentDefinition, Agents
from handaxe.contract.ports.model import Model
from handaxe.contract.ports.skills import Skills
from handaxe.storage.agent_files import AgentFiles
from handaxe.text.escape import format_suggestion

MODEL_VARIABLE = "CLAUDE_CODE_SUBAGENT_MODEL"


class SubagentOptions(msgspec.Struct, kw_only=True):
    """Options of a host for subagents."""

    kinds: AgentDefinitions
    limits: SpawnLimits | None
    """None: as in settings."""
    open_model: Callable[[str | None], Model]
    options: LoopOptions


def attach_subagents(
    session: Session,
    loop: AgentLoop,
    workplace: LoopContext,
    prompts: SystemPromptBuilder,
    wanted: SubagentOptions,
) -> SpawnedAgents:
    """Offer subagents to the session's tools, and their notices to its loop."""
    parts = get_parts(session)
    context = parts.pipeline_context
    directory = parts.session_context.session_directory / AGENTS
    workdir, kinds = session.workdir, wanted.kinds
    # Transcripts of background agents may be read.
    if str(directory) not in workdir.free_to_read:
        workdir.free_to_read = (*workdir.free_to_read, str(directory))
    family = SubagentRegistry(
        files=AgentFiles(directory, parts.configuration.redactor),
        kinds=kinds,
        make_session=SubagentSessionFactory(session, directory, prompts.session_context).make,
        open_model=_ModelCache(wanted.open_model),
        isolation=WorktreeIsolation(context, parts.configuration),
        emit=context.emit,
        tell=loop.tell,
        limits=wanted.limits or _read_limits(session),
        prices=loop.meter.prices,
        options=wanted.options,
        book=session.jobs,
    )
    if context.asker is not None:
        context.asker.is_background = partial(_is_background, family)
    agents = SpawnedAgents(family, context, meter=loop.meter)
    agents.paths.calls = loop.conversation.call_ids
    prompts.kinds = kinds()
    prompts.problems += (
        *kinds.problems,
        *_find_missing(kinds(), context.ports.get(Skills), session),
    )
    context.ports[Agents] = agents
    session.jobs.agents = agents
    workplace.await_work = session.jobs.wait_for_work
    workplace.notices = session.jobs.list_notices
    workplace.mark_told = session.jobs.mark_told
    return agents


def _is_background(family: SubagentRegistry, agent_id: str) -> bool:
    """Whether an agent or one of its parents is in the background."""
    run = family.runs.get(agent_id)
    while run is not None:
        if run.in_background:
            return True
        run = family.runs.get(run.agent.parent_id or "")
    return False


def _find_missing(
    kinds: tuple[AgentDefinition, ...], skills: Skills | None, session: Session
) -> Iterator[str]:
    """Unknown skills and servers in agent types."""
    if not any(kind.skills or kind.mcp_servers for kind in kinds):
        return
    known = {skill.name for skill in skills.all()} if skills is not None else set[str]()
    servers = (
        {server.name for server in session.mcp.status()} if session.mcp is not None else set[str]()
    )
    for kind in kinds:
        for name in kind.skills:
            if name not in known:
                hint = format_suggestion(name, known)
                yield f"{kind.source}: there is no skill {name!r}.{hint}"
        for name in (entry for entry in kind.mcp_servers if isinstance(entry, str)):
            if name not in servers:
                hint = format_suggestion(name, servers)
                yield f"{kind.source}: there is no MCP server {name!r}.{hint}"


def _read_limits(session: Session) -> SpawnLimits:
    options = session.settings.agents
    return SpawnLimits(
        max_depth=options.max_depth,
        max_running=options.max_running,
        auto_background_s=options.auto_background_s if session.settings.background_tasks else None,
        background=session.settings.background_tasks,
        max_output_chars=options.max_output_chars,
    )


class _ModelCache:
    """The model of an agent: from the environment, its definition or its parent."""

    def __init__(self, open_model: Callable[[str | None], Model]) -> None:
        self._open = open_model
        self._opened: dict[str, Model] = {}

    def __call__(self, name: str | None) -> Model:
        name = os.environ.get(MODEL_VARIABLE) or name
        if name is None:
            return self._open(None)
        if name not in self._opened:
            try:
                self._opened[name] = self._open(name)
            except SetupError:
                # A type for another provider still works, with the current model.
                self._opened[name] = self._open(None)
        return self._opened[name]
