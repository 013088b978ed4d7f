"""`--worktree`: run in a worktree of the project, removed afterwards if nothing changed.

Git makes it, or WorktreeCreate hooks instead; those also remove it.
"""

import argparse
import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from handaxe.agent.subagents.git_worktree import NoWorktree, Worktree, close_worktree, open_worktree
from handaxe.agent.subagents.worktree import (
    Ask,
    GitProgramApproval,
    WorktreeNotCreated,
    read_worktree_path,
)
from handaxe.app.services.configuration import open_configuration
from handaxe.app.services.hooks import SessionHooks
from handaxe.config.rule_cache import DIRECTORY as LAST_RULES
from handaxe.config.trust_store import FILE_NAME as TRUST
from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.agent_options import is_headless
from handaxe.frontends.cli.render import print_notice
from handaxe.frontends.cli.session_options import read_settings_option
from handaxe.hooks.outcome import Outcome
from handaxe.storage.home import find_data_home
from handaxe.storage.mcp_logins import DIRECTORY as LOGINS


class RunWorktree:
    """The worktree of one run."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._root = root = os.path.realpath(arguments.root)
        name = arguments.worktree or f"session-{os.urandom(4).hex()}"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            raise SetupError(f"Invalid worktree name {name!r}. Use letters, digits, . _ and -.")
        self._configuration = open_configuration(
            root,
            home=find_data_home(),
            given=read_settings_option(arguments.settings),
            sources=arguments.setting_sources,
        )
        self._programs = GitProgramApproval(
            self._configuration, lambda: _find_asker(arguments), tool="--worktree"
        )
        try:
            self._made = asyncio.run(self._open(name))
        except (NoWorktree, WorktreeNotCreated) as error:
            raise SetupError(f"Cannot make a worktree here: {error}.") from None

    @property
    def path(self) -> str:
        """The directory of the worktree."""
        return self._made.path

    def close(self) -> None:
        """Remove the worktree if nothing changed; otherwise print its path."""
        asyncio.run(self._close())

    async def _open(self, name: str) -> Worktree:
        outcome = await self._fire("WorktreeCreate", name=name)
        if outcome is None:
            options = self._configuration.settings.worktree
            return await open_worktree(
                self._root, name, options=options, approve=self._programs.approve
            )
        return Worktree(read_worktree_path(outcome, self._root, (self._root,)), "", "")

    async def _close(self) -> None:
        made = self._made
        if not made.branch:
            await self._fire("WorktreeRemove", worktree_path=made.path)
        elif await close_worktree(made.path, made.branch, made.base, approve=self._programs.recall):
            told = f"The changes are in {made.path} on branch {made.branch}."
            print_notice(told)
        else:
            await self._fire("WorktreeRemove", worktree_path=made.path)

    async def _fire(self, event: str, **details: str) -> Outcome | None:
        """Fire the hooks of an event; None without hooks."""
        hooks = SessionHooks(
            None, self._configuration, emit=lambda _: None, keep=lambda _, text: text
        ).hooks
        if not hooks.watches(event):
            return None
        told: dict[str, Any] = {"session_id": "", "transcript_path": "", "cwd": self._root}
        try:
            return await hooks.fire({**told, "hook_event_name": event, **details})
        finally:
            await hooks.close()


def _find_asker(arguments: argparse.Namespace) -> Ask | None:
    """The prompt for git programs, if a user is at the terminal."""
    is_person = sys.stdin.isatty() and sys.stderr.isatty()
    if is_headless(arguments) or not is_person:
        return None
    from handaxe.frontends.cli.terminal_prompts import ask_in_terminal

    return ask_in_terminal


_SHARED = TRUST, LOGINS, LAST_RULES


def create_ephemeral_home(own: Path) -> Path:
    """Make a temporary data directory; the caller removes it."""
    home = Path(tempfile.mkdtemp(prefix="handaxe-"))
    for name in _SHARED:
        if (own / name).exists():
            (home / name).symlink_to(own / name)
    return home
