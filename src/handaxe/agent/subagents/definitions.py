"""Agent types: built-in ones, and Markdown files of users."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from handaxe.agent.system_prompt import load_prompt
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.agents import AgentDefinition
from handaxe.contract.trust_gate import Owner, TrustRequest
from handaxe.rules.modes import parse_mode
from handaxe.text.escape import find_closest_name, format_suggestion
from handaxe.text.frontmatter import BadFrontmatter, parse_bool, split_frontmatter

GENERAL = "general-purpose"
EFFORTS = ("low", "medium", "high", "xhigh", "max")


def validate_effort(given: str | None) -> str | None:
    """The reasoning effort, if the word is valid."""
    if given is None or given in EFFORTS:
        return given
    near = find_closest_name(given, EFFORTS)
    hint = f" Did you mean {near}?" if near else ""
    raise SetupError(f"`effort` must be one of {', '.join(EFFORTS)}, not {given!r}.{hint}")


COLORS = ("red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan")
_LOOKING = ("Glob", "Grep", "Read", "Bash", "WebFetch", "WebSearch", "LSP", "ToolSearch")
_NO_NAME = re.compile(r"^[-.]|[:/\\\x00-\x1f]")


class BadAgentFile(ValueError):
    """A file that is not a valid agent; the sentence says why."""


class _InvalidValue(Exception):
    """An invalid value for its key."""


def list_builtin_definitions() -> tuple[AgentDefinition, ...]:
    """The built-in types."""
    return (
        AgentDefinition(
            name=GENERAL,
            description="Any task with several steps: searches, changes files, runs tests. Has the "
            "tools of its starter.",
            prompt=load_prompt("agent_general"),
        ),
        AgentDefinition(
            name="Explore",
            description="Explores a large code base and reports; changes nothing.",
            prompt=load_prompt("agent_explore"),
            tools=_LOOKING,
            permission_mode="plan",
            is_lean=True,
        ),
        AgentDefinition(
            name="Plan",
            description="Plans how to do something and names the files; changes nothing.",
            prompt=load_prompt("agent_plan"),
            tools=_LOOKING,
            permission_mode="plan",
            is_lean=True,
        ),
    )


def parse_agent_file(
    text: str, source: str, *, owner: Owner = "project", root: str = ""
) -> tuple[TrustRequest[AgentDefinition], tuple[str, ...]]:
    """The agent type of a file, and ignored parts of it.

    What it starts, where it may write and what it replaces is for the trust gate to allow.

    Raises:
        BadAgentFile: the file is not valid.
    """
    try:
        head, body = split_frontmatter(text)
    except BadFrontmatter as error:
        raise BadAgentFile(f"{source}: {error}") from None
    name = head.pop("name", None)
    if not isinstance(name, str) or not name.strip():
        raise BadAgentFile(f"{source}: `name` is missing")
    kind, remarks = _build_definition(name.strip(), head, body.strip(), source, where=source)
    if owner == "project" and kind.model and any(char in kind.model for char in "/:"):
        kind = msgspec.structs.replace(kind, model=None)
        remarks = (*remarks, f"{source}: a project may not choose a vendor; `model` ignored")
    names = tuple(entry for entry in kind.mcp_servers if isinstance(entry, str))
    harmless = msgspec.structs.replace(kind, hooks={}, mcp_servers=names, memory=None)
    powers: dict[str, Any] = {"name": kind.name}
    if kind != harmless:
        powers |= {"hooks": kind.hooks, "mcpServers": kind.mcp_servers, "memory": kind.memory}
    key = f"agent:{source.removeprefix(f'{root}/')}"
    wish = TrustRequest(kind, harmless, key=key, shown=powers, file=source, root=root, owner=owner)
    return wish, remarks


def parse_agent_definitions(
    given: Iterable[tuple[str, Any]],
) -> tuple[tuple[AgentDefinition, ...], tuple[str, ...]]:
    """Types from a host program, and remarks: definitions, or the fields of a file."""
    kinds: list[AgentDefinition] = []
    remarks: list[str] = []
    for name, value in given:
        if isinstance(value, AgentDefinition):
            kinds.append(msgspec.structs.replace(value, name=name))
            continue
        where = f"agents: {name!r}"
        if not isinstance(value, Mapping):
            raise BadAgentFile(f"{where} needs a `description`")
        fields = dict(cast("Mapping[str, Any]", value))
        fields.pop("name", None)
        prompt = str(fields.pop("prompt", None) or "")
        kind, said = _build_definition(name, fields, prompt, "arguments", where=where)
        kinds.append(kind)
        remarks += said
    return tuple(kinds), tuple(remarks)


def _build_definition(
    name: str, head: dict[str, Any], prompt: str, source: str, *, where: str
) -> tuple[AgentDefinition, tuple[str, ...]]:
    if _NO_NAME.search(name):
        raise BadAgentFile(f"{where}: {name!r} is not a valid agent name (no leading `-`, no `:`)")
    description = head.pop("description", None)
    if not isinstance(description, str) or not description.strip():
        raise BadAgentFile(f"{where}: `description` is missing")
    fields: dict[str, Any] = {}
    remarks: list[str] = []
    for key, value in head.items():
        if key not in _KEYS:
            hint = format_suggestion(key, ("name", "description", *_KEYS))
            remarks.append(f"{where}: unknown key {key!r}.{hint}")
        elif value is not None:
            field, read, limits = _KEYS[key]
            try:
                fields[field] = read(value)
            except _InvalidValue as error:
                # What keeps an agent within limits may not get lost; the rest may.
                if limits:
                    raise BadAgentFile(f"{where}: `{key}` {error}") from None
                remarks.append(f"{where}: `{key}` {error}; it is ignored.")
    kind = AgentDefinition(
        name=name, description=description.strip(), prompt=prompt, source=source, **fields
    )
    return kind, tuple(remarks)


def _parse_tools(value: object) -> tuple[str, ...]:
    """A list of tools, written as a list or separated by commas."""
    # `Agent(a, b)` may limit the types; here it stands for the tool.
    return tuple(name.partition("(")[0] for name in _parse_names(value))


def _parse_names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        raise _InvalidValue("is neither a list nor a text")
    names = [str(item).strip() for item in cast("list[object]", value)]
    return tuple(name for name in names if name)


def _parse_model(value: object) -> str | None:
    return None if (name := _parse_text(value)) == "inherit" else name


def _parse_mode(value: object) -> str:
    if not isinstance(value, str) or parse_mode(value) is None:
        raise _InvalidValue(f"{value!r} is not a permission mode")
    return value


def _parse_count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _InvalidValue("must be a number of at least 1")
    return value


def _parse_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _InvalidValue("must be a text")
    return value.strip()


def _make_choice_parser(*words: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in words:
            hint = format_suggestion(str(value), words)
            raise _InvalidValue(f"must be one of {', '.join(words)}, not {value!r}.{hint}")
        return str(value)

    return read


def _parse_servers(value: object) -> tuple[str | dict[str, Any], ...]:
    """Names and definitions; a table holds definitions by name."""
    if isinstance(value, Mapping):
        value = [{name: entry} for name, entry in cast("Mapping[str, Any]", value).items()]
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if not isinstance(value, Sequence):
        raise _InvalidValue("must be a list of names and definitions")
    entries = cast("Sequence[object]", value)
    for entry in entries:
        if not isinstance(entry, str | dict):
            raise _InvalidValue(f"contains {entry!r}, which is neither a name nor a definition")
    return tuple(cast("Sequence[str | dict[str, Any]]", entries))


def _parse_table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _InvalidValue("must be a table of events")
    return cast("dict[str, Any]", value)


def _parse_bool(value: object) -> bool:
    return parse_bool(value, default=False)


_Reader = Callable[[object], Any]
_KEYS: dict[str, tuple[str, _Reader, bool]] = {
    "tools": ("tools", _parse_tools, True),
    "disallowedTools": ("disallowed_tools", _parse_tools, True),
    "permissionMode": ("permission_mode", _parse_mode, True),
    "maxTurns": ("max_turns", _parse_count, True),
    "isolation": ("isolation", _make_choice_parser("worktree", "remote"), True),
    "hooks": ("hooks", _parse_table, True),
    "model": ("model", _parse_model, False),
    "skills": ("skills", _parse_names, False),
    "mcpServers": ("mcp_servers", _parse_servers, False),
    "memory": ("memory", _make_choice_parser("user", "project", "local"), False),
    "background": ("background", _parse_bool, False),
    "effort": ("effort", _make_choice_parser(*EFFORTS), False),
    "color": ("color", _make_choice_parser(*COLORS), False),
    "initialPrompt": ("initial_prompt", _parse_text, False),
}
"""Every key of a file: its field, its parser, and whether it restricts the agent."""
