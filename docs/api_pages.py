"""Write the reference of the Python API and of the tool contract; `docs/generate.py` calls it."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import handaxe

SOURCE = Path(handaxe.__file__).parent
PUBLIC = {
    "handaxe": "sessions, agents, own tools, permission",
    "handaxe.events": "what happens in a session and in a running agent",
    "handaxe.content": "blocks of results, blocks for people, messages of a conversation",
    "handaxe.models": "choose, write, script, record and replay models",
    "handaxe.sessions": "the sessions on disk: list, read, fork, rewind, rename, delete",
    "handaxe.testing": "checks and scenarios for your own tools",
}
"""Modules with names for programs; `handaxe.adapters` has one more for each framework."""
FRAMEWORKS = ("agno", "autogen", "langchain", "openai_agents", "pydantic_ai")
GROUPS = {
    "Sessions": (
        "Session", "connect", "Connection", "CallPresenter", "Settings", "sessions",
    ),
    "Calls and results": ("ToolCall", "ToolResult", "result_schema", "image_message"),
    "Agents": ("Agent", "AgentConnection", "Price", "SpawnLimits", "open_tasks"),
    "Permission": ("Allow", "Ask", "Deny", "Defer", "PermissionRequest", "Outcome"),
    "Own tools": (
        "tool", "Tool", "ToolArgs", "ToolContext", "Effects", "State", "ToolFault",
        "PathSubject", "CommandSubject", "HostSubject", "TextSubject",
    ),
    "What tools can use": (
        "Files", "Workdir", "ReadLedger", "Conversation", "SessionInfo", "ElicitationForm",
    ),
    "Serving": ("serve_mcp",),
    "Errors": ("SetupError",),
}  # fmt: skip
"""The names of `handaxe` by subject; what is missing here stands under More."""
LISTED_ELSEWHERE = {
    "Settings": "Its fields are the keys of [Settings](settings.md).",
    "Tool": "[The tool contract](tool-contract.md) has all facts and methods.",
    "ToolContext": "[The tool contract](tool-contract.md#context) has its methods.",
    "sessions": "See [`handaxe.sessions`](#handaxesessions).",
}
MADE_BY_SESSIONS = (
    "ToolContext", "Workdir", "ReadLedger", "Conversation", "Connection", "AgentConnection",
    "CallPresenter",
)  # fmt: skip
DERIVED = ("args_type", "reach", "states")
HIDDEN = {
    "is_of_call", "ToolContext.mute", "ToolContext.close", "ReadLedger.replay", "Workdir.place",
    "Workdir.move",
}  # fmt: skip
"""Members that the runtime needs and programs do not."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Found(NamedTuple):
    """Where a name is defined."""

    module: str
    node: ast.stmt


class Member(NamedTuple):
    """A row of a table: a field, property or method with what it is for."""

    shown: str
    meaning: str


# Pages


def api_page() -> Iterator[str]:
    """Every public name, module by module."""
    yield "# Python API\n"
    yield "## Public modules\n"
    yield "Import from these modules only. A change of their names stands in the changelog. Every"
    yield "other module of handaxe is internal and may change in any release.\n"
    yield "| module | contents |"
    yield "|---|---|"
    for module, text in PUBLIC.items():
        yield f"| [`{module}`](#{_to_anchor(module)}) | {text} |"
    names = ", ".join(f"`{name}`" for name in FRAMEWORKS)
    guide = "[Frameworks](../guides/frameworks.md)"
    yield f"| `handaxe.adapters.NAME` | `tools_for` for an agent framework: {names}; see {guide} |"
    for module in PUBLIC:
        yield f"\n## {module}\n"
        yield _join(import_module(module).__doc__.partition("Belongs here:")[0])
        if module == "handaxe.events":
            yield from _events_section(module)
            continue
        groups = _group_names(module)
        for title, names in groups.items():
            if len(groups) > 1:
                yield f"\n### {title}"
            for name in names:
                yield from _name_section(module, name, "####" if len(groups) > 1 else "###")


