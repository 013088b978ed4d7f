"""The session of one client for every transport: its tools, calls and questions."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from handaxe.app.services.background import append_notices
from handaxe.app.session import Session, get_parts
from handaxe.contract.call import ToolCall
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.events import CallProgress, Event, ModeChanged, SettingsChanged, WishRefused
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.faults.forms import ElicitationUnavailable
from handaxe.contract.ports.questions import ElicitationForm
from handaxe.frontends.mcp_server.protocol import INVALID_PARAMS, RpcError
from handaxe.frontends.mcp_server.tool_list import (
    build_call_result,
    list_definitions,
    list_names,
)  # fmt: skip
from handaxe.permission.prompts import OnAsk
from handaxe.text.escape import to_visible_text

if TYPE_CHECKING:
    from handaxe.frontends.mcp_server.prompts_and_resources import ContentProvider


ROOTS_WAIT_S = 5.0
"""Seconds that a first call waits for the client's roots."""


class SessionFactory(NamedTuple):
    """How a client's session is opened."""

    open: Callable[[str, Sequence[str], OnAsk], Session]
    """Opens the session for a root and more directories."""
    root: str | None = None
    """The project of --root; otherwise the client's first root or the current directory."""
    add_dirs: tuple[str, ...] = ()
    output_schemas: bool = False
    """Whether clients also get the output schemas of built-in tools."""
    is_lent: bool = False
    """Whether the session belongs to a program: it keeps its root and stays open."""
    content: "Callable[[Session], ContentProvider] | None" = None
    """The prompts and resources; without it the session's prompts and files."""


class CallChannel(ABC):
    """Requests to the client while one of its calls runs."""

    @property
    @abstractmethod
    def can_ask(self) -> bool:
        """Whether the client's user can answer a form."""

    @property
    @abstractmethod
    def wants_progress(self) -> bool:
        """Whether the client wants progress."""

    @abstractmethod
    async def ask(self, form: dict[str, Any]) -> object:
        """Show a form and wait for the result of `elicitation/create`; raises on failure."""

    @abstractmethod
    def progress(self, text: str) -> None:
        """Report the progress of the call."""


class InputRequired(Exception):
    """The client asks its user and then repeats the call."""


class _RunningCall(NamedTuple):
    session: Session
    line: CallChannel


