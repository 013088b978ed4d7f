"""Join the parts of one session: settings and arguments in, collaborators out."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec

from handaxe.catalog.catalog import Catalog
from handaxe.catalog.edit_formats import add_edit_formats
from handaxe.config.env_vars import list_excluded_tools
from handaxe.config.project import FILE_SOURCES, Configuration
from handaxe.config.reload import find_mode_problem, refuse_mode
from handaxe.config.trust import MODE
from handaxe.contract.faults import SetupError, describe_error
from handaxe.contract.ports.permission import Classifier, PermissionChanges
from handaxe.contract.ports.settings_store import SettingsStore
from handaxe.contract.tool import Tool
from handaxe.permission.prompts import LimitedClassifier, OnAsk, PermissionBroker
from handaxe.permission.saved_rules import SavedRules
from handaxe.pipeline.context import PipelineContext
from handaxe.rules.grammar import split_rules
from handaxe.rules.modes import list_mode_names, parse_mode
from handaxe.session.permission_state import PermissionState, RuleBehaviour, SourcedRule
from handaxe.tools import BUILTIN, build_loaders

SIMPLE_VARIABLES = ("HANDAXE_SIMPLE", "CLAUDE_CODE_SIMPLE")
"""Set to 1, they choose the preset `simple` where no tools are named."""

OwnTool = Tool[Any] | type[Tool[Any]]
Tools = str | Iterable[str | OwnTool] | None


def build_permission_state(
    configuration: Configuration,
    mode: str | None,
    rules: Mapping[RuleBehaviour, str | Sequence[str]],
    resumed_mode: str | None,
) -> PermissionState:
    """Mode and rules from arguments first, then what a resumed session had, then settings."""
    set_mode = configuration.merged.entries.get(MODE)
    default = set_mode[0].value if set_mode else None
    is_given = set_mode is not None and set_mode[0].origin.file is None
    wanted: object = mode
    if mode is None:
        wanted = (default if is_given else None) or resumed_mode or default or "default"
    chosen = parse_mode(wanted) if isinstance(wanted, str) else None
    if chosen is None:
        names = ", ".join(list_mode_names())
        raise SetupError(f"{wanted!r} is not a permission mode. Modes: {names}.")
    refuse_mode(configuration, chosen)
    texts = configuration.rules("flags")
    only_managed = configuration.settings.allow_managed_permission_rules_only
    for behaviour, given in rules.items():
        if only_managed and behaviour == "allow":
            continue
        listed = split_rules(given) if isinstance(given, str) else _validate_rules(behaviour, given)
        texts += [SourcedRule(text, behaviour, "flags") for text in listed]
    for source in FILE_SOURCES:
        texts += configuration.rules(source)
    state = PermissionState(mode=chosen, rules=texts)
    state.may_grant = lambda: not configuration.settings.allow_managed_permission_rules_only
    state.may_files_grant = lambda: not configuration.unknown_files
    state.may_enter = lambda mode: find_mode_problem(configuration, mode) is None
    return state


def _validate_rules(behaviour: str, given: object) -> Sequence[str]:
    rules = list(cast("Iterable[object]", given)) if isinstance(given, Iterable) else [given]
    wrong = [rule for rule in rules if not isinstance(rule, str)]
    if wrong:
        raise SetupError(f"`{behaviour}` takes rules as texts; {wrong[0]!r} is none.")
    return cast("list[str]", rules)


def build_catalog(
    tools: object, ports: Collection[type[Any]], hides: Callable[[], Callable[[str], bool]]
) -> Catalog:
    """The tools of a session; a built-in one wins over an own one unless that replaces it."""
    given, own = sort_tools(tools)
    names = None if given is None else _resolve_names(given)
    doubles = {tool.name: tool for tool in own if tool.name in BUILTIN}
    stand_ins = {name: tool for name, tool in doubles.items() if tool.replaces_builtin}
    builtin: dict[str, Callable[[], Tool[Any]]] = dict(build_loaders())
    for name, tool in stand_ins.items():
        builtin[name] = partial(_return_tool, tool)
    left_out = list_excluded_tools(os.environ) if names is None else frozenset[str]()
    selected = select_tools(names, BUILTIN) - left_out | stand_ins.keys()
    catalog = Catalog(
        builtin,
        [tool for tool in own if tool.name not in doubles],
        selected=selected,
        ports=ports,
        hides=hides,
    )
    catalog.why_missing = partial(_explain_missing, selected)
    catalog.stand_ins = frozenset(stand_ins)
    catalog.left_out = frozenset(doubles.keys() - stand_ins.keys())
    return catalog


def _explain_missing(selected: Collection[str], name: str) -> str | None:
    """Why a built-in tool is not there, so that nobody looks for it under another name."""
    if name in BUILTIN and name not in selected:
        return "This session was opened without it."
    from handaxe.app.tool_listing import describe_call_shape, find_unavailable_tool

    found = find_unavailable_tool(name)
    return found[1] if found else describe_call_shape(name)


def _resolve_names(given: str | list[str]) -> list[str]:
    """Each name on its own, and those that tools had before as they are today."""
    texts = [given] if isinstance(given, str) else given
    names = [name for text in texts for name in text.replace(",", " ").split()]
    if all(name in BUILTIN or name in PRESETS for name in names):
        return names
    # Only a tool itself knows its old names, and few are asked for by them.
    today = {alias: name for name, load in build_loaders().items() for alias in load().aliases}
    return [today.get(name, name) for name in names]


def _return_tool(tool: Tool[Any]) -> Tool[Any]:
    return tool


def sort_tools(tools: object) -> tuple[str | list[str] | None, list[Tool[Any]]]:
    """The names that select built-in tools, and the own tools that are added."""
    is_simple = any(os.environ.get(name) == "1" for name in SIMPLE_VARIABLES)
    unless_named = "simple" if is_simple else None
    if tools is None or isinstance(tools, str):
        return (unless_named if tools is None else tools), []
    if not isinstance(tools, Iterable):
        raise SetupError(f"`tools` takes a preset, names, or tools; {tools!r} is none of these.")
    names: list[str] = []
    own: list[Tool[Any]] = []
    for item in cast("Iterable[object]", tools):
        if isinstance(item, str):
            names.append(item)
        elif isinstance(item, Tool):
            own.append(_validate_tool(cast("Tool[Any]", item)))
        elif isinstance(item, type) and issubclass(item, Tool):
            own.append(_validate_tool(cast("type[Tool[Any]]", item)()))
        else:
            raise SetupError(
                f"{item!r} is not a tool: give a name, a Tool, or a function with @handaxe.tool."
            )
    if len({tool.name for tool in own}) != len(own):
        raise SetupError("Two own tools have the same name.")
    if len(names) == 1:
        return names[0], own
    return names or unless_named, own


def _validate_tool(tool: Tool[Any]) -> Tool[Any]:
    """The tool, if it says what it is and what its input is."""
    from handaxe.schema.tool_schema import build_input_schema

    name = type(tool).__name__
    try:
        is_object = build_input_schema(tool.args_type).get("type") == "object"
    except (AttributeError, NameError, TypeError, ValueError) as error:
        raise SetupError(f"The input of {name} has no schema: {error}.") from None
    if not is_object:
        wanted = f"class {name}(Tool[MyArgs]), with MyArgs a subclass of ToolArgs"
        raise SetupError(f"The input of {name} is not an object of named fields: {wanted}.")
    try:
        told = cast("object", tool.prompt())
        msgspec.json.encode(tool.input_examples)
    except Exception as error:
        what = f"{type(error).__name__}: {describe_error(error)}"
        raise SetupError(f"What {name} tells a model cannot be had: {what}.") from error
    if not isinstance(told, str):
        raise SetupError(f"`prompt` of {name} gives a text, not {told!r}.")
    return tool


PRESETS: dict[str, tuple[str, ...] | None] = {
    "read-only": ("Glob", "Grep", "Read"),
    "simple": ("Bash", "Read", "Edit"),
    "edit": ("Glob", "Grep", "Read", "Write", "Edit", "NotebookEdit"),
    "full": None,
}
"""A preset's tools by name; None stands for all of them."""
_OTHER_NAMES = {"readonly": "read-only"}


