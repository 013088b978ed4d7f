"""The sentences of `decide`: why, and what would change it.

They are for a person, so whatever a call brought along is shown with its invisible characters
visible and cut where it has no end.
"""

from collections.abc import Sequence

from handaxe.contract.decision import Allow, Ask, Deny, ToolDefinition
from handaxe.contract.display import Display, Text
from handaxe.permission.policy import PermissionQuery, Policy
from handaxe.rules.grammar import PermissionRule, format_rule
from handaxe.rules.path_scopes import suggest_scope

SHOWN_CHARS = 300
PROTECTED = "protected"
"""The source of a question that no rule, hook or tool may answer."""
ABOVE_PROTECTED = "above-protected"
"""The same, about a directory that only holds what is protected: changing the directory counts."""
PLANNING = "plan"
"""The source of a question that nobody may answer: leaving plan mode is the only way."""

YES = "say yes, "

INSIDE = Allow("inside the project", "builtin")
STORED = Allow("part of this session's own stored results", "builtin")
LINKED = Allow("linked into this checkout to be read", "builtin")
ACCEPTED = Allow("acceptEdits mode lets files inside the working directories be changed", "mode")
OWN_MEMORY = Allow("part of the agent's own memory", "builtin")
HARMLESS = Allow("changes nothing", "builtin")
BYPASSED = Allow("bypassPermissions mode asks only where a rule says so", "mode")
IMPOSSIBLE = Deny("A path cannot hold a NUL character.", "builtin", remedy="give another path.")


def allow_by_rule(rule: PermissionRule) -> Allow:
    """A rule said yes."""
    text = to_display(rule.text)
    return Allow(f"the allow rule {text} ({rule.origin}) covers it", "rule", text, rule.origin)


def deny_by_rule(request: PermissionQuery, rule: PermissionRule, part: str) -> Deny:
    """A rule said no."""
    text = to_display(rule.text)
    changes = any(judged.access != "read" for judged in request.paths)
    if changes and rule.tool == "Read" and rule.specifier is not None:
        verb = "written" if request.tool == "Write" else "edited"
        reason = (
            f"File is covered by a Read deny rule in your permission settings and cannot be {verb}."
        )
        remedy = f"Only removing or narrowing {text} ({rule.origin}) changes this."
    else:
        covered = to_display(part) if part else "this tool"
        reason = f"The deny rule {text} ({rule.origin}) covers {covered}."
        remedy = "only removing or narrowing that rule changes this."
    return Deny(reason, "rule", text, rule.origin, remedy=remedy)


def ask_by_rule(request: PermissionQuery, rule: PermissionRule, part: str) -> Ask:
    """A rule wants a person to say yes."""
    text = to_display(rule.text)
    reason = f"The ask rule {text} ({rule.origin}) covers {to_display(part or request.tool)}."
    return Ask(reason, "rule", text, rule.origin, remedy=f"{YES}or remove or narrow that rule.")


def deny_unasked(question: Ask) -> Deny:
    """A question that the mode answers with no."""
    reason = f"dontAsk mode refuses what would ask. {question.reason}"
    remedy = strip_yes(question.remedy)
    return Deny(
        reason,
        "mode",
        question.rule,
        question.source,
        proposals=question.proposals,
        remedy=remedy,
    )


def strip_yes(remedy: str) -> str:
    """The remedy of a question where nobody is asked who could say yes."""
    return remedy.removeprefix(YES).removeprefix("or ") if remedy.startswith(YES) else remedy


def ask_for_protected(path: str, name: str) -> Ask:
    """A write that could make other programs run code."""
    return Ask(
        f"{to_display(path)} is protected: what is written to {to_display(name)} can make other "
        "programs run code or relax permissions, so it needs a yes whatever rules allow.",
        "builtin",
        source=PROTECTED,
    )


def ask_for_own_data(path: str, own: str) -> Ask:
    """A write that could change what handaxe trusts, undoes or runs."""
    is_above = len(path) < len(own)
    holds = "holds" if is_above else "belongs to"
    return Ask(
        f"{to_display(path)} {holds} {to_display(own)}, where data and settings of handaxe lie: a "
        "change there can change what is trusted, undone or run, so it needs a yes whatever "
        "rules allow.",
        "builtin",
        source=ABOVE_PROTECTED if is_above else PROTECTED,
    )


