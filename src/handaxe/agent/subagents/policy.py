"""A subagent's permissions: its parent's rules, in a mode that is never wider.

An agent in a worktree works only there. Rules for paths of the project apply to the same paths of
the worktree; denied paths of the project stay denied too.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from handaxe.contract.ports.agents import AgentDefinition
from handaxe.permission.policy import Policy
from handaxe.rules.grammar import PermissionRule
from handaxe.rules.modes import choose_strictest_mode
from handaxe.rules.path_scopes import Anchors
from handaxe.rules.rule_index import RuleIndex
from handaxe.rules.tool_families import TEXT_TOOLS
from handaxe.session.workdir import Workdir
from handaxe.text.gitignore import escape
from handaxe.text.paths import is_inside


class SubagentRestrictions(msgspec.Struct, frozen=True, kw_only=True):
    """The restrictions of an agent compared with its parent."""

    mode: str | None = None
    """The widest mode it may use."""
    checkout: str | None = None
    """Its worktree, if any."""
    project: str | None = None
    """The project that the worktree represents."""
    memory: Sequence[str] = ()
    """The directory of its memory."""


class SubagentPolicy:
    """The policy of an agent, based on its parent's current policy."""

    def __init__(
        self,
        parent: Callable[[], Policy],
        parents_place: Workdir,
        place: Workdir,
        narrowing: SubagentRestrictions,
    ) -> None:
        self._parent = parent
        self._parents_place = parents_place
        self._place = place
        self._narrowing = narrowing
        self._known: tuple[Policy, object, Policy] | None = None

    def __call__(self) -> Policy:
        """The current policy."""
        above, place, narrowing = self._parent(), self._place, self._narrowing
        if narrowing.checkout is None and place.roots != self._parents_place.roots:
            place.roots = self._parents_place.roots
        key = (place.roots, place.free_to_read)
        if self._known is None or self._known[0] is not above or self._known[1] != key:
            policy = Policy(
                self._build_rules(above),
                mode=choose_strictest_mode(above.mode, narrowing.mode) or above.mode,
                roots=place.roots,
                free_to_read=place.free_to_read,
                free_to_write=(*above.free_to_write, *narrowing.memory),
                own_places=above.own_places,
                walled_off=narrowing.project or above.walled_off,
                is_closed=above.is_closed,
                matches_command=above.matches_command,
            )
            self._known = above, key, policy
        return self._known[2]

    def _build_rules(self, above: Policy) -> RuleIndex:
        checkout = self._narrowing.checkout
        if checkout is None:
            return above.book
        anchors = Anchors(checkout, checkout, above.home)
        rules = [
            twin
            for rule in above.book.rules
            for twin in _translate_rule(rule, above.book.anchors.project_root, checkout)
        ]
        return RuleIndex(rules, anchors)


def _translate_rule(rule: PermissionRule, project: str, checkout: str) -> Iterator[PermissionRule]:
    """A rule for the worktree, and its denials for the project."""
    spoken = rule.specifier
    if spoken is None or rule.tool in TEXT_TOOLS or rule.root is not None:
        yield rule
        return
    forbids = rule.behaviour != "allow"
    if spoken.startswith("//"):
        if is_inside(spoken[1:], project):
            inside = spoken[1 + len(project) :]
            yield msgspec.structs.replace(rule, specifier=f"/{escape(checkout)}{inside}")
        if forbids or not is_inside(spoken[1:], project):
            yield rule
        return
    yield rule
    if not forbids or spoken.startswith("~"):
        return
    below = spoken.removeprefix("./").removeprefix("/")
    yield msgspec.structs.replace(rule, specifier=f"/{escape(project)}/{below}")
    if not spoken.startswith("/") and "/" not in below.rstrip("/"):
        yield msgspec.structs.replace(rule, specifier=f"/{escape(project)}/**/{below}")


NEVER_GIVEN = frozenset({
    "AskUserQuestion", "EndConversation", "EnterPlanMode", "ExitPlanMode", "ScheduleWakeup",
    "StructuredOutput", "TaskOutput", "Undo", "WaitForMcpServers", "Workflow",
})  # fmt: skip
MEMORY_TOOLS = ("Read", "Write", "Edit")
"""The tools that an agent needs for its memory."""
_RENAMED = {
    "ApplyPatch": "Edit", "EditLines": "Edit", "LS": "Glob", "MultiEdit": "Edit", "Task": "Agent",
    "apply_patch": "Edit",
}  # fmt: skip


def make_tool_filter(
    kind: AgentDefinition, *, may_start_agents: bool, parent_tools: Sequence[str] | None = None
) -> Callable[[str], bool]:
    """Whether a tool of the parent is available to the agent, by name.

    `parent_tools` are the parent's tools when the agent was first started, if fewer than the
    session's.
    """
    servers = tuple(f"mcp__{name}" for name in list_server_names(kind))
    own = tuple(f"mcp__{name}" for e in kind.mcp_servers if isinstance(e, dict) for name in e)
    wanted = None
    if kind.tools is not None:
        needed = MEMORY_TOOLS if kind.memory is not None else ()
        wanted = (*(_RENAMED.get(name, name) for name in kind.tools), *servers, *needed)
    forbidden = tuple(_RENAMED.get(name, name) for name in kind.disallowed_tools)
    above = None if parent_tools is None else {_RENAMED.get(name, name) for name in parent_tools}

    def has(name: str) -> bool:
        name = _RENAMED.get(name, name)
        if name in NEVER_GIVEN or (name == "Agent" and not may_start_agents):
            return False
        if _is_tool_covered(forbidden, name):
            return False
        if above is not None and name not in above and not _is_tool_covered(own, name):
            return False
        return wanted is None or _is_tool_covered(wanted, name)

    return has


def make_main_tool_filter(kind: AgentDefinition) -> Callable[[str], bool]:
    """Whether a tool is available to a type that leads the session."""
    wanted = None
    if kind.tools is not None:
        needed = MEMORY_TOOLS if kind.memory is not None else ()
        servers = (f"mcp__{name}" for name in list_server_names(kind))
        named = (_RENAMED.get(name, name) for name in kind.tools)
        wanted = (*named, *servers, *needed, "StructuredOutput")
    forbidden = tuple(_RENAMED.get(name, name) for name in kind.disallowed_tools)

    def has(name: str) -> bool:
        name = _RENAMED.get(name, name)
        return not _is_tool_covered(forbidden, name) and (
            wanted is None or _is_tool_covered(wanted, name)
        )

    return has


def list_server_names(kind: AgentDefinition) -> tuple[str, ...]:
    """The MCP servers that a type names or defines."""
    return tuple(
        name
        for entry in kind.mcp_servers
        for name in ((entry,) if isinstance(entry, str) else entry)
    )


def _is_tool_covered(patterns: Sequence[str], name: str) -> bool:
    """Whether a list covers a tool: by name, by server, or by everything."""
    for pattern in patterns:
        if pattern in {name, "*"}:
            return True
        server = pattern.removesuffix("*").removesuffix("__")
        if server.startswith("mcp__") and name.startswith(f"{server}__"):
            return True
    return False
