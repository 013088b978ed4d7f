"""What remote tools are called here: `mcp__<server>__<tool>`, clean, short and unique."""

from collections.abc import Iterable
from hashlib import sha256

from handaxe.contract.ports.mcp_servers import cleaned

MAX_NAME_CHARS = 64


def full_name(server: str, tool: str) -> str:
    """The name of a server's tool or prompt; a long one ends in a digest of the whole."""
    name = f"mcp__{cleaned(server)}__{cleaned(tool)}"
    return name if len(name) <= MAX_NAME_CHARS else _shortened(name, f"{server}\0{tool}")


class NameBook:
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
        name = full_name(server, tool)
        taken = set(self._given.values())
        return name if name not in taken else _shortened(name, f"{server}\0{tool}")


def _shortened(name: str, whole: str) -> str:
    return f"{name[: MAX_NAME_CHARS - 9]}_{sha256(whole.encode()).hexdigest()[:8]}"
