"""Compile the package when it is installed for development, as installers do for wheels.

Without this a checkout is compiled anew at every start wherever Python may not write bytecode
by itself (`PYTHONDONTWRITEBYTECODE`), which makes the command line several times slower.
"""

import compileall
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileHook(BuildHookInterface[Any]):
    """Runs before every build; only an editable install leaves the sources where they run."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Write bytecode beside the sources."""
        if version == "editable":
            compileall.compile_dir(Path(self.root) / "src" / "handaxe", quiet=1)
