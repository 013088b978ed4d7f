"""Worktrees for isolated agents, created at their start and released at their end."""

import os
from collections.abc import Awaitable, Callable, Sequence
from shlex import quote

import msgspec

from handaxe.agent.subagents.registry import AgentIsolation
from handaxe.config.project import Configuration
from handaxe.config.settings import Settings
from handaxe.config.settings_paths import WORKTREES
from handaxe.contract.decision import Allow, Defer, Deny, PermissionRequest
from handaxe.contract.faults.agent import IsolationUnavailable
from handaxe.contract.ports.agents import AgentState
from handaxe.hooks.notify import fire_hooks, notify_hooks
from handaxe.hooks.outcome import Outcome
from handaxe.pipeline.context import PipelineContext
from handaxe.text.escape import to_visible_text
from handaxe.text.paths import is_inside, normalize

Ask = Callable[[PermissionRequest], Awaitable[Allow | Deny | Defer]]

MOST_SHOWN = 4_000


class GitProgramApproval:
    """Approval of programs that git would run: refused before the folder is trusted, then asked.

    An approval applies to exactly these programs until the agent or the run ends; included
    configuration files may change, so they are asked each time.
    """

    def __init__(
        self, configuration: Configuration, ask: Callable[[], Ask | None], tool: str = "Agent"
    ) -> None:
        self._configuration = configuration
        self._ask = ask
        self._tool = tool
        self._approved: set[str] = set()

    async def approve(self, obstacles: tuple[str, ...]) -> str:
        """Why git may not run what a repository names; empty if approved."""
        if self._approved.issuperset(obstacles):
            return ""
        named = to_visible_text("; ".join(obstacles))
        if len(named) > MOST_SHOWN:
            return "the repository's configuration names too many programs to ask about them"
        root = self._configuration.root
        if not self._configuration.is_trusted:
            return f"{named}. If you trust the project, run `handaxe trust {quote(root)}`"
        ask = self._ask()
        if ask is None:
            return (
                f"{named}, and this run cannot ask for approval. Programs in your own "
                "configuration (`git config --global`) need none"
            )
        request = PermissionRequest(
            call_id="worktree",
            tool=self._tool,
            input={"isolation": "worktree"},
            reason=f"Git would check out files for a worktree, and {named}.",
            cwd=root,
        )
        answer = await ask(request)
        if isinstance(answer, Defer):
            answer = Deny("no answer is possible now")
        if isinstance(answer, Deny):
            return f"{named} ({answer.reason or 'the user refused'})"
        self._approved.update(one for one in obstacles if not one.startswith("include"))
        return ""

    async def recall(self, obstacles: tuple[str, ...]) -> str:
        """The remembered answer, without asking."""
        return "" if self._approved.issuperset(obstacles) else obstacles[0]


class WorktreeNotCreated(Exception):
    """Hooks created no usable worktree; the sentence says why."""


class WorktreeIsolation(AgentIsolation):
    """Worktrees of the project's repository, or directories that hooks create instead.

    Those of hooks have no branch, and hooks must remove them.
    """

    def __init__(self, context: PipelineContext, configuration: Configuration) -> None:
        self._context = context
        self._programs = GitProgramApproval(configuration, self._find_asker)

    async def open(self, state: AgentState, directory: str) -> AgentState:
        """The agent with a worktree of the commit around a directory."""
        from handaxe.agent.subagents.git_worktree import NoWorktree, open_worktree

        if state.isolation != "worktree":
            raise IsolationUnavailable(
                wanted=str(state.isolation), why="no other machine is set up to run agents"
            )
        name = f"agent-{state.agent_id}"
        if state.worktree_path and os.path.isdir(state.worktree_path):  # noqa: ASYNC240
            if not state.worktree_branch:
                return state
            directory = state.worktree_path.rpartition(f"/{WORKTREES}/")[0]
        elif self._context.hooks.watches("WorktreeCreate"):
            outcome = await fire_hooks(self._context, "WorktreeCreate", name=name)
            workdir = self._context.workdir
            try:
                path = read_worktree_path(outcome, workdir.current, workdir.roots)
            except WorktreeNotCreated as why:
                raise IsolationUnavailable(wanted="worktree", why=str(why)) from None
            return msgspec.structs.replace(
                state, worktree_path=path, worktree_branch="", worktree_base=""
            )
        try:
            settings: Settings = self._context.ports[Settings]
            made = await open_worktree(
                directory,
                name,
                base=state.worktree_base,
                options=settings.worktree,
                approve=self._programs.approve,
            )
        except NoWorktree as error:
            raise IsolationUnavailable(wanted=state.isolation, why=str(error)) from None
        return msgspec.structs.replace(
            state, worktree_path=made.path, worktree_branch=made.branch, worktree_base=made.base
        )

    async def close(self, state: AgentState) -> AgentState:
        """The agent with its worktree if that has changes, otherwise without it."""
        path = state.worktree_path
        if not state.worktree_branch:
            await fire_hooks(self._context, "WorktreeRemove", worktree_path=path)
            stays = os.path.isdir(path)  # noqa: ASYNC240
        else:
            from handaxe.agent.subagents.git_worktree import close_worktree

            stays = await close_worktree(
                path,
                state.worktree_branch,
                state.worktree_base,
                approve=self._programs.recall,
            )
            if not stays:
                notify_hooks(self._context, "WorktreeRemove", worktree_path=path)
        if stays:
            return state
        return msgspec.structs.replace(
            state, worktree_path="", worktree_branch="", worktree_base=""
        )

    def _find_asker(self) -> Ask | None:
        mode, asker = self._context.policy().mode, self._context.asker
        if mode == "bypassPermissions":
            return _allow
        can_ask = asker is not None and asker.is_there and mode != "dontAsk"
        return asker.ask if asker is not None and can_ask else None


async def _allow(_request: PermissionRequest) -> Allow | Deny:
    return Allow(by="mode")


def find_linked_directories(state: AgentState, names: Sequence[str]) -> list[str]:
    """Both ends of links from an agent's worktree to directories of the main checkout."""
    if not state.worktree_branch:
        return []
    own = state.worktree_path
    top = own.rpartition(f"/{WORKTREES}/")[0]
    # Any other link was not made by us.
    linked = [name for name in names if os.path.realpath(f"{own}/{name}") == f"{top}/{name}"]
    return [f"{end}/{name}" for end in (own, top) for name in linked]


def read_worktree_path(outcome: Outcome, directory: str, roots: Sequence[str]) -> str:
    """The directory that hooks created; git is not used if they failed.

    Raises:
        WorktreeNotCreated: there is no usable one.
    """
    if outcome.blocked is not None:
        raise WorktreeNotCreated(outcome.blocked)
    named = outcome.extra.get("worktreePath")
    if not isinstance(named, str) or not named:
        said = " ".join(outcome.notes) or f"the hook printed no path, but {named!r}"
        raise WorktreeNotCreated(said)
    if named.startswith("/") and not {".", ".."}.isdisjoint(named.split("/")):
        raise WorktreeNotCreated(f"the hook named {named}, with . or .. in it")
    lies_at = normalize(named if named.startswith("/") else f"{directory}/{named}")
    path = os.path.realpath(lies_at)
    if not os.path.isdir(path):
        raise WorktreeNotCreated(f"the hook named {named}, which is not a directory")
    if any(is_inside(root, path) for root in roots):
        raise WorktreeNotCreated(f"the hook named {named}, which is the project")
    if path != lies_at and any(is_inside(lies_at, root) for root in roots):
        raise IsolationUnavailable(
            wanted="worktree", why=f"the hook named {named}, which leads through a link"
        )
    return path
