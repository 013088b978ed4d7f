"""The question about a server's tool that is not what somebody said yes to, with the difference."""

from collections.abc import Sequence

from handaxe.contract.decision import Ask, ToolDefinition
from handaxe.contract.display import Display, Text
from handaxe.permission.policy__request import PermissionQuery
from handaxe.permission.reasons import YES, to_display
from handaxe.rules.grammar import PermissionRule

SOURCE = "approval"
_SERVER = "server"
_UNSEEN = "a part that cannot be shown, such as a variable's value or an invisible character"


def ask_for_changed_tool(request: PermissionQuery, rules: Sequence[PermissionRule]) -> Ask:
    """Why the rules that name the tool do not count for it any more."""
    now = request.definition
    rule = rules[-1]
    earlier: ToolDefinition | None = None
    for candidate in reversed(rules):
        same = [one for one in candidate.approved or () if one.tool == request.tool]
        if same:
            rule, earlier = candidate, same[-1]
            break
    preview: Display = ()
    if now is None or not any(one.approved for one in rules):
        what = f"what {to_display(request.tool)} was when it was allowed is not known"
    elif earlier is None:
        what = (
            f"the MCP server {now.server!r} did not offer {to_display(request.tool)} at that time"
        )
    else:
        names, preview = _compare(earlier, now)
        changed = " and ".join(_describe_part(one, now.server) for one in names) or _UNSEEN
        preview = preview or (Text(f"{request.tool} has changed in {_UNSEEN}."),)
        what = f"{to_display(request.tool)} has changed since ({changed})"
    text = to_display(rule.text)
    return Ask(
        f"The allow rule {text} ({rule.origin}) was an answer to a question, and {what}; "
        f"{YES}or remove that rule.",
        "builtin",
        text,
        SOURCE,
        preview=preview,
    )


def _compare(earlier: ToolDefinition, now: ToolDefinition) -> tuple[list[str], Display]:
    """The parts that differ, and their differences."""
    from handaxe.text.diff import format_unified_diff

    before, after = dict(earlier.parts), dict(now.parts)
    names = [n for n in dict.fromkeys((*before, *after)) if before.get(n) != after.get(n)]
    return names, tuple(
        Text(
            format_unified_diff(
                f"{before.get(name, '')}\n",
                f"{after.get(name, '')}\n",
                old_name=f"{name} when it was allowed",
                new_name=f"{name} now",
            ),
        )
        for name in names
    )


def _describe_part(part: str, server: str) -> str:
    return f"how the server {server!r} is started or reached" if part == _SERVER else f"its {part}"
