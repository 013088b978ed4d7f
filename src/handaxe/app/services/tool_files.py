"""Own tools from Python files, modules and entry points of installed packages.

The user named or installed this code.
"""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from handaxe.app.services.tool_selection import ENTRY_POINT_GROUP, sort_tools
from handaxe.contract.faults import SetupError, describe_error
from handaxe.contract.tool import Tool

AnyTool = Tool[Any]
T = TypeVar("T")


def load_tools(source: str) -> list[AnyTool]:
    """The tools of `FILE.py`, of a module, or of `module:name`."""
    if source.endswith(".py"):
        path = Path(os.path.abspath(Path(source).expanduser()))
        return _collect_tools(_load_file(path), source)
    module, _, name = source.partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise SetupError(f"{source!r} is neither a Python file nor module:name.")
    return _load_named(module, name, source)


def load_installed_tools() -> tuple[list[AnyTool], list[str]]:
    """The tools of all entry points, and a sentence for each one that cannot be loaded."""
    from importlib.metadata import entry_points

    tools: dict[str, AnyTool] = {}
    problems: list[str] = []
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda one: one.value):
        package = f"the package {point.dist.name}" if point.dist else "a package"
        try:
            found = sort_tools(_load_named(point.module, point.attr, point.value))[1]
        except SetupError as error:
            problems.append(f"Tools of {package} are ignored: {error}")
            continue
        problems += [
            f"The tool {tool.name!r} of {package} is ignored: "
            "another installed package has a tool of that name."
            for tool in found
            if tools.setdefault(tool.name, tool) is not tool
        ]
    return list(tools.values()), problems


def _load_named(module: str, name: str, source: str) -> list[AnyTool]:
    found: object = _run_foreign(lambda: importlib.import_module(module), source)
    for part in filter(None, name.split(".")):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise SetupError(f"{source}: {module} has no {name!r}.") from None
    return _collect_tools(found, source)


@cache
def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise SetupError(f"{path}: there is no such file.")
    # Let it import modules of its directory, after installed ones.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    is_free = path.stem.isidentifier() and path.stem not in sys.modules
    name = path.stem if is_free else f"{path.stem}@{path.parent}"
    spec = importlib.util.spec_from_file_location(name, path)
    loader = spec and spec.loader
    if spec is None or loader is None:
        raise SetupError(f"{path} is not a Python file.")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        _run_foreign(lambda: loader.exec_module(module), str(path))
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _run_foreign(load: Callable[[], T], source: str) -> T:
    """The result of `load`; any exception becomes one sentence."""
    try:
        # Standard output is for results and protocols.
        with redirect_stdout(sys.stderr):
            return load()
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        what = f"{type(error).__name__}: {describe_error(error)}".rstrip(".")
        where = _describe_line(error, source)
        raise SetupError(f"{source} cannot be loaded{where}: {what}.") from error


def _describe_line(error: BaseException, path: str) -> str:
    """The failing line of the file, if known."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    if isinstance(error, SyntaxError) and error.filename == path:
        lines.append(error.lineno)
    return f" (line {lines[-1]})" if lines and lines[-1] else ""


def _collect_tools(found: object, source: str) -> list[AnyTool]:
    """The tools of a module, a list or a single value."""
    if isinstance(found, ModuleType):
        tools = _list_module_tools(found, source)
        if not tools:
            raise SetupError(
                f"{source} has no tools. Decorate an async function with @handaxe.tool, "
                "or write a subclass of handaxe.Tool."
            )
        return tools
    members = cast("Iterable[object]", found if isinstance(found, list | tuple) else (found,))
    return [_make_tool(member, source) for member in members]


def _list_module_tools(module: ModuleType, source: str) -> list[AnyTool]:
    """The values in `__all__`, or the public tools that the module defines."""
    listed: object = getattr(module, "__all__", None)
    names = (
        [name for name in vars(module) if not name.startswith("_")]
        if listed is None
        else _read_listed_names(module, listed, source)
    )
    values: list[Any] = [getattr(module, name, None) for name in names]
    objects: dict[int, AnyTool] = {id(one): one for one in values if _is_tool(one)}
    # Prefer an object that the module made of a class.
    made = {type(tool) for tool in objects.values()}
    kinds: dict[type[AnyTool], None] = dict.fromkeys(filter(_is_tool_class, values))
    kinds = {
        kind: None
        for kind in kinds
        if kind not in made and (listed is not None or kind.__module__ == module.__name__)
    }
    return [*objects.values(), *(_make_tool(kind, source) for kind in kinds)]


def _read_listed_names(module: ModuleType, listed: object, source: str) -> list[str]:
    names = cast("Iterable[object]", listed if isinstance(listed, list | tuple) else (listed,))
    if any(name is listed or not isinstance(name, str) for name in names):
        raise SetupError(f"`__all__` of {source} is a list of names, not {listed!r:.100}.")
    known = [str(name) for name in names]
    if missing := [name for name in known if not hasattr(module, name)]:
        raise SetupError(f"`__all__` of {source} has undefined names: {', '.join(missing)}.")
    return known


def _is_tool(value: object) -> bool:
    return isinstance(value, Tool)


def _is_tool_class(value: Any) -> bool:  # noqa: ANN401 - any value of a module
    """Whether it is a concrete tool class."""
    is_tool = isinstance(value, type) and issubclass(value, Tool)
    return is_tool and any("call" in kind.__dict__ for kind in value.__mro__ if kind is not Tool)


def _make_tool(given: object, source: str) -> AnyTool:
    if isinstance(given, Tool):
        return cast("AnyTool", given)
    if isinstance(given, type) and issubclass(given, Tool):
        return _run_foreign(cast("type[AnyTool]", given), source)
    raise SetupError(
        f"{source}: {given!r:.100} is not a tool. Give a handaxe.Tool, a function with "
        "@handaxe.tool, or a list of these."
    )
