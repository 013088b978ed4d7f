"""The built-in tools: one module and one prompt per tool, in families.

Belongs here: the table of all built-in tools, tools made from functions, one folder per family.
Does not: reaching the machine (tools use ports), running calls (`pipeline`).
May import: the features (such as `skills`) and the layers below them, but not `disk`, `os` or
`subprocess`; no family imports another.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from handaxe.contract.tool import Tool

BUILTIN: dict[str, str] = {
    "Agent": "handaxe.tools.agents.agent",
    "ApplyPatch": "handaxe.tools.files.apply_patch",
    "AskUserQuestion": "handaxe.tools.meta.ask_user_question",
    "Bash": "handaxe.tools.shell.bash",
    "Brief": "handaxe.tools.meta.brief",
    "Config": "handaxe.tools.meta.config",
    "Edit": "handaxe.tools.files.edit",
    "EditLines": "handaxe.tools.files.edit_lines",
    "EnterPlanMode": "handaxe.tools.meta.enter_plan_mode",
    "ExitPlanMode": "handaxe.tools.meta.exit_plan_mode",
    "Glob": "handaxe.tools.search.glob",
    "Grep": "handaxe.tools.search.grep",
    "ListMcpResources": "handaxe.tools.mcp.list_mcp_resources",
    "Monitor": "handaxe.tools.shell.monitor",
    "MultiEdit": "handaxe.tools.files.multi_edit",
    "NotebookEdit": "handaxe.tools.files.notebook_edit",
    "Read": "handaxe.tools.files.read",
    "ReadMcpResource": "handaxe.tools.mcp.read_mcp_resource",
    "SendMessage": "handaxe.tools.agents.send_message",
    "Skill": "handaxe.tools.meta.skill",
    "Sleep": "handaxe.tools.meta.sleep",
    "TaskCreate": "handaxe.tools.tasks.task_create",
    "TaskGet": "handaxe.tools.tasks.task_get",
    "TaskList": "handaxe.tools.tasks.task_list",
    "TaskOutput": "handaxe.tools.tasks.task_output",
    "TaskStop": "handaxe.tools.tasks.task_stop",
    "TaskUpdate": "handaxe.tools.tasks.task_update",
    "TodoWrite": "handaxe.tools.meta.todo_write",
    "ToolSearch": "handaxe.tools.meta.tool_search",
    "Undo": "handaxe.tools.files.undo",
    "WebFetch": "handaxe.tools.web.web_fetch",
    "WebSearch": "handaxe.tools.web.web_search",
    "Write": "handaxe.tools.files.write",
}
"""Every built-in tool by name, with the module that holds the class of that name."""


def build_loaders() -> dict[str, Callable[[], Tool[Any]]]:
    """Loaders for the built-in tools; a tool's module is imported on first use."""
    return {name: _make_loader(name, module) for name, module in BUILTIN.items()}


def _make_loader(name: str, module: str) -> Callable[[], Tool[Any]]:
    def load() -> Tool[Any]:
        return getattr(import_module(module), name)()

    return load
