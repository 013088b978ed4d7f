"""The system prompt: a pure function of tools, environment, memory files and style.

The same arguments give the same bytes. What stays equal between runs stands first, so that a
provider can keep it; what changes with the day or the project stands last.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from handaxe.contract.ports.agents import AgentDefinition
from handaxe.text.framing import frame, neutralize, quote_line

_PROMPTS = Path(__file__).with_name("prompts")


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Where the agent works, as it was looked up by somebody else."""

    directory: str
    more_directories: tuple[str, ...] = ()
    platform: str = ""
    date: str = ""
    git: str = ""
    """The state of the repository in a line; empty outside one."""
    model: str = ""


class MemoryText(msgspec.Struct, frozen=True):
    """A file of instructions that is always in sight."""

    path: str
    scope: str
    """Whose it is: `user`, `project`, `local` or `managed`."""
    text: str
    importer: str = ""
    """The file that asked for this one."""
    reader: str = ""
    """The file since whose reading this one counts."""
    globs: tuple[str, ...] = ()
    """For which files it counts, where it does not for all."""


class PromptParts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a system prompt is made of."""

    tools: tuple[str, ...] = ()
    environment: Environment | None
    """None: it is told elsewhere."""
    memory: tuple[MemoryText, ...] = ()
    kinds: tuple[AgentDefinition, ...] = ()
    """Sub-agents that can be started."""
    notes: tuple[str, ...] = ()
    """More sections, such as skills or tools that can be loaded."""
    style: str = ""
    style_is_whole: bool = False
    """Whether the style stands for the rules on how to work."""
    replace: str | None = None
    """Stands for identity and rules; empty leaves only what follows."""
    append: str = ""


@lru_cache(maxsize=32)
def load_prompt(name: str) -> str:
    """One of the fixed texts."""
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


def build_system_prompt(parts: PromptParts) -> tuple[str, ...]:
    """The prompt in parts, the stable ones first."""
    head = _build_head(parts) if parts.replace is None else parts.replace.strip()
    sections = (
        head,
        "\n\n".join(_build_stable_sections(parts)),
        "\n\n".join(_build_project_sections(parts)),
        _format_environment(parts.environment) if parts.environment is not None else "",
    )
    return tuple(section for section in sections if section)


def build_context_text(
    environment: Environment, memory: Sequence[MemoryText], notes: Sequence[str]
) -> str:
    """What differs from place to place, for a message in front of the conversation."""
    sections = (_format_memory(memory) if memory else "", *notes, _format_environment(environment))
    return "\n\n".join(section for section in sections if section)


def _build_head(parts: PromptParts) -> str:
    rules = "conduct" if parts.style_is_whole else "rules"
    return "\n\n".join((load_prompt("identity"), load_prompt(rules)))


def _build_stable_sections(parts: PromptParts) -> list[str]:
    found = [load_prompt("tools")] if parts.tools else []
    if parts.kinds and "Agent" in parts.tools:
        lines = [quote_line(f"- {kind.name}: {kind.description}") for kind in parts.kinds]
        found.append("\n".join(("# Agents you can start with the Agent tool", "", *lines)))
    return found


def _build_project_sections(parts: PromptParts) -> list[str]:
    found = [note.strip() for note in parts.notes]
    if parts.style:
        found.append(f"# Style\n\n{neutralize(parts.style.strip())}")
    if parts.memory:
        found.append(_format_memory(parts.memory))
    if parts.append:
        found.append(parts.append.strip())
    return [section for section in found if section]


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
        ("Further working directories", ", ".join(environment.more_directories)),
        ("Platform", environment.platform),
        ("Date", environment.date),
        ("Model", environment.model),
    ]
    lines = [f"- {name}: {quote_line(value)}" for name, value in rows if value]
    text = "\n".join(("# Environment", "", *lines))
    if environment.git:
        text = f"{text}\n\nState of the repository at the start:\n{quote_line(environment.git)}"
    return text
