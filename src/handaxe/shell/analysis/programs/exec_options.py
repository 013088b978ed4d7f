"""Options whose value is a program, and programs that run their input.

Over-approximates for deny and ask rules; never use it to prove that something is safe.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from handaxe.shell.analysis.parser.expansion import PROCESS, Field
from handaxe.shell.analysis.program_tables import (
    find_program,
    load_toml,
    strip_digits,
    strip_version,
)
from handaxe.shell.analysis.programs.options import is_abbreviation
from handaxe.shell.analysis.programs.subcommands import skip_git_globals
from handaxe.shell.analysis.programs.wrappers import get_program_name

_PLAIN_KEY = re.compile(
    r"(?i)(color|user|log|advice|column|format|i18n|core\.(quotepath|abbrev))\b"
)
_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


class _Table(Struct, frozen=True):
    options: dict[str, frozenset[str]]
    forms: frozenset[str]
    fed: frozenset[str]
    by_file: frozenset[str]
    interpreters: frozenset[str]


@cache
def _load_table() -> _Table:
    raw = load_toml("exec_options.toml")
    return _Table(
        {name: frozenset(text.split()) for name, text in raw["options"].items()},
        frozenset(raw["forms"]["git"].split()),
        frozenset(raw["fed"].split()),
        frozenset(raw["by_file"].split()),
        frozenset(raw["interpreters"].split()),
    )


def is_stdin_executed(fields: list[Field]) -> bool:
    """Whether this program runs its standard input as commands."""
    program = _find_known_name(fields[0])
    if program in _load_table().fed:
        return True
    if program in _load_table().by_file:
        return any(field.value.endswith(_STDIN) for field in fields[1:])
    scripts = [field for field in fields[1:] if field.value != "-"]
    return program in _load_table().interpreters and not scripts


def _find_known_name(field: Field) -> str:
    """The name of the program in a table: `python3` for `python3.12`."""
    table, name = _load_table(), get_program_name(field) or ""
    known = dict.fromkeys(table.fed | table.by_file | table.interpreters)
    return (
        name
        if name in known
        else next(
            (other for other in (strip_version(name), strip_digits(name)) if other in known), name
        )
    )


def is_process_executed(fields: list[Field]) -> bool:
    """Whether this program runs the output of another command as a script."""
    table, program = _load_table(), _find_known_name(fields[0])
    if program not in table.fed | table.by_file | table.interpreters:
        return False
    return any(PROCESS in field.value for field in fields[1:])


def can_run_programs(program: str) -> bool:
    """Whether some option, or the input, of `program` names programs to run."""
    table = _load_table()
    return program in table.fed | table.interpreters | table.options.keys()


def find_exec_option(fields: list[Field]) -> str:
    """The option or subcommand that makes a program run another one; empty for none."""
    if get_program_name(fields[0]) == "git":
        words = [field.value for field in skip_git_globals(fields[1:])]
        for count in (1, 2):
            if "-".join(words[:count]) in _load_table().forms:
                return words[count - 1]
        if _has_plain_keys_only(fields[1:]):
            fields = [fields[0], *skip_git_globals(fields[1:])]
    for options, args in _list_scopes(fields):
        for index, field in enumerate(args):
            if field.value == "--":
                break
            if _get_option_value(field, options, args[index + 1 : index + 2]) is not None:
                return field.text
    return ""


def _has_plain_keys_only(args: list[Field]) -> bool:
    """Whether every `-c` of git sets a key that names no program."""
    given = [args[at + 1].value for at, f in enumerate(args[:-1]) if f.value == "-c"]
    return bool(given) and all(_PLAIN_KEY.match(key) for key in given)


def find_option_commands(fields: list[Field]) -> list[Field]:
    """The values of options that name a command to run."""
    found: list[Field] = []
    for options, args in _list_scopes(fields):
        for index, field in enumerate(args):
            if field.kind == "known" or "=" in field.value:
                found.extend(_get_option_value(field, options, args[index + 1 : index + 2]) or ())
    return found


def _list_scopes(fields: list[Field]) -> list[tuple[frozenset[str], list[Field]]]:
    """The relevant options, with the words among which they occur."""
    table, program = _load_table().options, get_program_name(fields[0]) or ""
    name = "gcc" if program.endswith("++") else program
    options = find_program(table, name)
    scopes = [(options, fields[1:])] if options else []
    if program == "git":
        rest = skip_git_globals(fields[1:])
        before = fields[1 : len(fields) - len(rest)]
        inner = table.get(f"git {rest[0].value}") if rest else None
        scopes = [(options or frozenset(), before)]
        scopes += [(inner, rest[1:])] if inner else []
    return scopes


def _get_option_value(
    field: Field, options: frozenset[str], following: list[Field]
) -> list[Field] | None:
    """The value of an option that is one of these; None for any other word."""
    value = field.value
    name, equals, attached = value.partition("=")
    inner = Field(field.kind, attached, field.text, single=field.single)
    if name in options or is_abbreviation(name, options):
        return [inner] if equals else following
    if not value.startswith("-") or value.startswith("--"):
        return None
    for at, letter in enumerate(value[1:], start=2):
        if f"-{letter}" in options:
            rest = value[at:]
            return [Field(field.kind, rest, field.text)] if rest else following
    return None
