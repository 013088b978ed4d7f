"""Write the parts of the documentation that the code already says.

`python docs/generate.py` writes them, `--check` only names what is stale (exit code 1).
"""

import argparse
import ast
import configparser
import json
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from api_pages import agent_events, api_page, contract_page

import handaxe
from handaxe.app.services.tool_selection import PRESETS
from handaxe.catalog.edit_formats import EDIT_TOOLS, OTHERS, load_profiles
from handaxe.config.settings import Settings
from handaxe.contract.faults import TemplateFault, ToolFault
from handaxe.contract.tool import Tool
from handaxe.frontends.cli import exit_codes as exits
from handaxe.frontends.cli.agent_page import AGENT_PAGE
from handaxe.frontends.cli.arguments import SESSION_GROUPS, Argument, CommandPage, OptionGroup
from handaxe.frontends.cli.command_pages import PAGES
from handaxe.frontends.mcp_server.tool_list import SERVED, prepare_definitions
from handaxe.schema.tool_schema import build_input_schema, build_output_schema
from handaxe.text.tokens import estimate_tokens
from handaxe.tools import build_loaders

ROOT = Path(__file__).parent.parent
SOURCE = Path(handaxe.__file__).parent
NOTICE = "<!-- Written by docs/generate.py. Change the code, then run it again. -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, name stale files")
    check = parser.parse_args().check
    stale = {path: text for path, text in pages().items() if _read(path) != text}
    for path, text in stale.items():
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        print(f"{'stale' if check else 'written'}: {path.relative_to(ROOT)}")
    if check and stale:
        print("Run `uv run python docs/generate.py`.", file=sys.stderr)
    return 1 if check and stale else 0


def pages() -> dict[Path, str]:
    """Every generated file with the text it should have."""
    reference = ROOT / "docs" / "reference"
    made: dict[str, Callable[[], Iterator[str]]] = {
        "tools": tools_page,
        "faults": faults_page,
        "events": events_page,
        "settings": settings_page,
        "cli": cli_page,
        "edit-formats": edit_formats_page,
        "api": api_page,
        "tool-contract": contract_page,
    }
    texts = {reference / f"{name}.md": _page(page()) for name, page in made.items()}
    texts[reference / "result.schema.json"] = json.dumps(handaxe.result_schema(), indent=2) + "\n"
    served = {*SERVED, *EDIT_TOOLS.values()}
    prepared = prepare_definitions(
        load() for name, load in build_loaders().items() if name in served
    )
    texts[SOURCE / "frontends" / "mcp_server" / "tool_definitions.json"] = (
        json.dumps(msgspec.to_builtins(prepared), indent=1, ensure_ascii=False) + "\n"
    )
    for path, sections in (
        (ROOT / "README.md", {"map": map_section}),
        (
            ROOT / "docs" / "architecture.md",
            {"layers": layers_section, "packages": packages_section},
        ),
    ):
        text = _read(path)
        for name, section in sections.items():
            text = _filled(text, name, "\n".join(section()))
        texts[path] = text
    return texts


# Tools


def tools_page() -> Iterator[str]:
    yield "# Tools\n"
    yield "The built-in tools, as a model is told about them. `handaxe tools NAME` shows the same"
    yield "with the JSON schemas; `session.tools(provider)` gives those of the input to a program."
    yield "`result.data` of a successful call has the shape that is shown for each tool; what a"
    yield "failed call gives depends on its code. Later versions may add fields.\n"
    yield from _table(
        ("preset", "tools"),
        [
            (f"`{name}`", "all" if names is None else ", ".join(names))
            for name, names in PRESETS.items()
        ],
    )
    yield '\nChoose one with `Session(tools="read-only")` or `--tools read-only`.'
    for name, load in sorted(build_loaders().items()):
        yield from _tool(name, load())


def _tool(name: str, tool: Tool[Any]) -> Iterator[str]:
    yield f"\n## {name}\n"
    yield tool.prompt()
    yield ""
    schema = build_input_schema(tool.args_type)
    required = schema.get("required", [])
    rows = [
        (f"`{field}`", _type_of(given), "yes" if field in required else "", _described(given))
        for field, given in schema.get("properties", {}).items()
    ]
    yield from _table(("input", "type", "required", "meaning"), rows)
    yield from _data(tool)
    limit = tool.max_result_chars
    size = "bounds its own result" if limit == inf else f"at most {limit:,} characters, then stored"
    yield f"\n- Result: {size}."
    yield f"- Reaches: {', '.join(f'`{port.__name__}`' for port in tool.uses) or 'nothing'}."
    if tool.may_use:
        yield f"- May reach: {', '.join(f'`{port.__name__}`' for port in tool.may_use)}."
    if tool.aliases:
        yield f"- Also known as: {', '.join(f'`{alias}`' for alias in tool.aliases)}."
    yield f"- Module: `{type(tool).__module__}`."