def select_tools(wanted: str | Iterable[str] | None, known: Collection[str]) -> frozenset[str]:
    """The names that presets and names stand for, together; an unknown name is a start error."""
    if wanted is None:
        return frozenset(known)
    names = wanted.replace(",", " ").split() if isinstance(wanted, str) else wanted
    listed: set[str] = set()
    for name in names:
        preset = PRESETS.get(_OTHER_NAMES.get(name, name), (name,))
        listed.update(known if preset is None else preset)
    chosen = add_edit_formats(listed)
    for name in sorted(chosen - set(known)):
        from handaxe.text.escape import find_closest_name

        near = find_closest_name(name, [*known, *PRESETS])
        hint = f" Did you mean {near!r}?" if near else ""
        raise SetupError(
            f"There is no tool or preset named {name!r}.{hint} "
            f"Tools: {', '.join(sorted(known))}. Presets: {', '.join(PRESETS)}."
        )
    return frozenset(chosen)


def connect_permission_prompts(
    context: PipelineContext,
    state: PermissionState,
    on_ask: OnAsk | None,
    classifier: Classifier | None,
    configuration: Configuration,
) -> None:
    """Let a session ask whoever its host named."""
    if on_ask is not None:
        if not callable(on_ask):
            raise SetupError(
                f"`on_ask` must be an async function taking a PermissionRequest; got {on_ask!r}."
            )
        keeper = partial(SavedRules, configuration, context.offers[SettingsStore])
        context.asker = PermissionBroker(
            on_ask,
            state,
            keeper,
            lambda: configuration.settings.agents.question_deadline_s,
            lambda: context.offers.get(PermissionChanges),
        )
    if classifier is not None:
        if not callable(classifier):
            raise SetupError(
                "`classifier` must be an async function taking a PermissionRequest; "
                f"got {classifier!r}."
            )
        context.classifier = LimitedClassifier(classifier)
