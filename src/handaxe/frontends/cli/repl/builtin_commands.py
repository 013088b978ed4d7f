"""What a person types to handaxe itself: `/undo`, `/tools`, `/help` and their like."""

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
    """The conversation a command was typed in."""

    agent: Agent
    opener: AgentFactory
    screen: ReplRenderer
    usage: TokenUsage
    cost_usd: float | None
    tool_tokens: dict[str, int]

    async def reopen(self, session_id: str | None) -> None:
        """Go on in another session; None is a new one."""
        ...

    async def read_answer(self) -> str | None:
        """A line typed in answer to a question."""
        ...


class ExitRequested(Exception):
    """The person wants to go."""


async def run_command(text: str, dialogue: SlashCommandContext) -> bool:
    """Do what a line says if it is a command of ours; whether it was."""
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
        # A project's own command of that name is what its people mean.
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
        "Esc or Ctrl-C stops the agent, Ctrl-C twice or Ctrl-D leaves, Shift-Tab changes the "
        "permission mode, Alt-Enter begins a new line, @ completes paths.",
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
        "/permissions revoke RULE takes back what was allowed."
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
    where = f" and out of {', '.join(files)}" if files else ""
    dialogue.screen.say(f"{rule} is taken out of this session{where}.")


async def _add_dir(dialogue: SlashCommandContext, arguments: str) -> None:
    session = dialogue.agent.session
    if not arguments:
        raise SetupError("Which directory? /add-dir DIRECTORY")
    place = session.workdir
    path = f"{place.home}{arguments[1:]}" if arguments.startswith("~/") else arguments
    path = path if path.startswith("/") else f"{place.current}/{path}"
    resolve_working_directories(place.root, (path,))
    before = place.roots
    get_parts(session).set_directories((*before[1:], path), by="slash_command")
    if place.roots == before:
        raise SetupError(f"{path} is a working directory already.")
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
        dialogue.screen.say("Which one? (a number; nothing: stay here)")
        line = (await dialogue.read_answer() or "").strip()
        if not line.isdecimal() or not 1 <= int(line) <= len(found):
            return
        wanted = found[int(line) - 1].session_id
    wanted = dialogue.opener.found(wanted)
    await dialogue.reopen(wanted)
    dialogue.screen.say(
        f"Going on with {wanted}: {format_count(len(dialogue.agent.messages), 'message')}."
    )


async def _set_model(dialogue: SlashCommandContext, arguments: str) -> None:
    if arguments:
        dialogue.agent.set_model(arguments)
    dialogue.screen.say(f"Talking to {dialogue.agent.model.name}.")


async def _clear(dialogue: SlashCommandContext, _: str) -> None:
    old = dialogue.agent.session.id
    await dialogue.reopen(None)
    dialogue.screen.say(f"A new conversation. /resume {old} goes back to the old one.")


async def _compact_conversation(dialogue: SlashCommandContext, arguments: str) -> None:
    done = await dialogue.agent.compact(arguments)
    if done is None:
        raise SetupError("There is nothing to make shorter.")
    dialogue.screen.show(done, dialogue.agent.session)


async def _show_cost(dialogue: SlashCommandContext, _: str) -> None:
    usage = dialogue.usage
    money = "the price is not known" if dialogue.cost_usd is None else f"${dialogue.cost_usd:.4f}"
    cached = f"{usage.cache_read_tokens:,} from the cache"
    dialogue.screen.say(
        f"{usage.input_tokens:,} tokens in, {cached}, {usage.output_tokens:,} out; {money}."
    )
    if dialogue.tool_tokens:
        ranked = sorted(dialogue.tool_tokens.items(), key=lambda item: -item[1])
        rows = tuple((tool, f"{tokens:,}") for tool, tokens in ranked)
        dialogue.screen.table(Table(("results of", "tokens"), rows))


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
        raise SetupError("Say /mcp, or /mcp reconnect NAME for a server that /mcp lists.")
    try:
        await servers.reconnect(name.strip())
    except ToolFault as fault:
        raise SetupError(fault.sentence) from None
    dialogue.screen.say(f"The MCP server {name.strip()!r} is connected.")


async def _exit(dialogue: SlashCommandContext, _: str) -> None:  # noqa: ARG001 - nothing to look at
    raise ExitRequested


COMMANDS: dict[str, tuple[str, Command]] = {
    "help": ("this list", _show_help),
    "undo": ("put back the last change; CALL_ID, --redo, --force, --path PATH", _undo),
    "tools": ("the tools on offer", _list_tools),
    "permissions": (
        "the mode and the rules; MODE switches, revoke RULE takes back",
        _show_permissions,
    ),
    "add-dir": ("work in another directory as well", _add_dir),
    "resume": ("go on with another conversation of this project", _resume),
    "model": ("who answers; NAME switches", _set_model),
    "clear": ("begin a new conversation", _clear),
    "compact": (
        "make the conversation shorter, with your wishes for the summary",
        _compact_conversation,
    ),
    "cost": ("tokens and money so far", _show_cost),
    "skills": (
        "skills and commands of the project and yours",
        _create_table_command(build_skills_table, "There are no skills or commands here."),
    ),
    "agents": (
        "types of agents that can be started",
        _create_table_command(build_agents_table, "There are no agents here."),
    ),
    "hooks": (
        "what runs at which event",
        _create_table_command(build_hooks_table, "No settings file names a hook."),
    ),
    "mcp": ("MCP servers and how they stand; reconnect NAME connects one anew", _handle_mcp),
    "styles": (
        "output styles; the setting `outputStyle` chooses",
        _create_table_command(build_styles_table, "There are no styles."),
    ),
    "tasks": (
        "agents and background commands of this session",
        _create_table_command(
            build_tasks_table, "Nothing was started in the background of this session."
        ),
    ),
    "exit": ("leave", _exit),
    "quit": ("leave", _exit),
}
