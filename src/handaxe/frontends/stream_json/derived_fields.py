"""Fields about a call that only clients get, never the model."""

from typing import Any

from handaxe.contract.events import CallDerived, CallStarted, Event
from handaxe.contract.result import ToolResult
from handaxe.frontends.stream_json.wire_types import Json
from handaxe.pipeline.parse import to_input_dict


class DerivedFields:
    """Keeps the derived fields of calls until their results are sent."""

    def __init__(self) -> None:
        self._by_call: dict[str, dict[str, Any]] = {}

    def hear(self, event: Event) -> None:
        """Handle an event of the session."""
        if isinstance(event, CallStarted):
            given = to_input_dict(event.input)
            found = {name: x for name, x in event.derived.items() if given.get(name) != x}
        elif isinstance(event, CallDerived):
            found = event.derived
        else:
            return
        if found:
            self._by_call.setdefault(event.call_id, {}).update(found)

    def take(self, result: ToolResult) -> Json:
        """The derived field of a result's message, usually empty."""
        found = self._by_call.pop(result.id, {})
        if result.decision is not None and result.decision.parts:
            found["commands"] = [part.text for part in result.decision.parts]
        return {"tool_derived": found} if found else {}
