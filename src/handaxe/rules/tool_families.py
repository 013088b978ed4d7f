"""What rules have to know about tool names: aliases, families, and who is never free.

This is a table of the ecosystem's names, not of our tools: a rule may name a tool we lack.
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
"""Names that count as another, in rules and in calls: old ones, and other formats of an edit."""

COMMAND_TOOLS = frozenset({"Bash", "Monitor", "PowerShell"})
"""Their specifiers are commands, matched by the shell package."""

TEXT_TOOLS = COMMAND_TOOLS | {"Agent", "Skill", "WebFetch", "WebSearch"}
"""Their specifiers are never paths."""

HOST_TOOL = "WebFetch"
"""By its rules every tool goes that reaches a host of the network, and by its own beside them."""

HOST_TOOLS = frozenset({HOST_TOOL, "Monitor"})
"""Their specifiers can name a host: `domain:example.org`."""

CHANGING_FILE_TOOLS = frozenset(
    {"ApplyPatch", "Edit", "EditLines", "MultiEdit", "NotebookEdit", "Undo", "Write"}
)
"""They do nothing but change files, so plan mode has no use for them."""

ASKED_BY_DEFAULT = TEXT_TOOLS - {"Agent"} | {
    "Artifact",
    "EnterWorktree",
    "ExitPlanMode",
    "ShareOnboardingGuide",
    "Workflow",
}
"""Never free for changing nothing: they reach the network, run programs or move the session."""

PARAMS_LEFT_TO_SCOPES = frozenset({"command", "file_path", "notebook_path", "path", "url"})
"""Inputs that a `Tool(param:value)` rule may not name, since one value has many spellings."""


def resolve_tool_alias(tool: str) -> str:
    """The name a tool goes by today."""
    return ALIASES.get(tool, tool)


def is_foreign(tool: str) -> bool:
    """Whether the tool belongs to an MCP server, whose own word on safety counts for nothing."""
    return tool.startswith("mcp__")
