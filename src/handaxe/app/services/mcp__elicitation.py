"""Forms that MCP servers want filled in, with hooks before and after the person."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from handaxe.hooks.notify import fire_hooks, notify_hooks
from handaxe.hooks.outcome import Outcome
from handaxe.pipeline.context import PipelineContext

Filled = dict[str, Any] | None
"""What was put in; None declines."""


class ElicitationForm(msgspec.Struct, frozen=True):
    """What a server asks for."""

    server: str
    message: str
    schema: dict[str, Any] | None
    url: str | None = None
    elicitation_id: str | None = None


async def elicit_input(
    among: PipelineContext, form: ElicitationForm, ask: Callable[[], Awaitable[Filled]]
) -> Filled:
    """The filled form: a hook's, or else a person's, if no hook objects to it."""
    is_form = form.schema is not None
    about: dict[str, Any] = {"mcp_server_name": form.server, "mode": "form" if is_form else "url"}
    if form.elicitation_id is not None:
        about["elicitation_id"] = form.elicitation_id
    more = {"requested_schema": form.schema, "url": form.url}
    wanted = {name: value for name, value in more.items() if value is not None}
    before = await fire_hooks(among, "Elicitation", **about, message=form.message, **wanted)
    if before.blocked is not None:
        return None
    spoken, filled = _read_hook_answer(before, None)
    if not spoken:
        kind = "elicitation_dialog" if is_form else "elicitation_url_dialog"
        _notify(among, kind, f"{form.server} asks: {form.message}", title="Input needed")
        filled = await ask()
        how = "dismissed" if filled is None else "filled in"
        _notify(among, "elicitation_complete", f"The form of {form.server} was {how}.")
    action = "decline" if filled is None else "accept"
    given = {"content": filled} if filled is not None else {}
    after = await fire_hooks(among, "ElicitationResult", **about, action=action, **given)
    answer = None if after.blocked is not None else _read_hook_answer(after, filled)[1]
    _notify(among, "elicitation_response", f"{form.server} has its answer.")
    return answer


def _notify(among: PipelineContext, kind: str, message: str, **more: str) -> None:
    notify_hooks(among, "Notification", message=message, notification_type=kind, **more)


def _read_hook_answer(outcome: Outcome, otherwise: Filled) -> tuple[bool, Filled]:
    """Whether a hook fills in the form itself, and with what."""
    action, content = outcome.extra.get("action"), outcome.extra.get("content")
    if action in {"decline", "cancel"}:
        return True, None
    if action == "accept":
        return True, cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    return False, otherwise
