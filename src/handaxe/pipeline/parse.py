"""Parse a call: find the tool, validate the input, resolve its paths.

No state changes and nothing outside the roots is read. A program's mistake in a call gives a failed
result, like a model's, never an exception.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.effects import OWN_STATE, Effects, Resource
from handaxe.contract.faults import BadInput
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.files import ResolvedPath
from handaxe.contract.tool import State, Tool
from handaxe.pipeline.context import PipelineContext
from handaxe.rules.tool_families import resolve_tool_alias
from handaxe.schema.validate import InputProblems, read_input

if TYPE_CHECKING:
    from handaxe.pipeline.file_arguments import FilledCall


class ParsedCall(msgspec.Struct, frozen=True):
    """A call that was parsed."""

    call: ToolCall
    tool: Tool[object]
    args: object
    effects: Effects
    subjects: tuple[Subject, ...]
    places: dict[str, ResolvedPath]
    """The targets of the call's paths, by their spelling."""
    notes: tuple[str, ...]
    told: dict[str, Any] = {}
    """Fields that the tool adds for listeners."""
    asked: ToolCall | None = None
    """The original call, if file arguments were replaced."""

    @property
    def other_names(self) -> tuple[str, ...]:
        """Other names of the tool that hooks may use."""
        return (*self.tool.aliases, resolve_tool_alias(self.tool.name))

    def derived(self) -> dict[str, Any]:
        """Additional fields for listeners: resolved paths and the tool's own fields."""
        derived: dict[str, Any] = dict(self.told)
        for subject in self.subjects:
            if isinstance(subject, PathSubject) and subject.field:
                derived[subject.field] = self.places[subject.path].path
        return derived


def normalize_call(call: object, new_id: Callable[[], str]) -> ToolCall:
    """The call, or a failing one if its id is missing or its parts have wrong types."""
    if not isinstance(call, ToolCall):
        return ToolCall(new_id(), _get_tool_name(call), call)
    # What the types promise a program may not keep.
    given_id, tool = cast("tuple[object, object]", (call.id, call.tool))
    if given_id and given_id.__class__ is tool.__class__ is str:
        return call
    return ToolCall(str(given_id or new_id()), _get_tool_name(tool), call.input)


def make_call(call_id: str, tool: object, given: object, arguments: Mapping[str, Any]) -> ToolCall:
    """One call with an input, keyword arguments, or both."""
    if given is None:
        given = arguments
    elif isinstance(given, Mapping):
        given = {**cast("Mapping[str, Any]", given), **arguments}
    return ToolCall(call_id, _get_tool_name(tool), given)


def make_calls(calls: object, new_id: Callable[[], str]) -> list[ToolCall]:
    """Several calls from pairs of name and input."""
    is_many = isinstance(calls, Iterable) and not isinstance(calls, str | bytes | Mapping)
    listed = cast("Iterable[object]", calls if is_many else (calls,))
    return [_parse_call(item, new_id()) for item in listed]


def _parse_call(item: object, call_id: str) -> ToolCall:
    is_pair = isinstance(item, tuple | list)
    parts = tuple(cast("Iterable[object]", item if is_pair else (item,)))
    if len(parts) == 2:
        return ToolCall(call_id, _get_tool_name(parts[0]), parts[1])
    is_name = len(parts) == 1 and isinstance(parts[0], str)
    return (
        ToolCall(call_id, _get_tool_name(parts[0]), {})
        if is_name
        else ToolCall(call_id, _get_tool_name(item), item)
    )


def parse(call: ToolCall, context: PipelineContext) -> ParsedCall:
    """Find the tool, validate its input, resolve its paths.

    Raises:
        ToolFault: the call is not valid.
    """
    tool, renamed = context.catalog.find(call.tool)
    filled = _fill_handles(call, tool.name, context) if _can_hold_handles(call.input) else None
    given = call if filled is None else filled.call
    try:
        args, coerced = read_input(tool.args_type, given.input)
    except InputProblems as problems:
        if context.deferral is not None:
            context.deferral.refuse_unloaded(tool, problems.problems)
        raise BadInput(tool.name, problems.problems) from None
    if context.deferral is not None and context.deferral.is_on:
        context.deferral.load_called(tool)
    notes = (renamed, *coerced) if renamed else tuple(coerced)
    effects = tool.effects_of(args)
    subjects = tool.subjects(args)
    places: dict[str, ResolvedPath] = {}
    for subject in subjects:
        if isinstance(subject, PathSubject):
            _locate(subject.path, places, context)
    effects = _resolve_resources(effects, places, context)
    if filled is None:
        return ParsedCall(call, tool, args, effects, subjects, places, notes)
    effects = msgspec.structs.replace(effects, reads=(*effects.reads, *filled.reads))
    notes = (*filled.notes, *notes)
    return ParsedCall(given, tool, args, effects, subjects, places, notes, asked=call)


