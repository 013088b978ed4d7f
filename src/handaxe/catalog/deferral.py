"""Deferred tools: only their names are sent until they are searched for.

Sent tools keep their positions: the initial ones stay, and loaded ones are appended in the order of
loading.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from handaxe.catalog.catalog import Catalog
from handaxe.contract.faults import NotLoaded
from handaxe.contract.ports.tools import FoundTool, ToolIndex
from handaxe.contract.tool import Tool
from handaxe.schema.tool_schema import build_input_schema
from handaxe.session.loaded_tools import LoadedTools

if TYPE_CHECKING:
    from handaxe.catalog.tool_ranking import ToolEntry
    from handaxe.text.framing import Framed


SEARCH_TOOL = "ToolSearch"

AnyTool = Tool[Any]
When = Literal["auto", "always", "never"]


class Deferral(ToolIndex):
    """The tools of a session, split into sent and deferred ones."""

    def __init__(
        self,
        catalog: Catalog,
        loaded: LoadedTools,
        *,
        when: When = "auto",
        limit_chars: int,
        is_native: bool = False,
    ) -> None:
        self._catalog = catalog
        self._loaded = loaded
        self._when = when
        self._limit_chars = limit_chars
        self._sizes: dict[int, int] = {}
        self.is_native = is_native
        """Whether a provider with its own tool search does it."""
        self.is_on = False
        """Whether tools are deferred."""
        self._has_many_own = False
        """Whether the host's own tools are deferred, because they alone exceed the limit."""
        self._beside_sent: tuple[str, ...] = ()

    def sent(self) -> list[AnyTool]:
        """The tools to send to a model, in an order that only grows."""
        offered = self._catalog.list_offered()
        if not self._is_used(offered):
            return offered
        steady: list[AnyTool] = []
        by_name: dict[str, AnyTool] = {}
        for tool in offered:
            if self._can_wait(tool):
                by_name[tool.name] = tool
            else:
                steady.append(tool)
        self._beside_sent = tuple(name for name in by_name if name not in self._loaded)
        return steady + [by_name[name] for name in self._loaded.names if name in by_name]

    @property
    def beside_sent(self) -> tuple[str, ...]:
        """The deferred tools at the last request."""
        return self._beside_sent

    def waiting(self) -> tuple[str, ...]:
        """The names of all tools that are not loaded."""
        return tuple(tool.name for tool in self.list_deferred() if tool.name not in self._loaded)

    def list_deferred(self) -> list[AnyTool]:
        """All tools that are or were deferred; empty if all are sent."""
        offered = self._catalog.list_offered() if self.is_on else []
        return [tool for tool in offered if self._can_wait(tool)]

    def load_found(self, names: Iterable[str]) -> None:
        """Mark tools as loaded that a provider's own search found."""
        deferred = {tool.name for tool in self.list_deferred()}
        self._loaded.load(name for name in names if name in deferred)

    @property
    def loaded(self) -> tuple[str, ...]:
        """The names of deferred tools that were loaded."""
        return self._loaded.names

    def load_called(self, tool: AnyTool) -> bool:
        """Load a called tool; returns whether it was not loaded before."""
        is_new = self.is_on and self._can_wait(tool) and tool.name not in self._loaded
        if is_new:
            self._loaded.load((tool.name,))
        return is_new

    def refuse_unloaded(self, tool: AnyTool, problems: Sequence[str]) -> None:
        """Add the tool's schema to the fault for an invalid call of a tool that was not loaded."""
        if self.load_called(tool):
            description = self._catalog.describe(tool)
            raise NotLoaded(tool.name, description, _read_schema(tool), problems)

    async def find(self, query: str, max_results: int) -> tuple[FoundTool, ...]:
        """The best matches among all deferrable tools, and those that the query names."""
        from handaxe.catalog.tool_ranking import parse_selected, rank_tools

        named = {name.casefold() for name in (*parse_selected(query), query.strip())}
        candidates = {
            tool.name: tool
            for tool in self._catalog.list_offered()
            if self._can_wait(tool) or tool.name.casefold() in named
        }
        entries = [_make_entry(tool, self._catalog.describe(tool)) for tool in candidates.values()]
        names = rank_tools(query, entries, max_results)
        new = set(self._loaded.load(name for name in names if self._can_wait(candidates[name])))
        return tuple(
            FoundTool(
                name=name,
                description=self._catalog.describe(candidates[name]),
                input_schema=_read_schema(candidates[name]),
                was_loaded=name not in new,
            )
            for name in names
        )

    def explain_unknown(self, query: str) -> tuple[str, ...]:
        """A sentence for each unknown name in `select:`."""
        from handaxe.catalog.tool_ranking import parse_selected
        from handaxe.text.escape import find_closest_name

        offered = {tool.name.casefold(): tool.name for tool in self._catalog.list_offered()}
        told: list[str] = []
        for name in (name for name in parse_selected(query) if name.casefold() not in offered):
            near = find_closest_name(name, offered.values())
            told.append(
                f"There is no tool {name!r}." + (f" Did you mean {near!r}?" if near else "")
            )
        return tuple(told)

    def is_shown(self, edit_tool: str) -> bool:
        """Whether this is the shown editing tool."""
        return self._catalog.is_shown(edit_tool)

    def _is_used(self, offered: list[AnyTool]) -> bool:
        """Whether tools are deferred; once on, it stays on, so that positions do not change."""
        if not self._has_many_own:
            own = [tool for tool in offered if self._is_own(tool)]
            is_long = bool(own) and sum(map(self._size, own)) > self._limit_chars
            self._has_many_own = bool(own) and (is_long or self._when == "always")
        self.is_on = self.is_on or self._is_worth_it(offered)
        return self.is_on

    def _is_worth_it(self, offered: list[AnyTool]) -> bool:
        if self._when == "never" or not any(tool.name == SEARCH_TOOL for tool in offered):
            return False
        if self._when == "always":
            return any(self._can_wait(tool) for tool in offered)
        return sum(self._size(tool) for tool in offered) > self._limit_chars

    def _can_wait(self, tool: AnyTool) -> bool:
        """Whether a tool is deferrable: by declaration, as a server's, or as one of many."""
        if tool.always_load or tool.name == SEARCH_TOOL:
            return False
        if tool.defer is not None:
            return tool.defer
        return _is_foreign(tool) or (self._has_many_own and self._is_own(tool))

    def _is_own(self, tool: AnyTool) -> bool:
        return not _is_foreign(tool) and not self._catalog.is_builtin(tool.name)

    def _size(self, tool: AnyTool) -> int:
        size = self._sizes.get(id(tool))
        if size is None:
            schema = msgspec.json.encode(_read_schema(tool))
            size = self._sizes[id(tool)] = (
                len(tool.name) + len(self._catalog.describe(tool)) + len(schema)
            )
        return size


def format_deferred_tools(names: Sequence[str]) -> "Framed":
    """The deferred names for the model: grouped by server."""
    from handaxe.text.framing import frame

    by_server: dict[str, list[str]] = {}
    for name in names:
        server, _, tool = name.rpartition("__")
        by_server.setdefault(server, []).append(tool)
    lines = [
        f"{server}__: {' '.join(tools)}" if server else " ".join(tools)
        for server, tools in by_server.items()
    ]
    head = "Tools that a search for tools loads; a name follows its server's prefix:"
    return frame("available-deferred-tools", head, *lines)


def _is_foreign(tool: AnyTool) -> bool:
    return tool.name.startswith("mcp__")


def _make_entry(tool: AnyTool, prompt: str) -> "ToolEntry":
    from handaxe.catalog.tool_ranking import ToolEntry

    properties: dict[str, Any] = _read_schema(tool).get("properties", {})
    return ToolEntry(tool.name, tool.search_hint, prompt, tuple(properties))


def _read_schema(tool: AnyTool) -> dict[str, Any]:
    return build_input_schema(tool.args_type)