class ServerSession:
    """One client's session; it follows the client's roots."""

    def __init__(self, blueprint: SessionFactory) -> None:
        self._blueprint = blueprint
        self._roots: asyncio.Future[Sequence[str] | None] | None = None
        self._running: dict[str, _RunningCall] = {}
        self._offered: tuple[str, ...] | None = None
        self._give_back = contextlib.ExitStack()
        """The work that ends with this client while the session stays open."""
        self._asks_here = True
        """Whether permission questions go to the client."""
        self.on_offer: Callable[[], None] = lambda: None
        """Called when the tools changed since the client's last list."""
        self.on_warning: Callable[[str], None] = lambda _: None
        self._opened = ("", ())
        self._session = self._open(())

    def expect_roots(self, roots: Awaitable[Sequence[str] | None]) -> None:
        """The client's roots, when it has sent them; calls wait for them up to a limit."""
        self._roots = asyncio.ensure_future(roots)

    async def tools(self) -> list[dict[str, Any]]:
        """The definitions of the offered tools."""
        session = await self._get_session()
        get_parts(session).follow()
        catalog = get_parts(session).catalog
        self._offered = list_names(catalog)
        return list_definitions(catalog, self._offered, self._blueprint.output_schemas)

    async def call(
        self,
        params: dict[str, Any],
        line: CallChannel,
        started: Callable[[Callable[[], object]], None],
    ) -> dict[str, Any]:
        """Run one `tools/call`; `started` gets the function that stops it."""
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "`name` must be the name of a tool.")
        session = await self._get_session()
        call_id = get_parts(session).new_call_id()
        if self._asks_here:
            session.permissions.never_prompt = not line.can_ask
        self._running[call_id] = _RunningCall(session, line)
        started(lambda: session.cancel(call_id))
        try:
            call = ToolCall(call_id, name, {} if arguments is None else arguments)
            result = get_parts(session).recorder.logged(await session.run(call))
            if line.wants_progress:
                # The loop delivers progress; let it do so before the result.
                await asyncio.sleep(0)
        finally:
            del self._running[call_id]
            await self._close_if_unused(session)
        told = append_notices(result, session.jobs)
        return build_call_result(session, told, self._blueprint.output_schemas)

    async def fetch(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer one of the methods about prompts and resources."""
        from handaxe.frontends.mcp_server.prompts_and_resources import (
            SessionContentProvider,
            handle_request,
        )

        session = await self._get_session()
        get_parts(session).follow()
        try:
            return await handle_request(
                (self._blueprint.content or SessionContentProvider)(session), method, params
            )
        except (ToolFault, SetupError) as fault:
            raise RpcError(INVALID_PARAMS, str(fault)) from None

    def look(self) -> None:
        """Apply changed settings; notify the client if the tools changed."""
        get_parts(self._session).follow()
        if self._offered is None:
            return
        offered = list_names(get_parts(self._session).catalog)
        if offered != self._offered:
            self._offered = offered
            self.on_offer()

    async def close(self) -> None:
        """Close the session and stop its calls."""
        if self._roots is not None:
            self._roots.cancel()
        if self._blueprint.is_lent:
            self._give_back.close()
            for call_id in self._running:
                self._session.cancel(call_id)
            return
        for session in {id(s): s for s, _ in self._running.values()}.values():
            await session.close()
        await self._session.close()

    def _open(self, roots: Sequence[str]) -> Session:
        plan = self._blueprint
        root = plan.root or (roots[0] if roots else ".")
        more = (*plan.add_dirs, *(roots if plan.root else roots[1:]))
        if plan.is_lent and self._opened[0]:
            return self._session
        if self._opened[0] == root:
            get_parts(self._session).set_directories(more)
            return self._session
        session = plan.open(root, more, self._on_ask)
        self._give_back.callback(session.subscribe(self._on_event))
        self._connect_person(session)
        self._opened = (root, more)
        return session

    async def _get_session(self) -> Session:
        """The session, when the client's roots are known."""
        waiting = self._roots
        if waiting is None:
            return self._session
        done, _ = await asyncio.wait([waiting], timeout=ROOTS_WAIT_S)
        if self._roots is waiting:
            self._roots = None
            if not done:
                self.on_warning("The client did not name its roots.")
            elif not waiting.cancelled() and (roots := waiting.result()) is not None:
                await self._move(roots)
        return self._session

    async def _move(self, roots: Sequence[str]) -> None:
        before = self._session
        try:
            self._session = self._open(roots)
        except SetupError as error:
            self.on_warning(str(error))
            return
        if self._session is not before:
            await self._close_if_unused(before)

    async def _close_if_unused(self, session: Session) -> None:
        """Close a replaced session after its last call."""
        if session is not self._session and not any(
            running.session is session for running in self._running.values()
        ):
            await session.close()

    async def _on_ask(self, request: PermissionRequest) -> Allow | Deny:
        from handaxe.frontends.mcp_server.elicitation import build_elicitation_form, read_answer

        running = self._find_running(request.call_id)
        if running is None or not running.line.can_ask:
            return Deny("No user can be asked.", by="user")
        try:
            given = await running.line.ask(build_elicitation_form(request))
        except InputRequired:
            return Deny("The client asks its user, then repeats the call.", by="callback")
        except RpcError as error:
            return Deny(f"The client could not ask its user ({error.message}).", by="user")
        return read_answer(given, request)

    def _connect_person(self, session: Session) -> None:
        """Let the session ask the client's user if it has no callback."""
        from handaxe.app.services.permission_setup import (
            connect_forms,
            connect_permission_prompts,
        )

        parts = get_parts(session)
        context = parts.pipeline_context
        state = session.permissions
        if context.forms is None:
            connect_forms(context, state, self._on_elicit)
            self._give_back.callback(setattr, context, "forms", None)
        if context.asker is None:
            connect_permission_prompts(context, state, self._on_ask, None, parts.configuration)
            self._give_back.callback(setattr, context, "asker", None)
        elif self._blueprint.is_lent:
            self._asks_here = False
        if self._asks_here:
            self._give_back.callback(setattr, state, "never_prompt", state.never_prompt)

    async def _on_elicit(self, form: ElicitationForm) -> dict[str, Any] | None:
        running = self._find_running(form.call_id)
        if running is None or not running.line.can_ask:
            raise ElicitationUnavailable("The client cannot show forms.")
        if form.schema is None:
            return None
        shown = {
            "mode": "form",
            "message": to_visible_text(form.message, lines=True),
            "requestedSchema": form.schema,
        }
        try:
            given = await running.line.ask(shown)
        except InputRequired:
            raise ElicitationUnavailable(
                "The client asks its user, then repeats the call."
            ) from None
        except RpcError as error:
            raise ElicitationUnavailable(
                f"The client could not ask its user ({error.message})."
            ) from None
        answer = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        content = answer.get("content")
        if answer.get("action") != "accept" or not isinstance(content, dict):
            return None
        return cast("dict[str, Any]", content)

    def _find_running(self, call_id: str | None) -> _RunningCall | None:
        return self._running.get(call_id or "") or next(iter(self._running.values()), None)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, CallProgress):
            running = self._running.get(event.call_id)
            if running is not None:
                running.line.progress(event.text)
        elif isinstance(event, WishRefused):
            self.on_warning(event.reason)
        elif isinstance(event, SettingsChanged | ModeChanged):
            self.look()
            if isinstance(event, SettingsChanged):
                for warning in event.warnings:
                    self.on_warning(warning)
