"""Places that Read and Edit rules close, in the form the shell analysis holds globs against."""

from functools import lru_cache
from typing import Literal

from handaxe.runtime.permission.book import RuleBook
from handaxe.runtime.permission.reasons import PROTECTED
from handaxe.runtime.permission.rules import Rule
from handaxe.runtime.permission.scopes import Scope, scopes_of
from handaxe.shell import Fence, Name, literal_name
from handaxe.shell.fences import steps_of


@lru_cache(maxsize=8)
def fences_of(book: RuleBook) -> tuple[Fence, ...]:
    """Every place that a deny or ask rule for files covers."""
    found: dict[Fence, None] = {}
    for rule in book.rules:
        if rule.behaviour == "allow" or rule.is_dead or rule.tool not in {"Read", "Edit"}:
            continue
        if rule.specifier is None:
            found[_fence(rule, ())] = None
            continue
        for scope in scopes_of(rule, book.anchors)[0]:
            found[_fence(rule, _steps(scope))] = None
    return tuple(found)


@lru_cache(maxsize=8)
def fences_around(own: tuple[str, ...]) -> tuple[Fence, ...]:
    """Our own data as closed places."""
    tools: tuple[Literal["Read", "Edit"], ...] = ("Read", "Edit")
    return tuple(
        Fence(steps_of(path, glob=False), tool, "ask", "", PROTECTED)
        for path in own
        for tool in tools
    )


def _fence(rule: Rule, steps: tuple[Name | Literal["deep", "shown"], ...]) -> Fence:
    return Fence(
        steps,
        "Read" if rule.tool == "Read" else "Edit",
        "deny" if rule.behaviour == "deny" else "ask",
        rule.text,
        rule.origin,
        names_content=(rule.specifier or "").endswith(("/", "/**")),
    )


def _steps(scope: Scope) -> tuple[Name | Literal["deep", "shown"], ...]:
    anchor = [literal_name(name) for name in scope.anchor.split("/") if name]
    inside: list[Name | Literal["deep", "shown"]] = [
        "deep"
        if segment is None
        else Name(segment.literal, segment.source, segment.prefix, segment.suffix)
        for segment in scope.segments
    ]
    return (*anchor, *inside)