def _data(tool: Tool[Any]) -> Iterator[str]:
    """What `result.data` of a successful call holds, one table for each shape of it."""
    schema = build_output_schema(tool.output_type)
    if schema is None:
        return
    shapes: list[dict[str, Any]] = schema.get("anyOf", [schema])
    defs: dict[str, dict[str, Any]] = schema.get("$defs", {})
    for number, given in enumerate(shapes):
        shape = defs[given["$ref"].rpartition("/")[2]] if "$ref" in given else given
        lead = "`result.data`" if number == 0 else "or"
        about = shape.get("description", "") if len(shapes) > 1 else ""
        yield f"\n{lead}{': ' if about else ':'}{about}\n"
        yield from _table(("data", "type", "always", "meaning"), _data_rows(shape, "", defs))


def _data_rows(
    shape: dict[str, Any], prefix: str, defs: dict[str, dict[str, Any]]
) -> list[tuple[str, ...]]:
    """A row for each field, and below it one for each field of the object that it holds."""
    rows: list[tuple[str, ...]] = []
    required = shape.get("required", [])
    fields = shape.get("properties", {}).items()
    for field, given in sorted(fields, key=lambda one: one[0] not in required):
        inner, path = given, f"{prefix}{field}"
        while True:
            if "$ref" in inner:
                inner = defs[inner["$ref"].rpartition("/")[2]]
            elif "anyOf" in inner:
                inner = next(one for one in inner["anyOf"] if one.get("type") != "null")
            elif inner.get("type") == "array" and "items" in inner:
                inner, path = inner["items"], f"{path}[]"
            else:
                break
        is_object = bool(inner.get("properties"))
        meaning = given.get("description", "")
        if not meaning and is_object:
            meaning = inner.get("description", "")
        always = "yes" if field in required else ""
        rows.append((f"`{prefix}{field}`", _data_type(given, defs), always, meaning))
        if is_object:
            rows += _data_rows(inner, f"{path}.", defs)
    return rows


