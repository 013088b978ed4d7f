"""Plan files: in a directory of the project or of the session."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from handaxe.contract.ports.plans import Plans, SavedPlan
from handaxe.contract.ports.result_store import ResultStore
from handaxe.disk.atomic import DiskFault, replace
from handaxe.disk.threads import run_in_thread
from handaxe.permission.decide import JudgedPath, PermissionQuery, decide
from handaxe.permission.policy import Policy
from handaxe.text.paths import is_inside

_TITLE_CHARS = 50
_ID_CHARS = 8


class PlanFiles(Plans):
    """Saves one file per title, so that a changed plan replaces itself."""

    def __init__(
        self,
        session_id: str,
        root: str,
        directory: str | None,
        results: ResultStore,
        policy: Callable[[], Policy],
    ) -> None:
        """`directory` comes from settings and must be in the project.

        It must also be writable without a question under `policy`: the model chooses the text of a
        plan, which must not become a command, a hook or a rule.
        """
        self._session_id = session_id
        self._policy = policy
        self._directory = _resolve_inside(root, directory)
        self._results = results
        self._presented: dict[str, str] = {}
        self._kept: dict[str, tuple[str, str]] = {}

    async def keep(self, call_id: str, text: str) -> SavedPlan | None:
        """Write a plan, unless the file has it already."""
        first = self._presented.setdefault(call_id, text)
        path, written = self._kept.get(call_id, ("", None))
        if written != text:
            try:
                path = await self._write(call_id, text)
            except (OSError, DiskFault):
                return None
            self._kept[call_id] = (path, text)
        return SavedPlan(path, was_edited=text != first)

    async def _write(self, call_id: str, text: str) -> str:
        name = f"{_make_slug(text)}-{self._session_id[:_ID_CHARS]}.md"
        path = str(self._directory / name) if self._directory is not None else None
        if path is None or not _is_free(path, self._policy()):
            return self._results.keep(f"plan-{call_id}", text)
        pieces = [text.encode(errors="replace")]
        await run_in_thread(lambda: replace(path, pieces, expect=None, make_parents=True))
        return path


def _resolve_inside(root: str, directory: str | None) -> Path | None:
    """The directory, if it is in the project after resolving symlinks."""
    if not directory:
        return None
    with suppress(OSError, ValueError):
        real = os.path.realpath(Path(root, directory))
        if real != root and is_inside(real, root):
            return Path(real)
    return None


def _is_free(path: str, policy: Policy) -> bool:
    """Whether acceptEdits mode would allow a Write there."""
    judged = JudgedPath(path=path, real=path, access="write")
    request = PermissionQuery(tool="Write", read_only=False, paths=(judged,))
    return decide(request, policy.change_mode("acceptEdits")).verdict == "allow"


def _make_slug(text: str) -> str:
    """A file name from the first words of the plan."""
    first = next((line for line in text.splitlines() if line.strip(" #")), "")
    words = re.findall(r"[a-z0-9]+", first.lower())
    return "-".join(words)[:_TITLE_CHARS].strip("-") or "plan"
