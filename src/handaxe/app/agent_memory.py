"""What a type of agent remembers from one run to the next: files in a directory of its own."""

import os
from pathlib import Path

from handaxe.contract.ports.agents import AgentKind
from handaxe.settings.places import user_directories

INDEX = "MEMORY.md"
MAX_LINES = 200
MAX_BYTES = 25_000


class AgentMemory:
    """The directory of one type, and what the agent is told of it."""

    def __init__(self, kind: AgentKind, project: str) -> None:
        assert kind.memory is not None
        if kind.memory == "user":
            self.path = f"{user_directories()[0]}/agent-memory/{kind.name}"
        else:
            folder = "agent-memory" if kind.memory == "project" else "agent-memory-local"
            self.path = f"{project}/.claude/{folder}/{kind.name}"
        real = os.path.realpath(self.path)
        is_astray = kind.memory != "user" and not real.startswith(f"{os.path.realpath(project)}/")
        # A project's link may not lead what is free to write to some other place.
        self.places: tuple[str, ...] = () if is_astray else tuple({self.path, real})

    def note(self) -> str:
        """A section of the system prompt."""
        head = (
            f"# Your memory\n\nWhat you learn for later runs is kept below {self.path}/; you may "
            f"read and change files there. {INDEX} is always in sight, its first {MAX_LINES} "
            "lines: keep it short, and put details into files that it names. Write down what "
            "will help next time, correct what turned out to be wrong."
        )
        text = self._index()
        if not text:
            return f"{head}\n\n{INDEX} is empty so far."
        return f"{head}\n\n## {INDEX}\n\n{text}"

    def _index(self) -> str:
        try:
            with Path(self.path, INDEX).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError:
            return ""
        is_cut = len(content) > MAX_BYTES
        lines = content[:MAX_BYTES].decode(errors="replace").splitlines()
        is_cut = is_cut or len(lines) > MAX_LINES
        text = "\n".join(lines[:MAX_LINES]).strip()
        return f"{text}\n... (cut; read {self.path}/{INDEX} for the rest)" if is_cut else text
