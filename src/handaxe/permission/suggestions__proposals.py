"""Rules to offer with a question: what would have allowed the call, and how far it reaches."""

from handaxe.contract.decision import RuleProposal
from handaxe.permission.policy import Policy
from handaxe.permission.policy__request import JudgedPath, PermissionQuery
from handaxe.rules.grammar import PermissionRule, format_rule
from handaxe.rules.path_scopes import suggest_scope
from handaxe.rules.tool_families import is_foreign
from handaxe.text.urls import is_local_name


def propose_rules(request: PermissionQuery, policy: Policy) -> tuple[RuleProposal, ...]:
    """One proposal per place or host the call asks about; without any, the tool itself."""
    if not request.confined and not request.read_only:
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