def contract_page() -> Iterator[str]:
    """All that a tool has and can reach."""
    contract = _find_class("handaxe", "Tool")
    yield "# The tool contract\n"
    yield "What a tool says of itself, what it may override, and what its calls can reach. How to"
    yield "use it is in [Write your own tools](../guides/own-tools.md).\n"
    yield "## Facts\n"
    yield "Class attributes of `Tool`, and options of `@tool`. Only a docstring is needed: `name`"
    yield "is that of the class or function unless you set it, and the type of the input comes"
    yield "from `Tool[Args]` or from the signature.\n"
    facts = [field for field in _list_fields(contract) if not _is_derived(field[0])]
    yield from _rows(
        ("fact", "type", "default", "meaning"),
        [(f"`{name}`", kind, default, text) for name, kind, default, text in facts],
    )
    yield "\n## Methods\n"
    yield "Only `call` is needed. `args` is the input as its type, `ctx` the [context](#context).\n"
    yield from _members_table(_list_functions(contract))
    yield "\n## @tool\n"
    yield from _signature_block("handaxe", "tool")
    yield _docstring(_locate("handaxe", "tool").node)
    yield "\nEvery fact above is an option. So are these methods, as functions without `self`:"
    methods = import_module("handaxe.tools.function_tool")._METHODS
    yield f"{', '.join(f'`{name}`' for name in sorted(methods))}."
    yield "\n## Input\n"
    yield from _class_text("handaxe", "ToolArgs")
    yield "\n## State\n"
    yield from _class_text("handaxe", "State")
    yield "\n## Context\n"
    yield from _class_text("handaxe", "ToolContext")
    yield "\n## Ports\n"
    yield "What can stand in `uses` (the call needs it) or `may_use` (the call can do without),"
    yield "beside subclasses of `State` and the types of objects given to `Session(provide=...)`."
    yield "`ctx[Type]` hands it out; in a function a parameter of that type gets it. Built-in tools"
    yield "use more ports; those are internal."
    for name in GROUPS["What tools can use"][:-1]:
        yield f"\n### {name}\n"
        yield from _class_text("handaxe", name)
    yield "\n### Settings\n"
    yield "The settings in force, by the keys of [Settings](settings.md)."
    for title, names in (
        ("Effects", ("Effects",)),
        ("Subjects of permission", ("PathSubject", "CommandSubject", "HostSubject", "TextSubject")),
        ("Result", ("ToolResult",)),
        ("Faults", ("ToolFault",)),
        ("Decisions", ("Allow", "Ask", "Deny")),
        ("Forms", ("ElicitationForm",)),
    ):
        yield f"\n## {title}"
        for name in names:
            if len(names) > 1:
                yield f"\n### {name}"
            yield ""
            yield from _class_text("handaxe", name)
    yield "\nDisplay blocks are those of [`handaxe.content`](api.md#handaxecontent)."


def agent_events() -> Iterator[str]:
    """The events that only a running agent has, as sections of the page of events."""
    events = import_module("handaxe.events")
    to_type = import_module("handaxe.contract.events").to_event_type
    of_session = {event.__name__ for event in events.Event.__args__}
    for event in events.AgentEvent.__args__:
        if event.__name__ not in of_session:
            yield f"\n### {to_type(event)}\n"
            node = _find_class("handaxe.events", event.__name__)
            yield f"{_first(_docstring(node))} (`{event.__name__}`)"
            if rows := _list_fields(node):
                yield ""
                yield from _rows(
                    ("field", "type", "meaning"),
                    [(f"`{name}`", kind, text) for name, kind, _, text in rows],
                )


# Parts of a page


def _group_names(module: str) -> dict[str, list[str]]:
    names: list[str] = list(import_module(module).__all__)
    if module != "handaxe":
        return {"": sorted(names, key=lambda name: (not name[0].isupper(), name))}
    groups = {title: [name for name in group if name in names] for title, group in GROUPS.items()}
    known = {name for group in groups.values() for name in group}
    groups["More"] = [name for name in names if name not in known]
    return {title: group for title, group in groups.items() if group}


def _events_section(module: str) -> Iterator[str]:
    public = import_module(module)
    unions = {name: {one.__name__ for one in getattr(public, name).__args__}
              for name in ("Event", "AgentEvent")}  # fmt: skip
    listed = unions["Event"] | unions["AgentEvent"] | set(unions)
    yield "\n[Events](events.md) has all fields. `Event` is any event of a session:\n"
    yield ", ".join(f"`{name}`" for name in sorted(unions["Event"]))
    yield "\n`AgentEvent` is any of these:\n"
    yield ", ".join(f"`{name}`" for name in sorted(unions["AgentEvent"]))
    for name in public.__all__:
        if name not in listed:
            yield from _name_section(module, name, "###")


