"""Paths that Read and Edit rules restrict, in the form in which the shell analysis needs them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from handaxe.contract.decision import Allow
from handaxe.permission.decide import (
    JudgedPath,
    PermissionQuery,
    Policy,
    decide,
    is_read_denied,
    is_write_denied,
)
from handaxe.permission.reasons import PROTECTED
from handaxe.rules.grammar import PermissionRule
from handaxe.rules.path_scopes import Scope, compile_scopes
from handaxe.rules.rule_index import RuleIndex
from handaxe.shell.analysis import PathComponent, RestrictedPath, make_literal_component
from handaxe.shell.analysis.effects.glob_overlap import split_steps


@lru_cache(maxsize=8)
def collect_restricted_paths(book: RuleIndex) -> tuple[RestrictedPath, ...]:
    """All paths that a deny or ask rule for files covers."""
    found: dict[RestrictedPath, None] = {}
    for rule in book.rules:
        if rule.behaviour == "allow" or rule.is_dead or rule.tool not in {"Read", "Edit"}:
            continue
        if rule.specifier is None:
            found[_make_restriction(rule, ())] = None
            continue
        for scope in compile_scopes(rule, book.anchors)[0]:
            found[_make_restriction(rule, _split_scope(scope))] = None
    return tuple(found)


@lru_cache(maxsize=8)
def restrict_own_paths(own: tuple[str, ...]) -> tuple[RestrictedPath, ...]:
    """Handaxe's own data as restricted paths."""
    tools: tuple[Literal["Read", "Edit"], ...] = ("Read", "Edit")
    return tuple(
        RestrictedPath(split_steps(path, glob=False), tool, "ask", "", PROTECTED)
        for path in own
        for tool in tools
    )


def _make_restriction(
    rule: PermissionRule, steps: tuple[PathComponent | Literal["deep", "shown"], ...]
) -> RestrictedPath:
    return RestrictedPath(
        steps,
        "Read" if rule.tool == "Read" else "Edit",
        "deny" if rule.behaviour == "deny" else "ask",
        rule.text,
        rule.origin,
        names_content=(rule.specifier or "").endswith(("/", "/**")),
    )


def _split_scope(scope: Scope) -> tuple[PathComponent | Literal["deep", "shown"], ...]:
    anchor = [make_literal_component(name) for name in scope.anchor.split("/") if name]
    inside: list[PathComponent | Literal["deep", "shown"]] = [
        "deep"
        if segment is None
        else PathComponent(segment.literal, segment.source, segment.prefix, segment.suffix)
        for segment in scope.segments
    ]
    return (*anchor, *inside)


def make_read_deny_check(policy: Policy) -> Callable[[str], bool] | None:
    """Whether a path is hidden under this policy; None if no rule hides anything."""
    deny = policy.book.find_rules("Read")[0]
    if deny.reading is None and not deny.read_scopes:
        return None
    return lambda path: is_read_denied(policy, path)


def make_read_allow_check(policy: Policy) -> Callable[[str], bool]:
    """Whether Read may open a path without approval."""

    def is_allowed(path: str) -> bool:
        request = PermissionQuery("Read", read_only=True, paths=(JudgedPath(path, path, "read"),))
        return isinstance(decide(request, policy), Allow)

    return is_allowed


def make_write_deny_check(policy: Policy) -> Callable[[str], bool] | None:
    """Whether rules with a pattern protect a path from changes; None if no rule has one."""
    if not policy.book.find_rules("Edit")[0].write_scopes:
        return None
    return lambda path: is_write_denied(policy, path)
