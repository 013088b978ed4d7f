"""Control requests of the client: one handler each, an error for unknown ones."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

from handaxe.app.agent import Agent
from handaxe.app.session import Session, get_parts
from handaxe.contract.events import UserSaid
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.contract.ports.undo import ChangedCall
from handaxe.frontends.stream_json.control_channel import ControlChannel
from handaxe.frontends.stream_json.init_message import (
    ClientServers,
    build_context_usage,
    build_initialize_response,
    build_mcp_status,
)
from handaxe.frontends.stream_json.json_lines import can_fit_line, truncate_value
from handaxe.frontends.stream_json.wire_types import Json
from handaxe.storage.sessions import read_events
from handaxe.text.escape import format_suggestion

_HOOK_CHARS = 50_000
Handler = Callable[[Json], Awaitable[Json]]


class ControlRequestError(Exception):
    """A request that fails, with the reason."""


class ControlContext(Protocol):
    """The interface of a conversation for control requests."""

    channel: ControlChannel
    servers: ClientServers

    @property
    def agent(self) -> Agent:
        """The agent, opened if it was not yet."""
        ...

    @property
    def context_tokens(self) -> int:
        """The length of the conversation at the last answer."""
        ...

    def initialize(self, request: Json) -> None:
        """Open the agent with the client's options."""
        ...

    def interrupt(self, *, cancel_queued: bool) -> Json:
        """Stop the running turn and return the messages that still wait."""
        ...


class ControlHandler:
    """Answers control requests."""

    def __init__(
        self,
        conversing: ControlContext,
        write: Callable[[Json], None],
        default_model: Callable[[str | None], object],
    ) -> None:
        self._of = conversing
        self._write = write
        self._open_model = default_model
        self._running: dict[str, asyncio.Task[None]] = {}
        self._handlers: dict[str, Handler] = {
            "initialize": self._initialize,
            "interrupt": self._interrupt,
            "set_permission_mode": self._set_permission_mode,
            "set_model": self._set_model,
            "rewind_files": self._rewind_files,
            "mcp_status": self._get_mcp_status,
            "mcp_reconnect": self._reconnect,
            "mcp_toggle": self._toggle,
            "get_context_usage": self._get_context_usage,
            "stop_task": self._stop_task,
        }

    def start(self, message: Json) -> None:
        """Handle a request in the background and send its answer."""
        request_id = str(message.get("request_id") or "")
        request = message.get("request")
        given = cast("Json", request) if isinstance(request, dict) else {}
        task = asyncio.ensure_future(self._handle(request_id, given))
        self._running[request_id] = task
        task.add_done_callback(lambda _: self._running.pop(request_id, None))

    def cancel(self, request_id: str) -> None:
        """The client cancelled a request."""
        task = self._running.get(request_id)
        if task is not None:
            task.cancel()

    async def finish(self) -> None:
        """Wait for running requests."""
        if self._running:
            await asyncio.wait(self._running.values(), timeout=5)

    async def _handle(self, request_id: str, request: Json) -> None:
        try:
            answer = await self._find_handler(str(request.get("subtype")))(request)
        except (ControlRequestError, SetupError) as error:
            self._answer(request_id, error=str(error))
        except ToolFault as fault:
            self._answer(request_id, error=fault.sentence)
        except Exception as error:  # noqa: BLE001 - a bug is an answer too: the client waits for one
            self._answer(request_id, error=f"internal error: {type(error).__name__}: {error}")
        else:
            self._answer(request_id, response=answer)

    def _find_handler(self, subtype: str) -> Handler:
        handler = self._handlers.get(subtype)
        if handler is None:
            hint = format_suggestion(subtype, list(self._handlers))
            raise ControlRequestError(f"Unsupported control request subtype: {subtype}.{hint}")
        return handler

    def _answer(
        self, request_id: str, *, response: Json | None = None, error: str | None = None
    ) -> None:
        said: Json = {"subtype": "error" if error is not None else "success"}
        said["request_id"] = request_id
        said |= {"error": error} if error is not None else {"response": response or {}}
        self._write({"type": "control_response", "response": said})

    async def _initialize(self, request: Json) -> Json:
        self._of.initialize(request)
        answer = build_initialize_response(self._of.agent)
        return {**answer, "hooks_applied": True} if request.get("hooks") else answer

    async def _interrupt(self, request: Json) -> Json:
        return self._of.interrupt(cancel_queued=bool(request.get("cancel_queued")))

    async def _set_permission_mode(self, request: Json) -> Json:
        self._of.agent.session.set_mode(str(request.get("mode")))
        return {}

    async def _set_model(self, request: Json) -> Json:
        name = request.get("model")
        if name is not None and not isinstance(name, str):
            raise ControlRequestError("`model` must be the name of a model, or null.")
        self._of.agent.set_model(name or cast("Any", self._open_model(None)))
        return {}

    async def _rewind_files(self, request: Json) -> Json:
        message_id = str(request.get("user_message_id") or "")
        return await rewind_files(
            self._of.agent.session, message_id, dry_run=bool(request.get("dry_run"))
        )

    async def _get_mcp_status(self, request: Json) -> Json:  # noqa: ARG002 - asks for nothing more
        return build_mcp_status(self._of.agent, self._of.servers)

    async def _reconnect(self, request: Json) -> Json:
        name, servers = self._server(request)
        await servers.reconnect(name)
        return {}

    async def _toggle(self, request: Json) -> Json:
        name, servers = self._server(request)
        await servers.switch(name, on=request.get("enabled") is not False)
        return {}

    def _server(self, request: Json) -> tuple[str, McpServers]:
        name = str(request.get("serverName"))
        servers = self._of.agent.session.mcp
        if servers is None or name in self._of.servers.problems:
            why = self._of.servers.problems.get(name, "There is no such server.")
            raise ControlRequestError(f"The MCP server {name!r} cannot be reached. {why}")
        get_parts(self._of.agent.session).follow()
        return name, servers

    async def _get_context_usage(self, request: Json) -> Json:  # noqa: ARG002 - asks for nothing more
        return build_context_usage(self._of.agent, self._of.context_tokens)

    async def _stop_task(self, request: Json) -> Json:
        task_id = str(request.get("task_id"))
        jobs = self._of.agent.session.jobs
        if any(state.job_id == task_id and state.kind != "agent" for state in jobs.listed()):
            _, job = jobs.named(task_id)
            if job is not None:
                await job.stop()
        else:
            await self._of.agent.agents.stop(task_id)
        return {}


