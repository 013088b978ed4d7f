"""A session: one project, one permission context, one log, all tools; what front ends hold."""

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from handaxe.app.builder import Tools, build_catalog, build_permission_state
from handaxe.app.config_warnings import find_config_warnings
from handaxe.app.default_ports import build_default_ports, register_permission_changes
from handaxe.app.services.background import make_command_probes
from handaxe.app.services.configuration import open_configuration
from handaxe.app.services.crash_recovery import recover_project
from handaxe.app.services.hooks import HookArguments, SessionHooks
from handaxe.app.services.service import SessionContext
from handaxe.app.services.session_services import SessionServices
from handaxe.app.tool_listing import (
    build_display,
    get_tool_schema,
    make_call,
    make_calls,
    make_closed_result,
    normalize_call,
)
from handaxe.catalog.deferred_tools import build_deferral
from handaxe.catalog.edit_formats import choose_edit_tool
from handaxe.config.project import EVERYTHING, Discovery, Given
from handaxe.config.reload import SettingsReloader, validate_mode
from handaxe.config.settings import Settings
from handaxe.config.working_directories import list_directories, resolve_working_directories
from handaxe.contract.call import ToolCall
from handaxe.contract.display import Display
from handaxe.contract.events import ModeChanged, SessionClosed, SessionStarted
from handaxe.contract.ports.permission import Classifier
from handaxe.contract.ports.tools import ToolCaller, ToolIndex
from handaxe.contract.ports.undo import ChangedCall, UndoRequest
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool
from handaxe.hooks.notify import notify_directory_change, notify_hooks
from handaxe.permission.decide import build_hidden_check
from handaxe.permission.policy import CurrentPolicy
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.pipeline import CallIdGenerator, PipelineCaller, ToolPipeline
from handaxe.rules.tool_families import is_foreign
from handaxe.session.applied_edits import AppliedEdits
from handaxe.session.jobs import Jobs
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.storage.event_recorder import EventRecorder, Listener
from handaxe.storage.home import (
    find_data_home,
    generate_session_id,
    get_session_directory,
    validate_session_id,
)
from handaxe.storage.result_store import DiskResultStore
from handaxe.storage.session_lock import SessionLock
from handaxe.storage.sessions import LOG_NAME, SessionHistory, read_history
from handaxe.undo.tracker import ChangeTracker
from handaxe.version import __version__

if TYPE_CHECKING:
    from handaxe.app.services.mcp import McpArguments
    from handaxe.app.start import SessionStart
    from handaxe.contract.ports.mcp_servers import McpServers
    from handaxe.contract.ports.questions import OnQuestion
    from handaxe.permission.prompts import OnAsk
    from handaxe.pipeline.streaming import CallStream, OnResult

PathLike = str | os.PathLike[str]


