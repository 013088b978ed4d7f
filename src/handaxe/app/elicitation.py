"""Forms that MCP servers want filled in, with hooks before and after the person."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from handaxe.runtime.hooks.outcome import Outcome
from handaxe.runtime.pipeline.collaborators import Collaborators
from handaxe.runtime.pipeline.telling import fire, tell

Filled = dict[str, Any] | None
"""What was put in; None declines."""


class Form(msgspec.Struct, frozen=True):
    """What a server asks for."""

    server: str
    message: str
    schema: dict[str, Any] | None


async def elicited(
    among: Collaborators, form: Form, ask: Callable[[], Awaitable[Filled]]
) -> Filled:
    """The filled form: a hook's, or else a person's, if no hook objects to it."""
    about = {"mcp_server_name": form.server, "mode": "form" if form.schema is not None else "url"}
    wanted = {"requested_schema": form.schema} if form.schema is not None else {}
    before = await fire(among, "Elicitation", **about, message=form.message, **wanted)
    if before.blocked is not None:
        return None
    spoken, filled = _answer(before, None)
    if not spoken:
        what = {"notification_type": "elicitation_dialog", "title": "Input needed"}
        tell(among, "Notification", message=f"{form.server} asks: {form.message}", **what)
        filled = await ask()
    action = "decline" if filled is None else "accept"
    given = {"content": filled} if filled is not None else {}
    after = await fire(among, "ElicitationResult", **about, action=action, **given)
    if after.blocked is not None:
        return None
    return _answer(after, filled)[1]


def _answer(outcome: Outcome, otherwise: Filled) -> tuple[bool, Filled]:
    """Whether a hook fills in the form itself, and with what."""
    action, content = outcome.extra.get("action"), outcome.extra.get("content")
    if action in {"decline", "cancel"}:
        return True, None
    if action == "accept":
        return True, cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    return False, otherwise
