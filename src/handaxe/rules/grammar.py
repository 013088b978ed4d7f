"""The grammar of permission rules: `Tool` or `Tool(specifier)`, and what specifiers match.

Parsing never fails. Invalid text becomes a rule that matches nothing and has a `problem`, so one
wrong line in a settings file does not affect the others.
"""

import re

import msgspec

from handaxe.contract.decision import ToolDefinition
from handaxe.rules.tool_families import (
    COMMAND_TOOLS,
    HOST_TOOLS,
    PARAMS_LEFT_TO_SCOPES,
    Behaviour,
    is_foreign,
    resolve_tool_alias,
)

_PARAM = r"(?s)([A-Za-z_][A-Za-z0-9_-]*):(.*)"
_ESCAPED = r"\\([\\()])"
_MCP_ALLOW = r"(?s)mcp__[^*]+?__.*"
_TOO_LONG_TO_SPELL = 1e18
_HOST = r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]"


class PermissionRule(msgspec.Struct, frozen=True):
    """One permission rule and where it was written."""

    tool: str
    """The current tool name; may contain `*`."""
    specifier: str | None
    """None for the whole tool."""
    text: str
    """The original text."""
    behaviour: Behaviour = "deny"
    source: str = "session"
    """The layer: policy, flags, local, project, user or session."""
    source_line: int | None = None
    source_file: str | None = None
    root: str | None = None
    """The directory that a leading `/` in its path is relative to. None is the project."""
    problem: str | None = None
    """Why the rule matches nothing, or less than it seems to."""
    is_dead: bool = False
    """Whether it matches nothing."""
    approved: tuple[ToolDefinition, ...] | None = None
    """The server's tools at the time of the approval; None for a rule written by hand."""

    @property
    def origin(self) -> str:
        """Where to find the rule: its file and line, or the layer's name."""
        file, line = self.source_file, self.source_line
        if file is None:
            return self.source
        return file if line is None else f"{file}:{line}"

    def is_approval_of(self, definition: ToolDefinition | None) -> bool:
        """Whether the approval was given for this exact tool."""
        digest = definition.digest if definition is not None else None
        return any(one.digest == digest for one in self.approved or ())

    @property
    def is_whole_tool(self) -> bool:
        """Whether the rule covers every call of the tool."""
        return self.specifier is None and not self.is_dead

    @property
    def domain(self) -> str | None:
        """The hosts of the rule, as in `domain:*.example.org`."""
        is_one = self.tool in HOST_TOOLS and (self.specifier or "").startswith("domain:")
        return (self.specifier or "").removeprefix("domain:") if is_one else None

    @property
    def param(self) -> tuple[str, str] | None:
        """The input field and value of the rule, as in `model:opus`."""
        return _parse_param(self.tool, self.specifier, self.behaviour)


def parse_rule(
    text: str,
    behaviour: Behaviour = "deny",
    *,
    source: str = "session",
    source_line: int | None = None,
    source_file: str | None = None,
    root: str | None = None,
    approved: tuple[ToolDefinition, ...] | None = None,
) -> PermissionRule:
    """Parse one rule; invalid text gives a rule with a problem that matches nothing."""
    tool, specifier, problem = _split_rule(text.strip())
    is_dead = problem is not None
    if problem is None:
        problem, is_dead = _find_rule_problem(resolve_tool_alias(tool), specifier, behaviour)
    return PermissionRule(
        tool=tool if is_dead else resolve_tool_alias(tool),
        specifier=specifier,
        text=text,
        behaviour=behaviour,
        source=source,
        source_line=source_line,
        source_file=source_file,
        root=root,
        problem=f"The {behaviour} rule {text!r} {problem}." if problem else None,
        is_dead=is_dead,
        approved=approved,
    )


def format_rule(rule: PermissionRule) -> str:
    """Format the rule so that it parses back to the same tool and specifier."""
    if rule.specifier is None:
        return rule.tool
    escaped = re.sub(r"([\\()])", r"\\\1", rule.specifier)
    return f"{rule.tool}({escaped})"


def split_rules(text: str) -> list[str]:
    """Split the rules of a command-line value at commas and blanks outside parentheses."""
    rules: list[str] = []
    current = ""
    depth = 0
    is_escaped = False
    for char in text:
        if depth == 0 and not is_escaped and (char == "," or char.isspace()):
            rules.append(current)
            current = ""
            continue
        current += char
        if not is_escaped:
            depth = max(0, depth + (char == "(") - (char == ")"))
        is_escaped = char == "\\" and not is_escaped
    rules.append(current)
    return [rule for rule in rules if rule]