def _name_section(module: str, name: str, heading: str) -> Iterator[str]:
    yield f"\n{heading} {name}\n"
    found = _locate(module, name)
    if name in LISTED_ELSEWHERE:
        if isinstance(found.node, ast.ClassDef):
            yield _docstring(found.node)
            yield ""
        yield LISTED_ELSEWHERE[name]
    elif isinstance(found.node, ast.ClassDef):
        yield from _class_text(module, name)
    elif isinstance(found.node, FUNCTIONS):
        yield from _signature_block(module, name)
        yield _docstring(found.node)
    else:
        assert isinstance(found.node, ast.Assign)
        yield f"```text\n{name} = {ast.unparse(found.node.value)}\n```"


def _class_text(module: str, name: str) -> Iterator[str]:
    """What a class is, how it is made, and its members."""
    classes = _list_bases(module, name)
    functions = [function for node in reversed(classes) for function in _list_functions(node)]
    found = [field for node in reversed(classes) for field in _list_fields(node)]
    fields = {field[0]: field for field in found}.values()
    has_init = [f for node in classes for f in node.body
                if isinstance(f, FUNCTIONS) and f.name == "__init__"]  # fmt: skip
    if has_init and name not in MADE_BY_SESSIONS:
        yield f"```text\n{_format_signature(has_init[0], name)}\n```\n"
    yield _docstring(classes[0])
    if fields:
        yield ""
        yield from _rows(
            ("field", "type", "default", "meaning"),
            [(f"`{field}`", kind, default, text) for field, kind, default, text in fields],
        )
    if functions:
        yield ""
        yield from _members_table({one.name: one for one in functions}.values())


def _members_table(functions: Iterable[Function]) -> Iterator[str]:
    yield from _rows(
        ("member", "meaning"),
        [(f"`{_format_member(one)}`", _join(_docstring(one))) for one in functions],
    )


def _signature_block(module: str, name: str) -> Iterator[str]:
    node = _locate(module, name).node
    assert isinstance(node, FUNCTIONS)
    yield f"```text\n{_format_signature(node, name)}\n```\n"


# Reading the source


@cache
def _parse(module: str) -> ast.Module:
    place = SOURCE.joinpath(*module.split(".")[1:])
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def _locate(module: str, name: str) -> Found:
    """The definition of a name that a module has, also where it only imports it."""
    tree = _parse(module)
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)) and node.name == name and node in tree.body:
            found = node
        elif isinstance(node, ast.Assign) and node in tree.body:
            if any(isinstance(one, ast.Name) and one.id == name for one in node.targets):
                found = node
        elif isinstance(node, ast.ImportFrom) and found is None and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name and node.module.startswith("handaxe"):
                    return _locate(node.module, alias.name)
    if found is not None:
        return Found(module, found)
    if f"{module}.{name}" in PUBLIC:
        return Found(f"{module}.{name}", _parse(f"{module}.{name}").body[0])
    raise SystemExit(f"The public name {module}.{name} is not found in the source.")


def _find_class(module: str, name: str) -> ast.ClassDef:
    node = _locate(module, name).node
    assert isinstance(node, ast.ClassDef)
    return node


def _list_bases(module: str, name: str) -> list[ast.ClassDef]:
    """The class, and the private ones of its module that it is made of."""
    home, node = _locate(module, name)
    assert isinstance(node, ast.ClassDef)
    found = [node]
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id.startswith("_"):
            found += _list_bases(home, base.id)
    return found


def _list_functions(node: ast.ClassDef) -> list[Function]:
    """Public methods and properties; of overloads the one that does the work."""
    shown = [f for f in node.body if isinstance(f, FUNCTIONS) and not f.name.startswith("_")]
    shown = [one for one in shown if f"{node.name}.{one.name}" not in HIDDEN]
    setters = ("overload", "setter")
    return [f for f in shown if not any(ast.unparse(d).endswith(setters) for d in f.decorator_list)]


def _list_fields(node: ast.ClassDef) -> list[tuple[str, str, str, str]]:
    """Name, type, default and meaning of the fields of a class."""
    found: list[tuple[str, str, str, str]] = []
    for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, FUNCTIONS) and statement.name == "__init__":
            found += _list_attributes(statement)
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if statement.target.id.startswith("_") or statement.target.id in HIDDEN:
            continue
        kind, text = _read_kind(statement.annotation)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = str(after.value.value)
        default = "" if statement.value is None else f"`{ast.unparse(statement.value)}`"
        found.append((statement.target.id, f"`{kind}`", default, _join(text)))
    return found


