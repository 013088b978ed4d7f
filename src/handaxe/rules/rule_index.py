"""Compiled rules by behaviour and tool; they depend only on rules and anchors."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from handaxe.rules.grammar import PermissionRule, is_wildcard_match
from handaxe.rules.path_scopes import Anchors, PathIndex, Scope, compile_scopes
from handaxe.rules.tool_families import TEXT_TOOLS, Behaviour, is_foreign, resolve_tool_alias

_BEHAVIOURS: tuple[Behaviour, ...] = ("deny", "ask", "allow")


class ToolRules(msgspec.Struct, frozen=True):
    """The rules of one behaviour that can concern one tool."""

    whole: PermissionRule | None
    """Covers every call."""
    reading: PermissionRule | None
    """Covers every path that is read."""
    changing: PermissionRule | None
    """Covers every path that is changed."""
    read_scopes: tuple[PathIndex, ...]
    write_scopes: tuple[PathIndex, ...]
    own_scopes: PathIndex | None
    """Scopes of rules that name this tool."""
    bound: tuple[PermissionRule, ...]
    """Cover every call of the tool version that the user approved."""
    texts: tuple[PermissionRule, ...]
    params: tuple[PermissionRule, ...]
    is_silent: bool
    """Whether none of them can concern the tool."""


class _Chapter:
    """All rules of one behaviour."""

    def __init__(
        self, rules: Sequence[PermissionRule], behaviour: Behaviour, anchors: Anchors
    ) -> None:
        self.behaviour: Behaviour = behaviour
        self.problems: list[str] = []
        self.whole: dict[str, PermissionRule] = {}
        self.globs: list[PermissionRule] = []
        self.bound: list[PermissionRule] = []
        self.scoped: dict[str, list[PermissionRule]] = {}
        self._anchors = anchors
        self._indexes: dict[str, PathIndex | None] = {}
        for rule in rules:
            if not rule.is_whole_tool:
                self.scoped.setdefault(rule.tool, []).append(rule)
            elif rule.approved is not None:
                self.bound.append(rule)
            elif "*" in rule.tool:
                self.globs.append(rule)
            else:
                self.whole.setdefault(rule.tool, rule)

    def index(self, tool: str) -> PathIndex | None:
        """The path scopes of rules that name this tool."""
        if tool not in self._indexes:
            scopes: list[Scope] = []
            for rule in self.scoped.get(tool, ()):
                found, problem = compile_scopes(rule, self._anchors)
                scopes.extend(found)
                if problem is not None:
                    told = f"The {self.behaviour} rule {rule.text!r}: {problem}"
                    self.problems.append(_add_location(rule, told))
            self._indexes[tool] = PathIndex(scopes) if scopes else None
        return self._indexes[tool]

    def find_blanket_rule(self, tool: str) -> PermissionRule | None:
        """A rule for every call of the tool, by its name, its server or a pattern."""
        if (rule := self.whole.get(tool)) is not None:
            return rule
        for rule in self.globs:
            if is_wildcard_match(rule.tool, tool):
                return rule
        return self._find_server_rule(tool) if is_foreign(tool) else None

    def _find_server_rule(self, tool: str) -> PermissionRule | None:
        at = tool.find("__", len("mcp__"))
        while at > 0:
            if (rule := self.whole.get(tool[:at])) is not None:
                return rule
            at = tool.find("__", at + 1)
        return None

    def find_rules(self, names: Sequence[str]) -> ToolRules:
        """The rules for a tool with these names."""
        whole = next((rule for name in names if (rule := self.find_blanket_rule(name))), None)
        bound = [
            rule for rule in self.bound if any(_is_tool_named(rule.tool, name) for name in names)
        ]
        own = [rule for name in names for rule in self.scoped.get(name, ())]
        reads, writes = [self.index("Read")], [self.index("Edit")]
        if self.behaviour == "allow":
            # Who may change a file may read it.
            reads.append(self.index("Edit"))
        elif self.behaviour == "deny":
            # A change shows the previous content, so an unreadable file must not be changed either.
            writes.append(self.index("Read"))
        own_index = None
        if not any(name in TEXT_TOOLS or is_foreign(name) for name in names):
            own_index = next((index for name in names if (index := self.index(name))), None)
        reading, changing = self.find_blanket_rule("Read"), self.find_blanket_rule("Edit")
        read_scopes, write_scopes = _present(*reads, own_index), _present(*writes, own_index)
        blankets = (whole, reading, changing)
        return ToolRules(
            whole=whole,
            reading=reading,
            changing=changing,
            read_scopes=read_scopes,
            write_scopes=write_scopes,
            own_scopes=own_index,
            bound=tuple(bound),
            texts=tuple(own),
            params=tuple(rule for rule in own if rule.param is not None),
            is_silent=blankets == (None, None, None)
            and not (read_scopes or write_scopes or own or bound),
        )


class RuleIndex:
    """Compiled rules, by behaviour and tool."""

    def __init__(self, rules: Iterable[PermissionRule], anchors: Anchors) -> None:
        self.rules = tuple(rules)
        self.anchors = anchors
        live = [rule for rule in self.rules if not rule.is_dead]
        self._deny, self._ask, self._allow = (
            _Chapter([rule for rule in live if rule.behaviour == behaviour], behaviour, anchors)
            for behaviour in _BEHAVIOURS
        )
        self._by_tool: dict[tuple[str, ...], tuple[ToolRules, ToolRules, ToolRules]] = {}
        self._hiding: dict[str, PermissionRule | None] = {}

    def find_rules(
        self, tool: str, aliases: tuple[str, ...] = ()
    ) -> tuple[ToolRules, ToolRules, ToolRules]:
        """The deny, ask and allow rules that can concern a tool."""
        key = (tool, *aliases)
        found = self._by_tool.get(key)
        if found is None:
            names = tuple(
                dict.fromkeys(name for raw in key for name in (raw, resolve_tool_alias(raw)))
            )
            found = (
                self._deny.find_rules(names),
                self._ask.find_rules(names),
                self._allow.find_rules(names),
            )
            if len(self._by_tool) < 1000:
                self._by_tool[key] = found
        return found

    def find_hiding_rule(self, tool: str) -> PermissionRule | None:
        """The deny rule that covers every call of a tool."""
        if tool not in self._hiding:
            self._hiding[tool] = self._deny.find_blanket_rule(
                resolve_tool_alias(tool)
            ) or self._deny.find_blanket_rule(tool)
        return self._hiding[tool]

    def list_command_rules(self, tool: str = "Bash") -> dict[Behaviour, tuple[PermissionRule, ...]]:
        """The rules for commands; whole-tool rules included.

        Every tool that runs commands follows Bash's rules and its own.
        """
        found: dict[Behaviour, tuple[PermissionRule, ...]] = {}
        for chapter in (self._deny, self._ask, self._allow):
            rules: list[PermissionRule] = []
            for name in dict.fromkeys((tool, "Bash")):
                whole = chapter.find_blanket_rule(name)
                rules += [whole] if whole is not None else []
                rules += [rule for rule in chapter.scoped.get(name, ()) if rule.domain is None]
            found[chapter.behaviour] = tuple(dict.fromkeys(rules))
        return found

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """The problems of single rules, one sentence each."""
        found = [_add_location(rule, rule.problem) for rule in self.rules if rule.problem]
        for chapter in (self._deny, self._ask, self._allow):
            for tool in chapter.scoped:
                if tool not in TEXT_TOOLS and not is_foreign(tool):
                    chapter.index(tool)
            found.extend(dict.fromkeys(chapter.problems))
        return tuple(found)


def _add_location(rule: PermissionRule, sentence: str) -> str:
    """The sentence with the rule's file and line, if known."""
    if rule.source_file is None:
        return sentence
    line = "" if rule.source_line is None else f":{rule.source_line}"
    return f"{rule.source_file}{line}: {sentence}"


def _is_tool_named(pattern: str, tool: str) -> bool:
    """Whether a whole-tool rule covers a server's tool, by its name, its server or a pattern."""
    return (
        is_wildcard_match(pattern, tool)
        if "*" in pattern
        else f"{tool}__".startswith(f"{pattern}__")
    )


def _present(*indexes: PathIndex | None) -> tuple[PathIndex, ...]:
    return tuple(dict.fromkeys(index for index in indexes if index is not None))
