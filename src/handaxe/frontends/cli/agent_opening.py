"""The agent that the options describe: its session, its model, its limits."""

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from handaxe.app.agent_api import Agent, OpenModel, opener_for
from handaxe.app.beginning import Setup, Start
from handaxe.app.session import Session
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import Usage
from handaxe.contract.ports.model import Model
from handaxe.frontends.cli.agent_modes import apply_mode
from handaxe.frontends.cli.agent_options import ignored_options
from handaxe.frontends.cli.opening import open_session, warn
from handaxe.frontends.cli.option_values import json_object, text_given
from handaxe.frontends.cli.server_options import sorted_servers
from handaxe.frontends.stream_json.serve import Brought
from handaxe.models.choose import open_model
from handaxe.storage.home import data_home, new_session_id
from handaxe.storage.sessions import (
    checked_name,
    conversations,
    events_of,
    fork_session,
    name_session,
    session_of,
)

if TYPE_CHECKING:
    from handaxe.agent.limits import Price
    from handaxe.app.permission_tool import PermissionTool
    from handaxe.contract.messages import Message
    from handaxe.frontends.cli.own_checkout import OwnCheckout

WAIT_VARIABLE = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"
_WAIT_S = 600.0
_FOR_EVER_S = 1e8


class NoConversation(SetupError):
    """The conversation to go on with is not there."""


