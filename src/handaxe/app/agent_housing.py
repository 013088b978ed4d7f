"""Checkouts for agents that work apart, made when they start and given back when they end."""

import os

import msgspec

from handaxe.agent.family import Housing
from handaxe.contract.agent_faults import IsolationUnavailable
from handaxe.contract.ports.agents import AgentState
from handaxe.settings.places import WORKTREES


class WorktreeHousing(Housing):
    """Worktrees of the project's own repository."""

    async def open(self, state: AgentState, directory: str) -> AgentState:
        """The agent with a checkout of what is committed around a directory."""
        from handaxe.host.worktrees import NoWorktree, open_worktree

        if state.isolation != "worktree":
            raise IsolationUnavailable(
                str(state.isolation), "no other machine is set up to run agents"
            )
        name = f"agent-{state.agent_id}"
        if state.worktree_path and os.path.isdir(state.worktree_path):  # noqa: ASYNC240
            directory = state.worktree_path.rpartition(f"/{WORKTREES}/")[0]
        try:
            made = await open_worktree(directory, name, base=state.worktree_base)
        except NoWorktree as error:
            raise IsolationUnavailable(state.isolation, str(error)) from None
        return msgspec.structs.replace(
            state, worktree_path=made.path, worktree_branch=made.branch, worktree_base=made.base
        )

    async def close(self, state: AgentState) -> AgentState:
        """The agent with its checkout where that has changes, without it where it has none."""
        from handaxe.host.worktrees import close_worktree

        stays = await close_worktree(
            state.worktree_path, state.worktree_branch, state.worktree_base
        )
        if stays:
            return state
        return msgspec.structs.replace(
            state, worktree_path="", worktree_branch="", worktree_base=""
        )
