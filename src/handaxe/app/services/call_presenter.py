"""The display of calls: events as display blocks, for every front end.

A front end gives every event to `present` and renders the result. The texts come from the tool's
`title`, `show` and `summary`, or their defaults if one of them fails.
"""

from collections import deque
from typing import Any

import msgspec

from handaxe.agent.events import (
    FromAgent,
    MessageAdded,
    RunStarted,
    ToolAnswered,
    ToolCalled,
    TurnEnded,
)
from handaxe.app.tool_listing import ResultPresenter, to_display_line
from handaxe.catalog.catalog import Catalog
from handaxe.contract.display import CallDisplay, Items, Moment, Text
from handaxe.contract.events import CallDeferred, CallFinished, CallProgress, CallStarted
from handaxe.contract.ports.model import ToolInputDelta, ToolStarted
from handaxe.contract.result import ToolResult
from handaxe.text.partial_json import parse_partial_input

MAX_PARTIAL_CHARS = 1_000
"""Input characters after which the title stays."""
_MAX_KNOWN = 1_000


class _ShownCall:
    """The state of one shown call."""

    def __init__(self, tool: str, given: object, agent: FromAgent | None) -> None:
        self.tool = tool
        self.given = given
        self.agent = agent
        self.title = ""
        self.partial = ""
        self.moment: Moment = "input"
        self.result: ToolResult | None = None


