"""Small working fakes of ports, and a pipeline around them, for tests without a disk."""

from collections.abc import Iterable, Sequence
from typing import Any

from handaxe.catalog.catalog import Catalog
from handaxe.contract.decision import Allow, Defer, Deny, PermissionRequest
from handaxe.contract.effects import Effects
from handaxe.contract.events import CallFinished, Event
from handaxe.contract.ports.permission import Asker
from handaxe.contract.ports.result_store import ResultStore
from handaxe.contract.ports.undo import Checkpoints
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool
from handaxe.disk.local_files import LocalFiles
from handaxe.hooks.service import Hooks
from handaxe.permission.policy import CurrentPolicy
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.pipeline import ToolPipeline
from handaxe.session.permission_state import Mode, PermissionState, SourcedRule
from handaxe.session.workdir import Workdir


class MemoryResults(ResultStore):
    """Keeps oversized results in a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def keep(self, call_id: str, text: str) -> str:
        """Store the text and return a path that names its call."""
        self.kept[call_id] = text
        return f"/results/{call_id}.txt"

    def keep_bytes(self, call_id: str, content: bytes, suffix: str) -> str:
        """Store its length."""
        self.kept[f"{call_id}{suffix}"] = f"{len(content)} bytes"
        return f"/results/{call_id}{suffix}"


class RecordingCheckpoints(Checkpoints):
    """Records when it was called."""

    def __init__(self, story: list[str]) -> None:
        self._story = story

    async def before(self, call_id: str, tool: str, effects: Effects) -> None:
        """Record that the call is about to change something."""
        self._story.append("checkpoint before")

    async def after(self, call_id: str) -> tuple[str, ...]:
        """Record that the call ended."""
        self._story.append("checkpoint after")
        return ()

    async def find_loss(self, effects: Effects, paths: Sequence[str]) -> str:
        """Report that everything can be restored."""
        return ""


class ScriptedAsker(Asker):
    """Gives prepared answers in order and records the questions."""

    def __init__(self, *answers: Allow | Deny | Defer) -> None:
        self._answers = list(answers)
        self.asked: list[PermissionRequest] = []

    async def ask(self, request: PermissionRequest) -> Allow | Deny | Defer:
        """The next answer."""
        self.asked.append(request)
        return self._answers.pop(0)


class PipelineHarness:
    """A pipeline with all its parts open to a test."""

    def __init__(
        self,
        tools: Iterable[Tool[Any]],
        *,
        root: str = "/project",
        mode: Mode = "bypassPermissions",
        rules: Sequence[SourcedRule] = (),
        hooks: Hooks | None = None,
        asker: Asker | None = None,
        checkpoints: Checkpoints | None = None,
        max_parallel: int = 10,
    ) -> None:
        self.events: list[Event] = []
        self.results = MemoryResults()
        self.workdir = Workdir([root], home="/home/somebody")
        self.permissions = PermissionState(mode=mode, rules=rules)
        policy = CurrentPolicy(self.permissions, self.workdir)
        ports: dict[type[Any], Any] = {Workdir: self.workdir}
        self.pipeline = ToolPipeline(
            PipelineContext(
                session_id="test",
                catalog=Catalog({}, tools, selected=(), ports=ports.keys()),
                ports=ports,
                workdir=self.workdir,
                files=LocalFiles(),
                policy=policy,
                hooks=hooks or Hooks(),
                emit=self.events.append,
                results=self.results,
                asker=asker,
                checkpoints=checkpoints,
            ),
            max_parallel=max_parallel,
            recall=self._recall,
        )

    def _recall(self, call_id: str) -> ToolResult | None:
        found = (e for e in self.events if isinstance(e, CallFinished) and e.call_id == call_id)
        return next((event.result for event in found), None)
