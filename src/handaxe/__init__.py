"""handaxe: the tool runtime for coding agents.

A model decides what to do; handaxe is how it gets done: reading, searching, editing, running,
safely and fast. Names are imported when they are first used, so that importing the package
costs next to nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from handaxe.agent.limits import Price
    from handaxe.agent.subagents.registry import SpawnLimits
    from handaxe.app.agent import Agent
    from handaxe.app.agent_setup.session_loop_context import open_tasks
    from handaxe.app.services.call_presenter import CallPresenter
    from handaxe.app.session import Session
    from handaxe.app.sync import AgentConnection, Connection, connect
    from handaxe.config.settings import Settings
    from handaxe.contract import (
        Allow,
        Ask,
        Defer,
        Deny,
        Effects,
        PathSubject,
        PermissionRequest,
        SetupError,
        State,
        TextSubject,
        Tool,
        ToolArgs,
        ToolCall,
        ToolContext,
        ToolFault,
        ToolResult,
    )
    from handaxe.contract.permission_subjects import CommandSubject, HostSubject
    from handaxe.contract.ports.conversation import Conversation, SessionInfo
    from handaxe.contract.ports.files import Files
    from handaxe.contract.ports.questions import ElicitationForm
    from handaxe.contract.result_schema import result_schema
    from handaxe.frontends.mcp_server.lent_session import serve_mcp
    from handaxe.hooks.outcome import Outcome
    from handaxe.schema.provider_results import image_message
    from handaxe.session.read_ledger import ReadLedger
    from handaxe.session.workdir import Workdir
    from handaxe.sessions import SessionsModule
    from handaxe.tools.function_tool import tool
    from handaxe.version import __version__ as __version__

    sessions: SessionsModule

_HOMES = {
    "__version__": "handaxe.version",
    "Agent": "handaxe.app.agent",
    "AgentConnection": "handaxe.app.sync",
    "Allow": "handaxe.contract",
    "Ask": "handaxe.contract",
    "CommandSubject": "handaxe.contract.permission_subjects",
    "connect": "handaxe.app.sync",
    "CallPresenter": "handaxe.app.services.call_presenter",
    "Connection": "handaxe.app.sync",
    "Conversation": "handaxe.contract.ports.conversation",
    "Defer": "handaxe.contract",
    "Deny": "handaxe.contract",
    "Effects": "handaxe.contract",
    "ElicitationForm": "handaxe.contract.ports.questions",
    "Files": "handaxe.contract.ports.files",
    "HostSubject": "handaxe.contract.permission_subjects",
    "image_message": "handaxe.schema.provider_results",
    "open_tasks": "handaxe.app.agent_setup.session_loop_context",
    "Outcome": "handaxe.hooks.outcome",
    "PathSubject": "handaxe.contract",
    "PermissionRequest": "handaxe.contract",
    "Price": "handaxe.agent.limits",
    "ReadLedger": "handaxe.session.read_ledger",
    "result_schema": "handaxe.contract.result_schema",
    "serve_mcp": "handaxe.frontends.mcp_server.lent_session",
    "Session": "handaxe.app.session",
    "SessionInfo": "handaxe.contract.ports.conversation",
    "sessions": "handaxe.sessions",
    "Settings": "handaxe.config.settings",
    "SetupError": "handaxe.contract",
    "SpawnLimits": "handaxe.agent.subagents.registry",
    "State": "handaxe.contract",
    "TextSubject": "handaxe.contract",
    "Tool": "handaxe.contract",
    "tool": "handaxe.tools.function_tool",
    "ToolArgs": "handaxe.contract",
    "ToolCall": "handaxe.contract",
    "ToolContext": "handaxe.contract",
    "ToolFault": "handaxe.contract",
    "ToolResult": "handaxe.contract",
    "Workdir": "handaxe.session.workdir",
}

__all__ = [
    "Agent",
    "AgentConnection",
    "Allow",
    "Ask",
    "CallPresenter",
    "CommandSubject",
    "Connection",
    "Conversation",
    "Defer",
    "Deny",
    "Effects",
    "ElicitationForm",
    "Files",
    "HostSubject",
    "Outcome",
    "PathSubject",
    "PermissionRequest",
    "Price",
    "ReadLedger",
    "Session",
    "SessionInfo",
    "Settings",
    "SetupError",
    "SpawnLimits",
    "State",
    "TextSubject",
    "Tool",
    "ToolArgs",
    "ToolCall",
    "ToolContext",
    "ToolFault",
    "ToolResult",
    "Workdir",
    "connect",
    "image_message",
    "open_tasks",
    "result_schema",
    "serve_mcp",
    "sessions",
    "tool",
]


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - every public name has its own type
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'handaxe' has no attribute {name!r}")
    module = import_module(home)
    # One public name is a module, which can be called.
    value = globals()[name] = module if home == f"handaxe.{name}" else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
