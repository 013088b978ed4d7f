"""Decide whether a call may run: one pure function with a fixed order.

The order: deny rules, plan mode, ask rules, what always needs approval, other modes, allow rules,
calls that are free. All other calls need approval. A deny or ask rule applies if it covers a path
or its symlink target; an allow rule must cover both. The function reads only its arguments and
never raises.
"""

from collections.abc import Callable

from handaxe.contract.decision import Allow, Ask, Decision, Deny
from handaxe.permission import reasons
from handaxe.permission.policy import JudgedPath, PermissionQuery, Policy
from handaxe.permission.protected_paths import find_protected_name
from handaxe.rules.grammar import (
    PermissionRule,
    is_domain_match,
    is_host_match,
    is_prefix_match,
    is_value_match,
)
from handaxe.rules.path_scopes import PathIndex, SplitPath, split_path
from handaxe.rules.rule_index import ToolRules
from handaxe.rules.tool_families import (
    ASKED_BY_DEFAULT,
    CHANGING_FILE_TOOLS,
    COMMAND_TOOLS,
    HOST_TOOL,
    Behaviour,
    is_foreign,
    resolve_tool_alias,
)
from handaxe.text.paths import normalize
from handaxe.text.secrets import is_env_file

__all__ = [
    "JudgedPath",
    "PermissionQuery",
    "Policy",
    "build_hidden_check",
    "decide",
    "is_binding",
    "is_final",
    "is_read_denied",
    "is_write_denied",
]

MAX_RECENT = 2048

_Rules = tuple[ToolRules, ToolRules, ToolRules]
"""The deny, ask and allow rules that can concern a tool."""


class _End:
    """One path of a call, its name and its target prepared for comparison."""

    __slots__ = ("is_known", "is_write", "judged", "path", "places")

    def __init__(self, judged: JudgedPath, policy: Policy) -> None:
        self.judged = judged
        self.is_write = judged.access != "read"
        self.is_known = judged.path.startswith("/") and judged.real.startswith("/")
        place = split_path(_make_absolute(judged.path, policy))
        if judged.real == judged.path:
            self.places = (place,)
        else:
            self.places = (place, split_path(_make_absolute(judged.real, policy)))
        self.path = place.path


def decide(request: PermissionQuery, policy: Policy) -> Decision:
    """The decision on a call, with its source and reason."""
    # Calls that are alike in this get the same answer, where no rule reads more of them.
    key = (
        request.tool,
        request.aliases,
        request.read_only,
        request.confined,
        request.external,
        request.asks_person,
        request.paths,
        request.hosts,
        request.names,
        not request.texts,
        request.definition and request.definition.digest,
    )
    decision = policy.recent.get(key)
    if decision is None:
        rules = _find_rules(request, policy)
        decision = _decide(request, policy, rules)
        if not _is_read_whole(request, *rules):
            if len(policy.recent) >= MAX_RECENT:
                policy.recent.clear()
            policy.recent[key] = decision
    return decision


def build_hidden_check(policy: Policy) -> Callable[[str], bool]:
    """A function that tells whether every call of a tool is denied by a rule or the mode."""
    hiding = policy.book.find_hiding_rule
    if policy.mode != "plan":
        return lambda name: hiding(name) is not None
    return lambda name: resolve_tool_alias(name) in CHANGING_FILE_TOOLS or hiding(name) is not None


def is_binding(decision: Decision) -> bool:
    """Whether a rule, protected path or plan mode applies; then a hook or tool cannot approve."""
    return not isinstance(decision, Allow) and (
        isinstance(decision, Deny)
        or decision.by == "rule"
        or decision.source in {reasons.PROTECTED, reasons.ABOVE_PROTECTED, reasons.PLANNING}
    )


def is_final(decision: Decision) -> bool:
    """Whether even the user cannot approve the call before leaving plan mode."""
    return isinstance(decision, Ask) and decision.source == reasons.PLANNING


