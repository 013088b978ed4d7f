"""Path scopes: which paths a rule such as `Edit(/src/**)` covers, fast for thousands of rules.

A scope is a gitignore pattern with an anchor. It covers the named path and everything below.
Ambiguous patterns are read widely in deny and ask rules, narrowly in allow rules.

The index groups scopes by something that every covered path has: a directory, a name or a suffix. A
path is compared only with scopes whose key it has, so a thousand rules cost about as much as ten.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from handaxe.rules.grammar import PermissionRule
from handaxe.text.gitignore import (
    BadGlobPattern,
    Segment,
    Segments,
    build_literal_segments,
    build_regex,
    escape,
    parse_segments,
)
from handaxe.text.paths import normalize


class Anchors(msgspec.Struct, frozen=True):
    """The directories that the prefixes of path patterns stand for, absolute and normalized."""

    project_root: str
    """For `/x`, unless the rule has its own root."""
    cwd: str
    """For `x` and `./x`: the directory in which the session was opened, unaffected by `cd`."""
    home: str
    """For `~/x`."""


class SplitPath(msgspec.Struct):
    """An absolute path with its parts."""

    path: str
    parts: list[str]


class Scope(msgspec.Struct, frozen=True):
    """The paths that one rule covers."""

    rule: PermissionRule
    anchor: str
    segments: Segments
    only_below: bool
    """Whether the named path itself is excluded, because the pattern requires a directory."""

    @property
    def source(self) -> str:
        """A regular expression for the start of every covered path."""
        base = re.escape(self.anchor.rstrip("/"))
        inside = f"/{build_regex(self.segments)}" if self.segments else ""
        # The root directory itself is written "/" and has no component to end in.
        end = "/[^/]" if self.only_below else r"(?=/|\Z)"
        return base + inside + end

    def list_leading_parts(self) -> list[str] | None:
        """The parts that every covered path starts with, if they go beyond the anchor."""
        names = [part for part in self.anchor.split("/") if part]
        known = len(names)
        for segment in self.segments:
            if segment is None or segment.literal is None:
                break
            names.append(segment.literal)
        return names if len(names) > known or not self.segments else None


def split_path(path: str) -> SplitPath:
    """Split a path for the index; it must be absolute and normalized."""
    return SplitPath(path, path.split("/")[1:] if path != "/" else [])


def compile_scopes(rule: PermissionRule, anchors: Anchors) -> tuple[list[Scope], str | None]:
    """The scopes of a rule's path pattern, and the problem of the pattern, if any."""
    pattern = rule.specifier or ""
    is_narrow = rule.behaviour == "allow"
    bases, body, is_anchored = _find_anchor(pattern, rule, anchors)
    if is_narrow and pattern.startswith("!"):
        return [], f"The pattern {pattern!r} begins with '!', which has no meaning in a rule."
    problem: str | None = None
    try:
        segments = _drop_empty_segments(parse_segments(body))
    except BadGlobPattern as bad:
        problem = bad.sentence
        if is_narrow:
            return [], problem
        # A deny rule that cannot be read as a pattern still holds for the path as it is written.
        segments = _drop_empty_segments(build_literal_segments(body))
    # What a directory holds is covered with it, so `dir/**` is `dir`.
    names_content = segments[-1:] == (None,)
    segments = segments[:-1] if names_content else segments
    climbs, segments = _resolve_parents(segments)
    if is_narrow and not segments and not names_content:
        return [], f"The pattern {pattern!r} names no path; use '**' for everything below."
    at_any_depth = len(segments) == 1 and not (names_content and is_narrow) and not climbs
    if at_any_depth and not is_anchored and segments[0] is not None:
        segments = (None, *segments)
    only_below = is_narrow and body.endswith("/")
    homes = [normalize(base + "/.." * climbs) for base in bases]
    return [Scope(rule, home, segments, only_below) for home in homes], problem


def _find_anchor(
    pattern: str, rule: PermissionRule, anchors: Anchors
) -> tuple[list[str], str, bool]:
    """The directories that a pattern is relative to, the rest, and whether it is anchored there."""
    if pattern.startswith("//"):
        return ["/"], pattern[2:], True
    if pattern == "~" or pattern.startswith("~/"):
        return [anchors.home], pattern[2:], True
    if pattern.startswith("/"):
        return [rule.root or anchors.project_root], pattern[1:], True
    if rule.behaviour == "allow":
        return [anchors.cwd], pattern.removeprefix("./"), pattern.startswith("./")
    # A deny rule must not move away with the session's directory.
    bases = list(dict.fromkeys((anchors.cwd, anchors.project_root)))
    return bases, pattern.removeprefix("./"), False


