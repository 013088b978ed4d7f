"""Forms of tools and MCP servers: hooks answer first, then the user."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from handaxe.contract.faults.forms import (
    BadFormAnswer,
    ElicitationDeclined,
    ElicitationUnavailable,
)
from handaxe.contract.ports.questions import ElicitationForm
from handaxe.hooks.notify import fire_hooks, notify_hooks
from handaxe.hooks.outcome import Outcome
from handaxe.pipeline.context import PipelineContext
from handaxe.schema.form_schema import build_form_schema, read_form
from handaxe.schema.validate import InputProblems

Filled = dict[str, Any] | None
"""The entered values; None if declined."""


async def elicit_for_call(
    context: PipelineContext,
    tool: str,
    call_id: str,
    message: str,
    form: Any,  # noqa: ANN401 - a type or a schema
) -> Any:  # noqa: ANN401 - what the form says
    """The user's values for a form of a running call, as the form's type.

    Raises:
        ToolFault: the form cannot be shown, was declined, or the values do not fit.
        TypeError: `form` is not a form.
    """
    if not isinstance(cast("object", message), str) or not message.strip():
        raise TypeError(f"`elicit` takes a message for the user, not {message!r:.100}.")
    shown = ElicitationForm(tool, message, build_form_schema(form), call_id=call_id)
    can_show = context.forms is not None and context.forms.is_there
    if not can_show and not context.hooks.watches("Elicitation"):
        raise ElicitationUnavailable

    async def show(form: ElicitationForm) -> Filled:
        if context.forms is None or not context.forms.is_there:
            raise ElicitationUnavailable
        return await context.forms.show(form)

    filled = await elicit_input(context, shown, show)
    if filled is None:
        raise ElicitationDeclined
    try:
        return read_form(form, filled)
    except InputProblems as wrong:
        raise BadFormAnswer(wrong.problems) from None


async def elicit_input(
    context: PipelineContext,
    form: ElicitationForm,
    ask: Callable[[ElicitationForm], Awaitable[Filled]],
) -> Filled:
    """The filled form from a hook or the user, unless a hook rejects it."""
    is_form = form.schema is not None
    about: dict[str, Any] = {"mcp_server_name": form.source, "mode": "form" if is_form else "url"}
    if form.elicitation_id is not None:
        about["elicitation_id"] = form.elicitation_id
    more = {"requested_schema": form.schema, "url": form.url}
    wanted = {name: value for name, value in more.items() if value is not None}
    before = await fire_hooks(context, "Elicitation", **about, message=form.message, **wanted)
    if before.blocked is not None:
        return None
    spoken, filled = _read_hook_answer(before, None)
    if not spoken:
        kind = "elicitation_dialog" if is_form else "elicitation_url_dialog"
        _notify(context, kind, f"{form.source} asks: {form.message}", title="Input needed")
        filled = await ask(form)
        how = "dismissed" if filled is None else "filled in"
        _notify(context, "elicitation_complete", f"The form of {form.source} was {how}.")
    action = "decline" if filled is None else "accept"
    given = {"content": filled} if filled is not None else {}
    after = await fire_hooks(context, "ElicitationResult", **about, action=action, **given)
    answer = None if after.blocked is not None else _read_hook_answer(after, filled)[1]
    _notify(context, "elicitation_response", f"{form.source} got its answer.")
    return answer


def _notify(context: PipelineContext, kind: str, message: str, **more: str) -> None:
    notify_hooks(context, "Notification", message=message, notification_type=kind, **more)


def _read_hook_answer(outcome: Outcome, otherwise: Filled) -> tuple[bool, Filled]:
    """Whether a hook filled in the form, and with which values."""
    action, content = outcome.extra.get("action"), outcome.extra.get("content")
    if action in {"decline", "cancel"}:
        return True, None
    if action == "accept":
        return True, cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    return False, otherwise