def build_client_hooks(given: object, channel: ControlChannel) -> dict[str, list[Json]] | None:
    """The hooks of a client as functions that call back over the stream."""
    if not isinstance(given, dict):
        return None
    found: dict[str, list[Json]] = {}
    for event, groups in cast("dict[str, object]", given).items():
        for group in cast("list[Json]", groups if isinstance(groups, list) else []):
            ids = cast("list[object]", group.get("hookCallbackIds") or [])
            read: Json = {"hooks": [_create_callback(channel, str(one)) for one in ids]}
            if group.get("matcher") is not None:
                read["matcher"] = group["matcher"]
            if group.get("timeout"):
                read["timeout"] = group["timeout"]
            found.setdefault(event, []).append(read)
    return found


def _create_callback(
    channel: ControlChannel, callback_id: str
) -> Callable[[Json], Awaitable[Json]]:
    async def call(event: Json) -> Json:
        sent = event if can_fit_line(event) else truncate_value(event, _HOOK_CHARS)
        answer = await channel.ask(
            "hook_callback",
            callback_id=callback_id,
            input=sent,
            tool_use_id=event.get("tool_use_id"),
        )
        if sent is not event and "updatedInput" in str(answer.get("hookSpecificOutput")):
            raise ControlRequestError("The input is too long for a hook of this client to change.")
        return answer

    call.__qualname__ = f"client hook {callback_id}"
    return call


async def rewind_files(session: Session, message_id: str, *, dry_run: bool = False) -> Json:
    """Undo every change since the message and return the touched files."""
    get_parts(session).recorder.flush()
    said_at = await asyncio.to_thread(_find_message_time, session, message_id)
    later = [
        call
        for call in session.history(diffs=True)
        if call.at >= said_at and not (call.undone or call.undoes)
    ]
    told = _summarize_changes(later)
    if not later or dry_run:
        return told
    result = await session.undo(later[0].call_id)
    if not result.ok:
        raise SetupError(result.text)
    return told


def _find_message_time(session: Session, message_id: str) -> float:
    session_context = get_parts(session).session_context
    for event in read_events(session_context.data_home, session.id):
        if isinstance(event, UserSaid) and event.message_id == message_id:
            return event.at
    raise SetupError(f"This session has no message {message_id!r}.")


def _summarize_changes(calls: list[ChangedCall]) -> Json:
    changes = [change for call in calls for change in call.changes]
    lines = [line for change in changes for line in change.diff.splitlines()]
    return {
        "canRewind": True,
        "filesChanged": sorted({change.file_path for change in changes}),
        "insertions": sum(line.startswith("+") and not line.startswith("+++") for line in lines),
        "deletions": sum(line.startswith("-") and not line.startswith("---") for line in lines),
    }
