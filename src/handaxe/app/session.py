"""A session: one project, its permissions, its log and all tools."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from handaxe.app.main_session_builder import MainSessionBuilder, SessionOptions, SessionParts
from handaxe.app.services.configuration import find_config_warnings, find_mode_warnings
from handaxe.app.services.hooks import HookArguments
from handaxe.app.services.tool_selection import Tools
from handaxe.app.tool_listing import build_native_tools, get_tool_schema, make_closed_result
from handaxe.catalog.deferred_tools import DeferredToolAnnouncer
from handaxe.config.project import EVERYTHING, Discovery, Given
from handaxe.config.reload import validate_mode
from handaxe.config.settings import Settings
from handaxe.contract.call import ToolCall
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.events import SessionClosed
from handaxe.contract.ports.permission import Classifier
from handaxe.contract.ports.undo import ChangedCall, UndoRequest
from handaxe.contract.result import ToolResult
from handaxe.disk.threads import share_interpreter
from handaxe.pipeline.parse import make_call, make_calls, normalize_call
from handaxe.session.jobs import Jobs
from handaxe.storage.event_recorder import Listener

if TYPE_CHECKING:
    from handaxe.app.services.call_presenter import CallPresenter
    from handaxe.app.services.mcp import McpArguments
    from handaxe.app.services.own_tool_ports import Provided
    from handaxe.app.start import SessionStart
    from handaxe.config.profiles import ProfileName
    from handaxe.contract.events import WebSource
    from handaxe.contract.ports.mcp_servers import McpServers
    from handaxe.contract.ports.questions import OnElicit, OnQuestion
    from handaxe.permission.prompts import OnAsk

PathLike = str | os.PathLike[str]


class Session:
    """Tools for one project.

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
        env: Mapping[str, str] | None = None,
        profile: "ProfileName | None" = None,
        setting_sources: str | Sequence[str] | None = None,
        trusted: bool | None = None,
        tools: Tools = None,
        provide: "Provided" = (),
        on_ask: "OnAsk | None" = None,
        ask_in_parallel: bool = False,
        on_question: "OnQuestion | None" = None,
        on_elicit: "OnElicit | None" = None,
        classifier: Classifier | None = None,
        never_prompt: bool = False,
        hooks: HookArguments = None,
        home: PathLike | None = None,
        session_id: str | None = None,
        fork_of: str | None = None,
        fork_at: str | None = None,
        shared: bool = False,
        mcp_servers: "McpArguments" = None,
        strict_mcp: bool = False,
        discovery: Discovery = EVERYTHING,
        start: "SessionStart | None" = None,
    ) -> None:
        options = SessionOptions(
            root=root, add_dirs=add_dirs, permission_mode=permission_mode, allow=allow, ask=ask,
            deny=deny, settings=settings, env=env, profile=profile,
            setting_sources=setting_sources, trusted=trusted, tools=tools, provide=provide,
            on_ask=on_ask, ask_in_parallel=ask_in_parallel,
            on_question=on_question, on_elicit=on_elicit, classifier=classifier,
            never_prompt=never_prompt, hooks=hooks, home=home, session_id=session_id,
            fork_of=fork_of, fork_at=fork_at, shared=shared, mcp_servers=mcp_servers,
            strict_mcp=strict_mcp, discovery=discovery, start=start,
        )  # fmt: skip
        self._parts = parts = MainSessionBuilder(options).build_session()
        share_interpreter()
        self.id = parts.session_context.session_id
        self.workdir = parts.session_context.workdir
        self.permissions = parts.session_context.permissions
        self.jobs: Jobs = parts.ports[Jobs]
        self._announcer: DeferredToolAnnouncer | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._parts.configuration.settings

    @property
    def mcp(self) -> "McpServers | None":
        """The MCP servers of this session, or None."""
        return self._parts.mcp_servers

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems of settings, rules and listeners, and repairs after earlier runs."""
        return (
            *find_config_warnings(
                self._parts.configuration,
                self._parts.session_context.policy().book,
                self._parts.catalog,
            ),
            *self._parts.hooks.problems,
            *self._parts.history.warnings,
            *dict.fromkeys((*self._parts.recovery.warnings, *self._parts.tracker.warnings)),
            *self._parts.services.warnings,
            *self._parts.recorder.warnings,
            *find_mode_warnings(self._parts.pipeline_context),
        )

    async def __aenter__(self) -> Self:
        self._parts.services.open(self._parts.catalog)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, reason: str = "other") -> None:
        """Stop running calls and sync the log; hooks get the reason. Closing twice is fine."""
        if self._parts.pipeline.is_closed:
            return
        # Close everything in reverse order, even if something fails.
        async with contextlib.AsyncExitStack() as closing:
            closing.push_async_callback(self._close_record)
            closing.push_async_callback(self._parts.tracker.close, self.settings.undo)
            closing.push_async_callback(self._parts.hooks.end, self._parts.pipeline_context, reason)
            closing.push_async_callback(self._parts.services.close)
            closing.push_async_callback(self._parts.pipeline.close)

    async def _close_record(self) -> None:
        if self._parts.recorder.is_started:
            # The last event of the log.
            self._parts.recorder.emit(SessionClosed())
        await self._parts.recorder.close()

    async def call(
        self,
        tool: str,
        input: dict[str, Any] | None = None,
        /,
        **arguments: Any,  # noqa: ANN401 - the tool's own types
    ) -> ToolResult:
        """Make one call. Pass its input as keyword arguments or as one dict. Never raises."""
        call = make_call(self._parts.new_call_id(), tool, input, arguments)
        return await self._run(call, is_new=True)

    async def call_many(
        self, calls: Sequence[tuple[str, dict[str, Any]]], *, stop_on_error: bool = False
    ) -> list[ToolResult]:
        """Make the calls of one message, in parallel if possible, with results in order."""
        batch = make_calls(calls, self._parts.new_call_id)
        return await self.run_many(batch, stop_on_error=stop_on_error)

    async def run(self, call: ToolCall, *, answer: Allow | Deny | None = None) -> ToolResult:
        """Make one call under your own id; the same id again gives the same result.

        `answer` answers the question of a call in `pending`.
        """
        call = normalize_call(call, self._parts.new_call_id)
        questions = self._parts.pipeline_context.questions
        if answer is not None:
            questions.answers |= questions.check_answers({call.id: answer})
        try:
            return await self._run(call)
        finally:
            questions.answers.pop(call.id, None)

    @property
    def pending(self) -> tuple[PermissionRequest, ...]:
        """The open permission questions, oldest first."""
        return self._parts.pipeline_context.questions.requests

    async def _run(self, call: ToolCall, *, is_new: bool = False) -> ToolResult:
        if self._parts.pipeline.is_closed:
            return make_closed_result(call)
        self._parts.follow()
        if not self._parts.catalog.has(call.tool):
            await self._parts.services.expect((call,), self._parts.catalog)
        result = await self._parts.pipeline.call(call, is_new=is_new)
        return self._parts.recorder.add_log_note(result)

    async def run_many(
        self, calls: Sequence[ToolCall], *, stop_on_error: bool = False
    ) -> list[ToolResult]:
        """Make the calls of one message under your own ids."""
        from handaxe.pipeline.streaming import run_batch

        calls = [normalize_call(call, self._parts.new_call_id) for call in calls]
        if self._parts.pipeline.is_closed:
            return [make_closed_result(call) for call in calls]
        self._parts.follow()
        await self._parts.services.expect(calls, self._parts.catalog)
        results = await run_batch(calls, self._parts.pipeline, stop_on_error=stop_on_error)
        return [self._parts.recorder.add_log_note(result) for result in results]

    async def undo(
        self,
        call_id: str | None = None,
        *,
        only: bool = False,
        redo: bool = False,
        force: bool = False,
        paths: Sequence[str] = (),
    ) -> ToolResult:
        """Undo the last change; with `call_id` that call and all later ones, or only that call.

        `redo` takes the last undo back, `force` overrides changes of others, `paths` limits it.
        """
        from handaxe.app.undo_commands import HostUndo

        call = ToolCall(self._parts.new_call_id(), "Undo", {})
        if self._parts.pipeline.is_closed:
            return make_closed_result(call)
        wanted = UndoRequest(call_id, only=only, redo=redo, force=force, paths=tuple(paths))
        undoing = HostUndo(
            self._parts.pipeline_context, self._parts.tracker, order=self._parts.pipeline.order
        )
        return self._parts.recorder.add_log_note(await undoing.undo(call.id, wanted))

    async def redo(self) -> ToolResult:
        """Take the last undo back."""
        return await self.undo(redo=True)

    def history(self, *, diffs: bool = False) -> list[ChangedCall]:
        """Every call of this session that changed a file, oldest first."""
        return self._parts.tracker.calls(diffs=diffs)

    @property
    def sources(self) -> "tuple[WebSource, ...]":
        """The pages of the web that the session and its agents used, in order."""
        from handaxe.session.web_sources import WebSources

        return self._parts.ports[WebSources].pages

    def cancel(self, call_id: str | None = None) -> int:
        """Cancel one running call, or all, and return the number of cancelled calls."""
        return self._parts.pipeline.cancel(call_id)

    def set_mode(self, mode: str) -> None:
        """Switch the permission mode."""
        self.permissions.set_mode(validate_mode(self._parts.configuration, mode))

    def tools(
        self, provider: str = "json-schema", *, deferred: bool | Literal["native"] = False
    ) -> list[dict[str, Any]]:
        """The schemas of the offered tools in a provider's format.

        With `deferred`, tools that wait for ToolSearch are left out if all together are long.
        Loaded tools are appended, so call this for every request. `"native"` marks them for
        Anthropic's own search instead; that list stays the same.
        """
        if deferred == "native":
            return build_native_tools(self._parts.deferral, self._parts.catalog, provider)
        tools = self._parts.deferral.sent() if deferred else self._parts.catalog.list_offered()
        describe = self._parts.catalog.describe
        return [get_tool_schema(tool, provider, describe(tool)) for tool in tools]

    def user_turn(self, results: Sequence[ToolResult], provider: str) -> Any:  # noqa: ANN401
        """The user message with the results of an answer's calls; for OpenAI a list of messages."""
        from handaxe.schema.user_turn import build_user_turn, check_user_turn

        check_user_turn(results, provider)
        changes = self._announcer() if self._announcer is not None else ()
        return build_user_turn(results, provider, (*self.jobs.take_notices(), *changes))

    def deferred_tools(self) -> str:
        """The names of the deferred tools, for the system prompt of your agent loop.

        Empty without deferred tools. From then on `user_turn` reports changes.
        """
        self._announcer = DeferredToolAnnouncer(self._parts.deferral)
        return self._announcer.first()

    def tool_result(self, result: ToolResult, provider: str) -> dict[str, Any]:
        """A result as the block or message of a provider, with its messages as text."""
        from handaxe.schema.user_turn import build_tool_result

        return build_tool_result(result, provider)

    def presenter(self) -> "CallPresenter":
        """A presenter that turns events of calls into display blocks."""
        from handaxe.app.services.call_presenter import CallPresenter

        return CallPresenter(self._parts.catalog)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with every event, awaited if async; the returned function ends it."""
        return self._parts.recorder.subscribe(listener)


def get_parts(session: Session) -> SessionParts:
    """The parts of a session; for modules of handaxe."""
    return session._parts  # pyright: ignore[reportPrivateUsage]
