"""Options whose value is a program, and programs that run what they are fed.

Over-approximates for deny and ask rules; never use it to prove that something is safe.
"""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from handaxe.shell.fields import PROCESS, Field
from handaxe.shell.options import abbreviates
from handaxe.shell.runners import program_name
from handaxe.shell.tables import load_toml

_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


class _Table(Struct, frozen=True):
    options: dict[str, frozenset[str]]
    fed: frozenset[str]
    by_file: frozenset[str]
    interpreters: frozenset[str]


@cache
def _table() -> _Table:
    raw = load_toml("running.toml")
    return _Table(
        {name: frozenset(text.split()) for name, text in raw["options"].items()},
        frozenset(raw["fed"].split()),
        frozenset(raw["by_file"].split()),
        frozenset(raw["interpreters"].split()),
    )


def runs_what_it_is_fed(fields: list[Field]) -> bool:
    """Whether standard input holds commands for this program."""
    program = program_name(fields[0])
    if program in _table().fed:
        return True
    if program in _table().by_file:
        return any(field.value.endswith(_STDIN) for field in fields[1:])
    scripts = [field for field in fields[1:] if field.value != "-"]
    return program in _table().interpreters and not scripts


def runs_a_process(fields: list[Field]) -> bool:
    """Whether the output of another command is a script for this program."""
    table, program = _table(), program_name(fields[0])
    if program not in table.fed | table.by_file | table.interpreters:
        return False
    return any(PROCESS in field.value for field in fields[1:])


def may_run_others(program: str) -> bool:
    """Whether some option, or the input, of `program` names programs to run."""
    table = _table()
    return program in table.fed | table.interpreters | table.options.keys()


def commands_in_options(fields: list[Field]) -> list[Field]:
    """The values of options that name a command to run."""
    program = program_name(fields[0]) or ""
    options = _table().options.get("gcc" if program.endswith("++") else program)
    if not options:
        return []
    found: list[Field] = []
    for index, field in enumerate(fields[1:], start=1):
        if field.kind == "known" or "=" in field.value:
            following = fields[index + 1 : index + 2]
            found.extend(_value(field, options, following))
    return found


def _value(field: Field, options: frozenset[str], following: list[Field]) -> list[Field]:
    value = field.value
    name, equals, attached = value.partition("=")
    inner = Field(field.kind, attached, field.text, single=field.single)
    if name in options or abbreviates(name, options):
        return [inner] if equals else following
    if not value.startswith("-") or value.startswith("--"):
        return []
    for at, letter in enumerate(value[1:], start=2):
        if f"-{letter}" in options:
            rest = value[at:]
            return [Field(field.kind, rest, field.text)] if rest else following
    return []