def ask_for_hard_link(path: str) -> Ask:
    """A write that would change a file outside under another name."""
    return Ask(
        f"{to_display(path)} also has a name outside the working directories or in a protected "
        "place (a hard link), so "
        "changing it needs a yes whatever rules allow.",
        "builtin",
        source=PROTECTED,
        remedy="a copy of the file would not.",
    )


def deny_worktree_escape(path: str) -> Deny:
    """What reaches beyond the checkout that an agent was given."""
    return Deny(
        f"{to_display(path)} belongs to the main checkout, or may lead there, and this agent works "
        "in a worktree of its own.",
        "builtin",
        remedy="Use the file of the same name below the working directory instead.",
    )


def deny_outside(path: str) -> Deny:
    """What lies outside the working directories of a session that is closed."""
    return Deny(
        f"{to_display(path)} is outside the working directories, and this session reaches nothing "
        "else. Work with files below the working directories.",
        "builtin",
    )


def ask_for_relative_path(path: str) -> Ask:
    """A path that was not made absolute."""
    return Ask(
        f"{to_display(path)} is no absolute path, so its place is unknown.",
        "builtin",
        remedy="give one.",
    )


def ask_in_plan_mode(what: str, external: Sequence[str] = ()) -> Ask:
    """A change while a plan is being made."""
    why = f"changes {_list_names(external)}" if external else "is not known to only look"
    return Ask(
        f"Plan mode changes nothing: {to_display(what)} {why}, so no rule, "
        "hook or answer lets it run before plan mode is left.",
        "mode",
        source=PLANNING,
    )


def ask_for_path(
    request: PermissionQuery, policy: Policy, *, path: str, outside: str | None, is_write: bool
) -> Ask:
    """A path that nothing allows, and the rule that would."""
    family = "Edit" if is_write else "Read"
    if not request.confined and not request.read_only:
        family = request.tool
    scope = suggest_scope(outside or path, policy.book.anchors)
    rule = to_display(format_rule(PermissionRule(family, scope, "")))
    remedy = f"{YES}or add the allow rule {rule}."
    if outside is not None:
        link = "" if outside == path else f"{to_display(path)} leads to "
        verb = "which lies" if link else "lies"
        where = f"{link}{to_display(outside)}{',' if link else ''} {verb} outside"
        return Ask(f"{where} the working directories.", "builtin", remedy=remedy)
    if not is_write:
        return Ask(f"{to_display(path)} usually holds secrets.", "builtin", remedy=remedy)
    is_unasked = policy.mode == "dontAsk"
    state = "no rule allows" if is_unasked else f"asks in {policy.mode} mode"
    return Ask(
        f"{to_display(request.tool)} would change {to_display(path)}, which {state}.",
        "mode",
        remedy=f"{YES}use acceptEdits mode, or add the allow rule {rule}.",
    )


def ask_for_question(tool: str) -> Ask:
    """A call that is a question to a person."""
    return Ask(f"{to_display(tool)} puts a question to a person.", "builtin")


def ask_for_host(tool: str, host: str) -> Ask:
    """A call that goes to a host which nothing allows."""
    if not host:
        return ask_for_tool(tool)
    rule = to_display(format_rule(PermissionRule(tool, f"domain:{host}", "")))
    return Ask(
        f"{to_display(tool)} would connect to {to_display(host)}.",
        "builtin",
        remedy=f"{YES}or add the allow rule {rule}.",
    )


def ask_for_external(request: PermissionQuery) -> Ask:
    """A call that reaches something outside, which nothing allows."""
    name, things = to_display(request.tool), _list_names(request.external)
    what = f"look at {things}, which lies" if request.read_only else f"change {things}, which lies"
    how = "" if request.read_only else " and cannot be undone"
    return Ask(
        f"{name} would {what} outside the working directories{how}.",
        "builtin",
        remedy=f"{YES}or add the allow rule {name}.",
    )


def _list_names(external: Sequence[str]) -> str:
    return to_display(" and ".join(external))


def ask_for_tool(tool: str) -> Ask:
    """A call without paths that nothing allows."""
    name = to_display(tool)
    return Ask(
        f"{name} asks before it runs.", "builtin", remedy=f"{YES}or add the allow rule {name}."
    )


def to_display(text: str) -> str:
    """Text as a person may see it."""
    cut = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
    return cut if cut.isprintable() else ascii(cut)[1:-1]


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
        f"The allow rule {text} ({rule.origin}) was an answer to a question, and {what}.",
        "builtin",
        text,
        SOURCE,
        remedy=f"{YES}or remove that rule.",
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