def _split_rule(text: str) -> tuple[str, str | None, str | None]:
    """Tool, specifier and problem."""
    tool, paren, rest = text.partition("(")
    if not text or (paren and not tool.strip()):
        return text, None, "has no tool name"
    if not paren:
        wrong = ")" in text or any(char.isspace() for char in text)
        return text, None, "has an invalid tool name" if wrong else None
    if not rest.endswith(")") or _is_escaped_end(rest[:-1]):
        return text, None, "does not end with its ')'"
    tool = tool.strip()
    if any(char.isspace() or char == ")" for char in tool):
        return text, None, "has no tool name before its '('"
    specifier = re.sub(_ESCAPED, r"\1", rest[:-1])
    return tool, (None if specifier.strip() in {"", "*"} else specifier), None


def _is_escaped_end(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _find_rule_problem(
    tool: str, specifier: str | None, behaviour: Behaviour
) -> tuple[str | None, bool]:
    """The problem of a well-formed rule, and whether the rule must be ignored."""
    if "*" in tool and specifier is not None:
        return "has both a '*' in the tool name and a specifier", True
    if "*" in tool and behaviour == "allow" and not re.fullmatch(_MCP_ALLOW, tool):
        return "allows by a '*' that does not follow a literal 'mcp__<server>__'", True
    if specifier is None:
        return None, False
    found = re.fullmatch(_PARAM, specifier)
    is_prefix = tool in COMMAND_TOOLS and specifier.endswith(":*")
    if found and found[1] in PARAMS_LEFT_TO_SCOPES and not is_prefix:
        return f"names the input {found[1]!r}, which has too many spellings to compare", True
    if found and behaviour == "allow" and is_foreign(tool):
        return "allows by an input's value; only deny and ask rules can", True
    return None, False


def _parse_param(tool: str, specifier: str | None, behaviour: Behaviour) -> tuple[str, str] | None:
    if specifier is None or behaviour == "allow":
        return None
    found = re.fullmatch(_PARAM, specifier)
    if found is None or found[1] in PARAMS_LEFT_TO_SCOPES:
        return None
    if tool in HOST_TOOLS and found[1] == "domain":
        return None
    return found[1], found[2]


def is_wildcard_match(pattern: str, text: str) -> bool:
    """Whether `text` matches `pattern`, where each `*` matches any characters; linear time."""
    first, *later = pattern.split("*")
    if not later:
        return pattern == text
    *middle, last = later
    if not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return at <= end


def is_prefix_match(pattern: str, text: str) -> bool:
    """Like `is_wildcard_match`, but a final ` *` or `:*` also matches nothing, at a word's end."""
    for ending in (" *", ":*"):
        if pattern.endswith(ending):
            head = pattern.removesuffix(ending)
            return is_wildcard_match(head, text) or is_wildcard_match(head + " *", text)
    return is_wildcard_match(pattern, text)


def is_domain_match(pattern: str, text: str) -> bool:
    """Whether the host or address in `text` is in a rule's domain."""
    host = extract_host(text)
    if host is None:
        return False
    wanted = pattern.strip().lower().removesuffix(".")
    if wanted == "*":
        return True
    if wanted.startswith("*."):
        base = wanted[2:].split(".")
        parts = host.split(".")
        below = parts[-len(base) :]
        return len(parts) > len(base) and all(map(is_wildcard_match, base, below))
    wanted_parts, parts = wanted.split("."), host.split(".")
    return len(wanted_parts) == len(parts) and all(map(is_wildcard_match, wanted_parts, parts))


def is_host_match(pattern: str, host: str, *, allows: bool) -> bool:
    """Whether a host is in a rule's domain.

    Nearby hosts (this machine, its network, any address) are allowed only by a rule that names
    them, because a wide allow rule means the internet.
    """
    if allows and "*" in pattern:
        from handaxe.text.urls import is_local_name

        if is_local_name(host):
            return False
    from handaxe.text.urls import list_spellings

    return any(is_domain_match(pattern, spelling) for spelling in list_spellings(host))


def extract_host(text: str) -> str | None:
    """The host of an address or a bare host name; None if parsers could disagree."""
    text = text.removeprefix("domain:")
    if "\\" in text or not text.isascii() or any(char <= " " for char in text):
        return None
    _, scheme, rest = text.partition("://")
    authority = re.split(r"[/?#]", rest if scheme else text, maxsplit=1)[0]
    host = authority.rpartition("@")[2].lower()
    host = re.sub(r":\d*\Z", "", host) if not host.endswith("]") else host
    host = host.removesuffix(".")
    return host if re.fullmatch(_HOST, host) else None


def is_value_match(pattern: str, value: object) -> bool:
    """Whether a scalar in a call's input equals a rule's value."""
    if isinstance(value, bool):
        spelled = "true" if value else "false"
    elif value is None:
        spelled = "null"
    elif isinstance(value, str):
        spelled = value
    elif isinstance(value, (int, float)) and abs(value) < _TOO_LONG_TO_SPELL:
        spelled = str(value)
    else:
        return False
    return is_wildcard_match(pattern, spelled)