def _drop_empty_segments(segments: Segments) -> Segments:
    return tuple(
        segment for segment in segments if segment is None or segment.literal not in {"", "."}
    )


def _resolve_parents(segments: Segments) -> tuple[int, Segments]:
    """How many directories a pattern goes up first, and the rest with `..` resolved."""
    climbs = 0
    kept: list[Segment | None] = []
    for segment in segments:
        if segment is None or segment.literal != "..":
            kept.append(segment)
        elif not kept:
            climbs += 1
        elif (last := kept[-1]) is not None and last.literal not in {None, ".."}:
            kept.pop()
        else:
            # Behind a wildcard it could be anywhere; no normalized path has such a name.
            kept.append(segment)
    return climbs, tuple(kept)


class _Group:
    """Scopes with the same key: one expression tests whether any covers a path."""

    __slots__ = ("_any", "_which", "scopes")

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self._any: re.Pattern[str] | None = None
        self._which: re.Pattern[str] | None = None

    def find(self, path: str) -> PermissionRule | None:
        if self._any is None:
            self._any = re.compile("|".join(dict.fromkeys(scope.source for scope in self.scopes)))
        if self._any.match(path) is None:
            return None
        # Groups make a miss slower, so that only a hit asks which scope it was.
        if self._which is None:
            self._which = re.compile("|".join(f"({scope.source})" for scope in self.scopes))
        found = self._which.match(path)
        at = found.lastindex if found is not None else None
        return self.scopes[at - 1].rule if at is not None else None


class PathIndex:
    """Scopes of one kind of rule, by a key of the covered paths."""

    __slots__ = ("_endings", "_names", "_others", "_tree")

    def __init__(self, scopes: Iterable[Scope]) -> None:
        self._tree: dict[str, Any] = {}
        self._names: dict[str, _Group] = {}
        self._endings: dict[str, _Group] = {}
        self._others: _Group | None = None
        for scope in scopes:
            self._group_for(scope).scopes.append(scope)

    def find(self, place: SplitPath) -> PermissionRule | None:
        """A rule that covers this path."""
        path, parts = place.path, place.parts
        if self._tree and (rule := self._below(path, parts)) is not None:
            return rule
        if self._names and not self._names.keys().isdisjoint(parts):
            for part in parts:
                if (group := self._names.get(part)) and (rule := group.find(path)) is not None:
                    return rule
        if self._endings and (rule := self._find_by_ending(path, parts)) is not None:
            return rule
        return self._others.find(path) if self._others is not None else None

    def _below(self, path: str, parts: Sequence[str]) -> PermissionRule | None:
        node = self._tree
        # No component is empty, so "" can hold what belongs to the directory itself.
        if "" in node and (rule := node[""].find(path)) is not None:
            return rule
        for part in parts:
            node = node.get(part)
            if node is None:
                return None
            if "" in node and (rule := node[""].find(path)) is not None:
                return rule
        return None

    def _find_by_ending(self, path: str, parts: Sequence[str]) -> PermissionRule | None:
        for part in parts:
            if "." in part and (group := self._endings.get(part[part.rfind(".") :])) is not None:
                rule = group.find(path)
                if rule is not None:
                    return rule
        return None

    def _group_for(self, scope: Scope) -> _Group:
        leading = scope.list_leading_parts()
        if leading is not None:
            node = self._tree
            for name in leading:
                node = node.setdefault(name, {})
            return node.setdefault("", _Group())
        named = [segment for segment in scope.segments if segment is not None]
        for segment in reversed(named):
            if segment.literal is not None:
                return self._names.setdefault(segment.literal, _Group())
        for segment in reversed(named):
            if (ending := _find_extension(segment)) is not None:
                return self._endings.setdefault(ending, _Group())
        if self._others is None:
            self._others = _Group()
        return self._others


def _find_extension(segment: Segment) -> str | None:
    dot = segment.suffix.rfind(".")
    return segment.suffix[dot:] if dot >= 0 else None


def suggest_scope(path: str, anchors: Anchors) -> str:
    """The pattern that a user would write for the directory of this path."""
    directory, _, name = path.rpartition("/")
    root = anchors.project_root.rstrip("/")
    if path.startswith(f"{root}/") and name:
        inside = directory[len(root) :]
        return f"{escape(inside)}/**" if inside else f"/{escape(name)}"
    if directory:
        return f"/{escape(directory)}/**"
    return f"/{escape(path)}" if name else "//**"
