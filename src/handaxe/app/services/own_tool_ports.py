"""The ports of own tools: objects of the program by type, and their state."""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, cast

from handaxe.app.tool_listing import explain_missing_port
from handaxe.catalog.catalog import Catalog
from handaxe.contract.events import StateChanged
from handaxe.contract.faults import SetupError, UnknownTool, describe_error
from handaxe.contract.ports.agents import Agents
from handaxe.contract.tool import Tool, is_of_call
from handaxe.session.own_state import OwnState
from handaxe.session.port_registry import PortRegistry

AnyTool = Tool[Any]
Provided = Sequence[object] | Mapping[type[Any], object]
"""Objects for own tools; by type if several would match."""
_Provided = tuple[type[Any] | None, object]


def bind_provided_objects(
    tools: Sequence[AnyTool],
    provided: object,
    ports: PortRegistry,
    announce: Callable[[StateChanged], object],
    saved: Mapping[str, Any],
) -> None:
    """Offer the provided objects and state under the types that tools use.

    Raises SetupError for an invalid or ambiguous object.
    """
    objects = _read_provided(provided, ports)
    states = {state for tool in tools for state in tool.states}
    if states:
        ports[OwnState] = own = OwnState(announce, saved)
        own.open(states)
    for port in dict.fromkeys(port for tool in tools for port in (*tool.uses, *tool.may_use)):
        if port in states or is_of_call(port):
            # Each call gets its own object; this only checks that there is one.
            ports[port] = port
        elif port not in ports:
            for found in _find_fitting(port, objects):
                ports[port] = found


def find_tool_problems(catalog: Catalog) -> list[str]:
    """Why own tools are not offered, and which aliases mean another tool."""
    ports = cast("PortRegistry", catalog.ports)
    problems: list[str] = []
    for tool in catalog.own_tools:
        if tool.name in catalog.left_out:
            continue
        about = f"program's own tool {tool.name!r}"
        why = explain_not_offered(tool, ports)
        # Agents are added after the session's warnings.
        if why is not None and Agents not in tool.uses:
            problems.append(f"The {about} is not offered. {why}")
        problems += [
            f"The alias {alias!r} of the {about} means the tool {owner!r}."
            for alias in tool.aliases
            if (owner := _find_owner(alias, catalog)) not in {None, tool.name}
        ]
    problems += catalog.prompt_problems
    return [*problems, *(ports[OwnState].problems if OwnState in ports else ())]


def _find_owner(alias: str, catalog: Catalog) -> str | None:
    try:
        return catalog.find(alias)[0].name
    except UnknownTool:
        return None


def explain_not_offered(tool: AnyTool, ports: Container[type[Any]]) -> str | None:
    """Why an own tool cannot be offered, or None."""
    for port in tool.uses:
        if port not in ports:
            return explain_missing_port(port)
    try:
        is_enabled = tool.enabled()
    except Exception as error:  # noqa: BLE001 - code of somebody else
        return f"Its `enabled` failed ({type(error).__name__}: {describe_error(error)})."
    return None if is_enabled else "Its `enabled` method disables it here."


def _read_provided(provided: object, ports: Container[object]) -> list[_Provided]:
    """The objects, each with its type if one is given."""
    if isinstance(provided, Mapping):
        named = list(cast("Mapping[object, object]", provided).items())
        for kind, one in named:
            if not isinstance(kind, type):
                raise SetupError(f"`provide`: {kind!r:.100} is not a type.")
            if kind in ports:
                raise SetupError(f"`provide`: {kind.__name__} is provided by the session.")
            if not _is_instance(one, kind) and not getattr(kind, "_is_protocol", False):
                raise SetupError(f"`provide`: {one!r:.100} is not a {kind.__name__}.")
        return cast("list[_Provided]", named)
    if not isinstance(provided, list | tuple):
        raise SetupError(
            f"`provide` takes a list of objects, or objects by type; not {provided!r:.100}."
        )
    objects = cast("Sequence[object]", provided)
    for one in objects:
        if one is None or isinstance(one, type):
            raise SetupError(f"`provide` takes objects; {one!r:.100} is not one.")
    return [(None, one) for one in objects]


def _find_fitting(port: type[Any], objects: list[_Provided]) -> list[object]:
    """The object for a type: given for it, of exactly that type, or of a subclass."""
    named = [one for kind, one in objects if kind is port]
    exact = [one for kind, one in objects if kind is None and type(one) is port]
    below = [one for kind, one in objects if kind is None and _is_instance(one, port)]
    found = named or exact or below
    if len(found) > 1:
        names = " and ".join(sorted(type(one).__name__ for one in found))
        raise SetupError(
            f"`provide`: {names} both match {port.__name__}. "
            f"Choose one: provide={{{port.__name__}: ...}}."
        )
    return found


def _is_instance(one: object, kind: type[Any]) -> bool:
    try:
        return isinstance(one, kind)
    except TypeError:
        # A protocol without members for instances.
        return False
