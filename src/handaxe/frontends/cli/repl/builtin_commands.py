"""Built-in slash commands: `/undo`, `/tools`, `/help` and others."""

from collections.abc import Awaitable, Callable
from itertools import islice, pairwise
from typing import Protocol

from handaxe.app.agent import Agent
from handaxe.app.session import get_parts
from handaxe.app.slash_commands import list_slash_commands, parse_slash_command
from handaxe.config.working_directories import resolve_working_directories
from handaxe.contract.display import Table
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.messages import TokenUsage
from handaxe.frontends.cli.agent_factory import AgentFactory
from handaxe.frontends.cli.commands.permissions import revoke_rule
from handaxe.frontends.cli.repl.renderer import ReplRenderer
from handaxe.frontends.cli.repl.session_info import (
    build_agents_table,
    build_hooks_table,
    build_rules_table,
    build_servers_table,
    build_skills_table,
    build_styles_table,
    build_tasks_table,
    describe_access,
    open_saved_rules,
)
from handaxe.storage.sessions import list_conversations
from handaxe.text.escape import find_closest_name, format_count, to_visible_text

Command = Callable[["SlashCommandContext", str], Awaitable[None]]
_MAX_SESSIONS = 15


class SlashCommandContext(Protocol):
    """The conversation of a command."""

    agent: Agent
    opener: AgentFactory
    screen: ReplRenderer
    usage: TokenUsage
    cost_usd: float | None
    tool_tokens: dict[str, int]

    async def reopen(self, session_id: str | None) -> None:
        """Continue in another session; None opens a new one."""
        ...

    async def read_answer(self) -> str | None:
        """Read the answer to a question."""
        ...


class ExitRequested(Exception):
    """The user wants to leave."""


async def run_command(text: str, dialogue: SlashCommandContext) -> bool:
    """Run a line if it is a built-in command and return whether it was one."""
    typed = parse_slash_command(text)
    if typed is None:
        return False
    own = {skill.name for skill in list_slash_commands(dialogue.agent.session)}
    if typed.name not in COMMANDS:
        near = (
            None if typed.name in own else find_closest_name(typed.name, [*COMMANDS, *sorted(own)])
        )
        if near is not None:
            raise SetupError(f"There is no command /{typed.name}. Did you mean /{near}?")
        return False
    if typed.name in own and typed.name not in {"help", "exit", "undo"}:
        # A command of the project comes before a built-in one of the same name.
        return False
    await COMMANDS[typed.name][1](dialogue, typed.arguments)
    return True


async def _show_help(dialogue: SlashCommandContext, _: str) -> None:
    rows = [(f"/{name}", summary) for name, (summary, _) in COMMANDS.items()]
    rows += [
        (f"/{s.name}", s.description[:80]) for s in list_slash_commands(dialogue.agent.session)
    ]
    dialogue.screen.table(Table(("command", "what it does"), tuple(rows)))
    dialogue.screen.say(
        "Esc or Ctrl-C: stop the agent. Ctrl-C twice or Ctrl-D: leave. Shift-Tab: change the "
        "permission mode. Alt-Enter: new line. @: complete a path.",
        "muted",
    )


async def _undo(dialogue: SlashCommandContext, arguments: str) -> None:
    words = arguments.split()
    paths = [word for before, word in pairwise(words) if before == "--path"]
    calls = [word for word in words if not word.startswith("--") and word not in paths]
    result = await dialogue.agent.session.undo(
        calls[0] if calls else None,
        redo="--redo" in words,
        force="--force" in words,
        paths=paths,
    )
    dialogue.screen.blocks(result)


async def _list_tools(dialogue: SlashCommandContext, _: str) -> None:
    tools = get_parts(dialogue.agent.session).catalog.list_offered()
    rows = tuple((tool.name, tool.search_hint or "") for tool in tools)
    dialogue.screen.table(Table(("tool", "for"), rows))


async def _show_permissions(dialogue: SlashCommandContext, arguments: str) -> None:
    session = dialogue.agent.session
    word, _, rule = arguments.partition(" ")
    if word == "revoke":
        await _revoke(dialogue, rule.strip())
    elif arguments:
        session.set_mode(arguments)
    dialogue.screen.say(
        f"Mode: {session.permissions.mode}. /permissions MODE changes it, "
        "/permissions revoke RULE removes an allow rule."
    )
    for line in describe_access(session):
        dialogue.screen.say(line, "muted")
    rules = build_rules_table(session)
    if rules.rows:
        dialogue.screen.table(rules)


async def _revoke(dialogue: SlashCommandContext, rule: str) -> None:
    session = dialogue.agent.session
    granted = [one for one in session.permissions.grants if one.text == rule]
    session.permissions.remove_rules(granted)
    try:
        files = await revoke_rule(open_saved_rules(session), rule)
    except SetupError:
        if not granted:
            raise
        files = []
    get_parts(session).follow()
    where = f" and from {', '.join(files)}" if files else ""
    dialogue.screen.say(f"Removed {rule} from this session{where}.")


async def _add_dir(dialogue: SlashCommandContext, arguments: str) -> None:
    session = dialogue.agent.session
    if not arguments:
        raise SetupError("Name a directory: /add-dir DIRECTORY")
    place = session.workdir
    path = f"{place.home}{arguments[1:]}" if arguments.startswith("~/") else arguments
    path = path if path.startswith("/") else f"{place.current}/{path}"
    resolve_working_directories(place.root, (path,))
    before = place.roots
    get_parts(session).set_directories((*before[1:], path), by="slash_command")
    if place.roots == before:
        raise SetupError(f"{path} is already a working directory.")
    dialogue.screen.say(f"Working directories: {', '.join(place.roots)}.")


