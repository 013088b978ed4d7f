"""The reasons and remedies of `decide`.

Users read them, so text from a call is cut, and its invisible characters are escaped.
"""

from collections.abc import Sequence

from handaxe.contract.decision import Allow, Ask, Deny, ToolDefinition
from handaxe.contract.display import Display, Text
from handaxe.permission.policy import PermissionQuery, Policy
from handaxe.rules.grammar import PermissionRule, format_rule
from handaxe.rules.path_scopes import suggest_scope
from handaxe.rules.tool_families import HOST_TOOL

SHOWN_CHARS = 300
PROTECTED = "protected"
"""The source of a question that only the user may answer, not a rule, hook or tool."""
ABOVE_PROTECTED = "above-protected"
"""The same for a directory that contains protected paths: only changing the directory counts."""
PLANNING = "plan"
"""The source of a refusal that only leaving plan mode lifts."""

INSIDE = Allow("inside the project", "builtin")
STORED = Allow("part of this session's stored results", "builtin")
LINKED = Allow("linked into this checkout for reading", "builtin")
ACCEPTED = Allow("acceptEdits mode allows edits in the working directories", "mode")
OWN_MEMORY = Allow("part of the agent's own memory", "builtin")
HARMLESS = Allow("changes nothing", "builtin")
BYPASSED = Allow("bypassPermissions mode asks only for ask rules", "mode")
IMPOSSIBLE = Deny("A path cannot hold a NUL character.", "builtin", remedy="Give another path.")


def allow_by_rule(rule: PermissionRule) -> Allow:
    """An allow rule matches."""
    text = to_display(rule.text)
    return Allow(f"the allow rule {text} ({rule.origin}) covers it", "rule", text, rule.origin)


def deny_by_rule(request: PermissionQuery, rule: PermissionRule, part: str) -> Deny:
    """A deny rule matches."""
    text = to_display(rule.text)
    changes = any(judged.access != "read" for judged in request.paths)
    if changes and rule.tool == "Read" and rule.specifier is not None:
        verb = "written" if request.tool == "Write" else "edited"
        reason = (
            f"File is covered by a Read deny rule in your permission settings and cannot be {verb}."
        )
        remedy = f"To allow it, remove or narrow {text} ({rule.origin})."
    else:
        covered = to_display(part) if part else "this tool"
        reason = f"The deny rule {text} ({rule.origin}) covers {covered}."
        remedy = "To allow it, remove or narrow that rule."
    return Deny(reason, "rule", text, rule.origin, remedy=remedy)


def ask_by_rule(request: PermissionQuery, rule: PermissionRule, part: str) -> Ask:
    """An ask rule matches."""
    text = to_display(rule.text)
    reason = f"The ask rule {text} ({rule.origin}) covers {to_display(part or request.tool)}."
    return Ask(
        reason,
        "rule",
        text,
        rule.origin,
        remedy="To run it without asking, remove or narrow that rule.",
    )


def deny_unasked(question: Ask) -> Deny:
    """A question that `dontAsk` mode answers with a refusal."""
    return Deny(
        f"dontAsk mode refuses calls that need approval. {question.reason}",
        "mode",
        question.rule,
        question.source,
        proposals=question.proposals,
        remedy=question.remedy,
    )


def ask_for_protected(path: str, name: str) -> Ask:
    """A write to a protected path."""
    return Ask(
        f"{to_display(path)} is protected, because {to_display(name)} can make other programs "
        "run code or relax permissions. Writing to it always needs approval, whatever rules allow.",
        "builtin",
        source=PROTECTED,
    )


def ask_for_own_data(path: str, own: str) -> Ask:
    """A write to data or settings of handaxe."""
    is_above = len(path) < len(own)
    contains = "contains" if is_above else "is part of"
    return Ask(
        f"{to_display(path)} {contains} {to_display(own)}, which holds data and settings of "
        "handaxe. Changing it always needs approval, whatever rules allow, because it can change "
        "what handaxe trusts, undoes or runs.",
        "builtin",
        source=ABOVE_PROTECTED if is_above else PROTECTED,
    )


def ask_for_hard_link(path: str) -> Ask:
    """A write that would also change a file outside, through a hard link."""
    return Ask(
        f"{to_display(path)} has a hard link outside the working directories or at a protected "
        "path. Changing it always needs approval, whatever rules allow.",
        "builtin",
        source=PROTECTED,
        remedy="Change a copy of the file instead.",
    )


def deny_worktree_escape(path: str) -> Deny:
    """A path outside the checkout of an agent."""
    return Deny(
        f"{to_display(path)} is in the main checkout, or may lead there, and this agent works "
        "in its own worktree.",
        "builtin",
        remedy="Use the same file in the working directory instead.",
    )


def deny_outside(path: str) -> Deny:
    """A path outside the working directories of a closed session."""
    return Deny(
        f"{to_display(path)} is outside the working directories, and this session is limited to "
        "them.",
        "builtin",
        remedy="Use files in the working directories.",
    )


def ask_for_relative_path(path: str) -> Ask:
    """A path that is not absolute."""
    return Ask(
        f"{to_display(path)} is not an absolute path.",
        "builtin",
        remedy="Give an absolute path.",
    )


