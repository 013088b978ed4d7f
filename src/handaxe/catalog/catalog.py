"""The tools of a session: all of them, the offered ones, and lookup by name or alias.

Built-in tools are loaders, so a session that calls one tool imports one tool.
"""

import logging
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from handaxe.catalog.edit_formats import EDIT_TOOLS, OTHERS, find_hidden_formats
from handaxe.contract.faults import UnknownTool, describe_error
from handaxe.contract.tool import Tool
from handaxe.session.port_registry import PortRegistry
from handaxe.text.sanitize import escape_surrogates

if TYPE_CHECKING:
    from handaxe.contract.ports.conversation import SessionInfo

AnyTool = Tool[Any]
_log = logging.getLogger("handaxe.catalog")


class Catalog:
    """All tools of one session.

    Offered tools are those that are selected, have their ports, are enabled and not hidden by a
    deny rule. The list has the built-ins sorted by name, then the external tools sorted by name. An
    external tool cannot take a built-in name. Only one of the editing tools is shown
    (`edit_formats`); the others are found by name.
    """

    def __init__(
        self,
        builtin: Mapping[str, Callable[[], AnyTool]],
        external: Iterable[AnyTool] = (),
        *,
        selected: Collection[str],
        ports: Collection[type[Any]],
        hides: Callable[[], Callable[[str], bool]] = lambda: _is_never_hidden,
    ) -> None:
        """`hides` returns the function that tells which names are hidden now."""
        self._builtin = builtin
        self._builtin_names = sorted(builtin)
        self._selected = selected
        self.ports = ports
        self._hides = hides
        self._loaded: dict[str, AnyTool] = {}
        self._found: dict[str, tuple[AnyTool, str | None]] = {}
        self._allows: Callable[[str], bool] = lambda _: True
        self.edit_tool = EDIT_TOOLS[OTHERS]
        """Which editing tool is shown."""
        self._sources: dict[str, tuple[AnyTool, ...]] = {"": tuple(external)}
        self._own = self._joined()
        self.stand_ins: frozenset[str] = frozenset()
        """Names of built-ins that are replaced by tools of the host."""
        self.left_out: frozenset[str] = frozenset()
        """Own tools that were dropped because a built-in has their name."""
        self.own_tools: tuple[AnyTool, ...] = ()
        """The host's tools, offered or not."""
        self._external = ChainMap(self._own)
        self.session_info: Callable[[], SessionInfo] | None = None
        """Returns the session data that prompts can depend on."""
        self._prompts: dict[int, str] = {}
        self.prompt_problems: list[str] = []
        """Problems with prompts that depend on the session."""
        self.why_missing: Callable[[str], str | None] = lambda _: None
        """An explanation for a missing tool, if known."""

    def narrow(self, allows: Callable[[str], bool], ports: Collection[type[Any]]) -> "Catalog":
        """The same tools limited by `allows`, for an agent with its own ports."""
        copy = Catalog(self._builtin, selected=self._selected, ports=ports, hides=self._hides)
        # Shared, so that changes of servers also apply to agents. An agent's own tools take
        # precedence and are visible only to it.
        copy._external, copy._loaded = ChainMap(copy._own, *self._external.maps), self._loaded
        copy._allows = lambda name: self._allows(name) and allows(name)
        copy.edit_tool = self.edit_tool
        copy.why_missing = self.why_missing
        copy.session_info, copy._prompts = self.session_info, self._prompts
        copy.prompt_problems = self.prompt_problems
        return copy

    def describe(self, tool: AnyTool) -> str:
        """The prompt of a tool; one that depends on the session is created once.

        A changing prompt would invalidate the model's cache of everything after it.
        """
        if self.session_info is None or not tool.has_session_prompt:
            return tool.prompt()
        prompt = self._prompts.get(id(tool))
        if prompt is None:
            prompt = self._prompts[id(tool)] = self._make_prompt(tool, self.session_info())
        return prompt

    def _make_prompt(self, tool: AnyTool, info: "SessionInfo") -> str:
        try:
            prompt = cast("object", tool.prompt_for(info))
            if isinstance(prompt, str):
                return prompt
            problem = f"gave {prompt!r:.100}, not a text"
        except Exception as error:  # noqa: BLE001 - one bad tool keeps no other from being offered
            _log.exception("`prompt_for` of %s failed", tool.name)
            problem = f"failed ({type(error).__name__}: {describe_error(error)})"
        self.prompt_problems.append(
            f"`prompt_for` of the tool {tool.name!r} {problem}. Its plain prompt is used instead."
        )
        return tool.prompt()

    def ask_what_is_hidden(self, hides: Callable[[], Callable[[str], bool]]) -> None:
        """Replace the function that tells which tools are hidden."""
        self._hides = hides

    def add(self, tool: AnyTool) -> None:
        """Offer another external tool; replaces one with the same name."""
        if tool.name not in self._builtin:
            kept = (known for known in self._sources[""] if known.name != tool.name)
            self.replace_external("", (*kept, tool))

    def replace_external(self, source: str, tools: Iterable[AnyTool]) -> None:
        """Replace the external tools of one source, such as a server."""
        self._sources[source] = tuple(tools)
        joined = self._joined()
        # In place: the catalogs of sub-agents look at the same table.
        self._own.clear()
        self._own.update(joined)
        self._found.clear()

    def keep_only(self, allows: Callable[[str], bool]) -> None:
        """Offer only these tools from now on."""
        self._allows = allows
        self._found.clear()

    def has(self, name: str) -> bool:
        """Whether a tool with this exact name is known, offered or not."""
        return name in self._builtin or name in self._external

    def is_builtin(self, name: str) -> bool:
        """Whether the tool with this name is built in."""
        return name in self._builtin

    def names(self) -> frozenset[str]:
        """Every known tool, offered or not; loads nothing."""
        return frozenset((*self._builtin, *self._external))

    def can_offer(self, *builtin: str) -> bool:
        """Whether one of these may be offered, or an external tool with unknown effects.

        Loads nothing.
        """
        external = self._external.items()
        names = [name for name in builtin if name in self._selected]
        names += [name for name, tool in external if tool.effects.writes_everything]
        hides = self._hides()
        return any(self._allows(name) and not hides(name) for name in names)

    def is_shown(self, edit_tool: str) -> bool:
        """Whether this is the shown editing tool.

        Loads nothing. Rules treat all editing tools as one, so only the shown one needs a check.
        """
        for name in (self.edit_tool, *EDIT_TOOLS.values()):
            if name in self._selected and self._allows(name):
                return name == edit_tool and not self._hides()(name)
        return False

    def find(self, name: str) -> tuple[AnyTool, str | None]:
        """The tool with that name, and a note if the name is an old one.

        A tool that a deny rule hides is still found, so that the call is refused with that rule.
        """
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._find(name)
        return found

    def list_visible_names(self) -> frozenset[str]:
        """The names of the offered tools."""
        return frozenset(tool.name for tool in self.list_offered())

    def list_offered(self) -> list[AnyTool]:
        """The offered tools in the model's order."""
        builtin = [self._load(name) for name in self._builtin_names]
        external = [self._external[name] for name in sorted(self._external)]
        hides = self._hides()
        offered = [
            tool
            for tool in (*builtin, *external)
            if self._is_offered(tool) and not hides(tool.name)
        ]
        left_out = find_hidden_formats({tool.name for tool in offered}, self.edit_tool)
        return [tool for tool in offered if tool.name not in left_out]

    def list_offered_names(self, used_ports: Mapping[str, Collection[str]]) -> list[str]:
        """The names of `list_offered`.

        `used_ports` has the full names of the ports that built-in tools use: such a tool need not
        be loaded to know whether it is on offer.
        """
        hides = self._hides()
        builtin = [
            name
            for name in self._builtin_names
            if name in self._selected
            and not hides(name)
            and self._can_offer_unloaded(name, used_ports.get(name))
        ]
        external = [
            name
            for name in sorted(self._external)
            if self._is_offered(self._external[name]) and not hides(name)
        ]
        names = [*builtin, *external]
        left_out = find_hidden_formats(set(names), self.edit_tool)
        return [name for name in names if name not in left_out]

    def _can_offer_unloaded(self, name: str, used_ports: Collection[str] | None) -> bool:
        if used_ports is None or not isinstance(self.ports, PortRegistry):
            return self._is_offered(self._load(name))
        return self._allows(name) and all(map(self.ports.has_name, used_ports))

    def _joined(self) -> dict[str, AnyTool]:
        """External tools by name; the earlier source wins."""
        joined: dict[str, AnyTool] = {}
        for source in sorted(self._sources):
            for tool in self._sources[source]:
                if tool.name not in self._builtin:
                    joined.setdefault(tool.name, tool)
        return joined

    def _find(self, name: str) -> tuple[AnyTool, str | None]:
        if name in self._builtin or name in self._external:
            tool = self._external.get(name) or self._load(name)
            if self._is_offered(tool):
                return tool, None
        offered = self.list_offered()
        left_out = (self._load(n) for n in EDIT_TOOLS.values() if n in self._builtin)
        for tool in (*offered, *filter(self._is_offered, left_out)):
            if name in tool.aliases:
                return tool, f"{name} is now called {tool.name}."
        names = [tool.name for tool in offered]
        from handaxe.text.escape import find_closest_name

        near, why = find_closest_name(name[:100], names), self._explain_missing(name)
        raise UnknownTool(escape_surrogates(name)[:100], near, names, why)

    def _explain_missing(self, name: str) -> str | None:
        if self.has(name) and not self._allows(name):
            return "This agent's type, or the agent that started it, excludes the tool."
        return self.why_missing(name)

    def _load(self, name: str) -> AnyTool:
        tool = self._loaded.get(name)
        if tool is None:
            tool = self._loaded[name] = self._builtin[name]()
        return tool

    def _is_offered(self, tool: AnyTool) -> bool:
        return (
            (tool.name in self._selected or tool.name in self._external)
            and self._allows(tool.name)
            and self._has_ports(tool)
            and _is_enabled(tool)
        )

    def _has_ports(self, tool: AnyTool) -> bool:
        for port in tool.uses:  # noqa: SIM110 - asked for every tool in every turn
            if port not in self.ports:
                return False
        return True


def _is_enabled(tool: AnyTool) -> bool:
    try:
        return tool.enabled()
    except Exception:  # noqa: BLE001 - one bad tool keeps no other from being offered
        _log.exception("%s failed to tell whether it is enabled", tool.name)
        return False


def _is_never_hidden(_: str) -> bool:
    return False
