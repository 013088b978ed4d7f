"""Tables about tool names in rules: aliases, families, and tools that are never free.

This table has the ecosystem's names; a rule may name a tool that handaxe lacks.
"""

from typing import Literal

Behaviour = Literal["deny", "ask", "allow"]

ALIASES = {
    "AgentOutputTool": "TaskOutput",
    "ApplyPatch": "Edit",
    "BashOutput": "TaskOutput",
    "EditLines": "Edit",
    "KillBash": "TaskStop",
    "KillShell": "TaskStop",
    "ListMcpResourcesTool": "ListMcpResources",
    "MCPSearch": "ToolSearch",
    "MultiEdit": "Edit",
    "NotebookRead": "Read",
    "ReadMcpResourceTool": "ReadMcpResource",
    "SlashCommand": "Skill",
    "Task": "Agent",
    "apply_patch": "Edit",
}
"""Names that count as another in rules and calls: old names and other edit formats."""

COMMAND_TOOLS = frozenset({"Bash", "Monitor", "PowerShell"})
"""Their specifiers are commands, matched by the shell package."""

TEXT_TOOLS = COMMAND_TOOLS | {"Agent", "Skill", "WebFetch", "WebSearch"}
"""Their specifiers are never paths."""

HOST_TOOL = "WebFetch"
"""Every tool that reaches a network host follows this tool's rules and its own."""

HOST_TOOLS = frozenset({HOST_TOOL, "Monitor"})
"""Their specifiers can name a host: `domain:example.org`."""

CHANGING_FILE_TOOLS = frozenset(
    {"ApplyPatch", "Edit", "EditLines", "MultiEdit", "NotebookEdit", "Undo", "Write"}
)
"""Tools that only change files; plan mode hides them."""

ASKED_BY_DEFAULT = TEXT_TOOLS - {"Agent"} | {
    "Artifact",
    "EnterWorktree",
    "ExitPlanMode",
    "ShareOnboardingGuide",
    "Workflow",
}
"""Tools that need approval although they change nothing: they use the network, run programs or move
the session.
"""

PARAMS_LEFT_TO_SCOPES = frozenset({"command", "file_path", "notebook_path", "path", "url"})
"""Inputs that a `Tool(param:value)` rule may not name, because a value has many spellings."""


def resolve_tool_alias(tool: str) -> str:
    """The current name of a tool."""
    return ALIASES.get(tool, tool)


def is_foreign(tool: str) -> bool:
    """Whether the tool belongs to an MCP server, whose own safety hints are not trusted."""
    return tool.startswith("mcp__")
