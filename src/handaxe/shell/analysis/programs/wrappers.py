"""Find what a command runs in turn: wrappers, shells and evaluating builtins.

Over-approximates for deny and ask rules: anything that might run is a candidate. Never use it to
prove that something is safe.
"""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from typing import Any, Literal

from msgspec import Struct

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.program_tables import get_base_name, load_toml, split_names

SHELLS = split_names("sh bash dash zsh ksh mksh ash rbash fish csh tcsh yash posh")
_SHELL_VALUED = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-]+")
FED = split_names("xargs parallel")
"""Programs that pass their input to another program as operands."""
FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_LOOSE_LIMIT = 40


class WrapperOptions(Struct, frozen=True):
    """How one wrapper takes its arguments."""

    flags: frozenset[str]
    valued: frozenset[str]
    optional: frozenset[str]
    strings: frozenset[str]
    goes: frozenset[str] = frozenset()
    """Options whose value is the directory of the inner command."""
    opens: frozenset[str] = frozenset()
    """Options whose value is a file that is read."""
    writes: frozenset[str] = frozenset()
    skip: int = 0
    assigns: bool = False
    joins: bool = False
    number: bool = False
    loose: bool = False
    after: tuple[str, ...] = ()


class InnerCommands(Struct):
    """The commands that a wrapper runs: argument lists and shell texts, certain or possible."""

    commands: list[tuple[list[Field], bool]] = []
    texts: list[tuple[Field, bool]] = []
    moved: list[Field] = []
    """Directories of the inner command, each relative to the previous one."""
    opened: list[tuple[Field, Literal["read", "write"]]] = []
    """Files that the wrapper opens."""
    unknown: str = ""
    """Why the inner program is unknown; empty if it is known."""


@cache
def load_wrappers() -> dict[str, WrapperOptions]:
    """Every known wrapper by name."""
    table: dict[str, WrapperOptions] = {}
    for name, entry in load_toml("wrappers.toml").items():
        runner = _make_options(entry)
        for alias in (*entry.get("same", "").split(), name):
            table.setdefault(alias, runner)
        table[name] = runner
    return table


def _make_options(entry: dict[str, Any]) -> WrapperOptions:
    names = f"{entry.get('valued', '')} {entry.get('long_valued', '')}".split()
    return WrapperOptions(
        flags=frozenset(entry.get("flags", "")) | frozenset(entry.get("long", "").split()),
        valued=frozenset(name for name in names if not name.endswith("?")),
        optional=frozenset(name[:-1] for name in names if name.endswith("?")),
        strings=frozenset(entry.get("string", "").split()),
        goes=frozenset(entry.get("goes", "").split()),
        opens=frozenset(entry.get("opens", "").split()),
        writes=frozenset(entry.get("writes", "").split()),
        skip=entry.get("skip", 0),
        assigns=entry.get("assigns", False),
        joins=entry.get("joins", False),
        number=entry.get("number", False),
        loose=entry.get("loose", False),
        after=tuple(entry.get("after", "").split()),
    )


def is_wrapper(program: str | None) -> bool:
    """Whether `program` only runs the given command."""
    runner = load_wrappers().get(program or "")
    return program == "eval" or (runner is not None and not runner.loose)


def get_program_name(field: Field) -> str | None:
    """The name of a program without its directory."""
    known = field.known
    return None if known is None else get_base_name(known)


def find_inner_commands(fields: list[Field]) -> InnerCommands:
    """The commands that the command `fields` runs in turn."""
    program = get_program_name(fields[0])
    inner = InnerCommands()
    if program is None:
        return inner
    args = fields[1:]
    if program in SHELLS:
        _read_shell(args, inner)
    elif program in ("eval", "trap", "alias", "coproc"):
        _read_evaluation(program, args, inner)
    elif program == "command" and args and args[0].known in ("-v", "-V"):
        pass
    elif program in ("source", "."):
        if args:
            _add_script_file(args, inner)
    elif program == "find":
        _read_find(args, inner)
    else:
        runner = load_wrappers().get(program)
        if runner is not None and runner.loose:
            _skip_options(runner, args, inner)
        elif runner is not None:
            _run(runner, args, inner)
            if program == "xargs":
                _check_fed(inner)
        if program == "env":
            _split_strings(fields[0], inner)
    return inner


def _check_fed(inner: InnerCommands) -> None:
    """A wrapper or shell that `xargs` runs: standard input names the program."""
    for command, _ in list(inner.commands):
        name = get_program_name(command[0]) if command else None
        if not (is_wrapper(name) or name in SHELLS):
            continue
        found = find_inner_commands(command)
        if not found.commands and not found.texts:
            inner.unknown = f"standard input names what {command[0].text} runs"