def compute_order_effects(parsed: ParsedCall, context: PipelineContext) -> Effects:
    """The effects that order a call; a hard-linked file counts under all its names."""
    effects = parsed.effects
    if parsed.tool.states:
        own = Resource("state", OWN_STATE)
        effects = msgspec.structs.replace(effects, writes=(*effects.writes, own))
    if effects.writes_everything:
        spared = find_spared_state(parsed.tool.reach)
        spared = spared.difference([what.name for what in (*effects.reads, *effects.writes)])
        effects = msgspec.structs.replace(effects, spared=spared)
    if not effects.writes:
        return effects
    for place in parsed.places.values():
        if place.is_final and context.files.has_other_names(place.real):
            # The places of those names are unknown, so any call may affect them.
            return msgspec.structs.replace(effects, writes_everything=True)
    return effects


@lru_cache(maxsize=1024)
def find_spared_state(reach: frozenset[type[Any]]) -> frozenset[str]:
    """State that calls of tools with only these ports never change.

    State that permission or the tool list depends on is not included: its order always counts.
    """
    from handaxe.contract.ports.agents import Agents
    from handaxe.contract.ports.shell import Shell
    from handaxe.contract.ports.task_list import TaskStore
    from handaxe.session.jobs import Jobs
    from handaxe.session.todos import Todos
    from handaxe.session.turn_overrides import BriefMode

    ports: dict[str, tuple[type[Any], ...]] = {
        "agent messages": (Agents,),
        "brevity": (BriefMode,),
        "jobs": (Jobs, Shell, Agents),
        OWN_STATE: (State,),
        "tasks": (TaskStore,),
        "todos": (Todos,),
    }
    return frozenset(
        name
        for name, types in ports.items()
        if not any(
            issubclass(asked, port) or issubclass(port, asked) for asked in reach for port in types
        )
    )


def to_input_dict(value: object) -> dict[str, Any]:
    """A call's input as a dict; empty for other types."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _can_hold_handles(call_input: object) -> bool:
    """Whether an input contains anything but plain values."""
    if call_input.__class__ is not dict:
        return False
    for value in cast("dict[str, object]", call_input).values():
        if value.__class__ is dict or value.__class__ is list:
            return True
    return False


def _fill_handles(call: ToolCall, tool: str, context: PipelineContext) -> "FilledCall | None":
    from handaxe.pipeline.file_arguments import FilledCall

    filled = FilledCall(call, tool, context)
    return filled if filled.notes else None


def replace_subjects(
    parsed: ParsedCall, effects: Effects, subjects: tuple[Subject, ...]
) -> ParsedCall:
    """The call with paths that its effects name through session state."""
    places = {
        subject.path: ResolvedPath(subject.path, subject.path, is_final=True)
        for subject in subjects
        if isinstance(subject, PathSubject)
    }
    return msgspec.structs.replace(parsed, effects=effects, subjects=subjects, places=places)


def resolve_effects(parsed: ParsedCall, context: PipelineContext) -> ParsedCall:
    """The call with its effects at the targets of all paths."""
    effects = _resolve_resources(parsed.tool.effects_of(parsed.args), parsed.places, context)
    return msgspec.structs.replace(parsed, effects=effects)


def _locate(path: str, places: dict[str, ResolvedPath], context: PipelineContext) -> ResolvedPath:
    place = places.get(path)
    if place is None:
        absolute = context.workdir.resolve(path)
        place = places[path] = context.files.locate(absolute, context.workdir.roots)
    return place


def _resolve_resources(
    effects: Effects, places: dict[str, ResolvedPath], context: PipelineContext
) -> Effects:
    """The effects with every path resolved; the links count too."""
    if not effects.reads and not effects.writes:
        return effects
    reads = writes = _resolve_ends(effects.reads, places, context)
    if effects.writes != effects.reads:
        writes = _resolve_ends(effects.writes, places, context)
    return msgspec.structs.replace(effects, reads=reads, writes=writes)


def _resolve_ends(
    resources: tuple[Resource, ...], places: dict[str, ResolvedPath], context: PipelineContext
) -> tuple[Resource, ...]:
    found: list[Resource] = []
    for resource in resources:
        if resource.kind != "path":
            found.append(resource)
            continue
        place = _locate(resource.name, places, context)
        found.append(Resource("path", place.real))
        if place.path != place.real:
            found.append(Resource("path", place.path))
    return tuple(found)


def _get_tool_name(tool: object) -> str:
    """A tool name for lookup; for other types a name that no tool has."""
    return str.__str__(tool) if isinstance(tool, str) else f"<{type(tool).__name__}>"
