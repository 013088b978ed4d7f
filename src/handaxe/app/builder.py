"""The parts of a session or of a subagent, and the steps that build them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from handaxe.app.services.crash_recovery import RecoveryReport
from handaxe.app.services.hooks import HookArguments, SessionHooks
from handaxe.app.services.service import ServiceGroup, SessionContext
from handaxe.app.services.session_services import SessionServices
from handaxe.app.services.tool_selection import Tools
from handaxe.catalog.catalog import Catalog
from handaxe.catalog.deferral import Deferral
from handaxe.catalog.deferred_tools import build_deferral
from handaxe.config.project import Configuration, Discovery, Given
from handaxe.config.reload import PathLike, SettingsReloader
from handaxe.contract.events import SessionStarted
from handaxe.contract.ports.permission import Classifier
from handaxe.contract.ports.tools import ToolIndex
from handaxe.contract.result import ToolResult
from handaxe.hooks.notify import notify_hooks
from handaxe.hooks.service import Hooks
from handaxe.permission.decide import Policy
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.parse import make_call
from handaxe.pipeline.pipeline import CallIdGenerator, PipelineCaller, ToolPipeline
from handaxe.rules.tool_families import is_foreign
from handaxe.session.loaded_tools import LoadedTools
from handaxe.session.port_registry import PortRegistry
from handaxe.session.read_ledger import AppliedEdits, ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.storage.event_recorder import EventRecorder
from handaxe.storage.result_store import DiskResultStore
from handaxe.storage.session_lock import SessionLock
from handaxe.storage.sessions import LOG_NAME, SessionHistory, read_history
from handaxe.undo.tracker import ChangeTracker
from handaxe.version import __version__

if TYPE_CHECKING:
    from handaxe.app.services.mcp import McpArguments
    from handaxe.app.services.own_tool_ports import Provided
    from handaxe.app.start import SessionStart
    from handaxe.config.profiles import ProfileName
    from handaxe.contract.ports.conversation import AgentAccess, ModelQuestion, SessionInfo
    from handaxe.contract.ports.mcp_servers import McpServers
    from handaxe.contract.ports.questions import OnElicit, OnQuestion
    from handaxe.permission.prompts import OnAsk
    from handaxe.pipeline.streaming import CallStream, OnResult


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `Session`."""

    root: PathLike
    add_dirs: Sequence[PathLike]
    permission_mode: str | None
    allow: str | Sequence[str]
    ask: str | Sequence[str]
    deny: str | Sequence[str]
    settings: Given
    env: Mapping[str, str] | None
    profile: "ProfileName | None"
    setting_sources: str | Sequence[str] | None
    trusted: bool | None
    tools: Tools
    provide: "Provided"
    on_ask: "OnAsk | None"
    ask_in_parallel: bool
    on_question: "OnQuestion | None"
    on_elicit: "OnElicit | None"
    classifier: Classifier | None
    never_prompt: bool
    hooks: HookArguments
    home: PathLike | None
    session_id: str | None
    fork_of: str | None
    fork_at: str | None
    shared: bool
    mcp_servers: "McpArguments"
    strict_mcp: bool
    discovery: Discovery
    start: "SessionStart | None"


class SessionParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a session; for modules of handaxe."""

    history: SessionHistory
    """The past of the session, from its log."""
    recorder: EventRecorder
    new_call_id: CallIdGenerator
    session_context: SessionContext
    tracker: ChangeTracker
    ports: PortRegistry
    services: SessionServices
    reloader: SettingsReloader
    hooks: SessionHooks
    catalog: Catalog
    deferral: Deferral
    pipeline_context: PipelineContext
    pipeline: ToolPipeline
    recovery: RecoveryReport
    """Repairs after killed processes."""

    @property
    def configuration(self) -> Configuration:
        """The settings of the project."""
        return self.session_context.configuration

    @property
    def mcp_servers(self) -> "McpServers | None":
        """The MCP servers, or None."""
        return self.services.mcp and self.services.mcp.servers

    def follow(self) -> None:
        """Apply changes of settings files and hooks."""
        is_changed = self.reloader.follow()
        if is_changed:
            self.services.follow()
        if is_changed or self.hooks.is_watching:
            self.hooks.follow()
        self.services.times_used += 1
        if not self.services.is_open:
            self.services.open(self.catalog)

    def set_directories(self, add_dirs: Sequence[PathLike], by: str = "register_repo_root") -> None:
        """Replace the added working directories; the root and those of settings stay."""
        for added in self.reloader.set_added(add_dirs):
            notify_hooks(self.pipeline_context, "DirectoryAdded", directory=added, source=by)

    def interrupt_for_user(self) -> None:
        """New input arrived: stop the calls of tools that yield to the user."""
        self.services.memory.wakeups.wake("the user said something.")
        self.pipeline.interrupt()

    def open_stream(self, on_result: "OnResult") -> "CallStream":
        """The calls of one answer of the model; each starts when it is added."""
        if self.pipeline.is_closed:
            raise RuntimeError("The session is closed. Open a new one.")
        from handaxe.pipeline.streaming import CallStream

        self.follow()
        return CallStream(self.pipeline, on_result=on_result, noted=self.recorder.add_log_note)


class SessionBuilder(ABC):
    """Builds the parts in the order of their dependencies.

    Sessions and subagents share the order and differ in single steps.
    """

    workdir: Workdir
    session_context: SessionContext
    policy: Callable[[], Policy]
    ports: PortRegistry
    services: ServiceGroup
    hooks: Hooks
    catalog: Catalog
    deferral: Deferral
    pipeline_context: PipelineContext
    pipeline: ToolPipeline

    def __init__(
        self,
        log_id: str,
        directory: Path,
        configuration: Configuration,
        *,
        has_past: bool,
        lock: SessionLock | None = None,
    ) -> None:
        """`log_id` is the id of the session or agent whose log is in `directory`."""
        self.log_id = log_id
        self.directory = directory
        self.configuration = configuration
        self.new_call_id = CallIdGenerator()
        self.caller = PipelineCaller()
        self._model: AgentAccess | None = None
        self.log = directory / LOG_NAME
        self.history = read_history(self.log) if has_past else SessionHistory()
        redactor = configuration.redactor
        self.recorder = EventRecorder(self.log, self._describe_start, redactor, lock)
        self.results = DiskResultStore(
            self.directory / "results",
            retention_days=self.configuration.settings.retention_days,
            redactor=redactor,
        )
        self.ledger = ReadLedger(self.recorder.emit)
        self.edits = AppliedEdits(self.recorder.emit)

    def build(self) -> None:
        """Build all parts."""
        self.workdir = self.build_workdir()
        self.session_context = self.build_session_context()
        self.policy = self.build_policy()
        self.ports = self.build_ports()
        self.services = self.build_services()
        self.ports.add(self.services.ports)
        self.hooks = self.build_hooks()
        self.catalog = self.build_catalog()
        self.deferral = self.ports[ToolIndex] = build_deferral(
            self.catalog, self.ports[LoadedTools], self.configuration.settings
        )
        self.pipeline_context = self.build_pipeline_context()
        self.pipeline = self.build_pipeline()
        self.catalog.session_info = self.catalog.session_info or self._make_session_info
        self.pipeline_context.call_inside = self._call_inside
        self.pipeline_context.ask_model = self._ask_model
        self.pipeline_context.elicit = self._elicit
        self.caller.join(self.pipeline_context, self.pipeline.order)

    @abstractmethod
    def build_workdir(self) -> Workdir:
        """The working directories of the calls."""

    @abstractmethod
    def build_session_context(self) -> SessionContext:
        """The ports that services can use."""

    @abstractmethod
    def build_policy(self) -> Callable[[], Policy]:
        """A function that returns the rules in force."""

    @abstractmethod
    def build_ports(self) -> PortRegistry:
        """The ports of tools, without those of services."""

    @abstractmethod
    def build_services(self) -> ServiceGroup:
        """The services, in the order they open."""

    @abstractmethod
    def build_hooks(self) -> Hooks:
        """The hooks of the calls."""

    @abstractmethod
    def build_catalog(self) -> Catalog:
        """The tools."""

    @abstractmethod
    def build_pipeline_context(self) -> PipelineContext:
        """The ports that the stages of the pipeline use."""

    def build_pipeline(self) -> ToolPipeline:
        """The pipeline that runs the calls."""
        return ToolPipeline(
            self.pipeline_context,
            max_parallel=self.configuration.settings.max_parallel_calls,
            recall=self.recorder.result_of,
            claims=self.recorder.shared_calls,
        )

    async def _call_inside(
        self,
        parent_id: str,
        tool: str,
        given: dict[str, Any] | None,
        arguments: dict[str, Any],
    ) -> ToolResult:
        """Make a nested call inside the running call of this id."""
        call = make_call(self.new_call_id(), tool, given, arguments)
        if is_foreign(call.tool):
            await self.services.expect((call,), self.catalog)
        return self.recorder.add_log_note(await self.pipeline.call_inside(parent_id, call))

    def _make_session_info(self) -> "SessionInfo":
        from handaxe.pipeline.session_view import LiveSessionInfo

        return LiveSessionInfo(self.pipeline_context)

    async def _ask_model(self, call_id: str, question: "ModelQuestion") -> str:
        """Ask a model for the tool of this call and return its answer."""
        agent = self.pipeline_context.agent
        if agent is None:
            from handaxe.app.services.session_model import SessionModel

            settings = self.configuration.settings
            agent = self._model = self._model or SessionModel(settings, self.services)
        with self.pipeline.active.enter(call_id):
            return await agent.ask_model(question)

    async def _elicit(self, call_id: str, message: str, form: Any) -> Any:  # noqa: ANN401
        """Show a form for this call and return the values that the user enters."""
        from handaxe.pipeline.elicitation import elicit_for_call

        with self.pipeline.active.enter(call_id) as tool:
            return await elicit_for_call(self.pipeline_context, tool, call_id, message, form)

    def _describe_start(self) -> SessionStarted:
        return SessionStarted(
            session_id=self.log_id,
            root=self.workdir.root,
            mode=self.session_context.permissions.mode,
            version=__version__,
        )