def ask_in_plan_mode(what: str, external: Sequence[str] = ()) -> Ask:
    """A change in plan mode."""
    why = f"changes {_list_names(external)}" if external else "may modify files"
    return Ask(
        f"Plan mode is read-only. {to_display(what)} {why}, so it cannot run until you leave plan "
        "mode.",
        "mode",
        source=PLANNING,
    )


def ask_for_path(
    request: PermissionQuery, policy: Policy, *, path: str, outside: str | None, is_write: bool
) -> Ask:
    """A path that no rule or mode allows; the remedy names the missing rule."""
    family = "Edit" if is_write else "Read"
    if not request.confined and not request.read_only:
        family = request.tool
    scope = suggest_scope(outside or path, policy.book.anchors)
    rule = to_display(format_rule(PermissionRule(family, scope, "")))
    remedy = f"Add the allow rule {rule}."
    if outside is not None:
        link = "" if outside == path else f"{to_display(path)} leads to "
        place = f"{link}{to_display(outside)}{', which is' if link else ' is'}"
        return Ask(f"{place} outside the working directories.", "builtin", remedy=remedy)
    if not is_write:
        return Ask(f"{to_display(path)} usually holds secrets.", "builtin", remedy=remedy)
    return Ask(
        f"Changing {to_display(path)} needs permission in {policy.mode} mode.",
        "mode",
        remedy=f"Use acceptEdits mode or add the allow rule {rule}.",
    )


def ask_for_question(tool: str) -> Ask:
    """A call that asks the user a question."""
    return Ask(f"{to_display(tool)} asks the user a question.", "builtin")


def ask_for_host(request: PermissionQuery) -> Ask:
    """A call to a host that no rule allows."""
    host = request.hosts[0]
    if not host:
        return ask_for_tool(request.tool)
    rule = to_display(format_rule(PermissionRule(request.tool, f"domain:{host}", "")))
    place = to_display(host)
    if request.names:
        place = (
            f"{to_display(request.names[0])}, which leads to {place}: "
            "an address of this machine or of its network"
        )
    lasts = f" An approval of {to_display(host)} lasts until the session ends."
    return Ask(
        f"{to_display(request.tool)} would connect to {place}.",
        "builtin",
        remedy=f"Add the allow rule {rule}.{lasts if request.tool == HOST_TOOL else ''}",
    )


def ask_for_external(request: PermissionQuery) -> Ask:
    """A call that accesses something external that no rule allows."""
    name, things = to_display(request.tool), _list_names(request.external)
    verb, how = ("read", "") if request.read_only else ("change", ", and undo cannot restore it")
    return Ask(
        f"{name} would {verb} {things} outside the working directories{how}.",
        "builtin",
        remedy=f"Add the allow rule {name}.",
    )


def _list_names(external: Sequence[str]) -> str:
    return to_display(" and ".join(external))


def ask_for_tool(tool: str) -> Ask:
    """A call without paths that no rule allows."""
    name = to_display(tool)
    return Ask(f"{name} needs permission to run.", "builtin", remedy=f"Add the allow rule {name}.")


def to_display(text: str) -> str:
    """Text for display: cut, with invisible characters escaped."""
    cut = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
    return cut if cut.isprintable() else ascii(cut)[1:-1]


SOURCE = "approval"
_SERVER = "server"
_UNSEEN = "a part that is not shown, such as the value of a variable or an invisible character"


def ask_for_changed_tool(request: PermissionQuery, rules: Sequence[PermissionRule]) -> Ask:
    """A tool that changed since the user approved it."""
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
        what = f"the approved version of {to_display(request.tool)} is unknown"
    elif earlier is None:
        what = f"the MCP server {now.server!r} did not offer {to_display(request.tool)} then"
    else:
        names, preview = _compare(earlier, now)
        changed = " and ".join(_describe_part(one, now.server) for one in names) or _UNSEEN
        preview = preview or (Text(f"{request.tool} has changed in {_UNSEEN}."),)
        what = f"{to_display(request.tool)} has changed since ({changed})"
    text = to_display(rule.text)
    return Ask(
        f"The allow rule {text} ({rule.origin}) does not apply: it was an approval, and {what}.",
        "builtin",
        text,
        SOURCE,
        remedy="Approve the tool again or remove that rule.",
        preview=preview,
    )


def _compare(earlier: ToolDefinition, now: ToolDefinition) -> tuple[list[str], Display]:
    """The names of the parts that differ, and their diffs."""
    from handaxe.text.diff import format_unified_diff

    before, after = dict(earlier.parts), dict(now.parts)
    names = [n for n in dict.fromkeys((*before, *after)) if before.get(n) != after.get(n)]
    return names, tuple(
        Text(
            format_unified_diff(
                f"{before.get(name, '')}\n",
                f"{after.get(name, '')}\n",
                old_name=f"{name} when approved",
                new_name=f"{name} now",
            ),
        )
        for name in names
    )


def _describe_part(part: str, server: str) -> str:
    return f"how the server {server!r} is started or reached" if part == _SERVER else f"its {part}"