def _split_strings(env: Field, inner: InnerCommands) -> None:
    """`env -S` splits its text into words by itself; no shell reads it."""
    rest = [command for command, _ in inner.commands[-1:]]
    for text, _ in list(inner.texts):
        if text.known is None:
            continue
        if "${" in text.known:
            inner.unknown = f"the words of {text.text} are unknown before it runs"
        # Outside quotes `\\_` separates words.
        plain = text.known.replace("\\_", " ")
        try:
            words = shlex.split(plain)
        except ValueError:
            words = plain.split()
        fields = [Field("known", word, word) for word in words]
        inner.commands.append(([env, *fields, *(rest[0] if rest else [])], True))


def _read_shell(args: list[Field], inner: InnerCommands) -> None:
    at, wants_text = 0, False
    while at < len(args):
        value = args[at].known
        if value is None or not value.startswith(("-", "+")) or value in ("-", "--"):
            at += 1 if value in ("-", "--") else 0
            break
        if value in _SHELL_VALUED:
            at += 1
        elif not value.startswith("--") and "c" in value:
            wants_text = True
        at += 1
    rest = args[at:]
    if wants_text and rest:
        inner.texts.append((rest[0], True))
        # Later words are $0, $1, ...; a text such as '"$@"' runs them.
        if len(rest) > 2:
            inner.commands.append((rest[2:], False))
            inner.commands.append((rest[1:], False))
    elif rest:
        _add_script_file(rest, inner)


def _add_script_file(args: list[Field], inner: InnerCommands) -> None:
    """A file that a shell reads; a pipe has unknown content."""
    if args[0].value.startswith(("/dev/fd/", "/dev/stdin", "/proc/")):
        inner.unknown = f"{args[0].text} provides the input of a shell"
    inner.commands.append((args, True))


def _read_evaluation(program: str, args: list[Field], inner: InnerCommands) -> None:
    if program == "trap":
        args = args[1:] if args and args[0].known in ("--", "-p", "-l") else args
        if args and args[0].known not in ("-", ""):
            inner.texts.append((args[0], True))
    elif program == "alias":
        for field in args:
            value = (field.known or "").partition("=")[2]
            if value:
                inner.texts.append((Field("known", value, field.text), True))
    elif program == "coproc":
        inner.commands.extend([(args, True), (args[1:], False)])
    elif args and args[0].known == "--":
        _read_evaluation(program, args[1:], inner)
    elif args and all(_PLAIN.fullmatch(field.known or "$") for field in args):
        inner.commands.append((args, True))
    elif args:
        inner.texts.append((_join_fields(args), True))


def _join_fields(args: list[Field]) -> Field:
    text = " ".join(field.text for field in args)
    if all(field.kind == "known" for field in args):
        return Field("known", " ".join(field.value for field in args), text)
    return Field("unknown", "", text, single=False)


def _read_find(args: list[Field], inner: InnerCommands) -> None:
    for index, field in enumerate(args):
        if field.known in FIND_RUNS:
            end = index + 1
            while end < len(args) and args[end].known not in (";", "+"):
                end += 1
            inner.commands.append((args[index + 1 : end], True))
        elif field.kind != "known":
            inner.commands.append((args[index + 1 :], False))


def _run(runner: WrapperOptions, args: list[Field], inner: InnerCommands) -> None:
    at, certain = _skip_options(runner, args, inner)
    if not certain:
        for index in range(min(len(args), _LOOSE_LIMIT)):
            inner.commands.append((args[index:], False))
            if " " in args[index].value:
                inner.texts.append((args[index], False))
    if not certain and any(field.kind != "known" for field in args):
        inner.unknown = f"it is unknown which of {_join_fields(args).text} is the program"
    rest = args[at + runner.skip :]
    if not rest:
        return
    if rest[0].known in {f"-{name}" for name in runner.strings} and len(rest) > 1:
        inner.texts.append((rest[1], certain))
    if runner.joins:
        inner.texts.append((_join_fields(rest), certain))
    inner.commands.append((rest, certain))


def _skip_options(
    runner: WrapperOptions, args: list[Field], inner: InnerCommands
) -> tuple[int, bool]:
    at, certain = 0, True
    while at < len(args):
        value = args[at].known
        if value is None:
            break
        if runner.assigns and "=" in value and not value.startswith("-"):
            at += 1
            continue
        if not value.startswith("-") or value == "-":
            break
        at += 1
        if value == "--":
            break
        step, known = _read_option(runner, value, args[at : at + 1], inner)
        at += step
        certain = certain and known
    if runner.assigns:
        while at < len(args) and "=" in args[at].value:
            at += 1
    return at, certain