def is_read_denied(policy: Policy, path: str, real: str | None = None) -> bool:
    """Whether a deny rule hides this file from all reading tools; for search results."""
    deny = policy.book.find_rules("Read")[0]
    if deny.reading is not None:
        return True
    if not deny.read_scopes:
        return False
    places = [split_path(normalize(path))]
    if real is not None and real != path:
        places.append(split_path(normalize(real)))
    return any(_find_covering_rule(deny.read_scopes, place) for place in places)


def is_write_denied(policy: Policy, path: str) -> bool:
    """Whether a deny rule with a pattern protects this file from all changing tools."""
    deny = policy.book.find_rules("Edit")[0]
    return _find_covering_rule(deny.write_scopes, split_path(normalize(path))) is not None


def _is_read_whole(
    request: PermissionQuery, deny: ToolRules, ask: ToolRules, allow: ToolRules
) -> bool:
    """Whether the decision needs the complete call: it is large, or a rule reads its input."""
    if len(request.paths) > 1 or deny.params or ask.params:
        return True
    return bool(request.texts and (deny.texts or ask.texts or allow.texts))


def _decide(request: PermissionQuery, policy: Policy, rules: _Rules) -> Decision:
    decision = _decide_uncached(request, policy, rules)
    if isinstance(decision, Ask) and policy.mode == "dontAsk":
        return reasons.deny_unasked(decision)
    return decision


def _decide_uncached(request: PermissionQuery, policy: Policy, rules: _Rules) -> Decision:
    ends: list[_End] = []
    for judged in request.paths:
        if "\0" in judged.path or "\0" in judged.real:
            return reasons.IMPOSSIBLE
        ends.append(_End(judged, policy))
    if policy.walled_off is not None and (path := _find_worktree_escape(ends, policy)) is not None:
        return reasons.deny_worktree_escape(path)
    if policy.is_closed and (path := _find_outside(ends, policy)) is not None:
        return reasons.deny_outside(path)
    deny, ask, allow = rules
    if not deny.is_silent and (hit := _find_forbidding_rule(request, ends, deny, policy, "deny")):
        return reasons.deny_by_rule(request, *hit)
    if policy.mode == "plan" and (planned := _decide_in_plan_mode(request)) is not None:
        return planned
    return _decide_undenied(request, ends, ask, allow, policy)


def _find_rules(request: PermissionQuery, policy: Policy) -> _Rules:
    aliases = (*request.aliases, HOST_TOOL) if request.hosts else request.aliases
    return policy.book.find_rules(request.tool, aliases)


def _decide_undenied(
    request: PermissionQuery, ends: list[_End], ask: ToolRules, allow: ToolRules, policy: Policy
) -> Decision:
    if not ask.is_silent and (hit := _find_forbidding_rule(request, ends, ask, policy, "ask")):
        return reasons.ask_by_rule(request, *hit)
    if policy.mode == "bypassPermissions":
        return reasons.BYPASSED
    if policy.mode == "dontAsk" and request.asks_person:
        return reasons.ask_for_question(request.tool)
    return (
        _ask_always(ends, policy)
        or _find_allowance(request, ends, allow, policy)
        or _ask_changed_approval(request, allow)
        or _ask_remaining(request, ends, policy)
    )


def _find_forbidding_rule(
    request: PermissionQuery,
    ends: list[_End],
    rules: ToolRules,
    policy: Policy,
    behaviour: Behaviour,
) -> tuple[PermissionRule, str] | None:
    """A deny or ask rule that covers a part of the call, and that part."""
    if rules.whole is not None:
        return rules.whole, ""
    for end in ends:
        everywhere = rules.changing if end.is_write else rules.reading
        if everywhere is not None:
            return everywhere, end.path
        scopes = rules.write_scopes if end.is_write else rules.read_scopes
        for place in end.places if scopes else ():
            if (rule := _find_covering_rule(scopes, place)) is not None:
                return rule, place.path
    if (
        rules.texts
        and (hit := _find_forbidding_text(request, rules, policy, behaviour)) is not None
    ):
        return hit
    for rule in rules.params:
        name, value = rule.param or ("", "")
        if name in request.input and is_value_match(value, request.input[name]):
            return rule, f"{name}={request.input[name]}"
    return None


