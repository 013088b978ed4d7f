"""What a session is set up with, as tables: types of agents, hooks, MCP servers, styles."""

from collections.abc import Mapping
from typing import Any, cast

from handaxe.app.agent import Agent
from handaxe.contract.display import Table

_CHARS = 80


def build_agents_table(agent: Agent) -> Table:
    """The types of agents that can be started."""
    rows = tuple(
        (kind.name, _shorten_text(kind.description), kind.model or "", _shorten_source(kind.source))
        for kind in agent.agents.kinds()
    )
    return Table(("agent", "what it is for", "model", "from"), rows)


def build_hooks_table(agent: Agent) -> Table:
    """The hooks that settings name."""
    rows = tuple(
        (found.event, str(found.group.get("matcher") or ""), _shorten_text(what), str(found.origin))
        for found in agent.session.configuration.merged.hooks
        for what in _list_hooks(found.group)
    )
    return Table(("event", "matcher", "hook", "from"), rows)


def build_servers_table(agent: Agent) -> Table:
    """The MCP servers, and how they stand."""
    servers = agent.session.mcp.status() if agent.session.mcp is not None else ()
    rows = tuple(
        (one.name, one.status, str(len(one.tools)), _shorten_text(one.error or ""))
        for one in servers
    )
    return Table(("server", "state", "tools", "trouble"), rows)


def build_styles_table(agent: Agent) -> Table:
    """The output styles, and which one is in use."""
    now = agent.output_style.name
    rows = tuple((name, "in use" if name == now else "") for name in agent.styles.names())
    return Table(("style", ""), rows)


def _list_hooks(group: Mapping[str, Any]) -> list[str]:
    hooks = group.get("hooks")
    found: list[str] = []
    for hook in cast("list[object]", hooks if isinstance(hooks, list) else []):
        entry = cast("dict[str, Any]", hook) if isinstance(hook, dict) else {}
        named = ("command", "url", "tool", "prompt")
        what = next((str(entry[key]) for key in named if key in entry), "?")
        found.append(f"{entry.get('type', '?')}: {what}")
    return found


def _shorten_source(source: str) -> str:
    return source if len(source) <= _CHARS else f"...{source[-_CHARS:]}"


def _shorten_text(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _CHARS else f"{text[: _CHARS - 3]}..."
