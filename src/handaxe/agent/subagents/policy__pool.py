"""Which tools an agent gets: some of its parent's, never more."""

from collections.abc import Callable, Sequence

from handaxe.contract.ports.agents import AgentDefinition

NEVER_GIVEN = frozenset({
    "AskUserQuestion", "EndConversation", "EnterPlanMode", "ExitPlanMode", "ScheduleWakeup",
    "StructuredOutput", "TaskOutput", "Undo", "WaitForMcpServers", "Workflow",
})  # fmt: skip
MEMORY_TOOLS = ("Read", "Write", "Edit")
"""What an agent needs to keep a memory of its own."""
_RENAMED = {
    "ApplyPatch": "Edit", "EditLines": "Edit", "LS": "Glob", "MultiEdit": "Edit", "Task": "Agent",
    "apply_patch": "Edit",
}  # fmt: skip


def make_tool_filter(
    kind: AgentDefinition, *, may_start_agents: bool, among: Sequence[str] | None = None
) -> Callable[[str], bool]:
    """Whether a tool of the parent is in the agent's own pool, by name.

    `among` are the tools its parent had when the agent was first started, where that was less
    than the session's.
    """
    servers = tuple(f"mcp__{name}" for name in list_server_names(kind))
    own = tuple(f"mcp__{name}" for e in kind.mcp_servers if isinstance(e, dict) for name in e)
    wanted = None
    if kind.tools is not None:
        needed = MEMORY_TOOLS if kind.memory is not None else ()
        wanted = (*(_RENAMED.get(name, name) for name in kind.tools), *servers, *needed)
    forbidden = tuple(_RENAMED.get(name, name) for name in kind.disallowed_tools)
    above = None if among is None else {_RENAMED.get(name, name) for name in among}

    def has(name: str) -> bool:
        name = _RENAMED.get(name, name)
        if name in NEVER_GIVEN or (name == "Agent" and not may_start_agents):
            return False
        if _is_tool_covered(forbidden, name):
            return False
        if above is not None and name not in above and not _is_tool_covered(own, name):
            return False
        return wanted is None or _is_tool_covered(wanted, name)

    return has


def make_main_tool_filter(kind: AgentDefinition) -> Callable[[str], bool]:
    """Whether a tool is in the pool of a type that leads the session."""
    wanted = None
    if kind.tools is not None:
        needed = MEMORY_TOOLS if kind.memory is not None else ()
        servers = (f"mcp__{name}" for name in list_server_names(kind))
        named = (_RENAMED.get(name, name) for name in kind.tools)
        wanted = (*named, *servers, *needed, "StructuredOutput")
    forbidden = tuple(_RENAMED.get(name, name) for name in kind.disallowed_tools)

    def has(name: str) -> bool:
        name = _RENAMED.get(name, name)
        return not _is_tool_covered(forbidden, name) and (
            wanted is None or _is_tool_covered(wanted, name)
        )

    return has


def list_server_names(kind: AgentDefinition) -> tuple[str, ...]:
    """The MCP servers that a type names or defines."""
    return tuple(
        name
        for entry in kind.mcp_servers
        for name in ((entry,) if isinstance(entry, str) else entry)
    )


def _is_tool_covered(patterns: Sequence[str], name: str) -> bool:
    """Whether a list names a tool: itself, all of a server, or everything."""
    for pattern in patterns:
        if pattern in {name, "*"}:
            return True
        server = pattern.removesuffix("*").removesuffix("__")
        if server.startswith("mcp__") and name.startswith(f"{server}__"):
            return True
    return False
