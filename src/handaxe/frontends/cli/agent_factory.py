"""The agent that the options describe: session, model and limits."""

import argparse
import math
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from handaxe.app.agent import Agent
from handaxe.app.services.session_model import OpenModel, make_model_opener
from handaxe.app.session import Session
from handaxe.app.start import SessionStart, Setup
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.model import Model
from handaxe.frontends.cli.agent_options import (
    choose_on_ask,
    list_ignored_options,
    read_background_wait,
)
from handaxe.frontends.cli.option_values import (
    parse_json_object,
    partition_servers,
    read_prices,
    read_prompt_option,
)
from handaxe.frontends.cli.session_options import apply_mode, open_session, warn
from handaxe.frontends.stream_json.server import ClientOptions
from handaxe.models.factory import open_model
from handaxe.storage.home import find_data_home, generate_session_id
from handaxe.storage.sessions import (
    find_session,
    fork_session,
    list_conversations,
    name_session,
    read_events,
    validate_session_name,
)

if TYPE_CHECKING:
    from handaxe.app.agent_setup.permission_prompt_tool import PermissionPromptTool
    from handaxe.contract.messages import Message
    from handaxe.frontends.cli.worktree_option import RunWorktree


class ConversationNotFound(SetupError):
    """The conversation to continue does not exist."""


class AgentFactory:
    """Opens the agent once the options of the client are known."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._temporary: Path | None = None
        self._discovery = apply_mode(arguments)
        self._is_old = self._is_fork = False
        arguments.mcp_config, self.servers = partition_servers(arguments)
        self._output_schema = parse_json_object(arguments.json_schema, "--json-schema")
        self._agents = parse_json_object(arguments.agents, "--agents") or {}
        self._system = read_prompt_option(arguments.system_prompt, arguments.system_prompt_file)
        self._append = read_prompt_option(
            arguments.append_system_prompt, arguments.append_system_prompt_file
        )
        if arguments.dangerously_skip_permissions:
            arguments.permission_mode = "bypassPermissions"
        self._kept: tuple[Message, ...] | None = None
        self._name = None if arguments.name is None else validate_session_name(arguments.name)
        self._checkout = _create_worktree(arguments)
        try:
            self._home = self._choose_data_home()
            arguments.session_id = self._session_id()
        except BaseException:
            self.clean_up()
            raise
        self._default_model: str | None = arguments.model
        self._open_model: OpenModel = open_model
        self.prices = read_prices(arguments.prices)
        self.wait_s = read_background_wait(arguments.background_wait, os.environ)
        """Seconds to wait at the end of a run for background agents, and for commands."""
        self.permission_tool = _open_permission_tool(arguments.permission_prompt_tool)
        """The tool that answers permission questions if the client does not."""
        self.defers_calls = True
        """Whether a run ends when a hook defers a call."""
        self.waits_for_servers = False
        """Whether the first answer waits for all MCP servers."""

    def open(self, brought: ClientOptions) -> Agent:
        """The agent with its session."""
        _check_limits(self._arguments)
        arguments, session = self._arguments, self.open_session(brought)
        self._default_model = arguments.model or session.settings.model
        self._open_model = make_model_opener(session.settings)
        agent = Agent(
            arguments.model,
            session,
            open_model=self.model,
            system_prompt=self._system,
            append_system_prompt=self._append or "",
            max_turns=arguments.max_turns,
            max_cost_usd=arguments.max_budget_usd,
            prices=self.prices,
            max_tokens=arguments.max_total_tokens,
            output_schema=self._output_schema,
            thinking_tokens=arguments.max_thinking_tokens or None,
            agents={**self._agents, **brought.agents},
            agent=arguments.agent,
            effort=arguments.effort,
            append_subagent_system_prompt=arguments.append_subagent_system_prompt or "",
            wait_for_agents_s=self.wait_s[0],
            wait_for_commands_s=self.wait_s[1],
            defer_calls=self.defers_calls,
            context_apart=brought.context_apart,
            record=arguments.record,
        )
        if self._kept is not None:
            agent.loop.rewind(self._kept)
        if self.waits_for_servers:
            agent.server_wait = "long" if arguments.mcp_config else "all"
        return agent

    def open_session(self, brought: ClientOptions) -> Session:
        """The session without an agent, for work that needs no model."""
        arguments = self._arguments
        warn(f"{name} has no effect here." for name in list_ignored_options(arguments))
        warn(f"MCP server {name}: {why}" for name, why in self.servers.problems.items())
        if brought.servers:
            arguments.mcp_config = [*arguments.mcp_config, dict(brought.servers)]
        tool = self.permission_tool
        session = open_session(
            arguments,
            on_ask=brought.on_ask or (tool and tool.ask) or choose_on_ask(arguments),
            on_question=brought.on_question,
            on_elicit=brought.on_elicit,
            hooks=brought.hooks,
            home=self._home,
            start=self._start(brought.source),
            discovery=msgspec.structs.replace(self._discovery, only_skills=brought.skills),
        )
        if tool is not None:
            tool.join(session)
        if self._name is not None:
            name_session(self._home, session.id, self._name)
        return session

    def _start(self, source: str | None) -> SessionStart | None:
        """The source of SessionStart, unless the session's past decides it."""
        arguments = self._arguments
        is_asked = arguments.init or arguments.init_only
        setup: Setup | None = "init" if is_asked else None
        if setup is None and arguments.maintenance:
            setup = "maintenance"
        if source is None and self._is_fork:
            source = "fork"
        if source is None and setup is not None:
            source = "resume" if self._is_old else "startup"
        return None if source is None else SessionStart(source, setup)

    def model(self, name: str | None) -> Model:
        """The model of this name, or the default model."""
        first = self._open_model(name or self._default_model)
        others = (self._arguments.fallback_model or "").replace(",", " ").split()
        if not others:
            return first
        from handaxe.models.factory import FallbackModel

        return FallbackModel(first, [partial(self._open_model, other) for other in others])

    def found(self, wanted: str) -> str:
        """The id of the conversation that has this id or name."""
        return _find_session(self._home, wanted)

    def clean_up(self) -> None:
        """Remove the worktree and the temporary data of the run."""
        if self._checkout is not None:
            self._checkout.close()
        if self._temporary is not None:
            import shutil

            shutil.rmtree(self._temporary, ignore_errors=True)

    def _choose_data_home(self) -> Path:
        if not self._arguments.no_session_persistence:
            return find_data_home()
        from handaxe.frontends.cli.worktree_option import create_ephemeral_home

        self._temporary = create_ephemeral_home(find_data_home())
        return self._temporary

    def _load_kept_messages(self, session_id: str) -> "tuple[Message, ...] | None":
        """The messages that remain when a conversation continues from an earlier message."""
        at: str | None = self._arguments.resume_session_at
        if at is None:
            return None
        from handaxe.app.rewind import RewindDropsMore, collect_messages_until
        from handaxe.contract.faults.session import NoSuchMessage

        dropped: str | None = self._arguments.resume_drops_turn
        try:
            return collect_messages_until(
                read_events(find_data_home(), session_id), at, only_dropping=dropped
            )
        except (NoSuchMessage, RewindDropsMore) as refused:
            raise ConversationNotFound(str(refused)) from None

    def _find_newest(self) -> str | None:
        found = list_conversations(find_data_home(), os.path.realpath(self._arguments.root))
        return next((talk.session_id for talk in found), None)

    def _session_id(self) -> str | None:
        """The id of the session: a new one, an old one or a copy of an old one."""
        arguments = self._arguments
        wanted: str | None = arguments.resume or None
        if arguments.continue_ and wanted is None:
            wanted = self._find_newest()
            if wanted is None:
                raise ConversationNotFound("There is no conversation in this project to continue.")
        elif arguments.resume is not None and wanted is None:
            raise SetupError(
                "--resume needs the id or name of a session. `handaxe sessions` lists them."
            )
        if wanted is None:
            return arguments.session_id
        wanted = _find_session(find_data_home(), wanted)
        self._kept = self._load_kept_messages(wanted)
        self._is_old, self._is_fork = True, bool(arguments.fork_session)
        if not self._is_fork and arguments.session_id not in (None, wanted):
            raise SetupError("--session-id with --resume or --continue needs --fork-session.")
        if not self._is_fork and self._temporary is None:
            return wanted
        new_id: str = (arguments.session_id or generate_session_id()) if self._is_fork else wanted
        fork_session(find_data_home(), wanted, new_id, into=self._home)
        return new_id


