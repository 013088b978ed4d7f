"""The description of a session for a client: at its start and on request."""

import msgspec

from handaxe.agent.events import AgentEvent, RunFinished, RunStarted
from handaxe.app.agent import Agent
from handaxe.app.slash_commands import list_slash_commands, parse_slash_command
from handaxe.frontends.stream_json.wire_types import Json
from handaxe.version import __version__

_CHARS_PER_TOKEN = 4
_LISTED_AS = {"Agent": "Task"}
"""Tools that this list gives under their earlier names, which clients expect."""


class ClientServers(msgspec.Struct, frozen=True):
    """Requested MCP servers that the session does not have."""

    problems: dict[str, str] = {}
    """The problem of each server by name."""
    inside: tuple[str, ...] = ()
    """SDK servers in the client's process, reached over the stream."""
    wrong: tuple[Json, ...] = ()
    """Ignored entries, each with `name`, `type` and `message`."""


def build_init_fields(agent: Agent, servers: ClientServers, started: RunStarted) -> Json:
    """The fields of the first message of every turn."""
    session = agent.session
    names = [skill.name for skill in list_slash_commands(session)]
    return {
        "cwd": session.workdir.current,
        "tools": [_LISTED_AS.get(name, name) for name in started.tools],
        "mcp_servers": [
            {"name": row["name"], "status": row["status"]}
            for row in _list_server_rows(agent, servers)
        ],
        "model": started.model,
        "permissionMode": session.permissions.mode,
        "slash_commands": ["compact", *names],
        "output_style": agent.output_style.name,
        "agents": [kind.name for kind in agent.agents.kinds()],
        "skills": names,
        "plugins": [],
        "apiKeySource": "none",
        "claude_code_version": __version__,
        "handaxe_version": __version__,
        "capabilities": ["interrupt_receipt_v1", "interrupt_cancel_queued_v1"],
        **({"mcp_server_errors": list(servers.wrong)} if servers.wrong else {}),
    }


def build_initialize_response(agent: Agent) -> Json:
    """The answer to `initialize`."""
    return {
        "commands": [
            {
                "name": skill.name,
                "description": skill.description,
                "argumentHint": skill.argument_hint,
            }
            for skill in list_slash_commands(agent.session)
        ],
        "agents": [
            {"name": kind.name, "description": kind.description, "model": kind.model}
            for kind in agent.agents.kinds()
        ],
        "output_style": agent.output_style.name,
        "available_output_styles": agent.styles.names(),
        "models": [{"value": agent.model.name, "displayName": agent.model.name}],
        "account": {},
    }


def build_mcp_status(agent: Agent, servers: ClientServers) -> Json:
    """The answer to `mcp_status`."""
    return {"mcpServers": _list_server_rows(agent, servers)}


def _list_server_rows(agent: Agent, servers: ClientServers) -> list[Json]:
    reached = agent.session.mcp
    rows: list[Json] = [
        msgspec.to_builtins(row) for row in (reached.status() if reached is not None else ())
    ]
    for name, why in servers.problems.items():
        rows.append({"name": name, "status": "failed", "error": why})
    return rows


def build_context_usage(agent: Agent, conversation_tokens: int) -> Json:
    """The answer to `get_context_usage`; shares of the prompt are estimates."""
    specs = agent.workplace.specs()
    tools = [
        {"name": spec.name, "tokens": len(msgspec.json.encode(spec)) // _CHARS_PER_TOKEN}
        for spec in specs
    ]
    system = sum(len(part) for part in agent.system_prompt()) // _CHARS_PER_TOKEN
    tool_tokens = sum(int(str(tool["tokens"])) for tool in tools)
    # The count of the model includes the prompt and the tools.
    total = max(conversation_tokens, system + tool_tokens)
    limit = agent.model.context_tokens
    shares = (
        ("System prompt", system, "gray"),
        ("Tools", tool_tokens, "blue"),
        ("Messages", total - system - tool_tokens, "green"),
        ("Free space", max(0, limit - total), "white"),
    )
    return {
        "categories": [{"name": n, "tokens": t, "color": c} for n, t, c in shares],
        "totalTokens": total,
        "maxTokens": limit,
        "rawMaxTokens": limit,
        "percentage": round(100 * total / limit, 2) if limit else 0.0,
        "model": agent.model.name,
        "isAutoCompactEnabled": True,
        "memoryFiles": [],
        "mcpTools": [],
        "agents": [
            {"agentType": kind.name, "source": kind.source, "tokens": 0}
            for kind in agent.agents.kinds()
        ],
        "gridRows": [],
        "systemTools": tools,
    }


async def run_local_command(agent: Agent, prompt: str) -> list[AgentEvent] | None:
    """The events of a local command, the end last; None if the prompt is not one."""
    typed = parse_slash_command(prompt)
    if typed is None or typed.name != "compact":
        return None
    done = await agent.compact(typed.arguments)
    if done is None:
        return [build_run_result(agent, "There is nothing to compact.", is_error=True)]
    return [done, build_run_result(agent, "Compacted the conversation.", is_error=False)]


def build_run_result(agent: Agent, sentence: str, *, is_error: bool) -> RunFinished:
    """The end of a turn without a model request."""
    return RunFinished(
        subtype="success",
        is_error=is_error,
        terminal_reason="prompt_blocked" if is_error else "completed",
        result=sentence,
        session_id=agent.session.id,
        turns=0,
        errors=(sentence,) if is_error else (),
    )