def _list_attributes(init: Function) -> Iterator[tuple[str, str, str, str]]:
    """The attributes that an initialiser sets and says something about."""
    kinds = {one.arg: one.annotation for one in (*init.args.args, *init.args.kwonlyargs)}
    for statement, after in zip(init.body, [*init.body[1:], None], strict=True):
        target: ast.expr | None = None
        kind: ast.expr | None = None
        if isinstance(statement, ast.AnnAssign):
            target, kind = statement.target, statement.annotation
        elif isinstance(statement, ast.Assign):
            target = statement.targets[0]
            kind = kinds.get(statement.value.id) if isinstance(statement.value, ast.Name) else None
        is_told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(target, ast.Attribute) and is_told and not target.attr.startswith("_"):
            text = str(after.value.value)
            yield (
                target.attr,
                f"`{_format_type(kind)}`" if kind is not None else "",
                "",
                _join(text),
            )


def _read_kind(annotation: ast.expr) -> tuple[str, str]:
    """The type of a field, and the text that stands in `Annotated`."""
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name):
        if annotation.value.id == "ClassVar":
            return _read_kind(annotation.slice)
        if annotation.value.id == "Annotated" and isinstance(annotation.slice, ast.Tuple):
            kind, *facts = annotation.slice.elts
            texts = [fact.value for fact in facts if isinstance(fact, ast.Constant)]
            return _format_type(kind), str(texts[0]) if texts else ""
    return _format_type(annotation), ""


def _is_derived(fact: str) -> bool:
    return fact in DERIVED or fact.startswith("has_")


# Formatting


def _format_type(node: ast.expr) -> str:
    """An annotation, also where it stands as a text."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if is_text else ast.unparse(node)


def _list_arguments(node: Function, *, typed: bool) -> list[str]:
    """The arguments of a function as its signature has them, without `self`."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults))
    shown = [
        _format_argument(argument, default, typed=typed)
        for argument, default in zip(plain, [*defaults, *given.defaults], strict=True)
    ]
    if given.posonlyargs:
        shown.insert(len(given.posonlyargs), "/")
    if given.vararg is not None:
        shown.append(f"*{_format_argument(given.vararg, None, typed=typed)}")
    elif given.kwonlyargs:
        shown.append("*")
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        shown.append(_format_argument(argument, default, typed=typed))
    if given.kwarg is not None:
        shown.append(f"**{_format_argument(given.kwarg, None, typed=typed)}")
    return shown[1:] if plain and plain[0].arg in ("self", "cls") else shown


def _format_argument(argument: ast.arg, default: ast.expr | None, *, typed: bool) -> str:
    kind = _format_type(argument.annotation) if typed and argument.annotation is not None else ""
    shown = f"{argument.arg}: {kind}" if kind else argument.arg
    if default is None:
        return shown
    return f"{shown} = {ast.unparse(default)}" if kind else f"{shown}={ast.unparse(default)}"


def _format_signature(node: Function, name: str) -> str:
    """A signature with types, one argument per line where it is long."""
    arguments = _list_arguments(node, typed=True)
    returns = ""
    if node.returns is not None and node.name != "__init__":
        returns = f" -> {_format_type(node.returns)}"
    word = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    line = f"{word}{name}({', '.join(arguments)}){returns}"
    if len(line) <= 100:
        return line
    return f"{word}{name}(\n" + "".join(f"    {one},\n" for one in arguments) + f"){returns}"


def _format_member(node: Function) -> str:
    """A member in one line: a property by its type, a method by its arguments."""
    returns = f" -> {_format_type(node.returns)}" if node.returns is not None else ""
    if any(ast.unparse(one).endswith("property") for one in node.decorator_list):
        return f"{node.name}{returns.replace(' ->', ':')}"
    word = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    is_made = any(ast.unparse(one) == "classmethod" for one in node.decorator_list)
    arguments = ", ".join(_list_arguments(node, typed=False))
    return f"{word}{node.name}({arguments}){'' if is_made else returns}"


def _docstring(node: Any) -> str:
    return ast.get_docstring(node) or ""


def _first(text: str) -> str:
    return _join(text.partition("\n\n")[0])


def _join(text: str) -> str:
    return " ".join(text.split())


def _to_anchor(title: str) -> str:
    return "".join(c for c in title.lower() if c.isalnum() or c in "_- ").replace(" ", "-")


def _rows(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        cells = (cell.replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(cells)} |"