def _find_session(home: Path, wanted: str) -> str:
    session_id = find_session(home, wanted)
    if session_id is None:
        raise ConversationNotFound(f"No conversation found with session ID: {wanted}")
    return session_id


def _create_worktree(arguments: argparse.Namespace) -> "RunWorktree | None":
    """Make the worktree of --worktree and use it as the root."""
    if arguments.worktree is None:
        return None
    from handaxe.frontends.cli.worktree_option import RunWorktree

    made = RunWorktree(arguments)
    arguments.root = made.path
    return made


def _open_permission_tool(name: str | None) -> "PermissionPromptTool | None":
    """The MCP tool that answers permission questions, if one is named."""
    if name is None or name == "stdio":
        return None
    if not re.fullmatch(r"mcp__.+?__.+", name):
        raise SetupError(
            f"--permission-prompt-tool must be mcp__SERVER__TOOL or stdio; got {name!r}."
        )
    from handaxe.app.agent_setup.permission_prompt_tool import PermissionPromptTool

    return PermissionPromptTool(name)


def _check_limits(arguments: argparse.Namespace) -> None:
    """Check limits under the names of their options."""
    for name in ("max_turns", "max_total_tokens"):
        if (count := getattr(arguments, name)) is not None and count < 1:
            raise SetupError(f"--{name.replace('_', '-')} must be at least 1.")
    spent = arguments.max_budget_usd
    if spent is not None and not 0 < spent < math.inf:
        raise SetupError("--max-budget-usd must be a number above 0.")