async def _resume(dialogue: SlashCommandContext, arguments: str) -> None:
    session = dialogue.agent.session
    wanted = arguments
    if not wanted:
        session_context = get_parts(session).session_context
        others = (
            one
            for one in list_conversations(session_context.data_home, session.workdir.root)
            if one.session_id != session.id
        )
        found = list(islice(others, _MAX_SESSIONS))
        if not found:
            dialogue.screen.say("There is no other conversation in this project.")
            return
        for number, one in enumerate(found, 1):
            dialogue.screen.say(
                f"  {number}. {one.session_id[:8]}  {to_visible_text(one.first_words)}"
            )
        dialogue.screen.say("Which one? Enter its number, or press Enter to stay here.")
        line = (await dialogue.read_answer() or "").strip()
        if not line.isdecimal() or not 1 <= int(line) <= len(found):
            return
        wanted = found[int(line) - 1].session_id
    wanted = dialogue.opener.found(wanted)
    await dialogue.reopen(wanted)
    dialogue.screen.say(
        f"Continuing {wanted}: {format_count(len(dialogue.agent.messages), 'message')}."
    )


async def _set_model(dialogue: SlashCommandContext, arguments: str) -> None:
    if arguments:
        dialogue.agent.set_model(arguments)
    dialogue.screen.say(f"Model: {dialogue.agent.model.name}.")


async def _clear(dialogue: SlashCommandContext, _: str) -> None:
    old = dialogue.agent.session.id
    await dialogue.reopen(None)
    dialogue.screen.say(f"Started a new conversation. /resume {old} returns to the old one.")


async def _compact_conversation(dialogue: SlashCommandContext, arguments: str) -> None:
    done = await dialogue.agent.compact(arguments)
    if done is None:
        raise SetupError("There is nothing to compact.")
    dialogue.screen.show(done, dialogue.agent.session)


async def _show_cost(dialogue: SlashCommandContext, _: str) -> None:
    usage = dialogue.usage
    money = "unknown price" if dialogue.cost_usd is None else f"${dialogue.cost_usd:.4f}"
    cached = f"{usage.cache_read_tokens:,} from the cache"
    dialogue.screen.say(
        f"{usage.input_tokens:,} tokens in, {cached}, {usage.output_tokens:,} out; {money}."
    )
    if dialogue.tool_tokens:
        ranked = sorted(dialogue.tool_tokens.items(), key=lambda item: -item[1])
        rows = tuple((tool, f"{tokens:,}") for tool, tokens in ranked)
        dialogue.screen.table(Table(("tool results", "tokens"), rows))


def _create_table_command(table_of: Callable[[Agent], Table], nothing: str) -> Command:
    async def show(dialogue: SlashCommandContext, _: str) -> None:
        table = table_of(dialogue.agent)
        if table.rows:
            dialogue.screen.table(table)
        else:
            dialogue.screen.say(nothing)

    return show


async def _handle_mcp(dialogue: SlashCommandContext, arguments: str) -> None:
    wish, _, name = arguments.partition(" ")
    if not wish:
        await _create_table_command(build_servers_table, "There are no MCP servers here.")(
            dialogue, ""
        )
        return
    servers = dialogue.agent.session.mcp
    if wish != "reconnect" or not name.strip() or servers is None:
        raise SetupError("Use /mcp, or /mcp reconnect NAME with the name of a server.")
    try:
        await servers.reconnect(name.strip())
    except ToolFault as fault:
        raise SetupError(fault.sentence) from None
    dialogue.screen.say(f"Connected to the MCP server {name.strip()!r}.")


async def _exit(dialogue: SlashCommandContext, _: str) -> None:  # noqa: ARG001 - nothing to look at
    raise ExitRequested


COMMANDS: dict[str, tuple[str, Command]] = {
    "help": ("show this list", _show_help),
    "undo": ("undo the last change; CALL_ID, --redo, --force, --path PATH", _undo),
    "tools": ("list the tools", _list_tools),
    "permissions": (
        "show the mode and the rules; MODE changes it, revoke RULE removes one",
        _show_permissions,
    ),
    "add-dir": ("add a working directory", _add_dir),
    "resume": ("continue another conversation of this project", _resume),
    "model": ("show the model; NAME changes it", _set_model),
    "clear": ("start a new conversation", _clear),
    "compact": (
        "summarize the conversation to free context; TEXT: instructions for the summary",
        _compact_conversation,
    ),
    "cost": ("show tokens and cost so far", _show_cost),
    "skills": (
        "list skills and commands",
        _create_table_command(build_skills_table, "There are no skills or commands here."),
    ),
    "agents": (
        "list agent types",
        _create_table_command(build_agents_table, "There are no agent types here."),
    ),
    "hooks": (
        "list hooks by event",
        _create_table_command(build_hooks_table, "No settings file has a hook."),
    ),
    "mcp": ("list MCP servers with their state; reconnect NAME reconnects one", _handle_mcp),
    "styles": (
        "list output styles; the setting `outputStyle` chooses one",
        _create_table_command(build_styles_table, "There are no styles."),
    ),
    "tasks": (
        "list agents and background commands of this session",
        _create_table_command(build_tasks_table, "This session has no background work."),
    ),
    "exit": ("leave handaxe", _exit),
    "quit": ("leave handaxe", _exit),
}
