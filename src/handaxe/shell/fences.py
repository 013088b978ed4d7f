"""Places that Read and Edit rules keep closed, held against operands that name more than one file.

A literal path is judged by the caller. Here are globs and whole trees: pattern against pattern, on
the text alone. Where the answer is not certain it is yes.
"""

from __future__ import annotations

import fnmatch
import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from handaxe.shell.facts import Sweep
from handaxe.shell.places import Access, PathUse

_BRACKET = re.compile(r"\[[!^]?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]")
_WILD = re.compile(r"[*?]")


class Name(Struct, frozen=True):
    """One component of a path pattern."""

    literal: str | None
    """The one name it stands for, if it has no wildcard."""
    source: str = ""
    """A regular expression for the whole name; unused for a literal."""
    prefix: str = ""
    suffix: str = ""
    is_shown: bool = False
    """Whether it leaves out names that start with a dot."""


Step = Name | Literal["deep", "shown"]
"""A name, or any number of directories: all of them, or only those without a leading dot."""


class Fence(Struct, frozen=True):
    """The places one deny or ask rule covers: what it names, and everything below."""

    steps: tuple[Step, ...]
    tool: Literal["Read", "Edit"]
    verdict: Literal["ask", "deny"]
    rule: str
    """Empty where no rule of the user closes the place, but what lies there."""
    source: str | None = None
    names_content: bool = False
    """Whether the rule speaks of a directory's content (`dir/**`), so its last name is one."""

    def binds(self, access: Access) -> bool:
        """Whether the rule speaks of this access; what may not be read may not be changed."""
        if access == "read":
            return self.tool == "Read"
        return self.tool == "Edit" or self.verdict == "deny"


def literal_name(name: str) -> Name:
    """The component that is exactly `name`."""
    return Name(name)


@lru_cache(maxsize=2048)
def glob_name(part: str) -> Name:
    """A component of an unquoted glob; a bracket may stand for anything."""
    text = _BRACKET.sub("*", part)
    if not _WILD.search(text):
        return Name(text)
    pieces = _WILD.split(text)
    source = fnmatch.translate(text.replace("[", "[[]"))
    return Name(None, source, pieces[0], pieces[-1], is_shown=not pieces[0])


def steps_of(path: str, *, glob: bool) -> tuple[Step, ...]:
    """An absolute path, or a glob made absolute, as steps."""
    parts = [part for part in path.split("/") if part]
    return tuple(glob_name(part) if glob else Name(part) for part in parts)


def may_name(use: PathUse, fence: Fence) -> bool:
    """Whether a glob could name a place behind the fence."""
    return use.path is not None and _meet(steps_of(use.path, glob=use.glob), fence.steps)


def may_sweep(sweep: Sweep, fence: Fence) -> bool:
    """Whether a read of a whole tree could reach a place behind the fence."""
    path = sweep.use.path
    if path is None:
        return True
    if _is_left_out(sweep, fence, path):
        return False
    root = steps_of(path, glob=sweep.use.glob)
    return _meet((*root, "shown" if sweep.shown_only else "deep"), fence.steps)


def may_hold(use: PathUse, fence: Fence) -> bool:
    """Whether the rule spells out a place below the one `use` names."""
    if use.path is None:
        return False
    root = steps_of(use.path, glob=use.glob)
    head = fence.steps[: len(root)]
    spelled = len(head) == len(root) < len(fence.steps) and "deep" not in head
    return spelled and _meet(root, head)


def _is_left_out(sweep: Sweep, fence: Fence, path: str) -> bool:
    """Whether the reader's own exclusions keep it from every place behind the fence."""
    last = fence.steps[-1] if fence.steps else "deep"
    if not isinstance(last, Name) or last.literal is None or last.literal in path.split("/"):
        return False
    name = last.literal
    as_directory = any(fnmatch.fnmatchcase(name, item) for item in sweep.without_directories)
    as_file = any(fnmatch.fnmatchcase(name, item) for item in sweep.without_files)
    return as_directory and (as_file or fence.names_content)


def _meet(left: tuple[Step, ...], fence: tuple[Step, ...]) -> bool:
    """Whether some path fits `left` and lies at or below a place that fits `fence`."""
    if _parts_early(left, fence):
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
            if other is not None and _passes(one, other):
                todo.append((i, j + 1))
        if isinstance(other, str):
            todo.append((i, j + 1))
            if one is not None and _passes(other, one):
                todo.append((i + 1, j))
        if isinstance(one, Name) and isinstance(other, Name) and _names_meet(one, other):
            todo.append((i + 1, j + 1))
    return False


def _parts_early(left: tuple[Step, ...], fence: tuple[Step, ...]) -> bool:
    """Whether the literal beginnings differ: the quick no among many rules."""
    for one, other in zip(left, fence, strict=False):
        if isinstance(one, str) or isinstance(other, str):
            return False
        if one.literal is None or other.literal is None:
            return False
        if one.literal != other.literal:
            return True
    return False


def _passes(deep: Literal["deep", "shown"], step: Step) -> bool:
    """Whether one of any number of directories can be what `step` is."""
    if deep == "deep" or isinstance(step, str):
        return True
    start = step.prefix if step.literal is None else step.literal
    return not start.startswith(".")


def _names_meet(one: Name, other: Name) -> bool:
    if one.literal is not None and other.literal is not None:
        return one.literal == other.literal
    if one.literal is not None:
        return _fits(one.literal, other)
    if other.literal is not None:
        return _fits(other.literal, one)
    hides = (one.is_shown and other.prefix.startswith(".")) or (
        other.is_shown and one.prefix.startswith(".")
    )
    return (
        not hides
        and (one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix))
        and (one.suffix.endswith(other.suffix) or other.suffix.endswith(one.suffix))
    )


def _fits(name: str, pattern: Name) -> bool:
    if pattern.is_shown and name.startswith("."):
        return False
    return _compiled(pattern.source).fullmatch(name) is not None


@lru_cache(maxsize=4096)
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source)
