"""Types of agents: the built-in ones, and those that people write as Markdown files."""

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from handaxe.agent.prompt import text_named
from handaxe.contract.ports.agents import AgentKind
from handaxe.runtime.permission.modes import parse_mode
from handaxe.text.frontmatter import BadFrontmatter, split

GENERAL = "general-purpose"
_LOOKING = ("Glob", "Grep", "Read", "Bash", "WebFetch", "WebSearch", "LSP", "ToolSearch")
_KNOWN = frozenset({
    "name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns",
    "skills", "mcpServers", "hooks", "memory", "background", "effort", "isolation", "color",
    "initialPrompt",
})  # fmt: skip
_NOT_DONE = ("skills", "mcpServers", "hooks", "memory", "isolation", "initialPrompt")


class BadAgentFile(ValueError):
    """A file that describes no agent; the sentence says why."""


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


def read_kind(text: str, source: str) -> tuple[AgentKind, tuple[str, ...]]:
    """The type that a file describes, and what of it is not used here.

    Raises:
        BadAgentFile: it describes none.
    """
    try:
        head, body = split(text)
    except BadFrontmatter as error:
        raise BadAgentFile(f"{source}: {error}") from None
    name, description = head.get("name"), head.get("description")
    if not isinstance(name, str) or not name.strip():
        raise BadAgentFile(f"{source}: `name` is missing")
    name = name.strip()
    if name.startswith("-") or ":" in name:
        raise BadAgentFile(f"{source}: {name!r} is no name for an agent (no leading `-`, no `:`)")
    if not isinstance(description, str) or not description.strip():
        raise BadAgentFile(f"{source}: `description` is missing")
    model = head.get("model")
    turns = head.get("maxTurns")
    if turns is not None and (not isinstance(turns, int) or turns < 1):
        raise BadAgentFile(f"{source}: `maxTurns` has to be a number of at least 1")
    mode = head.get("permissionMode")
    if mode is not None and (not isinstance(mode, str) or parse_mode(mode) is None):
        raise BadAgentFile(f"{source}: {mode!r} is not a permission mode")
    kind = AgentKind(
        name=name,
        description=description.strip(),
        prompt=body.strip(),
        tools=_names(head.get("tools"), source) if head.get("tools") is not None else None,
        disallowed_tools=_names(head.get("disallowedTools"), source),
        model=model if isinstance(model, str) and model != "inherit" else None,
        permission_mode=mode,
        max_turns=turns,
        background=head.get("background") is True,
        source=source,
    )
    unknown = [f"{source}: {key!r} is not known" for key in head if key not in _KNOWN]
    unused = [f"{source}: {key!r} is not used here yet" for key in head if key in _NOT_DONE]
    return kind, (*unknown, *unused)


def kinds_from(given: Iterable[tuple[str, Any]]) -> tuple[AgentKind, ...]:
    """Types as a host program gives them: name, and the fields of `AgentKind` or of a file."""
    kinds: list[AgentKind] = []
    for name, value in given:
        if isinstance(value, AgentKind):
            kinds.append(msgspec.structs.replace(value, name=name))
            continue
        if not isinstance(value, dict) or not cast("dict[str, Any]", value).get("description"):
            raise BadAgentFile(f"agents: {name!r} needs a `description`")
        fields = cast("dict[str, Any]", value)
        model = fields.get("model")
        kinds.append(
            AgentKind(
                name=name,
                description=str(fields["description"]),
                prompt=str(fields.get("prompt", "")),
                tools=_names(fields["tools"], name) if fields.get("tools") is not None else None,
                disallowed_tools=_names(fields.get("disallowedTools"), name),
                model=model if isinstance(model, str) and model != "inherit" else None,
                permission_mode=_text_or_none(fields.get("permissionMode")),
                max_turns=fields.get("maxTurns"),
                background=fields.get("background") is True,
                source="arguments",
            )
        )
    return tuple(kinds)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _names(value: object, source: str) -> tuple[str, ...]:
    """A list of tools: written as a list, or with commas between them."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        raise BadAgentFile(f"{source}: a list of tools is neither a list nor a text")
    names = [str(item).strip() for item in cast("list[object]", value)]
    # `Agent(a, b)` may limit the types; here it stands for the tool.
    return tuple(name.partition("(")[0] for name in names if name)
