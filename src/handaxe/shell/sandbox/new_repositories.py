"""Repositories that a sandboxed command created: kept, without parts that make git run programs.

Creating and cloning repositories is ordinary work. But hooks, and settings that name programs or
redirect git, would run programs outside the sandbox later.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from handaxe.contract.readable_files import is_below
from handaxe.disk.safe_open import resolve_links
from handaxe.git.config_safety import has_program_settings

_POINTER = "gitdir:"
_MOST_POINTER_BYTES = 4096


def find_refused_parts(path: str, roots: Sequence[str]) -> list[str]:
    """The parts of a new `.git`, or of a directory that git treats as a repository, to remove."""
    if Path(path).is_symlink():
        return [path]
    try:
        if os.path.isdir(path):
            return [*_find_parts(path, roots)]
        return [] if _is_repository_pointer(path, roots) else [path]
    except OSError:
        # What cannot be looked at is not kept.
        return [path]


def _find_parts(git: str, roots: Sequence[str]) -> Iterator[str]:
    hooks = f"{git}/hooks"
    if Path(hooks).is_symlink() or (os.path.lexists(hooks) and not os.path.isdir(hooks)):
        yield hooks
    elif os.path.isdir(hooks):
        yield from (
            f"{hooks}/{name}" for name in sorted(os.listdir(hooks)) if not name.endswith(".sample")
        )
    for name in ("config", "config.worktree"):
        path = f"{git}/{name}"
        if os.path.lexists(path) and not _is_harmless(path, git, roots):
            yield path
    common = f"{git}/commondir"
    if os.path.lexists(common) and not _is_own_common(common, git):
        yield common


def _is_harmless(config: str, git: str, roots: Sequence[str]) -> bool:
    if Path(config).is_symlink() or not Path(config).is_file():
        return False
    return not has_program_settings(
        Path(config), may_work_in=lambda place: any(is_below(place, root) for root in roots)
    ) and is_below(resolve_links(config), resolve_links(git))


def _is_own_common(common: str, git: str) -> bool:
    """Whether a linked worktree names its own repository."""
    if Path(common).is_symlink() or not Path(common).is_file():
        return False
    named = _read(common).strip()
    shared = resolve_links(os.path.normpath(os.path.join(git, named)))  # noqa: PTH118
    return resolve_links(git).startswith(f"{shared}/worktrees/")


def _is_repository_pointer(pointer: str, roots: Sequence[str]) -> bool:
    """Whether a `.git` file names a submodule or linked worktree of a repository in a root."""
    text = _read(pointer)
    if not text.startswith(_POINTER):
        return False
    named = text.removeprefix(_POINTER).strip()
    target = resolve_links(os.path.normpath(os.path.join(os.path.dirname(pointer), named)))  # noqa: PTH118, PTH120
    is_inside = any(is_below(target, root) for root in roots)
    return is_inside and ("/.git/modules/" in target or "/.git/worktrees/" in target)


def _read(path: str) -> str:
    with Path(path).open("rb") as file:
        return os.fsdecode(file.read(_MOST_POINTER_BYTES))
