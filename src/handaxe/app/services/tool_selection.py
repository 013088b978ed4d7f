"""Which tools a session has: presets, names and own tools."""

import os
import sys
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, cast

import msgspec

from handaxe.catalog.catalog import Catalog
from handaxe.catalog.edit_formats import add_edit_formats
from handaxe.config.env_vars import TASKS_VARIABLE, is_env_true, list_excluded_tools
from handaxe.contract.faults import SetupError, describe_error
from handaxe.contract.tool import Tool
from handaxe.tools import BUILTIN, build_loaders

SIMPLE_VARIABLES = ("HANDAXE_SIMPLE", "CLAUDE_CODE_SIMPLE")
"""Variables that choose the preset `simple` if no tools are named."""

ENTRY_POINT_GROUP = "handaxe.tools"
"""The entry point group of installed tools."""

OwnTool = Tool[Any] | type[Tool[Any]]
Tools = str | Iterable[str | OwnTool] | None


def build_catalog(
    tools: object, ports: Collection[type[Any]], hides: Callable[[], Callable[[str], bool]]
) -> Catalog:
    """The tools of a session; a built-in one comes before an own one that does not replace it."""
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
    catalog.own_tools = tuple(own)
    catalog.why_missing = partial(_explain_missing, selected, catalog, _explain_selection(given))
    catalog.stand_ins = frozenset(stand_ins)
    catalog.left_out = frozenset(doubles.keys() - stand_ins.keys())
    return catalog


def has_installed_tools() -> bool:
    """Whether an installed package has tools, found without loading it.

    Directories on the path for other reasons, such as a project's, do not count.
    """
    header = f"[{ENTRY_POINT_GROUP}]".encode()
    for directory in sys.path:
        if not directory.endswith(("site-packages", "dist-packages")):
            continue
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info"):
                try:
                    with open(  # noqa: PTH123 - many of them, before every command
                        f"{directory}/{name}/entry_points.txt", "rb", 0
                    ) as file:
                        if header in file.read():
                            return True
                except OSError:
                    continue
    return False


def _explain_selection(given: str | list[str] | None) -> str:
    """The reason why a built-in tool is not selected."""
    variables = [name for name in SIMPLE_VARIABLES if is_env_true(name)] if given else []
    if given is None or (given == "simple" and variables):
        return f"The variable {[*variables, TASKS_VARIABLE][0]} excludes it."
    return "The selection of tools (`--tools`, `--bare`, `tools=`) excludes it."


def _explain_missing(
    selected: Collection[str], catalog: Catalog, selection: str, name: str
) -> str | None:
    """Why a tool is missing, so that the model does not try other names."""
    for tool in catalog.own_tools:
        if tool.name == name:
            from handaxe.app.services.own_tool_ports import explain_not_offered

            return explain_not_offered(tool, catalog.ports)
    if name in BUILTIN and name not in selected:
        return selection
    from handaxe.app.tool_listing import describe_call_shape, find_unavailable_tool

    found = find_unavailable_tool(name)
    return found[1] if found else describe_call_shape(name)


def _resolve_names(given: str | list[str]) -> list[str]:
    """Single names, with former names replaced by current ones."""
    texts = [given] if isinstance(given, str) else given
    names = [name for text in texts for name in text.replace(",", " ").split()]
    if all(name in BUILTIN or name in PRESETS for name in names):
        return names
    # Aliases need the tool itself, and few requests use them.
    today = {alias: name for name, load in build_loaders().items() for alias in load().aliases}
    return [today.get(name, name) for name in names]


def _return_tool(tool: Tool[Any]) -> Tool[Any]:
    return tool


def sort_tools(tools: object) -> tuple[str | list[str] | None, list[Tool[Any]]]:
    """The names of built-in tools, and the own tools to add."""
    is_simple = any(is_env_true(name) for name in SIMPLE_VARIABLES)
    unless_named = "simple" if is_simple else None
    if tools is None or isinstance(tools, str):
        return (unless_named if tools is None else tools), []
    if not isinstance(tools, Iterable):
        raise SetupError(f"`tools` must be a preset, names or tools; got {tools!r}.")
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
                f"{item!r} is not a tool. Give a name, a Tool, or a function with @handaxe.tool."
            )
    own_names = [tool.name for tool in own]
    if len(set(own_names)) != len(own_names):
        twice = max(own_names, key=own_names.count)
        raise SetupError(f"Two own tools have the name {twice!r}. Give one of them another `name`.")
    if len(names) == 1:
        return names[0], own
    return names or unless_named, own


def _validate_tool(tool: Tool[Any]) -> Tool[Any]:
    """The tool, after checking its prompt and schema."""
    from handaxe.schema.tool_schema import build_input_schema

    name = type(tool).__name__
    try:
        is_object = build_input_schema(tool.args_type).get("type") == "object"
    except (AttributeError, NameError, TypeError, ValueError) as error:
        raise SetupError(f"The input of {name} has no schema: {error}.") from None
    if not is_object:
        wanted = f"class {name}(Tool[MyArgs]), with MyArgs a subclass of ToolArgs"
        raise SetupError(f"The input of {name} must be an object with named fields: {wanted}.")
    try:
        told = cast("object", tool.prompt())
        msgspec.json.encode(tool.input_examples)
    except Exception as error:
        what = f"{type(error).__name__}: {describe_error(error)}"
        raise SetupError(f"The prompt or an example of {name} failed: {what}.") from error
    if not isinstance(told, str):
        raise SetupError(f"`prompt` of {name} must return a string; got {told!r}.")
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
    """The names of all presets and names; an unknown name is an error."""
    if wanted is None:
        return frozenset(known)
    names = wanted.replace(",", " ").split() if isinstance(wanted, str) else wanted
    listed: set[str] = set()
    for name in names:
        preset = PRESETS.get(_OTHER_NAMES.get(name, name), (name,))
        listed.update(known if preset is None else preset)
    chosen = add_edit_formats(listed)
    for name in sorted(chosen - set(known)):
        from handaxe.text.escape import format_suggestion

        hint = format_suggestion(name, [*known, *PRESETS])
        raise SetupError(
            f"There is no tool or preset named {name!r}.{hint} "
            f"Tools: {', '.join(sorted(known))}. Presets: {', '.join(PRESETS)}."
        )
    return frozenset(chosen)
