"""`--worktree`: a run in a git worktree of the project, removed afterwards if nothing changed."""

import asyncio
import os
import re
import sys

from handaxe.contract.faults import SetupError
from handaxe.host.worktrees import NoWorktree, Worktree, close_worktree, open_worktree


class OwnCheckout:
    """The worktree of one run."""

    def __init__(self, root: str, name: str) -> None:
        name = name or f"session-{os.urandom(4).hex()}"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            raise SetupError(f"{name!r} is no name for a worktree: use letters, digits, . _ -")
        try:
            self._made: Worktree = asyncio.run(open_worktree(root, name))
        except NoWorktree as error:
            raise SetupError(f"There can be no worktree here: {error}.") from None

    @property
    def path(self) -> str:
        """Where the run works."""
        return self._made.path

    def close(self) -> None:
        """Remove it if nothing changed; otherwise say where it is."""
        made = self._made
        if asyncio.run(close_worktree(made.path, made.branch, made.base)):
            told = f"The changes are in {made.path} on branch {made.branch}."
            print(f"handaxe: {told}", file=sys.stderr)