class Session:
    """Tools at work in one project.

    Use it as `async with Session("path/to/project") as session: await session.call("Read", ...)`.
    """

    def __init__(  # noqa: PLR0913 - the whole door to a session, keyword-only
        self,
        root: PathLike = ".",
        *,
        add_dirs: Sequence[PathLike] = (),
        permission_mode: str | None = None,
        allow: str | Sequence[str] = (),
        ask: str | Sequence[str] = (),
        deny: str | Sequence[str] = (),
        settings: Given = None,
        setting_sources: str | Sequence[str] | None = None,
        trusted: bool | None = None,
        tools: Tools = None,
        on_ask: "OnAsk | None" = None,
        on_question: "OnQuestion | None" = None,
        classifier: Classifier | None = None,
        never_prompt: bool = False,
        hooks: HookArguments = None,
        home: PathLike | None = None,
        session_id: str | None = None,
        shared: bool = False,
        mcp_servers: "McpArguments" = None,
        strict_mcp: bool = False,
        discovery: Discovery = EVERYTHING,
        start: "SessionStart | None" = None,
    ) -> None:
        data, project = find_data_home(home), resolve_working_directories(root, ())[0][0]
        self.id = validate_session_id(session_id) if session_id else generate_session_id()
        hold = SessionLock(data, self.id, shared=shared, is_named=session_id is not None)
        self._recovered = recover_project(data, project, session_id)
        self.configuration = open_configuration(
            project, home=data, given=settings, sources=setting_sources, trusted=trusted
        )
        self.configuration.discovery = discovery
        more = self.configuration.directories()[0]
        directory = get_session_directory(data, self.id)
        history = read_history(directory / LOG_NAME) if session_id else SessionHistory()
        self.said, self.heard, self.put_off = history.said, history.instructions, history.put_off
        self.chosen = history.chosen
        redactor = self.configuration.redactor
        self._record = record = EventRecorder(directory / LOG_NAME, self._opening, redactor, hold)
        emit, self.result_of, self.logged = record.emit, record.result_of, record.logged
        self._is_closed = False
        self.new_call_id = CallIdGenerator()
        results = DiskResultStore(
            directory / "results", retention_days=self.settings.retention_days, redactor=redactor
        )
        roots, spellings = resolve_working_directories(
            root, (*list_directories(add_dirs), *more), data
        )
        self.workdir = Workdir(
            roots,
            home=str(Path.home()),
            spellings=spellings,
            free_to_read=(str(results.directory),),
            own_places=self.configuration.own_places,
            announce=lambda old, new: notify_directory_change(self._pipeline_context, old, new),
        )
        self.permissions = build_permission_state(
            self.configuration,
            permission_mode,
            {"allow": allow, "ask": ask, "deny": deny},
            history.mode if history.mode not in {"plan", "bypassPermissions"} else None,
        )
        self.permissions.never_prompt = never_prompt
        self.permissions.announce = lambda mode: emit(ModeChanged(mode=mode))
        self.policy = policy = CurrentPolicy(self.permissions, self.workdir)
        ledger, edits = ReadLedger(emit), AppliedEdits(emit)
        self._changes = ChangeTracker(
            data, self.id, self.workdir.root, ledger, roots=lambda: self.workdir.roots,
            settings=lambda: self.settings,
        )  # fmt: skip
        session_context = self.session_context = SessionContext(
            session_id=self.id,
            data_home=data,
            session_directory=directory,
            configuration=self.configuration,
            workdir=self.workdir,
            permissions=self.permissions,
            policy=policy,
            files=self._changes.files,
            results=results,
            checkpoints=self._changes,
            emit=emit,
            pipeline_context=lambda: self._pipeline_context,
            is_busy=lambda: self._pipeline.is_busy,
            recovered=self._recovered.by_commands,
        )
        offers = build_default_ports(session_context, self._changes, ledger, edits, on_question)
        caller = PipelineCaller()
        offers[ToolCaller] = caller
        self._companions = SessionServices(
            session_context, history, mcp_servers, is_strict=strict_mcp
        )
        offers.add(self._companions.offers)
        self._live = SettingsReloader(
            self.configuration,
            self.permissions,
            self.workdir,
            root=root,
            added=add_dirs,
            offers=offers,
            emit=emit,
        )
        register_permission_changes(offers, session_context, self._live)
        self.hooks = SessionHooks(hooks, self.configuration, emit=emit, keep=results.keep)
        self.catalog = build_catalog(tools, offers, lambda: build_hidden_check(policy()))
        self.catalog.edit_tool = choose_edit_tool(self.settings.edit)
        self._changes.stand_ins = self.catalog.stand_ins
        self.deferral = offers[ToolIndex] = build_deferral(
            self.catalog, self._companions.memory.loaded, self.settings
        )
        self._pipeline_context = PipelineContext(
            session_id=self.id,
            catalog=self.catalog,
            offers=offers,
            workdir=self.workdir,
            files=self._changes.files,
            policy=policy,
            hooks=self.hooks.hooks,
            emit=emit,
            results=results,
            redactor=redactor,
            deferral=self.deferral,
            checkpoints=self._changes,
            commands=make_command_probes(offers),
            transcript_path=str(directory / LOG_NAME),
        )
        if on_ask or classifier:
            from handaxe.app.builder import connect_permission_prompts

            connect_permission_prompts(
                self._pipeline_context, self.permissions, on_ask, classifier, self.configuration
            )
        caller.join(self._pipeline_context)
        self.pipeline_context, self.companions = self._pipeline_context, self._companions.members
        self.hooks.join(
            self._pipeline_context, start or ("resume" if history.started else "startup"),
            data, self.mcp, self.follow,
        )  # fmt: skip
        self._pipeline = ToolPipeline(
            self._pipeline_context,
            lanes=self.settings.max_parallel_calls,
            recall=self.result_of,
            claims=record.shared_calls,
        )
        self.jobs: Jobs = offers[Jobs]
        if session_id:
            from handaxe.app.resume import resume

            resume(history, self.id, record, self._pipeline, offers, self.hooks)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.configuration.settings

    @property
    def mcp(self) -> "McpServers | None":
        """The MCP servers of this session; None if there are none."""
        return self._companions.mcp and self._companions.mcp.servers

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with settings, rules and what an earlier run left; for a person."""
        return (
            *find_config_warnings(self.configuration, self.policy().book, self.catalog),
            *self.hooks.problems,
            *dict.fromkeys((*self._recovered.warnings, *self._changes.warnings)),
            *self._companions.warnings,
        )

    async def __aenter__(self) -> Self:
        self._companions.open(self.catalog)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, reason: str = "other") -> None:
        """Stop what is running and make the log durable; hooks hear the reason. Twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        # Whatever fails to close, the others are closed all the same; the last one first.
        async with contextlib.AsyncExitStack() as closing:
            closing.push_async_callback(self._close_record)
            closing.push_async_callback(self._changes.close, self.settings.undo)
            closing.push_async_callback(self.hooks.end, self._pipeline_context, reason)
            closing.push_async_callback(self._companions.close)
            closing.push_async_callback(self._pipeline.close)

    async def _close_record(self) -> None:
        if self._record.is_started:
            # The last word: nothing is written between this and the end.
            self._record.emit(SessionClosed())
        await self._record.close()

    async def call(
        self,
        tool: str,
        input: dict[str, Any] | None = None,
        /,
        **arguments: Any,  # noqa: ANN401 - the tool's own types
    ) -> ToolResult:
        """One call; its input as keyword arguments or as one dict. Never raises."""
        return await self._run(make_call(self.new_call_id(), tool, input, arguments), is_new=True)

    async def call_many(
        self, calls: Sequence[tuple[str, dict[str, Any]]], *, stop_on_error: bool = False
    ) -> list[ToolResult]:
        """The calls of one message, side by side where they do not collide; results in order."""
        batch = make_calls(calls, self.new_call_id)
        return await self.run_many(batch, stop_on_error=stop_on_error)

    async def run(self, call: ToolCall) -> ToolResult:
        """One call under an id of the caller's; the same id again gives the same result."""
        return await self._run(normalize_call(call, self.new_call_id))

    async def _run(self, call: ToolCall, *, is_new: bool = False) -> ToolResult:
        if self._is_closed:
            return make_closed_result(call)
        self.follow()
        if is_foreign(call.tool):
            await self._companions.expect((call,), self.catalog)
        return self._record.add_log_note(await self._pipeline.call(call, is_new=is_new))

    async def run_many(
        self, calls: Sequence[ToolCall], *, stop_on_error: bool = False
    ) -> list[ToolResult]:
        """Like `call_many`, under ids of the caller's."""
        from handaxe.pipeline.streaming import run_batch

        calls = [normalize_call(call, self.new_call_id) for call in calls]
        if self._is_closed:
            return [make_closed_result(call) for call in calls]
        self.follow()
        await self._companions.expect(calls, self.catalog)
        results = await run_batch(calls, self._pipeline, stop_on_error=stop_on_error)
        return [self._record.add_log_note(result) for result in results]

    def follow(self) -> None:
        """Take over what settings files and hooks say now."""
        if self._live.follow():
            self._companions.follow()
        self.hooks.follow()
        self._companions.open(self.catalog)

    def stream(self, on_result: "OnResult" = lambda _: None) -> "CallStream":
        """The calls of one message, each started when it is added."""
        if self._is_closed:
            raise RuntimeError("The session is closed. Open a new one.")
        from handaxe.pipeline.streaming import CallStream

        self.follow()
        return CallStream(self._pipeline, on_result=on_result, noted=self._record.add_log_note)

    async def undo(
        self,
        call_id: str | None = None,
        *,
        only: bool = False,
        redo: bool = False,
        force: bool = False,
        paths: Sequence[str] = (),
    ) -> ToolResult:
        """Put back the last change; with `call_id` that call and all later ones, or it alone.

        `redo` takes the last undo back, `force` overrides what others changed, `paths` limits it.
        """
        from handaxe.app.undo_commands import HostUndo

        call = ToolCall(self.new_call_id(), "Undo", {})
        if self._is_closed:
            return make_closed_result(call)
        wanted = UndoRequest(call_id, only=only, redo=redo, force=force, paths=tuple(paths))
        undoing = HostUndo(self._pipeline_context, self._changes, order=self._pipeline.order)
        return self._record.add_log_note(await undoing.undo(call.id, wanted))

    def history(self, *, diffs: bool = False) -> list[ChangedCall]:
        """Every call of this session that changed a file, oldest first."""
        return self._changes.calls(diffs=diffs)

    def cancel(self, call_id: str | None = None) -> int:
        """Stop one running call, or all of them; how many were reached."""
        return self._pipeline.cancel(call_id)

    def interrupt(self) -> int:
        """New input arrived: stop the calls whose tools give way to it; how many did."""
        self._companions.memory.wakeups.wake("the user said something.")
        return self._pipeline.interrupt()

    def expect_one_call(self) -> None:
        """Get nothing ready for later calls, since there will be none."""
        self._companions.ready_tree.leave()

    def set_mode(self, mode: str) -> None:
        """Switch the permission mode."""
        self.permissions.set_mode(validate_mode(self.configuration, mode))

    def tools(
        self, provider: str = "json-schema", *, deferred: bool = False
    ) -> list[dict[str, Any]]:
        """The schemas of the tools on offer, in a provider's dialect.

        With `deferred` those that wait for ToolSearch are left out once all together are long;
        what was loaded is appended, so ask again for every request.
        """
        tools = self.deferral.sent() if deferred else self.catalog.list_offered()
        return [self.schema_of(tool, provider) for tool in tools]

    def set_directories(self, add_dirs: Sequence[PathLike], by: str = "register_repo_root") -> None:
        """Exchange the working directories beside the root; those of settings stay."""
        for added in self._live.set_added(add_dirs):
            notify_hooks(self._pipeline_context, "DirectoryAdded", directory=added, source=by)

    def schema_of(self, tool: Tool[Any], provider: str = "json-schema") -> dict[str, Any]:
        """One tool's schema in a provider's dialect."""
        return get_tool_schema(tool, provider)

    def tool_result(self, result: ToolResult, provider: str) -> dict[str, Any]:
        """A result as the block or message a provider expects for it."""
        from handaxe.schema.provider_results import build_tool_result

        return build_tool_result(result, provider)

    def show(self, result: ToolResult, call_input: dict[str, Any]) -> Display | None:
        """What a human sees of a result; None means its text."""
        return build_display(self.catalog, result, call_input)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Be told every event soon after it happens; calling what comes back ends it."""
        return self._record.subscribe(listener)

    def flush(self) -> None:
        """Write every event so far to the log, for whoever is about to show a result."""
        self._record.flush()

    def _opening(self) -> SessionStarted:
        root, mode = self.workdir.root, self.permissions.mode
        return SessionStarted(session_id=self.id, root=root, mode=mode, version=__version__)
