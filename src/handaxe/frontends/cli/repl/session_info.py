"""The configuration of a session as tables: agents, hooks, MCP servers, styles, rules, skills."""

from collections.abc import Mapping
from typing import Any, cast

from handaxe.app.agent import Agent
from handaxe.app.session import Session, get_parts
from handaxe.app.slash_commands import list_slash_commands
from handaxe.contract.display import Table
from handaxe.contract.ports.settings_store import SettingsStore
from handaxe.frontends.cli.commands.permissions import format_rule_date, format_rule_location
from handaxe.permission.saved_rules import SavedRules
from handaxe.storage.sessions import list_conversations

_CHARS = 80


def build_agents_table(agent: Agent) -> Table:
    """The agent types."""
    rows = tuple(
        (kind.name, _shorten_text(kind.description), kind.model or "", _shorten_source(kind.source))
        for kind in agent.agents.kinds()
    )
    return Table(("agent", "what it is for", "model", "from"), rows)


def build_hooks_table(agent: Agent) -> Table:
    """The hooks of settings files."""
    rows = tuple(
        (found.event, str(found.group.get("matcher") or ""), _shorten_text(what), str(found.origin))
        for found in get_parts(agent.session).configuration.merged.hooks
        for what in _list_hooks(found.group)
    )
    return Table(("event", "matcher", "hook", "from"), rows)


def build_servers_table(agent: Agent) -> Table:
    """The MCP servers with their state."""
    servers = agent.session.mcp.status() if agent.session.mcp is not None else ()
    rows = tuple(
        (one.name, one.status, str(len(one.tools)), _shorten_text(one.error or ""))
        for one in servers
    )
    return Table(("server", "state", "tools", "problem"), rows)


def build_styles_table(agent: Agent) -> Table:
    """The output styles, and which one is in use."""
    now = agent.output_style.name
    rows = tuple((name, "in use" if name == now else "") for name in agent.styles.names())
    return Table(("style", ""), rows)


def build_rules_table(session: Session) -> Table:
    """The permission rules of files and of this session."""
    of_files = [
        (one.behaviour, one.rule, format_rule_location(one), format_rule_date(one))
        for one in open_saved_rules(session).listed()
    ]
    rules = (rule for rule in session.permissions.rules if rule.file is None)
    of_this_run = [(rule.behaviour, rule.text, rule.source, "now") for rule in rules]
    return Table(("", "rule", "from", "since"), (*of_files, *of_this_run))


def open_saved_rules(session: Session) -> SavedRules:
    """The rules of settings files."""
    parts = get_parts(session)
    return SavedRules(parts.configuration, parts.ports[SettingsStore])


def build_skills_table(agent: Agent) -> Table:
    """The skills and slash commands."""
    skills = list_slash_commands(agent.session)
    rows = tuple((f"/{s.name} {s.argument_hint}".strip(), s.description[:100]) for s in skills)
    return Table(("skill", "what it is for"), rows)


def build_tasks_table(agent: Agent) -> Table:
    """The background work of the session."""
    rows = [(a.name or a.agent_id, a.status, a.description) for a in agent.agents.listed()]
    rows += [
        (job.job_id, job.status, job.description or job.command or "")
        for job in agent.session.jobs.listed()
        if job.kind != "agent"
    ]
    return Table(("task", "state", "what it does"), tuple(rows))


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


_CHANGES = {
    "default": "Changes: asks before each one; you can undo each.",
    "acceptEdits": "Changes: edits files in these directories without asking; you can undo each.",
    "plan": "Changes: none in plan mode.",
    "auto": "Changes: a classifier decides when to ask; you can undo each.",
    "dontAsk": "Changes: only those that rules allow; refuses the rest.",
    "bypassPermissions": "Changes: anything without asking; only deny rules apply.",
}
_ADVISORY = (
    " Deny rules cover handaxe's tools and the files that a command names. Without the sandbox "
    "they are advisory: a program can still access other files."
)


def is_new_here(session: Session) -> bool:
    """Whether this project has no conversation yet."""
    home = get_parts(session).session_context.data_home
    return next(iter(list_conversations(home, session.workdir.root)), None) is None


def describe_access(session: Session) -> tuple[str, str, str]:
    """The permissions of the agent, and how commands run."""
    directories = ", ".join(session.workdir.roots)
    reads = f"Reads: {directories}; asks before reading elsewhere."
    return reads, _CHANGES[session.permissions.mode], _describe_commands(session)


def has_advisory_rules(session: Session) -> bool:
    """Whether deny rules name files while no sandbox enforces them."""
    denied = (rule.text for rule in session.permissions.rules if rule.behaviour == "deny")
    names_files = any(text.startswith(("Read(", "Edit(")) for text in denied)
    return names_files and not session.settings.sandbox.enabled


def _describe_commands(session: Session) -> str:
    if session.settings.sandbox.enabled:
        return "Commands: in a sandbox; `handaxe doctor` shows what it blocks."
    free = "with your rights, no sandbox; read-only ones run, others ask."
    return f"Commands: {free}{_ADVISORY if has_advisory_rules(session) else ''}"
