"""The cost of tools and hooks over many sessions, from their logs.

Tokens are the estimates that results and definitions carry; nothing here knows a price.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from handaxe.contract.events import CallFinished, CallStarted, HookRan, SessionStarted, ToolsOffered
from handaxe.storage.event_log import LoggedEvents
from handaxe.storage.home import get_sessions_directory
from handaxe.storage.sessions import LOG_NAME
from handaxe.text.tokens import estimate_tokens

_SERVER = "mcp__"


class ToolCost(msgspec.Struct):
    """The cost of one tool, or of all tools of one MCP server."""

    name: str
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    """The tokens of the inputs that the model wrote."""
    result_tokens: int = 0
    """The size of the results for the model."""
    duration_ms: float = 0.0
    definition_tokens: int = 0
    """The tokens that its definition adds to every request with it."""
    sessions: int = 0
    """In how many sessions it was called."""
    offered_in: int = 0
    """In how many sessions it was in the list for the model."""

    @property
    def tokens(self) -> int:
        """The tokens that its calls added to conversations."""
        return self.input_tokens + self.result_tokens


class HookCost(msgspec.Struct):
    """The cost of one hook at one event."""

    name: str
    event: str
    runs: int = 0
    failed: int = 0
    duration_ms: float = 0.0
    slowest_ms: float = 0.0
    waited_ms: float = 0.0
    """The part of the time that calls had to wait for it."""


class Statistics(msgspec.Struct, frozen=True):
    """Costs by tool and by server, the dearest first."""

    sessions: int
    tools: tuple[ToolCost, ...]
    servers: tuple[ToolCost, ...]
    never_used: tuple[ToolCost, ...]
    """Offered to a model and never called, the longest definition first."""
    hooks: tuple[HookCost, ...] = ()
    """Sorted by waiting time, the longest first."""


def collect_statistics(
    home: Path, *, root: str | None = None, since: float = 0.0, session_id: str | None = None
) -> Statistics:
    """The cost of tools in the sessions of a project, or of all, since a point in time."""
    costs: dict[str, ToolCost] = {}
    hooks: dict[tuple[str, str], HookCost] = {}
    counted = 0
    for log in get_sessions_directory(home).glob(f"{session_id or '*'}/{LOG_NAME}"):
        if log.stat().st_mtime < since or (root is not None and _read_root(log) != root):
            continue
        counted += 1
        _Count(costs, hooks).take([log, *log.parent.glob(f"agents/*/{LOG_NAME}")])
    tools = sorted(costs.values(), key=lambda cost: (-cost.tokens, -cost.calls, cost.name))
    unused = [cost for cost in tools if cost.offered_in and not cost.calls]
    return Statistics(
        sessions=counted,
        tools=tuple(cost for cost in tools if cost.calls),
        servers=_sum_servers(tools),
        never_used=tuple(sorted(unused, key=lambda cost: (-cost.definition_tokens, cost.name))),
        hooks=tuple(sorted(hooks.values(), key=lambda cost: (-cost.waited_ms, cost.name))),
    )


class _Count:
    """Adds the logs of one session, its agents' included."""

    def __init__(self, costs: dict[str, ToolCost], hooks: dict[tuple[str, str], HookCost]) -> None:
        self._costs = costs
        self._hooks = hooks
        self._called: set[str] = set()
        self._offered: set[str] = set()

    def take(self, logs: Iterable[Path]) -> None:
        for log in logs:
            for _, event in LoggedEvents(log):
                match event:
                    case CallStarted():
                        self._start(event)
                    case CallFinished():
                        self._finish(event)
                    case ToolsOffered():
                        self._offer(event)
                    case HookRan():
                        self._run_hook(event)
                    case _:
                        pass
        for name in self._called:
            self._costs[name].sessions += 1
        for name in self._offered:
            self._costs[name].offered_in += 1

    def _start(self, event: CallStarted) -> None:
        cost = self._get_cost(event.tool)
        cost.calls += 1
        cost.input_tokens += estimate_tokens(msgspec.json.encode(event.input).decode())
        self._called.add(event.tool)

    def _finish(self, event: CallFinished) -> None:
        cost = self._get_cost(event.result.tool)
        cost.failed += not event.result.ok
        cost.result_tokens += event.result.tokens
        cost.duration_ms += event.result.duration_ms

    def _offer(self, event: ToolsOffered) -> None:
        for name, tokens in event.definitions.items():
            cost = self._get_cost(name)
            cost.definition_tokens = max(cost.definition_tokens, tokens)
            self._offered.add(name)

    def _run_hook(self, event: HookRan) -> None:
        key = (event.event, event.hook)
        cost = self._hooks.setdefault(key, HookCost(event.hook, event.event))
        cost.runs += 1
        cost.failed += event.outcome in {"failed", "timed_out"}
        cost.duration_ms += event.duration_ms
        cost.slowest_ms = max(cost.slowest_ms, event.duration_ms)
        cost.waited_ms += 0.0 if event.in_background else event.duration_ms

    def _get_cost(self, name: str) -> ToolCost:
        return self._costs.setdefault(name, ToolCost(name))


def _sum_servers(tools: Iterable[ToolCost]) -> tuple[ToolCost, ...]:
    found: dict[str, ToolCost] = {}
    for tool in tools:
        if not tool.name.startswith(_SERVER):
            continue
        name = tool.name.removeprefix(_SERVER).partition("__")[0]
        server = found.setdefault(name, ToolCost(name))
        server.calls += tool.calls
        server.failed += tool.failed
        server.input_tokens += tool.input_tokens
        server.result_tokens += tool.result_tokens
        server.duration_ms += tool.duration_ms
        server.definition_tokens += tool.definition_tokens
        server.sessions = max(server.sessions, tool.sessions)
        server.offered_in = max(server.offered_in, tool.offered_in)
    return tuple(sorted(found.values(), key=lambda cost: (-cost.tokens, cost.name)))


def _read_root(log: Path) -> str | None:
    started: Iterator[SessionStarted] = (
        event for _, event in LoggedEvents(log) if isinstance(event, SessionStarted)
    )
    first = next(started, None)
    return first.root if first is not None else None
