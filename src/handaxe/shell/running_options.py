"""Options whose value is a program, and programs that run what they are fed.

Over-approximates for deny and ask rules; never use it to prove that something is safe.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from handaxe.shell.fields import PROCESS, Field
from handaxe.shell.options import abbreviates
from handaxe.shell.program_names import find_program, strip_digits, strip_version
from handaxe.shell.runners import program_name
from handaxe.shell.subcommands import git_arguments
from handaxe.shell.tables import load_toml

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
def _table() -> _Table:
    raw = load_toml("running.toml")
    return _Table(
        {name: frozenset(text.split()) for name, text in raw["options"].items()},
        frozenset(raw["forms"]["git"].split()),
        frozenset(raw["fed"].split()),
        frozenset(raw["by_file"].split()),
        frozenset(raw["interpreters"].split()),
    )


def runs_what_it_is_fed(fields: list[Field]) -> bool:
    """Whether standard input holds commands for this program."""
    program = _known_as(fields[0])
    if program in _table().fed:
        return True
    if program in _table().by_file:
        return any(field.value.endswith(_STDIN) for field in fields[1:])
    scripts = [field for field in fields[1:] if field.value != "-"]
    return program in _table().interpreters and not scripts


def _known_as(field: Field) -> str:
    """The name under which a table may know the program: `python3` for `python3.12`."""
    table, name = _table(), program_name(field) or ""
    known = dict.fromkeys(table.fed | table.by_file | table.interpreters)
    return (
        name
        if name in known
        else next(
            (other for other in (strip_version(name), strip_digits(name)) if other in known), name
        )
    )


def runs_a_process(fields: list[Field]) -> bool:
    """Whether the output of another command is a script for this program."""
    table, program = _table(), _known_as(fields[0])
    if program not in table.fed | table.by_file | table.interpreters:
        return False
    return any(PROCESS in field.value for field in fields[1:])


def may_run_others(program: str) -> bool:
    """Whether some option, or the input, of `program` names programs to run."""
    table = _table()
    return program in table.fed | table.interpreters | table.options.keys()


def exec_option(fields: list[Field]) -> str:
    """The option, or the sub-command, that makes a program run another one; empty for none."""
    if program_name(fields[0]) == "git":
        words = [field.value for field in git_arguments(fields[1:])]
        for count in (1, 2):
            if "-".join(words[:count]) in _table().forms:
                return words[count - 1]
        if _sets_only_looks(fields[1:]):
            fields = [fields[0], *git_arguments(fields[1:])]
    for options, args in _scopes(fields):
        for index, field in enumerate(args):
            if field.value == "--":
                break
            if _value(field, options, args[index + 1 : index + 2]) is not None:
                return field.text
    return ""


def _sets_only_looks(args: list[Field]) -> bool:
    """Whether every `-c` of git sets a key that names no program."""
    given = [args[at + 1].value for at, f in enumerate(args[:-1]) if f.value == "-c"]
    return bool(given) and all(_PLAIN_KEY.match(key) for key in given)


def commands_in_options(fields: list[Field]) -> list[Field]:
    """The values of options that name a command to run."""
    found: list[Field] = []
    for options, args in _scopes(fields):
        for index, field in enumerate(args):
            if field.kind == "known" or "=" in field.value:
                found.extend(_value(field, options, args[index + 1 : index + 2]) or ())
    return found


def _scopes(fields: list[Field]) -> list[tuple[frozenset[str], list[Field]]]:
    """The options that count, with the words among which they stand."""
    table, program = _table().options, program_name(fields[0]) or ""
    name = "gcc" if program.endswith("++") else program
    options = find_program(table, name)
    scopes = [(options, fields[1:])] if options else []
    if program == "git":
        rest = git_arguments(fields[1:])
        before = fields[1 : len(fields) - len(rest)]
        inner = table.get(f"git {rest[0].value}") if rest else None
        scopes = [(options or frozenset(), before)]
        scopes += [(inner, rest[1:])] if inner else []
    return scopes


def _value(field: Field, options: frozenset[str], following: list[Field]) -> list[Field] | None:
    """The value of an option that is one of these; None for any other word."""
    value = field.value
    name, equals, attached = value.partition("=")
    inner = Field(field.kind, attached, field.text, single=field.single)
    if name in options or abbreviates(name, options):
        return [inner] if equals else following
    if not value.startswith("-") or value.startswith("--"):
        return None
    for at, letter in enumerate(value[1:], start=2):
        if f"-{letter}" in options:
            rest = value[at:]
            return [Field(field.kind, rest, field.text)] if rest else following
    return None
