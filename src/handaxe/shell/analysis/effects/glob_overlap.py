"""Compare restricted paths with operands that name several files.

The caller judges literal paths. This module compares globs and whole trees, pattern with pattern,
by text only. If uncertain, the answer is yes.
"""

from __future__ import annotations

import fnmatch
import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from handaxe.shell.analysis.facts import RecursiveRead
from handaxe.shell.analysis.paths import Access, PathUse

_BRACKET = re.compile(r"\[[!^]?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]")
_WILD = re.compile(r"[*?]")


class PathComponent(Struct, frozen=True):
    """One component of a path pattern."""

    literal: str | None
    """The only matching name, if there is no wildcard."""
    source: str = ""
    """A regular expression for the whole name; unused for a literal."""
    prefix: str = ""
    suffix: str = ""
    is_shown: bool = False
    """Whether it excludes names that start with a dot."""


Step = PathComponent | Literal["deep", "shown"]
"""A name, or any number of directories: all, or only those without a leading dot."""


class RestrictedPath(Struct, frozen=True):
    """The paths that one deny or ask rule covers, with everything below."""

    steps: tuple[Step, ...]
    tool: Literal["Read", "Edit"]
    verdict: Literal["ask", "deny"]
    rule: str
    """Empty if no user rule restricts the path, but its contents do."""
    source: str | None = None
    names_content: bool = False
    """Whether the rule covers a directory's content (`dir/**`), so that its last name is one."""

    def is_binding_for(self, access: Access) -> bool:
        """Whether the rule applies to this access; an unreadable path is also unwritable."""
        if access == "read":
            return self.tool == "Read"
        return self.tool == "Edit" or self.verdict == "deny"


def make_literal_component(name: str) -> PathComponent:
    """The component that is exactly `name`."""
    return PathComponent(name)


@lru_cache(maxsize=2048)
def make_glob_component(part: str) -> PathComponent:
    """A component of an unquoted glob; a bracket expression may match anything."""
    text = _BRACKET.sub("*", part)
    if not _WILD.search(text):
        return PathComponent(text)
    pieces = _WILD.split(text)
    source = fnmatch.translate(text.replace("[", "[[]"))
    return PathComponent(None, source, pieces[0], pieces[-1], is_shown=not pieces[0])


def split_steps(path: str, *, glob: bool) -> tuple[Step, ...]:
    """The steps of an absolute path or glob."""
    parts = [part for part in path.split("/") if part]
    return tuple(make_glob_component(part) if glob else PathComponent(part) for part in parts)


def can_name(use: PathUse, fence: RestrictedPath) -> bool:
    """Whether a glob could match a restricted path."""
    return use.path is not None and _has_overlap(split_steps(use.path, glob=use.glob), fence.steps)


def can_read_below(sweep: RecursiveRead, fence: RestrictedPath) -> bool:
    """Whether reading a whole tree could reach a restricted path."""
    path = sweep.use.path
    if path is None:
        return True
    if _is_left_out(sweep, fence, path):
        return False
    root = split_steps(path, glob=sweep.use.glob)
    return _has_overlap((*root, "shown" if sweep.shown_only else "deep"), fence.steps)


def can_contain(use: PathUse, fence: RestrictedPath) -> bool:
    """Whether the rule names a path below the one of `use`."""
    if use.path is None:
        return False
    root = split_steps(use.path, glob=use.glob)
    head = fence.steps[: len(root)]
    spelled = len(head) == len(root) < len(fence.steps) and "deep" not in head
    return spelled and _has_overlap(root, head)


def _is_left_out(sweep: RecursiveRead, fence: RestrictedPath, path: str) -> bool:
    """Whether the reader's own exclusions keep it from all restricted paths."""
    last = fence.steps[-1] if fence.steps else "deep"
    if (
        not isinstance(last, PathComponent)
        or last.literal is None
        or last.literal in path.split("/")
    ):
        return False
    name = last.literal
    as_directory = any(fnmatch.fnmatchcase(name, item) for item in sweep.without_directories)
    as_file = any(fnmatch.fnmatchcase(name, item) for item in sweep.without_files)
    return as_directory and (as_file or fence.names_content)


def _has_overlap(left: tuple[Step, ...], fence: tuple[Step, ...]) -> bool:
    """Whether some path matches `left` and is at or below a match of `fence`."""
    if _is_disjoint(left, fence):
        return False
    right: tuple[Step, ...] = (*fence, "deep")
    seen: set[tuple[int, int]] = set()
    todo = [(0, 0)]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        i, j = at
        if i == len(left) and j == len(right):
            return True
        one = left[i] if i < len(left) else None
        other = right[j] if j < len(right) else None
        if isinstance(one, str):
            todo.append((i + 1, j))
            if other is not None and _can_match_step(one, other):
                todo.append((i, j + 1))
        if isinstance(other, str):
            todo.append((i, j + 1))
            if one is not None and _can_match_step(other, one):
                todo.append((i + 1, j))
        if (
            isinstance(one, PathComponent)
            and isinstance(other, PathComponent)
            and _has_component_overlap(one, other)
        ):
            todo.append((i + 1, j + 1))
    return False


def _is_disjoint(left: tuple[Step, ...], fence: tuple[Step, ...]) -> bool:
    """Whether the literal prefixes differ: the quick exclusion among many rules."""
    for one, other in zip(left, fence, strict=False):
        if isinstance(one, str) or isinstance(other, str):
            return False
        if one.literal is None or other.literal is None:
            return False
        if one.literal != other.literal:
            return True
    return False


def _can_match_step(deep: Literal["deep", "shown"], step: Step) -> bool:
    """Whether a directory out of any number can match `step`."""
    if deep == "deep" or isinstance(step, str):
        return True
    start = step.prefix if step.literal is None else step.literal
    return not start.startswith(".")


def _has_component_overlap(one: PathComponent, other: PathComponent) -> bool:
    if one.literal is not None and other.literal is not None:
        return one.literal == other.literal
    if one.literal is not None:
        return _is_component_match(one.literal, other)
    if other.literal is not None:
        return _is_component_match(other.literal, one)
    hides = (one.is_shown and other.prefix.startswith(".")) or (
        other.is_shown and one.prefix.startswith(".")
    )
    return (
        not hides
        and (one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix))
        and (one.suffix.endswith(other.suffix) or other.suffix.endswith(one.suffix))
    )


def _is_component_match(name: str, pattern: PathComponent) -> bool:
    if pattern.is_shown and name.startswith("."):
        return False
    return _compile_pattern(pattern.source).fullmatch(name) is not None


@lru_cache(maxsize=4096)
def _compile_pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)
