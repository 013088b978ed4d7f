"""Send an event of a session to its hooks, with or without waiting."""

from collections.abc import Callable
from typing import Any, Protocol

from handaxe.contract.events import DirectoryChanged, Event
from handaxe.hooks.outcome import NOTHING, Outcome
from handaxe.hooks.service import Hooks


class HookContext(Protocol):
    """The session's data in hook input."""

    @property
    def session_id(self) -> str: ...  # noqa: D102
    @property
    def transcript_path(self) -> str: ...  # noqa: D102
    @property
    def current_directory(self) -> str: ...  # noqa: D102
    @property
    def permission_mode(self) -> str: ...  # noqa: D102
    @property
    def agent_id(self) -> str | None: ...  # noqa: D102
    @property
    def agent_type(self) -> str | None: ...  # noqa: D102
    @property
    def prompt_id(self) -> str | None: ...  # noqa: D102
    @property
    def effort(self) -> str | None: ...  # noqa: D102
    @property
    def hooks(self) -> Hooks: ...  # noqa: D102
    @property
    def emit(self) -> Callable[[Event], object]: ...  # noqa: D102


def build_session_event(context: HookContext, name: str) -> dict[str, Any]:
    """The fields of every event."""
    event: dict[str, Any] = {
        "session_id": context.session_id,
        "transcript_path": context.transcript_path,
        "cwd": context.current_directory,
        "permission_mode": context.permission_mode,
        "hook_event_name": name,
    }
    about = {
        "prompt_id": context.prompt_id,
        "agent_id": context.agent_id,
        "agent_type": context.agent_type,
        "effort": {"level": context.effort} if context.effort else None,
    }
    return event | {name: value for name, value in about.items() if value is not None}


async def fire_hooks(context: HookContext, name: str, /, **details: object) -> Outcome:
    """The hooks' outcome for an event; empty without hooks."""
    if not context.hooks.watches(name):
        return NOTHING
    return await context.hooks.fire({**build_session_event(context, name), **details})


def notify_hooks(context: HookContext, name: str, /, **details: object) -> None:
    """Send an event to hooks without waiting."""
    if context.hooks.watches(name):
        context.hooks.tell({**build_session_event(context, name), **details})


def notify_directory_change(context: HookContext, old: str, new: str) -> None:
    """Report that the session, or an agent, changed its directory."""
    context.emit(DirectoryChanged(path=new))
    notify_hooks(context, "CwdChanged", old_cwd=old, new_cwd=new)