class CallPresenter(ResultPresenter):
    """Presents the calls of one session from events of its agent and the session."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog)
        self._calls: dict[tuple[str, str], _ShownCall] = {}
        self._groups: dict[str, list[str]] = {}
        self._ended: deque[tuple[str, str]] = deque(maxlen=_MAX_KNOWN)

    def present(self, event: object) -> tuple[CallDisplay, ...]:
        """The displays of an event; none for events that are not about calls."""
        return self._present(event, None)

    def present_group(self, agent_id: str = "") -> CallDisplay | None:
        """The calls of the current answer as one list, if there are several."""
        calls = [
            call
            for call_id in self._groups.get(agent_id, ())
            if (call := self._calls.get((agent_id, call_id))) is not None
        ]
        if len(calls) < 2:
            return None
        results = [call.result for call in calls if call.result is not None]
        bad = sum(not result.ok for result in results)
        said = f"{len(results)} of {len(calls)} calls done"
        headline = f"{said}, {bad} without success" if bad else said
        items = tuple(f"{_mark(call.result)} {self._condense(call)}" for call in calls)
        agent = calls[0].agent
        return CallDisplay(
            moment="group", headline=headline, blocks=(Items(items),), **_name_agent(agent)
        )

    def _present(self, event: object, agent: FromAgent | None) -> tuple[CallDisplay, ...]:
        shown: tuple[CallDisplay, ...] = ()
        match event:
            case FromAgent():
                shown = self._present(event.event, event)
            case ToolStarted():
                call = self._open(event.id, event.name, {}, agent)
                shown = self._step(event.id, call, "input")
            case ToolInputDelta():
                shown = self._grow(event, agent)
            case ToolCalled(call=asked):
                call = self._open(asked.id, asked.tool, asked.input, agent)
                shown = self._step(asked.id, call, "queued")
            case CallStarted():
                call = self._open(event.call_id, event.tool, event.input, agent)
                shown = self._step(event.call_id, call, "started")
            case CallProgress():
                call = self._open(event.call_id, event.tool, None, agent)
                shown = self._step(event.call_id, call, "progress", event.text)
            case ToolAnswered(result=result) | CallFinished(result=result):
                shown = self._end(result, agent)
            case CallDeferred():
                self._calls.pop((_get_id(agent), event.call_id), None)
            case RunStarted() | TurnEnded():
                shown = self._end_group(agent)
            case MessageAdded() if event.results and agent is not None:
                # A parent gets only the results of a subagent.
                shown = self._end_group(agent)
            case _:
                pass
        return shown

    def _open(
        self, call_id: str, tool: str, given: object, agent: FromAgent | None
    ) -> _ShownCall | None:
        """The call of this id; None after its end was shown."""
        key = _get_id(agent), call_id
        if key in self._ended:
            return None
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = _ShownCall(tool, given, agent)
            self._groups.setdefault(key[0], []).append(call_id)
        if given is not None and (not call.title or given != call.given):
            call.tool, call.given = tool, given
            call.title = self.present_title(tool, given)
        return call

    def _step(
        self, call_id: str, call: _ShownCall | None, moment: Moment, progress: str = ""
    ) -> tuple[CallDisplay, ...]:
        """A display before the end, unless a later one was shown."""
        order: tuple[Moment, ...] = ("input", "queued", "started", "progress")
        if call is None or order.index(moment) < order.index(call.moment):
            return ()
        call.moment = moment
        call.title = call.title or self.present_title(call.tool, call.given)
        added = {"input": " ...", "queued": " (waiting)", "started": ""}.get(moment)
        line = f"{call.title}: {progress}" if added is None else f"{call.title}{added}"
        blocks = (Text(progress, "muted"),) if progress else ()
        return (
            CallDisplay(
                moment=moment,
                call_id=call_id,
                tool=call.tool,
                title=call.title,
                headline=to_display_line(line),
                tone="plain" if moment == "started" else "muted",
                blocks=blocks,
                **_name_agent(call.agent),
            ),
        )

    def _grow(self, event: ToolInputDelta, agent: FromAgent | None) -> tuple[CallDisplay, ...]:
        """Handle a piece of an input; shown if the title changes."""
        call = self._calls.get((_get_id(agent), event.id))
        if call is None or call.moment != "input" or len(call.partial) > MAX_PARTIAL_CHARS:
            return ()
        call.partial += event.json
        title = self.present_title(call.tool, parse_partial_input(call.partial))
        if title == call.title:
            return ()
        call.title = title
        return self._step(event.id, call, "input")

    def _end(self, result: ToolResult, agent: FromAgent | None) -> tuple[CallDisplay, ...]:
        key = _get_id(agent), result.id
        if key in self._ended:
            return ()
        call = self._open(result.id, result.tool, None, agent)
        assert call is not None
        self._ended.append(key)
        call.result = result
        shown = self.present_result(result, call.given, title=call.title or None)
        if len(self._calls) > _MAX_KNOWN:
            self._forget(_get_id(agent))
        return (msgspec.structs.replace(shown, **_name_agent(call.agent)),)

    def _end_group(self, agent: FromAgent | None) -> tuple[CallDisplay, ...]:
        """Show the calls of an ended answer as one list, if there are several."""
        shown = self.present_group(_get_id(agent))
        self._forget(_get_id(agent))
        return () if shown is None else (shown,)

    def _forget(self, agent_id: str) -> None:
        """Drop the calls of an agent that have ended."""
        kept: list[str] = []
        for call_id in self._groups.pop(agent_id, []):
            call = self._calls.get((agent_id, call_id))
            if call is not None and call.result is None:
                kept.append(call_id)
            else:
                self._calls.pop((agent_id, call_id), None)
        if kept:
            self._groups[agent_id] = kept

    def _condense(self, call: _ShownCall) -> str:
        if call.result is None:
            return call.title
        return self.present_result(call.result, call.given, title=call.title).headline


def _get_id(agent: FromAgent | None) -> str:
    return "" if agent is None else agent.agent_id


def _name_agent(agent: FromAgent | None) -> dict[str, Any]:
    if agent is None:
        return {}
    return {
        "agent_id": agent.agent_id,
        "agent_type": agent.agent_type,
        "parent_call_id": agent.call_id,
    }


def _mark(result: ToolResult | None) -> str:
    if result is None:
        return "…"
    return "✓" if result.ok else "✗"
