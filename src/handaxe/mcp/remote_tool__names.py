"""What remote tools are called here: `mcp__<server>__<tool>`, clean, short and unique."""

import re
from collections.abc import Iterable
from hashlib import sha256

MAX_NAME_CHARS = 64
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def sanitize_name(name: str) -> str:
    """A name with `_` for every character that a tool's name cannot have."""
    return _OTHER.sub("_", name) or "_"


def build_tool_name(server: str, tool: str) -> str:
    """The name of a server's tool or prompt; a long one ends in a digest of the whole."""
    name = f"mcp__{sanitize_name(server)}__{sanitize_name(tool)}"
    return name if len(name) <= MAX_NAME_CHARS else _shorten_name(name, f"{server}\0{tool}")


class ToolNameRegistry:
    """Gives every remote tool a name nobody else has, and the same one as long as it lives."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}

    def names(self, server: str, tools: Iterable[str]) -> dict[str, str]:
        """The names of a server's tools."""
        for tool in sorted(tools):
            if (server, tool) not in self._given:
                self._given[server, tool] = self._free(server, tool)
        return {tool: self._given[server, tool] for tool in tools}

    def _free(self, server: str, tool: str) -> str:
        name = build_tool_name(server, tool)
        taken = set(self._given.values())
        return name if name not in taken else _shorten_name(name, f"{server}\0{tool}")


def _shorten_name(name: str, whole: str) -> str:
    return f"{name[: MAX_NAME_CHARS - 9]}_{sha256(whole.encode()).hexdigest()[:8]}"
