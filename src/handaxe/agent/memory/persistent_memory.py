"""Memory between runs: files of an agent type, or of a project."""

import os
import re
import unicodedata
from hashlib import sha256
from pathlib import Path

from handaxe.config.settings import Settings
from handaxe.contract.ports.agents import AgentDefinition
from handaxe.session.workdir import Workdir
from handaxe.storage.home import get_user_directories
from handaxe.text.framing import frame

INDEX = "MEMORY.md"
MAX_LINES = 200
MAX_BYTES = 25_000
MAX_NAME_CHARS = 200


class MemoryDirectory:
    """A memory directory, and its section in the system prompt."""

    def __init__(self, path: str, *, inside: str | None = None, may_write: bool = True) -> None:
        """A path `inside` a project must not lead out of it by a link."""
        self.path = path
        self.may_write = may_write
        real = os.path.realpath(path)
        is_astray = inside is not None and not real.startswith(f"{os.path.realpath(inside)}/")
        # A project's link must not redirect files that need no approval.
        self.places: tuple[str, ...] = () if is_astray else tuple({path, real})

    def open_in(self, workdir: Workdir) -> None:
        """Allow reading, and writing if permitted, without approval."""
        workdir.free_to_read = (*workdir.free_to_read, *self.places)
        if self.may_write:
            workdir.free_to_write = (*workdir.free_to_write, *self.places)

    def note(self) -> str:
        """The section of the system prompt."""
        text = self._index()
        if not self.may_write:
            told = "Notes from earlier sessions; details are in files below"
            return f"# Memory\n\n{told} {self.path}/.\n\n{self._frame_index(text)}" if text else ""
        head = (
            f"# Your memory\n\nNotes for later runs are stored below {self.path}/; you "
            f"may read and change files there. The first {MAX_LINES} lines of {INDEX} are "
            "always part of your prompt: keep it short, and put details into files that "
            "it names. Write down what will help next time, and correct what turned out "
            "to be wrong."
        )
        if not text:
            return f"{head}\n\n{INDEX} is still empty."
        return f"{head}\n\n{self._frame_index(text)}"

    def _frame_index(self, text: str) -> str:
        return frame("instructions-file", text, path=f"{self.path}/{INDEX}", scope="memory")

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


def get_agent_memory(kind: AgentDefinition, project: str) -> MemoryDirectory | None:
    """The memory of an agent type, if it has one."""
    if kind.memory is None:
        return None
    if kind.memory == "user":
        return MemoryDirectory(f"{get_user_directories()[0]}/agent-memory/{kind.name}")
    folder = "agent-memory" if kind.memory == "project" else "agent-memory-local"
    return MemoryDirectory(f"{project}/.claude/{folder}/{kind.name}", inside=project)


def get_project_memory(settings: Settings, project: str) -> MemoryDirectory | None:
    """The memory of a project, in the user's own directory.

    Unless it is turned on, memory of another ecosystem agent is only read.
    """
    wanted = settings.auto_memory_enabled
    path = settings.auto_memory_directory
    if path is None:
        path = f"{get_user_directories()[0]}/projects/{_make_project_name(project)}/memory"
    path = os.path.abspath(os.path.expanduser(path))  # noqa: PTH111 - cheaper than a Path
    if wanted is False or (wanted is None and not Path(path, INDEX).is_file()):
        return None
    return MemoryDirectory(path, may_write=wanted is True)


def _make_project_name(project: str) -> str:
    """The name that the ecosystem uses for a project's data."""
    name = re.sub(r"[^A-Za-z0-9]", "-", unicodedata.normalize("NFC", os.path.realpath(project)))
    if len(name) <= MAX_NAME_CHARS:
        return name
    return f"{name[:MAX_NAME_CHARS]}-{sha256(name.encode()).hexdigest()[:8]}"
