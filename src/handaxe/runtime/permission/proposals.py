"""Rules to offer with a question: what would have allowed the call, and how far it reaches."""

from handaxe.contract.decision import RuleProposal
from handaxe.runtime.permission.families import is_foreign
from handaxe.runtime.permission.policy import Policy
from handaxe.runtime.permission.request import JudgedPath, Request
from handaxe.runtime.permission.rules import Rule, format_rule
from handaxe.runtime.permission.scopes import suggested_scope
from handaxe.text.hosts import is_near


def proposals_for(request: Request, policy: Policy) -> tuple[RuleProposal, ...]:
    """One proposal per place or host the call asks about; without any, the tool itself."""
    if not request.confined and not request.read_only:
        return (_for_tool(request.tool),)
    if request.paths:
        found = {
            proposal.rule: proposal for proposal in (_for_path(p, policy) for p in request.paths)
        }
        return tuple(found.values())
    if request.hosts and all(request.hosts):
        return tuple(_for_host(request.tool, host) for host in request.hosts)
    if request.tool == "Skill" and request.texts:
        return (_for_skill(request.texts[0]),)
    return (_for_tool(request.tool),)


def _for_path(judged: JudgedPath, policy: Policy) -> RuleProposal:
    family = "Edit" if judged.access == "write" else "Read"
    scope = suggested_scope(judged.real, policy.book.anchors)
    directory, _, name = judged.real.rpartition("/")
    above = directory.rpartition("/")[0]
    reaches = (judged.real, f"{directory}/other", f"{directory}/below/other")
    return RuleProposal(
        rule=format_rule(Rule(family, scope, "")),
        would_match=reaches if scope.endswith("/**") else (judged.real,),
        would_not_match=(
            f"{above}/other",
            f"{directory}-other/{name}",
            *(() if scope.endswith("/**") else (f"{directory}/other",)),
        ),
        meaning=_meaning(judged, directory, is_tree=scope.endswith("/**")),
    )


def _meaning(judged: JudgedPath, directory: str, *, is_tree: bool) -> str:
    act = "changes of" if judged.access == "write" else "reading"
    return f"{act} anything below {directory}" if is_tree else f"{act} {judged.real} alone"


def _for_host(tool: str, host: str) -> RuleProposal:
    below = () if is_near(host) else (f"a host below {host}",)
    return RuleProposal(
        rule=format_rule(Rule(tool, f"domain:{host}", "")),
        would_match=(f"{tool} of {host}, at any port",),
        would_not_match=(*below, "any other host", f"{tool} of a command"),
        meaning=f"{tool} of the host {host}",
    )


def _for_skill(text: str) -> RuleProposal:
    name = text.split(maxsplit=1)[0] if text.split() else ""
    if not name or "*" in name:
        return _for_tool("Skill")
    return RuleProposal(
        rule=format_rule(Rule("Skill", f"{name} *", "")),
        would_match=(name, f"{name} with any arguments"),
        would_not_match=(f"{name}-other", "any other skill"),
        meaning=f"the skill {name} with any arguments",
    )


def _for_tool(tool: str) -> RuleProposal:
    others = f"other tools of {tool.split('__')[1]}" if is_foreign(tool) else "any other tool"
    return RuleProposal(
        rule=tool,
        would_match=(f"every call of {tool}",),
        would_not_match=(others,),
        meaning=f"every call of {tool}",
    )
