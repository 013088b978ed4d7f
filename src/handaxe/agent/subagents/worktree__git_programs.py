"""May git run programs that a repository names, for worktrees of ours: the user's word on it."""

from collections.abc import Awaitable, Callable
from shlex import quote

from handaxe.config.project import Configuration
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.text.escape import to_visible_text

Ask = Callable[[PermissionRequest], Awaitable[Allow | Deny]]

MOST_SHOWN = 4_000


class GitProgramApproval:
    """Before the folder is trusted the answer is no; then whoever can be asked is asked.

    A yes holds for these very programs until the agent or the run ends; what a configuration brings
    in from another file may change, and is asked about each time.
    """

    def __init__(
        self, configuration: Configuration, ask: Callable[[], Ask | None], tool: str = "Agent"
    ) -> None:
        self._configuration = configuration
        self._ask = ask
        self._tool = tool
        self._approved: set[str] = set()

    async def approve(self, obstacles: tuple[str, ...]) -> str:
        """Why git may not run what a repository names; empty if it may."""
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
                f"{named}, and nobody can be asked. What your own configuration names "
                "(`git config --global`) needs no question"
            )
        request = PermissionRequest(
            call_id="worktree",
            tool=self._tool,
            input={"isolation": "worktree"},
            reason=f"Git would check out files for a worktree, and {named}.",
            cwd=root,
        )
        answer = await ask(request)
        if not isinstance(answer, Allow):
            return f"{named}, and {answer.reason or 'the user said no'}".rstrip(".")
        self._approved.update(one for one in obstacles if not one.startswith("include"))
        return ""

    async def recall(self, obstacles: tuple[str, ...]) -> str:
        """The same without asking anybody."""
        return "" if self._approved.issuperset(obstacles) else obstacles[0]