def _data_type(given: dict[str, Any], defs: dict[str, dict[str, Any]]) -> str:
    if "$ref" in given:
        return _data_type(defs[given["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in given:
        return " or ".join(_data_type(one, defs) for one in given["anyOf"])
    if "enum" in given:
        return " or ".join(f"`{value}`" for value in given["enum"])
    kind = given.get("type", "any")
    kinds = [kind] if isinstance(kind, str) else list(kind)
    if kinds == ["array"]:
        return f"list of {_data_type(given.get('items', {}), defs)}"
    return " or ".join(kinds)


def _type_of(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"] if value is not None)
    if "anyOf" in schema:
        kinds = [_type_of(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(kinds)
    kind = schema.get("type", "any")
    kinds = [kind] if isinstance(kind, str) else [one for one in kind if one != "null"]
    if kinds == ["array"]:
        return f"list of {_type_of(schema.get('items', {}))}"
    return " or ".join(kinds)


def _described(schema: dict[str, Any]) -> str:
    text = schema.get("description", "")
    default = schema.get("default")
    if default is None or default == "":
        return text
    return f"{text} Default: `{msgspec.json.encode(default).decode()}`."


# Edit formats


def edit_formats_page() -> Iterator[str]:
    sys.path.insert(0, str(ROOT / "corpus"))
    measured = import_module("formats").measure()
    tools = {name: build_loaders()[EDIT_TOOLS[name]]() for name in measured}
    yield "# Edit formats\n"
    yield "Which tool a model is shown to change text with, where `edit.format` is `auto`. The"
    yield "first pattern that fits the model's name, without its vendor, counts.\n"
    yield from _table(
        ("model", "format", "tool", "why"),
        [
            *(
                (f"`{known.pattern}`", f"`{known.format}`", EDIT_TOOLS[known.format], known.source)
                for known in load_profiles()
            ),
            ("`*`", f"`{OTHERS}`", EDIT_TOOLS[OTHERS], "can say everything"),
        ],
    )
    yield "\nEntries of `edit.formats` in the settings are asked first. The table is written from"
    yield "`corpus/models.toml`; [the guide](../guides/edit-formats.md) says how to add a model."
    yield "\n## What was measured\n"
    yield "The cases of [the edit corpus](../guides/edit-corpus.md), put into each format. *Right*"
    yield "are those that landed or were refused as they should; tokens are estimates: of the input"
    yield "of one call, over the cases that every format can say; of the tool's definition,"
    yield "which goes along with every request; and of a file as Read shows it.\n"
    rows: list[tuple[str, ...]] = []
    for name, row in measured.items():
        schema = build_input_schema(tools[name].args_type)
        definition = tools[name].prompt() + msgspec.json.encode(schema).decode()
        right = row["landed"] + row["refused"]
        rows.append(
            (
                f"`{name}`", EDIT_TOOLS[name], f"{right} of {row['cases']}",
                str(row["not_expressible"]), str(row["wrong_place"] + row["outside_changed"]),
                str(row["tokens_per_call"]), str(estimate_tokens(definition)),
                str(row["tokens_per_read"]),
            )
        )  # fmt: skip
    yield from _table(
        ("format", "tool", "right", "cannot be said", "wrong places", "tokens per call",
         "tokens of the definition", "tokens per read"), rows,
    )  # fmt: skip
    yield "\nThe engine is the same behind all of them, so the formats differ in what they can say"
    yield "and how long it is, not in what lands. Lines that are named by number cannot be named"
    yield "wrongly in the way that these cases ask for: a text that is in two places, or nowhere."
    yield "How well a model writes a format is another question.\n"
    yield from _measured_models()


def _measured_models() -> Iterator[str]:
    """What models made of the corpus."""
    measured = import_module("table").known().get("measured", [])
    if not measured:
        return
    yield "## Models\n"
    yield "What models made of tasks of the corpus, by `bench/edit_formats.py`. *Refused* are calls"
    yield "that were answered with a fault, over all attempts; tokens are per task.\n"
    yield from _table(
        ("model", "format", "tasks", "landed", "refused", "wrong places", "tokens in",
         "tokens out"),
        [
            (
                f"`{one['model']}`", f"`{name}`", str(row["tasks"]), str(row["landed"]),
                str(row["refused"]), str(row["wrong_place"]), str(row["tokens_in"]),
                str(row["tokens_out"]),
            )
            for one in measured
            for name, row in one["formats"].items()
        ],
    )  # fmt: skip
    for one in measured:
        if note := one.get("note"):
            yield f"\n`{one['model']}`: {note}"


# Faults


def faults_page() -> Iterator[str]:
    yield "# Faults\n"
    yield "A call that did not succeed has `ok: false`, one of these codes and a text that says"
    yield "what to do next. A code never changes its meaning; the sentences may get better."
    by_code: dict[str, list[type[ToolFault]]] = {}
    for fault in _all_faults():
        by_code.setdefault(fault.code, []).append(fault)
    family = ""
    for code in sorted(by_code):
        if code.partition(".")[0] != family:
            family = code.partition(".")[0]
            yield f"\n## {family}\n"
            yield "| code | when |"
            yield "|---|---|"
        told = " ".join(dict.fromkeys(_first(fault.__doc__) for fault in by_code[code]))
        yield f"| `{code}` | {_cell(told)} |"


def _all_faults() -> list[type[ToolFault]]:
    own = SOURCE.rglob("*faults.py")
    for module in [*own, *(SOURCE / "contract" / "faults").glob("[a-z]*.py")]:
        import_module(".".join(("handaxe", *module.relative_to(SOURCE).with_suffix("").parts)))
    found: dict[str, type[ToolFault]] = {}
    waiting: list[type[ToolFault]] = [ToolFault]
    while waiting:
        for fault in waiting.pop().__subclasses__():
            if fault.__module__.startswith("handaxe."):
                waiting.append(fault)
                if fault is not TemplateFault:
                    found[f"{fault.__module__}.{fault.__name__}"] = fault
    return [found[name] for name in sorted(found)]


# Events


def events_page() -> Iterator[str]:
    yield "# Events\n"
    yield "Everything that happens in a session is one of these. `session.subscribe(listener)`"
    yield "gets them as objects of `handaxe.events`; the session's log `events.jsonl`"
    yield "holds them as JSON lines; `handaxe sessions show ID` prints them."
    yield "[A running agent](#events-of-a-running-agent) has some more.\n"
    yield "Every event of a session also has `at`, the time in seconds since the epoch.\n"
    yield "`event.to_json()` gives any of them as JSON data: `type` is the name in the heading,"
    yield "every field has the name in the table, and parts inside follow the same rule. Results"
    yield "and decisions are the objects that `result.to_json()` and `decision.to_json()` give."
    yield "The log spells some parts in another way, such as `jobId`: read it with"
    yield "`handaxe.sessions.read_events(ID)`."
    module = ast.parse((SOURCE / "contract" / "events.py").read_text(encoding="utf-8"))
    for node in module.body:
        if not isinstance(node, ast.ClassDef):
            continue
        for tag in (keyword.value for keyword in node.keywords if keyword.arg == "tag"):
            yield f"\n## {ast.literal_eval(tag)}\n"
            yield f"{ast.get_docstring(node)} (`{node.name}`)"
            rows = list(_fields(node))
            if rows:
                yield ""
                yield from _table(("field", "type", "meaning"), rows)
    yield "\n## Events of a running agent\n"
    yield "`agent.run(prompt)` gives these as objects of `handaxe.events`, and of the events above"
    yield "those about calls, hooks, sub-agents and what the model said. They are not in the log."
    yield from agent_events()


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """Fields of a class with the text that stands below them."""
    for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign):
            continue
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = str(after.value.value)
        name = ast.unparse(statement.target)
        yield f"`{name}`", f"`{ast.unparse(statement.annotation)}`", text


# Settings


def settings_page() -> Iterator[str]:
    yield "# Settings\n"
    yield "They stand in [settings files](../guides/permissions.md#settings-files), or are given to"
    yield "`Session(settings={...})`, or to the command line with `--settings` as a JSON object or"
    yield "the name of a file that holds one. `handaxe config list` shows what is in force and"
    yield "where it comes from. Keys may be nested or dotted:"
    yield '`{"read": {"line_format": "tab"}}` and `{"read.line_format": "tab"}` are the same.'
    yield "A wrong key or value is an error that names the nearest valid key.\n"
    yield from _options(Settings, "")


def _options(options: type[Any], prefix: str) -> Iterator[str]:
    """A table of the options of one group, then a section for each group inside it."""
    hints = get_type_hints(options, include_extras=True)
    rows: list[tuple[str, ...]] = []
    groups: list[tuple[str, type[Any]]] = []
    for field in msgspec.structs.fields(options):
        kind, text = _kind_and_text(hints[field.name])
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            groups.append((f"{prefix}{field.encode_name}", kind))
            continue
        default = _default_of(field)
        shown = "" if default is None else f"`{msgspec.json.encode(default).decode()}`"
        schema = msgspec.json.schema(kind)
        rows.append((f"`{prefix}{field.encode_name}`", _type_of(schema), shown, text))
    if rows:
        yield from _table(("key", "type", "default", "meaning"), rows)
    for name, group in groups:
        yield f"\n## {name}\n"
        yield f"{_first(group.__doc__)}\n"
        yield from _options(group, f"{name}.")


def _default_of(field: msgspec.structs.FieldInfo) -> object:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return field.default_factory() if callable(field.default_factory) else None


def _kind_and_text(hint: object) -> tuple[Any, str]:
    if get_origin(hint) is not Annotated:
        return hint, ""
    kind, *facts = get_args(hint)
    return kind, next((fact for fact in facts if isinstance(fact, str)), "")


# Command line


def cli_page() -> Iterator[str]:
    yield "# Command line\n"
    yield "Results go to standard output, everything else to standard error. A terminal gets"
    yield "colours, a pipe plain text; `NO_COLOR` is honoured. `handaxe --help` and"
    yield "`handaxe COMMAND --help` print what this page says.\n"
    yield "## handaxe\n"
    yield "The guide is [The agent on the command line](../guides/command-line-agent.md).\n"
    yield from _command("handaxe", AGENT_PAGE)
    for name, page in PAGES.items():
        yield f"## handaxe {name}\n"
        yield from _command(f"handaxe {name}", page)
        for action, inner in page.actions.items():
            yield f"### handaxe {name} {action}\n"
            yield from _command(f"handaxe {name} {action}", inner)
    yield "## Session options\n"
    for group in SESSION_GROUPS:
        yield from _option_table(group)
    yield "## Exit codes\n"
    codes = [
        (exits.DONE, "done"),
        (exits.FAILED, "a call failed, or the agent ended with an error"),
        (exits.USAGE, "wrong usage or wrong settings"),
        (exits.REFUSED, "refused by permission or a hook, or would have asked"),
        (exits.HUNG_UP, "the terminal is gone"),
        (exits.INTERRUPTED, "interrupted"),
        (exits.TERMINATED, "terminated"),
    ]
    yield from _table(("code", "meaning"), [(str(code), text) for code, text in codes])


def _command(program: str, page: CommandPage) -> Iterator[str]:
    summary = f"{page.summary[0].upper()}{page.summary[1:]}."
    yield f"{summary} {page.about}".strip() + "\n"
    usage = "\n".join(page.list_usage(program))
    yield f"```\n{usage}\n```\n"
    width = max(len(line) for line, _ in page.examples)
    examples = "\n".join(f"{line:{width}}  # {meaning}" for line, meaning in page.examples)
    yield f"```sh\n{examples}\n```\n"
    if page is AGENT_PAGE:
        for group in page.groups:
            yield from _option_table(group)
        return
    shared = {group.title for group in SESSION_GROUPS}
    own = [group for group in page.groups if group.title not in shared]
    rows = [_option_row(one) for group in own for one in group.arguments]
    if rows:
        yield from _table(("argument", "meaning"), rows)
        yield ""
    if shared.issubset(group.title for group in page.groups):
        yield "Takes the [session options](#session-options).\n"


def _option_table(group: OptionGroup) -> Iterator[str]:
    yield f"### {group.title}\n"
    yield from _table(("argument", "meaning"), [_option_row(one) for one in group.arguments])
    yield ""


def _option_row(argument: Argument) -> tuple[str, str]:
    return f"`{argument.spec}`", argument.meaning


# Packages


def map_section() -> Iterator[str]:
    yield "```"
    yield "src/handaxe/"
    for layer in _layers():
        for name in layer:
            yield f"  {name + '/':15} {_first(_docstring(SOURCE / name / '__init__.py'))}"
    yield "```"


def layers_section() -> Iterator[str]:
    yield "```"
    for layer in _layers():
        yield " | ".join(layer)
    yield "```"


def packages_section() -> Iterator[str]:
    shown: set[Path] = set()
    for name in (name for layer in _layers() for name in layer):
        folder = SOURCE / name
        above = [] if folder.parent == SOURCE else [folder.parent / "__init__.py"]
        for head in [*above, *sorted(folder.rglob("__init__.py"))]:
            if head not in shown:
                shown.add(head)
                yield from _package(head)


def _package(head: Path) -> Iterator[str]:
    """What the docstring of one package says, with a heading."""
    parts = head.parent.relative_to(SOURCE).parts
    yield f"{'#' * min(2 + len(parts), 5)} `{'/'.join(parts)}`\n"
    told, _, rules = _docstring(head).partition("Belongs here:")
    yield f"{_joined(told)}\n"
    marked = re.sub(r"(?m)^(Does not|May import):", r"\n- \1:", f"- Belongs here:{rules}")
    yield "\n".join(_joined(line) for line in re.split(r"\n(?=- )", marked) if line.strip())
    yield ""


def _layers() -> list[list[str]]:
    """The layers of `.importlinter`, top first, each with the folders of its packages."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    layers = config["importlinter:contract:layers"]["layers"].replace(".", "/")
    return [line.strip().split(" | ") for line in layers.splitlines() if line.strip()]


# Small things


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def _first(text: str | None) -> str:
    """The first paragraph of a docstring as one line."""
    return _joined((text or "").strip().partition("\n\n")[0])


def _joined(text: str) -> str:
    return " ".join(text.split())


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(_cell(cell) for cell in row)} |"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


def _page(lines: Iterator[str]) -> str:
    title, *rest = lines
    return "\n".join([title, NOTICE, "", *rest]).rstrip() + "\n"


def _filled(text: str, name: str, content: str) -> str:
    begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    if begin not in text or end not in text:
        raise SystemExit(f"The marks of the generated part {name!r} are missing.")
    head, tail = text.partition(begin)[0], text.partition(end)[2]
    return f"{head}{begin}\n{content.strip()}\n{end}{tail}"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
