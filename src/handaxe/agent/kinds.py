"""Types of agents: the built-in ones, and those that people write as Markdown files."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from handaxe.agent.prompt import text_named
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.agents import AgentKind
from handaxe.contract.ports.trust_gate import Owner, Wish
from handaxe.runtime.permission.modes import parse_mode
from handaxe.text.frontmatter import BadFrontmatter, split, truth
from handaxe.text.near_names import nearest

GENERAL = "general-purpose"
EFFORTS = ("low", "medium", "high", "xhigh", "max")


def checked_effort(given: str | None) -> str | None:
    """How hard a model tries, if that is a word for it."""
    if given is None or given in EFFORTS:
        return given
    near = nearest(given, EFFORTS)
    hint = f" Did you mean {near}?" if near else ""
    raise SetupError(f"`effort` has to be one of {', '.join(EFFORTS)}, not {given!r}.{hint}")


COLORS = ("red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan")
_LOOKING = ("Glob", "Grep", "Read", "Bash", "WebFetch", "WebSearch", "LSP", "ToolSearch")
_NO_NAME = re.compile(r"^[-.]|[:/\\\x00-\x1f]")


class BadAgentFile(ValueError):
    """A file that describes no agent; the sentence says why."""


class _Unfit(Exception):
    """A value that its key cannot have; what is wrong with it."""


def built_in_kinds() -> tuple[AgentKind, ...]:
    """What is there without any file."""
    return (
        AgentKind(
            name=GENERAL,
            description="Any task of several steps: looks for things, changes files, runs tests. "
            "Has the tools of whoever starts it.",
            prompt=text_named("agent_general"),
        ),
        AgentKind(
            name="Explore",
            description="Finds its way through a large code base and reports; changes nothing.",
            prompt=text_named("agent_explore"),
            tools=_LOOKING,
            permission_mode="plan",
            is_lean=True,
        ),
        AgentKind(
            name="Plan",
            description="Works out how to do something and names the files; changes nothing.",
            prompt=text_named("agent_plan"),
            tools=_LOOKING,
            permission_mode="plan",
            is_lean=True,
        ),
    )


def read_kind(
    text: str, source: str, *, owner: Owner = "project", root: str = ""
) -> tuple[Wish[AgentKind], tuple[str, ...]]:
    """The type that a file describes, and what of it counts for nothing.

    What it starts, where it may write and whose place it takes is for the gate to grant.

    Raises:
        BadAgentFile: it describes none.
    """
    try:
        head, body = split(text)
    except BadFrontmatter as error:
        raise BadAgentFile(f"{source}: {error}") from None
    name = head.pop("name", None)
    if not isinstance(name, str) or not name.strip():
        raise BadAgentFile(f"{source}: `name` is missing")
    kind, remarks = _kind(name.strip(), head, body.strip(), source, where=source)
    if owner == "project" and kind.model and any(char in kind.model for char in "/:"):
        kind = msgspec.structs.replace(kind, model=None)
        remarks = (*remarks, f"{source}: a project may not choose a vendor; `model` ignored")
    names = tuple(entry for entry in kind.mcp_servers if isinstance(entry, str))
    harmless = msgspec.structs.replace(kind, hooks={}, mcp_servers=names, memory=None)
    powers: dict[str, Any] = {"name": kind.name}
    if kind != harmless:
        powers |= {"hooks": kind.hooks, "mcpServers": kind.mcp_servers, "memory": kind.memory}
    key = f"agent:{source.removeprefix(f'{root}/')}"
    wish = Wish(kind, harmless, key=key, shown=powers, file=source, root=root, owner=owner)
    return wish, remarks


def kinds_from(given: Iterable[tuple[str, Any]]) -> tuple[tuple[AgentKind, ...], tuple[str, ...]]:
    """Types as a host program gives them, and remarks: an `AgentKind`, or the fields of a file."""
    kinds: list[AgentKind] = []
    remarks: list[str] = []
    for name, value in given:
        if isinstance(value, AgentKind):
            kinds.append(msgspec.structs.replace(value, name=name))
            continue
        where = f"agents: {name!r}"
        if not isinstance(value, Mapping):
            raise BadAgentFile(f"{where} needs a `description`")
        fields = dict(cast("Mapping[str, Any]", value))
        fields.pop("name", None)
        prompt = str(fields.pop("prompt", None) or "")
        kind, said = _kind(name, fields, prompt, "arguments", where=where)
        kinds.append(kind)
        remarks += said
    return tuple(kinds), tuple(remarks)


def _kind(
    name: str, head: dict[str, Any], prompt: str, source: str, *, where: str
) -> tuple[AgentKind, tuple[str, ...]]:
    if _NO_NAME.search(name):
        raise BadAgentFile(f"{where}: {name!r} is no name for an agent (no leading `-`, no `:`)")
    description = head.pop("description", None)
    if not isinstance(description, str) or not description.strip():
        raise BadAgentFile(f"{where}: `description` is missing")
    fields: dict[str, Any] = {}
    remarks: list[str] = []
    for key, value in head.items():
        if key not in _KEYS:
            near = nearest(key, ("name", "description", *_KEYS))
            hint = f" Did you mean {near!r}?" if near else ""
            remarks.append(f"{where}: {key!r} is not known.{hint}")
        elif value is not None:
            field, read, limits = _KEYS[key]
            try:
                fields[field] = read(value)
            except _Unfit as error:
                # What keeps an agent within limits may not get lost; the rest may.
                if limits:
                    raise BadAgentFile(f"{where}: `{key}` {error}") from None
                remarks.append(f"{where}: `{key}` {error}; it counts for nothing.")
    kind = AgentKind(
        name=name, description=description.strip(), prompt=prompt, source=source, **fields
    )
    return kind, tuple(remarks)


def _tools(value: object) -> tuple[str, ...]:
    """A list of tools: written as a list, or with commas between them."""
    # `Agent(a, b)` may limit the types; here it stands for the tool.
    return tuple(name.partition("(")[0] for name in _names(value))


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        raise _Unfit("is neither a list nor a text")
    names = [str(item).strip() for item in cast("list[object]", value)]
    return tuple(name for name in names if name)


def _model(value: object) -> str | None:
    return None if (name := _text(value)) == "inherit" else name


def _mode(value: object) -> str:
    if not isinstance(value, str) or parse_mode(value) is None:
        raise _Unfit(f"{value!r} is not a permission mode")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _Unfit("has to be a number of at least 1")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Unfit("has to be a text")
    return value.strip()


def _one_of(*words: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in words:
            near = nearest(str(value), words)
            hint = f" Did you mean {near!r}?" if near else ""
            raise _Unfit(f"has to be one of {', '.join(words)}, not {value!r}.{hint}")
        return str(value)

    return read


def _servers(value: object) -> tuple[str | dict[str, Any], ...]:
    """Names and definitions; a lone table holds definitions by name."""
    if isinstance(value, Mapping):
        value = [{name: entry} for name, entry in cast("Mapping[str, Any]", value).items()]
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if not isinstance(value, Sequence):
        raise _Unfit("has to be a list of names and definitions")
    entries = cast("Sequence[object]", value)
    for entry in entries:
        if not isinstance(entry, str | dict):
            raise _Unfit(f"holds {entry!r}, which is neither a name nor a definition")
    return tuple(cast("Sequence[str | dict[str, Any]]", entries))


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Unfit("has to be a table of events")
    return cast("dict[str, Any]", value)


def _yes(value: object) -> bool:
    return truth(value, default=False)


_Reader = Callable[[object], Any]
_KEYS: dict[str, tuple[str, _Reader, bool]] = {
    "tools": ("tools", _tools, True),
    "disallowedTools": ("disallowed_tools", _tools, True),
    "permissionMode": ("permission_mode", _mode, True),
    "maxTurns": ("max_turns", _count, True),
    "isolation": ("isolation", _one_of("worktree", "remote"), True),
    "hooks": ("hooks", _table, True),
    "model": ("model", _model, False),
    "skills": ("skills", _names, False),
    "mcpServers": ("mcp_servers", _servers, False),
    "memory": ("memory", _one_of("user", "project", "local"), False),
    "background": ("background", _yes, False),
    "effort": ("effort", _one_of(*EFFORTS), False),
    "color": ("color", _one_of(*COLORS), False),
    "initialPrompt": ("initial_prompt", _text, False),
}
"""Every key of a file: the field it fills, who reads it, whether it keeps the agent in limits."""
