"""The permissions a user can grant with one approval; all frontends show this list.

The first suggestion of a destination is its default.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from handaxe.contract.decision import PermissionSuggestion, RuleProposal, SuggestedDestination
from handaxe.permission.decide import decide
from handaxe.permission.policy import JudgedPath, PermissionQuery, Policy
from handaxe.rules.grammar import PermissionRule, format_rule
from handaxe.rules.path_scopes import suggest_scope
from handaxe.rules.tool_families import is_foreign
from handaxe.text.urls import is_local_name

_DURATIONS: dict[SuggestedDestination, str] = {
    "session": "for the rest of this session",
    "localSettings": "in this project from now on",
    "userSettings": "in every project from now on",
}
_KEYS: dict[SuggestedDestination, str] = {
    "session": "session",
    "localSettings": "project",
    "userSettings": "always",
}


class _Scope(NamedTuple):
    """A permission to grant, and whether it may outlast the session."""

    allows: str
    rules: tuple[str, ...] = ()
    mode: str | None = None
    is_lasting: bool = True


def suggest_permissions(
    request: PermissionQuery,
    policy: Policy,
    proposals: Sequence[RuleProposal],
    *,
    leaves_questions: bool = False,
) -> tuple[PermissionSuggestion, ...]:
    """All suggestions for a prompt, by destination; empty if no rule would help."""
    if not proposals:
        return ()
    narrow = _Scope(_join(proposals), tuple(proposal.rule for proposal in proposals))
    scopes = [*_suggest_edit_mode(request, policy), narrow, *_suggest_wider(request)]
    rest = " The rest of the command would still ask." if leaves_questions else ""
    return tuple(
        PermissionSuggestion(
            f"Allow {scope.allows}, {duration}.{rest}", destination, scope.rules, scope.mode
        )
        for destination, duration in _DURATIONS.items()
        for scope in scopes
        if destination == "session" or scope.is_lasting
    )


def name_suggestions(
    suggestions: Iterable[PermissionSuggestion],
) -> dict[str, PermissionSuggestion]:
    """Suggestions by the answer that selects them: `session`, `session2`, `project`, `always`."""
    named: dict[str, PermissionSuggestion] = {}
    counts: dict[str, int] = {}
    for suggestion in suggestions:
        key = _KEYS[suggestion.destination]
        counts[key] = counts.get(key, 0) + 1
        named[key if counts[key] == 1 else f"{key}{counts[key]}"] = suggestion
    return named


def to_updates(suggestions: Iterable[PermissionSuggestion]) -> list[dict[str, Any]]:
    """The suggestions in the ecosystem's format for permission updates."""
    return [_to_update(suggestion) for suggestion in suggestions]


def _to_update(suggestion: PermissionSuggestion) -> dict[str, Any]:
    destination = suggestion.destination
    if suggestion.mode is not None:
        return {"type": "setMode", "mode": suggestion.mode, "destination": destination}
    return {
        "type": "addRules",
        "rules": [_to_rule_json(rule) for rule in suggestion.rules],
        "behavior": "allow",
        "destination": destination,
    }


def _to_rule_json(rule: str) -> dict[str, str]:
    tool, parenthesis, content = rule.partition("(")
    return {"toolName": tool, "ruleContent": content[:-1]} if parenthesis else {"toolName": tool}


def _join(proposals: Sequence[RuleProposal]) -> str:
    meanings = [proposal.meaning or proposal.rule for proposal in proposals]
    return " and ".join(dict.fromkeys(meanings))


def _suggest_edit_mode(request: PermissionQuery, policy: Policy) -> list[_Scope]:
    """All edits of the session, if that would have allowed this one."""
    if policy.mode != "default" or not any(path.access == "write" for path in request.paths):
        return []
    if decide(request, policy.change_mode("acceptEdits")).verdict != "allow":
        return []
    allows = "all edits inside the working directories"
    return [_Scope(allows, mode="acceptEdits", is_lasting=False)]


def _suggest_wider(request: PermissionQuery) -> list[_Scope]:
    """Wider scopes that users expect for some tools."""
    if request.tool == "Skill":
        return [_Scope("every skill", ("Skill",), is_lasting=False)]
    if is_foreign(request.tool):
        server = request.tool.split("__")[1]
        return [_Scope(f"every tool of the MCP server {server}", (f"mcp__{server}__*",))]
    return []


def propose_rules(request: PermissionQuery, policy: Policy) -> tuple[RuleProposal, ...]:
    """One proposal per path or host of the call; otherwise one for the tool."""
    if request.external or not (request.confined or request.read_only):
        return (_propose_tool_rule(request.tool),)
    if request.paths:
        found = {
            proposal.rule: proposal
            for proposal in (_propose_path_rule(p, policy) for p in request.paths)
        }
        return tuple(found.values())
    if request.hosts and all(request.hosts):
        return tuple(_propose_host_rule(request.tool, host) for host in request.hosts)
    if request.tool == "Skill" and request.texts:
        return (_propose_skill_rule(request.texts[0]),)
    return (_propose_tool_rule(request.tool),)


def _propose_path_rule(judged: JudgedPath, policy: Policy) -> RuleProposal:
    family = "Edit" if judged.access == "write" else "Read"
    scope = suggest_scope(judged.real, policy.book.anchors)
    directory, _, name = judged.real.rpartition("/")
    above = directory.rpartition("/")[0]
    reaches = (judged.real, f"{directory}/other", f"{directory}/below/other")
    return RuleProposal(
        rule=format_rule(PermissionRule(family, scope, "")),
        would_match=reaches if scope.endswith("/**") else (judged.real,),
        would_not_match=(
            f"{above}/other",
            f"{directory}-other/{name}",
            *(() if scope.endswith("/**") else (f"{directory}/other",)),
        ),
        meaning=_describe_scope(judged, directory, is_tree=scope.endswith("/**")),
    )


def _describe_scope(judged: JudgedPath, directory: str, *, is_tree: bool) -> str:
    act = "changes of" if judged.access == "write" else "reading"
    return f"{act} anything below {directory}" if is_tree else f"{act} {judged.real} alone"


def _propose_host_rule(tool: str, host: str) -> RuleProposal:
    below = () if is_local_name(host) else (f"a host below {host}",)
    return RuleProposal(
        rule=format_rule(PermissionRule(tool, f"domain:{host}", "")),
        would_match=(f"{tool} of {host}, at any port",),
        would_not_match=(*below, "any other host", f"{tool} of a command"),
        meaning=f"{tool} of the host {host}",
    )


def _propose_skill_rule(text: str) -> RuleProposal:
    name = text.split(maxsplit=1)[0] if text.split() else ""
    if not name or "*" in name:
        return _propose_tool_rule("Skill")
    return RuleProposal(
        rule=format_rule(PermissionRule("Skill", f"{name} *", "")),
        would_match=(name, f"{name} with any arguments"),
        would_not_match=(f"{name}-other", "any other skill"),
        meaning=f"the skill {name} with any arguments",
    )


def _propose_tool_rule(tool: str) -> RuleProposal:
    others = f"other tools of {tool.split('__')[1]}" if is_foreign(tool) else "any other tool"
    return RuleProposal(
        rule=tool,
        would_match=(f"every call of {tool}",),
        would_not_match=(others,),
        meaning=f"every call of {tool}",
    )