def _find_forbidding_text(
    request: PermissionQuery, rules: ToolRules, policy: Policy, behaviour: Behaviour
) -> tuple[PermissionRule, str] | None:
    """The deny rule that matches a text of the call, and the text."""
    for text in request.texts:
        for rule in rules.texts:
            if _is_text_match(rule, text, policy, behaviour):
                return rule, text
    for host in (*request.hosts, *request.names):
        if (rule := _find_host_rule(rules, host, behaviour)) is not None:
            return rule, host
    return None


def _find_worktree_escape(ends: list[_End], policy: Policy) -> str | None:
    """A path of the call in another checkout that is not exempt."""
    for end in ends:
        for place in end.places:
            is_kept = not end.is_write and policy.is_free_to_read(place.path)
            if policy.is_walled_off(place.path) and not is_kept:
                return place.path
    return None


def _find_outside(ends: list[_End], policy: Policy) -> str | None:
    """A path of the call outside the working directories and the session's own files."""
    for end in ends:
        for place in end.places:
            is_kept = not end.is_write and policy.is_free_to_read(place.path)
            is_kept = is_kept or bool(
                policy.free_to_write and place.path.startswith(policy.free_to_write)
            )
            if not is_kept and not policy.is_inside(place.path):
                return place.path
    return None


def _ask_always(ends: list[_End], policy: Policy) -> Decision | None:
    """The question for calls that always need approval."""
    for end in ends:
        if not end.is_known:
            return reasons.ask_for_relative_path(end.judged.path)
        if not end.is_write:
            continue
        for place in end.places:
            if (name := find_protected_name(place.path)) is not None:
                return reasons.ask_for_protected(place.path, name)
            if (own := policy.find_own_place(place.path)) is not None:
                return reasons.ask_for_own_data(place.path, own)
        if end.judged.hard_link_outside:
            return reasons.ask_for_hard_link(end.path)
    return None


def _decide_in_plan_mode(request: PermissionQuery) -> Decision | None:
    """The refusal of plan mode for a call that may change something."""
    names_no_change = not any(judged.access != "read" for judged in request.paths)
    if names_no_change and (request.read_only or (request.paths and request.confined)):
        return None
    return reasons.ask_in_plan_mode(request.tool, request.external)


def _find_allowance(
    request: PermissionQuery, ends: list[_End], allow: ToolRules, policy: Policy
) -> Decision | None:
    """An allow decision if rules and free parts together cover the whole call."""
    if allow.whole is not None:
        return reasons.allow_by_rule(allow.whole)
    for rule in allow.bound:
        if rule.is_approval_of(request.definition):
            return reasons.allow_by_rule(rule)
    if not ends:
        return _allow_without_paths(request, allow, policy)
    if resolve_tool_alias(request.tool) in COMMAND_TOOLS or is_foreign(request.tool):
        return None
    last: Decision | None = None
    for end in ends:
        word = _find_free_reason(request, end, policy)
        if word is None:
            rule = _find_permitting_rule(request, end, allow)
            if rule is None:
                return None
            word = reasons.allow_by_rule(rule)
        # A rule says more than that something is free, so it is what the record shows.
        last = word if last is None or last.rule is None else last
    return last


def _ask_changed_approval(request: PermissionQuery, allow: ToolRules) -> Decision | None:
    """The question for a tool that changed since the user approved it."""
    if not allow.bound:
        return None
    from handaxe.permission.reasons import ask_for_changed_tool

    return ask_for_changed_tool(request, allow.bound)


def _find_permitting_rule(
    request: PermissionQuery, end: _End, allow: ToolRules
) -> PermissionRule | None:
    """An allow rule that covers the name and the target of a path."""
    if request.external or not (request.read_only or request.confined):
        # A rule about files says nothing about a tool that is about more than files.
        scopes: tuple[PathIndex, ...] = (allow.own_scopes,) if allow.own_scopes else ()
    else:
        everywhere = allow.changing if end.is_write else allow.reading
        if everywhere is not None:
            return everywhere
        scopes = allow.write_scopes if end.is_write else allow.read_scopes
    rule: PermissionRule | None = None
    for place in end.places if scopes else ():
        rule = _find_covering_rule(scopes, place)
        if rule is None:
            return None
    return rule


