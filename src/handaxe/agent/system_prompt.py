"""The system prompt: a pure function of tools, environment, memory files and style.

The same arguments give the same bytes. Stable parts come first, so that a provider can cache them;
parts that depend on the day or the project come last.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from handaxe.contract.ports.agents import AgentDefinition
from handaxe.text.framing import frame, neutralize, quote_line

_PROMPTS = Path(__file__).with_name("prompts")


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's environment, determined elsewhere."""

    directory: str
    more_directories: tuple[str, ...] = ()
    platform: str = ""
    date: str = ""
    git: str = ""
    """The state of the repository in one line; empty outside one."""
    model: str = ""


class MemoryText(msgspec.Struct, frozen=True):
    """An instruction file that is always part of the prompt."""

    path: str
    scope: str
    """Its scope: `user`, `project`, `local` or `managed`."""
    text: str
    importer: str = ""
    """The file that imports this one."""
    reader: str = ""
    """The file whose reading made this one apply."""
    globs: tuple[str, ...] = ()
    """The files to which it applies, if not all."""


class PromptParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a system prompt."""

    tools: tuple[str, ...] = ()
    environment: Environment | None
    """None: it is sent elsewhere."""
    memory: tuple[MemoryText, ...] = ()
    kinds: tuple[AgentDefinition, ...] = ()
    """The available subagent types."""
    notes: tuple[str, ...] = ()
    """Further sections, such as skills or deferred tools."""
    style: str = ""
    style_is_whole: bool = False
    """Whether the style replaces the working rules."""
    replace: str | None = None
    """Replaces identity and rules; empty leaves only the other sections."""
    append: str = ""


@lru_cache(maxsize=32)
def load_prompt(name: str) -> str:
    """One of the fixed texts."""
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


class PromptSection(msgspec.Struct, frozen=True):
    """A section of a system prompt, named by its subject."""

    name: str
    text: str
    block: int
    """Sections of one block are sent to the model as one text."""


def build_system_prompt(parts: PromptParts) -> tuple[str, ...]:
    """The prompt in parts, the stable ones first."""
    blocks: dict[int, list[str]] = {}
    for section in list_prompt_sections(parts):
        blocks.setdefault(section.block, []).append(section.text)
    return tuple("\n\n".join(texts) for texts in blocks.values())


def list_prompt_sections(parts: PromptParts) -> list[PromptSection]:
    """All sections of the prompt in order, without empty ones."""
    environment = parts.environment
    found = [
        *_build_head(parts),
        *_build_stable_sections(parts),
        *_build_project_sections(parts),
        ("environment", "" if environment is None else _format_environment(environment), 3),
    ]
    return [PromptSection(*section) for section in found if section[1]]


def build_context_text(
    environment: Environment, memory: Sequence[MemoryText], notes: Sequence[str]
) -> str:
    """The parts that depend on the place, for a message before the conversation."""
    sections = (_format_memory(memory) if memory else "", *notes, _format_environment(environment))
    return "\n\n".join(section for section in sections if section)


_Section = tuple[str, str, int]


def _build_head(parts: PromptParts) -> list[_Section]:
    if parts.replace is not None:
        return [("replacement", parts.replace.strip(), 0)]
    rules = "conduct" if parts.style_is_whole else "rules"
    return [("identity", load_prompt("identity"), 0), ("rules", load_prompt(rules), 0)]


def _build_stable_sections(parts: PromptParts) -> list[_Section]:
    found = [("tools", load_prompt("tools"), 1)] if parts.tools else []
    if parts.kinds and "Agent" in parts.tools:
        lines = [quote_line(f"- {kind.name}: {kind.description}") for kind in parts.kinds]
        text = "\n".join(("# Agents you can start with the Agent tool", "", *lines))
        found.append(("agents", text, 1))
    return found


def _build_project_sections(parts: PromptParts) -> list[_Section]:
    found = [(_name_note(note), note.strip(), 2) for note in parts.notes]
    if parts.style:
        found.append(("style", f"# Style\n\n{neutralize(parts.style.strip())}", 2))
    if parts.memory:
        found.append(("instructions", _format_memory(parts.memory), 2))
    found.append(("appended", parts.append.strip(), 2))
    return found


def _name_note(note: str) -> str:
    """The heading of a note, or the name of its frame."""
    first = note.strip().partition("\n")[0]
    return first.strip("#<> ").lower() if first.startswith(("# ", "<")) else "notes"


def _format_memory(memory: Sequence[MemoryText]) -> str:
    head = (
        "# Instructions\n\nThe person and the project ask for the following. It takes precedence "
        "over the general rules above; where two of them disagree, the later one counts."
    )
    files = [
        frame("instructions-file", item.text, path=item.path, scope=item.scope) for item in memory
    ]
    return "\n\n".join((head, *files))


def _format_environment(environment: Environment) -> str:
    rows = [
        ("Working directory", environment.directory),
        (
            "Further working directories",
            (
                "# Instructions\n\nThe user and the project give the following instructions. "
                "They take precedence over the general rules above; if two of them conflict, the "
                "later one applies."
            ).join(environment.more_directories),
        ),
        ("Platform", environment.platform),
        ("Date", environment.date),
        ("Model", environment.model),
    ]
    lines = [f"- {name}: {quote_line(value)}" for name, value in rows if value]
    text = "\n".join(("# Environment", "", *lines))
    if environment.git:
        text = f"{text}\n\nState of the repository at the start:\n{quote_line(environment.git)}"
    return text
