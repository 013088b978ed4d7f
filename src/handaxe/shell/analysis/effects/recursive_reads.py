"""Commands that read below a directory: which trees, and what they exclude.

Only content counts: find, ls -R and tree print names, which Read rules do not restrict.
Over-approximates; never use it to prove that something is safe.
"""

from __future__ import annotations

from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from handaxe.shell.analysis.facts import RecursiveRead
from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse, make_path_uses
from handaxe.shell.analysis.program_tables import (
    ProgramTable,
    load_read_only_programs,
    load_toml,
    split_names,
)
from handaxe.shell.analysis.programs.options import Arguments, NotProven, read_arguments
from handaxe.shell.analysis.programs.subcommands import skip_git_globals
from handaxe.shell.analysis.walker import ShellState

_HERE = Field("known", ".", ".")
_FIND_ACTIONS = ("-exec", "-ok")
_STDIN = split_names("rg ag ack")
"""Without an operand they read standard input if it is connected."""
_BUNDLED = split_names("tar bsdtar")
"""Their first word contains options even without a dash."""
_RG_HIDDEN = split_names("hidden u unrestricted .")
_NOTHING = split_names("files type-list help version V h")


class _Reader(Struct, frozen=True):
    always: bool
    letters: frozenset[str]
    words: frozenset[str]


@cache
def _load_readers() -> dict[str, _Reader]:
    found: dict[str, _Reader] = {}
    for program, text in load_toml("effects.toml")["sweeps"].items():
        options = text.split()
        short = frozenset(item[1:] for item in options if item.startswith("-") and item[1] != "-")
        long = frozenset(item[2:] for item in options if item.startswith("--"))
        found[program] = _Reader("*" in options, short, long)
    return found


def find_recursive_reads(
    program: str, args: list[Field], operands: list[Field], state: ShellState, *, is_fed: bool
) -> list[RecursiveRead]:
    """The trees whose content the command reads; `operands` are its words without options."""
    if program == "find":
        return _find_by_find(args, state)
    if program == "git":
        return _find_by_git(args, state)
    reader = _load_readers().get(program)
    if reader is None:
        return []
    table = load_read_only_programs().get(program, ProgramTable())
    bundle = args[:1] if args and program in _BUNDLED and args[0].value[:1] != "-" else []
    bundled = any(letter in reader.letters for field in bundle for letter in field.value)
    if not (reader.always or bundled or _has_option(args, reader, table)):
        return []
    try:
        arguments = read_arguments(args, table) if table.operands else None
    except NotProven:
        arguments = None
    if arguments is None:
        roots = operands if operands and program not in _STDIN else [*operands, _HERE]
        return [RecursiveRead(use) for use in _make_uses(roots, state)]
    globs = [field.value for field in args if field.kind == "glob"]
    found = _find_by_table(program, arguments, state, is_fed=is_fed)
    # An unquoted pattern in an option's value.
    given = [text.partition("=")[2] for text in globs if text.startswith("--include=")]
    return [replace(item, only_files=(*item.only_files, *given)) for item in found]


def _find_by_table(
    program: str, found: Arguments, state: ShellState, *, is_fed: bool
) -> list[RecursiveRead]:
    if program in _STDIN and found.has(*_NOTHING):
        return []
    roots = [field for kind, field in found.typed if kind == "path"]
    if not roots and is_fed and program in _STDIN:
        return []
    files, directories = _list_exclusions(found)
    shown = program == "rg" and not found.has(*_RG_HIDDEN)
    only = _list_inclusions(found)
    return [
        RecursiveRead(use, shown, files, directories, only)
        for use in _make_uses(roots or [_HERE], state)
    ]


def _list_inclusions(found: Arguments) -> tuple[str, ...]:
    """File names to which the reader's options limit it."""
    given = [(name, value.known) for name, value in found.options if value is not None]
    names = [text for name, text in given if name == "include" and text]
    globs = [text for name, text in given if name in ("g", "glob", "iglob") and text]
    return (*names, *(text for text in globs if not text.startswith("!")))


def _list_exclusions(found: Arguments) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """File and directory names that the reader's options exclude."""
    given = [(name, value.known) for name, value in found.options if value is not None]
    files = [text for name, text in given if name == "exclude" and text]
    directories = [text.rstrip("/") for name, text in given if name == "exclude-dir" and text]
    globs = [text for name, text in given if name in ("g", "glob") and text]
    # A later glob of rg can take back what an earlier one left out.
    if globs and all(text.startswith("!") for text in globs):
        bare = [text[1:].removesuffix("/**").rstrip("/") for text in globs]
        plain = [text for text in bare if text and "/" not in text]
        files += [text for text, glob in zip(bare, globs, strict=True) if not glob.endswith("/")]
        directories += plain
        files = [text for text in files if "/" not in text]
    return tuple(files), tuple(directories)


def _has_option(args: list[Field], reader: _Reader, table: ProgramTable) -> bool:
    """Whether one of the reader's options is among the words; long ones may be abbreviated."""
    for field in args:
        value = field.value
        if value == "--":
            return False
        if field.kind != "known" and field.may_be_option:
            return True
        if value.startswith("--"):
            name = value[2:].partition("=")[0]
            if any(word.startswith(name) for word in reader.words):
                return True
        elif value.startswith("-"):
            for letter in value[1:]:
                if letter in reader.letters:
                    return True
                if letter in table.valued and letter not in table.optional:
                    break
    return False


def _find_by_find(args: list[Field], state: ShellState) -> list[RecursiveRead]:
    if not any(field.value.startswith(_FIND_ACTIONS) for field in args):
        return []
    roots: list[Field] = []
    for field in args:
        if field.value.startswith("-") and field.value not in ("-H", "-L", "-P"):
            break
        if field.value[:1] not in ("-", "(", "!"):
            roots.append(field)
    return [RecursiveRead(use) for use in _make_uses(roots or [_HERE], state)]


def _find_by_git(args: list[Field], state: ShellState) -> list[RecursiveRead]:
    """`git grep` and `git archive` read the whole tree unless paths follow a double dash."""
    rest = skip_git_globals(args)
    if not rest or rest[0].known not in ("grep", "archive"):
        return []
    values = [field.value for field in rest]
    roots = [field for field in rest[1:] if field.value.endswith("/") and field.kind == "known"]
    if "--" in values:
        roots = rest[values.index("--") + 1 :]
    if any(field.value.startswith(":") for field in roots):
        roots = []
    return [RecursiveRead(use) for use in _make_uses(roots or [_HERE], state)]


def _make_uses(roots: list[Field], state: ShellState) -> list[PathUse]:
    return [use for field in roots for use in make_path_uses(field, "read", state.cwds)]
