"""WHAT TOOLS DO. This table lists every built-in tool.

Belongs here: one module and one prompt per tool, in families.
Does not: touching the machine (ports do), running calls (`runtime`).
May import: contract, text, session, settings.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from handaxe.contract.tool import Tool

BUILTIN: dict[str, str] = {
    "Config": "handaxe.tools.meta.config",
    "Edit": "handaxe.tools.files.edit",
    "Glob": "handaxe.tools.search.glob",
    "Grep": "handaxe.tools.search.grep",
    "ListMcpResources": "handaxe.tools.mcp.list_mcp_resources",
    "NotebookEdit": "handaxe.tools.files.notebook_edit",
    "Read": "handaxe.tools.files.read",
    "ReadMcpResource": "handaxe.tools.mcp.read_mcp_resource",
    "Undo": "handaxe.tools.files.undo",
    "Write": "handaxe.tools.files.write",
}
"""Every built-in tool by name, with the module that holds the class of that name."""


def loaders() -> dict[str, Callable[[], Tool[Any]]]:
    """How to get each built-in tool, without importing those that nobody calls."""
    return {name: _loader(name, module) for name, module in BUILTIN.items()}


def _loader(name: str, module: str) -> Callable[[], Tool[Any]]:
    def load() -> Tool[Any]:
        return getattr(import_module(module), name)()

    return load
