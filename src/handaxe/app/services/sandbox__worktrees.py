"""The repository of a linked worktree lies elsewhere; commits there have to write to it."""

import os
from pathlib import Path

from handaxe.disk.safe_open import resolve_links


def find_shared_repository(root: str) -> str | None:
    """The git directory that a linked worktree shares with its main checkout.

    Both have to name each other: a project alone cannot make a place outside writable.
    """
    pointer = f"{root}/.git"
    try:
        named = Path(pointer).read_text("utf-8", "surrogateescape")
        if not named.startswith("gitdir: "):
            return None
        own = resolve_links(os.path.join(root, named[len("gitdir: ") :].rstrip("\n")))  # noqa: PTH118
        back = Path(own, "gitdir").read_text("utf-8", "surrogateescape").rstrip("\n")
        if resolve_links(back) != resolve_links(pointer):
            return None
        shared = Path(own, "commondir").read_text("utf-8", "surrogateescape").rstrip("\n")
    except OSError:
        return None
    common = resolve_links(os.path.join(own, shared))  # noqa: PTH118
    is_inside = own.startswith(f"{common}/worktrees/")
    return common if is_inside and common.endswith("/.git") else None