def _allow_without_paths(
    request: PermissionQuery, allow: ToolRules, policy: Policy
) -> Decision | None:
    if allow.texts:
        found = [
            next((r for r in allow.texts if _is_text_match(r, text, policy, "allow")), None)
            for text in request.texts
        ]
        found += [_find_host_rule(allow, host, "allow") for host in request.hosts]
        covering = [rule for rule in found if rule is not None]
        if covering and len(covering) == len(found):
            return reasons.allow_by_rule(covering[-1])
    tool = resolve_tool_alias(request.tool)
    if not request.read_only or request.external or tool in ASKED_BY_DEFAULT or is_foreign(tool):
        return None
    return reasons.HARMLESS


def _find_free_reason(request: PermissionQuery, end: _End, policy: Policy) -> Decision | None:
    """The reason why a path needs no rule, if there is one."""
    if request.external or not (request.read_only or request.confined):
        return None
    if policy.free_to_write and all(p.path.startswith(policy.free_to_write) for p in end.places):
        return reasons.OWN_MEMORY
    for place in end.places:
        if not policy.is_inside(place.path):
            return _find_free_outside(end, policy)
    if end.is_write:
        return reasons.ACCEPTED if policy.mode == "acceptEdits" else None
    for place in end.places:
        if _is_env_file(place):
            return None
    return reasons.INSIDE


def _find_free_outside(end: _End, policy: Policy) -> Decision | None:
    if end.is_write or not policy.free_to_read:
        return None
    if not all(policy.is_free_to_read(place.path) for place in end.places):
        return None
    linked = [place for place in end.places if policy.is_inside(place.path)]
    if any(map(_is_env_file, linked)):
        return None
    return reasons.LINKED if linked else reasons.STORED


def _is_env_file(place: SplitPath) -> bool:
    return bool(place.parts) and is_env_file(place.parts[-1])


def _ask_remaining(request: PermissionQuery, ends: list[_End], policy: Policy) -> Decision:
    """The question for the first part that nothing allows."""
    if request.external:
        return reasons.ask_for_external(request)
    for end in ends:
        if _find_free_reason(request, end, policy) is None:
            outside = next((p.path for p in end.places if not policy.is_inside(p.path)), None)
            return reasons.ask_for_path(
                request, policy, path=end.path, outside=outside, is_write=end.is_write
            )
    if request.hosts:
        return reasons.ask_for_host(request)
    return reasons.ask_for_tool(request.tool)


def _find_covering_rule(indexes: tuple[PathIndex, ...], place: SplitPath) -> PermissionRule | None:
    for index in indexes:
        if (rule := index.find(place)) is not None:
            return rule
    return None


def _find_host_rule(rules: ToolRules, host: str, behaviour: Behaviour) -> PermissionRule | None:
    for rule in rules.texts:
        domain = rule.domain
        if domain is not None and is_host_match(domain, host, allows=behaviour == "allow"):
            return rule
    return None


def _is_text_match(rule: PermissionRule, text: str, policy: Policy, behaviour: Behaviour) -> bool:
    pattern = rule.specifier or ""
    if rule.tool in COMMAND_TOOLS:
        if policy.matches_command is not None:
            return policy.matches_command(pattern, text, behaviour)
        # Commands cannot be parsed here: deny rules apply as written, and allow rules do not apply.
        return behaviour != "allow" and is_prefix_match(pattern, " ".join(text.split()))
    if rule.domain is not None:
        return is_domain_match(rule.domain, text)
    return is_prefix_match(pattern, text)


def _make_absolute(path: str, policy: Policy) -> str:
    return normalize(path if path.startswith("/") else f"{policy.cwd}/{path}")
