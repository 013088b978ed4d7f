"""Permission questions to the client."""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from handaxe.app.agent_setup.permission_prompt_tool import read_result
from handaxe.app.session import Session, get_parts
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.faults.forms import ElicitationUnavailable
from handaxe.contract.ports.permission import PermissionChanges
from handaxe.contract.ports.questions import ElicitationForm, UserQuestion
from handaxe.contract.tool import PATH_FIELDS
from handaxe.frontends.stream_json.control_channel import ClientRequestFailed, ControlChannel
from handaxe.frontends.stream_json.json_lines import can_fit_line, truncate_value
from handaxe.frontends.stream_json.wire_types import Json
from handaxe.permission.suggestions import to_updates

_SHORT_CHARS = 50_000


class StreamPermissionUi:
    """Asks the client whether a call may run."""

    def __init__(
        self,
        channel: ControlChannel,
        session: Callable[[], Session],
        open_calls: Callable[[], dict[str, str]],
    ) -> None:
        self._channel = channel
        self._session = session
        self._open_calls = open_calls

    async def ask(self, request: PermissionRequest) -> Allow | Deny:
        """The client's decision; no answer denies."""
        sent = request.input
        fields = _build_question(request)
        if not can_fit_line(fields):
            sent = truncate_value(request.input, _SHORT_CHARS)
            fields["input"] = sent
        try:
            answer = await self._channel.ask("can_use_tool", **fields)
        except ClientRequestFailed as failed:
            return Deny(f"The client could not be asked: {failed}")
        changes = get_parts(self._session()).pipeline_context.ports[PermissionChanges]
        return await read_result(answer, request, changes, sent=sent, giver="The client")

    async def ask_question(
        self, questions: tuple[UserQuestion, ...]
    ) -> dict[str, str] | str | None:
        """Ask the questions of the model; the answers come as a changed input."""
        listed = msgspec.to_builtins(questions)
        ids = [call for call, tool in self._open_calls().items() if tool == "AskUserQuestion"]
        try:
            answer = await self._channel.ask(
                "can_use_tool",
                tool_name="AskUserQuestion",
                input={"questions": listed},
                permission_suggestions=None,
                blocked_path=None,
                tool_use_id=ids[-1] if ids else "question",
            )
        except ClientRequestFailed:
            return None
        changed = _to_mapping(answer.get("updatedInput"))
        given = _to_mapping(changed.get("answers"))
        if answer.get("behavior") == "allow" and given:
            return {str(key): str(value) for key, value in given.items()}
        said = answer.get("message") if answer.get("behavior") == "deny" else None
        return str(said) if said else None

    async def ask_form(self, form: ElicitationForm) -> dict[str, Any] | None:
        """Show a form and return the client's answer as in MCP."""
        about: Json = {
            "mcp_server_name": form.source,
            "message": form.message,
            "mode": "url" if form.schema is None else "form",
        }
        more = {
            "requested_schema": form.schema,
            "url": form.url,
            "elicitation_id": form.elicitation_id,
        }
        about |= {name: value for name, value in more.items() if value is not None}
        try:
            answer = await self._channel.ask("elicitation", **about)
        except ClientRequestFailed as failed:
            raise ElicitationUnavailable(f"The client cannot show forms: {failed}") from None
        return _to_mapping(answer.get("content")) if answer.get("action") == "accept" else None


def _build_question(request: PermissionRequest) -> Json:
    fields: Json = {
        "tool_name": request.tool,
        "input": request.input,
        "permission_suggestions": to_updates(request.suggestions) or None,
        "blocked_path": _find_path(request.input),
        "tool_use_id": request.call_id,
        "decision_reason": request.reason,
    }
    if request.display_name is not None:
        fields["display_name"] = request.display_name
    if request.agent_id is not None:
        fields["agent_id"] = request.agent_id
    return fields


def _find_path(given: Json) -> str | None:
    """The file or directory of a call, if it names one."""
    named = (given.get(field) for field in PATH_FIELDS)
    return next((path for path in named if isinstance(path, str)), None)


def _to_mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