class AgentOpener:
    """Opens the agent once, when it is clear what the other end brings along."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._temporary: Path | None = None
        self._discovery = apply_mode(arguments)
        self._is_old = self._is_fork = False
        arguments.mcp_config, self.servers = sorted_servers(arguments)
        self._output_schema = json_object(arguments.json_schema, "--json-schema")
        self._agents = json_object(arguments.agents, "--agents") or {}
        self._system = text_given(arguments.system_prompt, arguments.system_prompt_file)
        self._append = text_given(
            arguments.append_system_prompt, arguments.append_system_prompt_file
        )
        if arguments.dangerously_skip_permissions:
            arguments.permission_mode = "bypassPermissions"
        self._kept: tuple[Message, ...] | None = None
        self._name = None if arguments.name is None else checked_name(arguments.name)
        self._checkout = _checkout(arguments)
        try:
            self._home = self._data_home()
            arguments.session_id = self._session_id()
        except BaseException:
            self.clean_up()
            raise
        self._default_model: str | None = arguments.model
        self._open_model: OpenModel = open_model
        self.wait_for_agents_s = _seconds(os.environ.get(WAIT_VARIABLE, ""))
        """How long the end of a run waits for agents in the background."""
        self.permission_tool = _permission_tool(arguments.permission_prompt_tool)
        """Who is asked where the other end brings nobody."""
        self.defers_calls = True
        """Whether a run ends where a hook puts a call off."""
        self.waits_for_servers = False
        """Whether the first answer waits for all MCP servers."""

    def open(self, brought: Brought) -> Agent:
        """The agent with its session."""
        arguments, session = self._arguments, self.open_session(brought)
        self._default_model = arguments.model or session.settings.model
        self._open_model = opener_for(session.settings)
        agent = Agent(
            arguments.model,
            session,
            open_model=self.model,
            system_prompt=self._system,
            append_system_prompt=self._append or "",
            max_turns=arguments.max_turns,
            max_cost_usd=arguments.max_budget_usd,
            prices=Prices(),
            output_schema=self._output_schema,
            thinking_tokens=arguments.max_thinking_tokens or None,
            agents={**self._agents, **brought.agents},
            agent=arguments.agent,
            effort=arguments.effort,
            append_subagent_system_prompt=arguments.append_subagent_system_prompt or "",
            wait_for_agents_s=self.wait_for_agents_s,
            defer_calls=self.defers_calls,
            context_apart=brought.context_apart,
        )
        if self._kept is not None:
            agent.loop.go_back(self._kept)
        if self.waits_for_servers:
            agent.patience = "long" if arguments.mcp_config else "all"
        return agent

    def open_session(self, brought: Brought) -> Session:
        """The session alone, for what needs no model."""
        arguments = self._arguments
        warn(f"{name} has no effect here." for name in ignored_options(arguments))
        warn(f"MCP server {name}: {why}" for name, why in self.servers.problems.items())
        if brought.servers:
            arguments.mcp_config = [*arguments.mcp_config, dict(brought.servers)]
        tool = self.permission_tool
        session = open_session(
            arguments,
            on_ask=brought.on_ask or (tool and tool.ask),
            on_question=brought.on_question,
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

    def _start(self, source: str | None) -> Start | None:
        """How the session begins, where that is not what its past says."""
        arguments = self._arguments
        is_asked = arguments.init or arguments.init_only
        setup: Setup | None = "init" if is_asked else None
        if setup is None and arguments.maintenance:
            setup = "maintenance"
        if source is None and self._is_fork:
            source = "fork"
        if source is None and setup is not None:
            source = "resume" if self._is_old else "startup"
        return None if source is None else Start(source, setup)

    def model(self, name: str | None) -> Model:
        """The model of this name, or the one that was chosen at the start."""
        first = self._open_model(name or self._default_model)
        others = (self._arguments.fallback_model or "").replace(",", " ").split()
        if not others:
            return first
        from handaxe.models.fallback import FallbackModel

        return FallbackModel(first, [partial(self._open_model, other) for other in others])

    def found(self, wanted: str) -> str:
        """The id of the conversation that has this id or name."""
        return _found(self._home, wanted)

    def clean_up(self) -> None:
        """Leave nothing behind of a run that is not to be kept."""
        if self._checkout is not None:
            self._checkout.close()
        if self._temporary is not None:
            import shutil

            shutil.rmtree(self._temporary, ignore_errors=True)

    def _data_home(self) -> Path:
        if not self._arguments.no_session_persistence:
            return data_home()
        from handaxe.storage.passing_home import passing_home

        self._temporary = passing_home(data_home())
        return self._temporary

    def _kept_messages(self, session_id: str) -> "tuple[Message, ...] | None":
        """What is left of a conversation that goes on from an earlier message."""
        at: str | None = self._arguments.resume_session_at
        if at is None:
            return None
        from handaxe.app.earlier_points import DropsMore, NoSuchMessage, messages_up_to

        dropped: str | None = self._arguments.resume_drops_turn
        try:
            return messages_up_to(events_of(data_home(), session_id), at, only_dropping=dropped)
        except (NoSuchMessage, DropsMore) as refused:
            raise NoConversation(str(refused)) from None

    def _newest(self) -> str | None:
        found = conversations(data_home(), os.path.realpath(self._arguments.root))
        return next((talk.session_id for talk in found), None)

    def _session_id(self) -> str | None:
        """The session to work in: a new one, an old one, or a copy of an old one."""
        arguments = self._arguments
        wanted: str | None = arguments.resume or None
        if arguments.continue_ and wanted is None:
            wanted = self._newest()
            if wanted is None:
                raise NoConversation("There is no conversation in this project to continue.")
        elif arguments.resume is not None and wanted is None:
            raise SetupError("--resume needs the id of a session here; `handaxe sessions` lists.")
        if wanted is None:
            return arguments.session_id
        wanted = _found(data_home(), wanted)
        self._kept = self._kept_messages(wanted)
        self._is_old, self._is_fork = True, bool(arguments.fork_session)
        if not self._is_fork and arguments.session_id not in (None, wanted):
            raise SetupError("--session-id with --resume or --continue needs --fork-session.")
        if not self._is_fork and self._temporary is None:
            return wanted
        new_id: str = (arguments.session_id or new_session_id()) if self._is_fork else wanted
        fork_session(data_home(), wanted, new_id, into=self._home)
        return new_id


def _found(home: Path, wanted: str) -> str:
    session_id = session_of(home, wanted)
    if session_id is None:
        raise NoConversation(f"No conversation found with session ID: {wanted}")
    return session_id


class Prices(Mapping[str, "Price"]):
    """What models cost, looked up when somebody asks."""

    def __getitem__(self, model: str) -> "Price":
        from handaxe.agent.limits import Price
        from handaxe.models.prices import card_of

        card = card_of(model)
        if card is None:
            raise KeyError(model)
        return Price(
            input=card.input,
            output=card.output,
            cache_read=card.cache_read,
            cache_write=card.cache_write,
        )

    def __iter__(self) -> Iterator[str]:
        from handaxe.models.prices import price_list

        return iter(price_list().models)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def cost_of(model: str, usage: Usage) -> float | None:
    """What one model's tokens cost, if anybody knows."""
    from handaxe.models.prices import cost_usd

    return cost_usd(model, usage)


def _checkout(arguments: argparse.Namespace) -> "OwnCheckout | None":
    """A worktree for this run, if one is wanted; the run's root from now on."""
    if arguments.worktree is None:
        return None
    from handaxe.frontends.cli.own_checkout import OwnCheckout

    made = OwnCheckout(arguments)
    arguments.root = made.path
    return made


def _permission_tool(name: str | None) -> "PermissionTool | None":
    """The tool of an MCP server that answers permission questions, if one is named."""
    if name is None or name == "stdio":
        return None
    if not re.fullmatch(r"mcp__.+?__.+", name):
        raise SetupError(
            f"--permission-prompt-tool wants mcp__SERVER__TOOL or stdio, not {name!r}."
        )
    from handaxe.app.permission_tool import PermissionTool

    return PermissionTool(name)


def _seconds(given_ms: str) -> float:
    """How long a variable says; 0 is for ever."""
    if not given_ms.strip().isdecimal():
        return _WAIT_S
    return int(given_ms) / 1000 or _FOR_EVER_S