def _read_option(
    runner: WrapperOptions, value: str, following: list[Field], inner: InnerCommands
) -> tuple[int, bool]:
    """How many more words the option takes, and whether it is known."""
    if value.startswith("--"):
        return _read_long_option(runner, value[2:], following, inner)
    if runner.number and value[1:].lstrip("-").isdigit():
        return 0, True
    for index, letter in enumerate(value[1:], start=2):
        rest = value[index:]
        _take(runner, letter, rest or None, following, inner)
        if letter in runner.valued | runner.strings | runner.optional:
            return (0 if rest or letter in runner.optional else 1), True
        if letter not in runner.flags:
            return 0, False
    return 0, True


def _read_long_option(
    runner: WrapperOptions, text: str, following: list[Field], inner: InnerCommands
) -> tuple[int, bool]:
    name, equals, attached = text.partition("=")
    known = runner.flags | runner.valued | runner.optional | runner.strings
    name = _expand_abbreviation(name, known)
    _take(runner, name, attached if equals else None, following, inner)
    if equals:
        return 0, name in runner.valued | runner.optional | runner.strings
    if name in runner.valued | runner.strings:
        return 1, True
    return 0, name in runner.flags | runner.optional


def _expand_abbreviation(name: str, known: frozenset[str]) -> str:
    """The option of an abbreviation, if it is unique."""
    if name in known or not name:
        return name
    longer = [item for item in known if item.startswith(name) and len(item) > 1]
    return longer[0] if len(longer) == 1 else name


def _take(
    runner: WrapperOptions,
    name: str,
    attached: str | None,
    following: list[Field],
    inner: InnerCommands,
) -> None:
    """Record the value of an option: a shell text, a directory, a file."""
    values = [field for field, _ in _get_option_text(attached, following)]
    if name in runner.strings:
        inner.texts.extend((field, True) for field in values)
    if name in runner.goes:
        inner.moved.extend(values)
    if name in runner.opens:
        inner.opened.extend((field, "read") for field in values)
    if name in runner.writes:
        inner.opened.extend((field, "write") for field in values)


def _get_option_text(attached: str | None, following: list[Field]) -> list[tuple[Field, bool]]:
    if attached is not None:
        return [(Field("known", attached, attached), True)]
    return [(following[0], True)] if following else []


REMOVERS = split_names("rm rmdir unlink shred")
_HERE = Field("known", ".", ".")
_STARTS = frozenset({"-H", "-L", "-P"})
_NAME_TESTS = split_names("-name -iname -path -ipath -wholename -iwholename -regex -iregex")
_OPENERS = frozenset({"!", "-not", "-o", "-or", ","})
"""After one of these, a test need not hold for a found file."""


class FindAction(Struct, frozen=True):
    """The actions of `find` below its starting points."""

    roots: tuple[Field, ...]
    programs: tuple[str | None, ...] = ()
    """The programs that get the files; None if unknown."""
    deletes: bool = False
    names: tuple[str, ...] | None = None
    """Patterns of the names; None: any file below a starting point."""

    @property
    def removes(self) -> bool:
        """Whether files are removed."""
        return self.deletes or not REMOVERS.isdisjoint(self.programs)

    def can_match(self, path: str) -> bool:
        """Whether the file at `path` may be affected."""
        path = path.lower()
        texts = (path, path.rpartition("/")[2])
        return self.names is None or any(
            fnmatchcase(texts["/" not in pattern], pattern) for pattern in self.names
        )


def read_find(args: list[Field]) -> FindAction:
    """Parse the words of a find after its name."""
    at = next((i for i, field in enumerate(args) if not _is_start(field)), len(args))
    roots = tuple(field for field in args[:at] if field.known not in _STARTS) or (_HERE,)
    programs: list[str | None] = []
    patterns: list[str] = []
    deletes, is_narrowed = False, True
    for before, field in pairwise((_HERE, *args[at:])):
        if before.known in FIND_RUNS:
            programs.append(get_program_name(field))
        elif before.known in _NAME_TESTS and not programs and not deletes:
            is_pattern = field.known is not None and "regex" not in before.value
            patterns.append(field.value.lower() if is_pattern else "*")
        elif field.known == "-empty":
            patterns.append("")
        elif field.kind != "known" or field.known in _OPENERS:
            is_narrowed = False
        deletes = deletes or field.known == "-delete"
    limits = tuple(patterns) if patterns and is_narrowed else None
    return FindAction(roots, tuple(programs), deletes, limits)


def _is_start(field: Field) -> bool:
    return field.known in _STARTS or field.value[:1] not in ("-", "(", "!", ",")
