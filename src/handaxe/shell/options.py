"""Reading an argument list against a table of allowed options.

An option that is not in the table, an abbreviation, or a value that could itself be an option is
refused: the table says what is allowed, never what is forbidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from handaxe.shell.fields import Field
from handaxe.shell.tables import ProgramTable

_NUMBER = re.compile(r"[+-]?\d+[A-Za-z]*")


class Refused(Exception):
    """The arguments are not provably harmless; the text says why."""


def abbreviates(word: str, options: Iterable[str]) -> bool:
    """Whether a word may stand for one of the long `options`: GNU programs take any beginning."""
    name = word.partition("=")[0]
    if not name.startswith("--") or len(name) < 3:
        return False
    return any(option.startswith(name) for option in options)


class Arguments(Struct):
    """Options with their values, and operands with their types, in order."""

    options: list[tuple[str, Field | None]] = []
    operands: list[Field] = []
    typed: list[tuple[str, Field]] = []

    def has(self, *names: str) -> bool:
        """Whether any of `names` was given."""
        return any(name in names for name, _ in self.options)


def read_arguments(fields: list[Field], table: ProgramTable) -> Arguments:
    """The arguments as options and operands; raises `Refused` at anything not allowed."""
    found = Arguments()
    at = 0
    while at < len(fields):
        field = fields[at]
        at += 1
        if field.kind != "known":
            if not _is_option_glob(field, table):
                _check_dynamic(field, table)
                found.operands.append(field)
        elif field.value == "--":
            found.operands.extend(fields[at:])
            break
        elif field.value.startswith("--"):
            at += _read_long(field, fields, at, table, found)
        elif field.value.startswith("-") and field.value != "-":
            at += _read_short(field, fields, at, table, found)
        else:
            found.operands.append(field)
            if table.posix:
                found.operands.extend(fields[at:])
                break
    if table.requires and not found.has(*table.requires):
        dashed = " or ".join(f"-{name}" for name in sorted(table.requires) if len(name) == 1)
        raise Refused(f"only with {dashed} it just looks")
    _check_pairs(found, table)
    _type_operands(found, table)
    return found


def _check_pairs(found: Arguments, table: ProgramTable) -> None:
    """Options that follow links out of the tree in some company only."""
    for first, second in table.apart:
        if found.has(first) and found.has(second):
            raise Refused(f"the options {first} and {second} together follow links out of the tree")
    for first, second in table.together:
        if found.has(first) and not found.has(second):
            raise Refused(f"the option {first} without --{second} follows links out of the tree")


def _is_option_glob(field: Field, table: ProgramTable) -> bool:
    """Whether an unquoted glob stands in the value of a harmless option, as in --include=*.py."""
    if field.kind != "glob" or table.globs != "any" or not field.single:
        return False
    name, equals, _ = field.value.partition("=")
    option = name.removeprefix("--")
    plain = not any(char in name for char in "*?[")
    return bool(equals) and plain and name != option and table.valued.get(option) == "text"


def _check_dynamic(field: Field, table: ProgramTable) -> None:
    if field.kind == "glob":
        if field.value.startswith("-"):
            raise Refused(f"the glob {field.text} is or becomes an option")
        if table.globs == "none":
            raise Refused(f"the unquoted glob {field.text} may expand to options")
        if table.globs == "anchored" and field.may_be_option:
            raise Refused(f"the glob {field.text} may expand to an option")
    elif field.may_be_option and table.globs != "loose":
        raise Refused(f"{field.text} may expand to an option")


def _read_long(
    field: Field, fields: list[Field], at: int, table: ProgramTable, found: Arguments
) -> int:
    name, equals, value = field.value[2:].partition("=")
    if len(name) < 2:
        raise Refused(f"the option {field.value} is abbreviated")
    if equals:
        if name not in table.valued:
            raise Refused(f"the option --{name} is not known to be harmless")
        _add_value(name, Field("known", value, field.text), table, found)
        return 0
    if name in table.flags or name in table.optional:
        found.options.append((name, None))
        return 0
    if name not in table.valued:
        raise Refused(f"the option --{name} is not known to be harmless")
    return _separate(name, fields, at, table, found)


def _read_short(
    field: Field, fields: list[Field], at: int, table: ProgramTable, found: Arguments
) -> int:
    bundle = field.value[1:]
    if table.number_option and bundle.isdigit():
        return 0
    for index, letter in enumerate(bundle):
        rest = bundle[index + 1 :]
        if letter in table.valued and (rest or letter not in table.optional):
            if rest:
                _add_value(letter, Field("known", rest, field.text), table, found)
                return 0
            return _separate(letter, fields, at, table, found)
        if letter in table.flags or letter in table.optional:
            found.options.append((letter, None))
        elif not (table.number_option and letter.isdigit()):
            raise Refused(f"the option -{letter} is not known to be harmless")
    return 0


def _separate(
    name: str, fields: list[Field], at: int, table: ProgramTable, found: Arguments
) -> int:
    if at >= len(fields):
        raise Refused(f"the option {name} has no value")
    value = fields[at]
    dashed = value.may_be_option and not _NUMBER.fullmatch(value.value)
    # A value that starts with a dash is where a wrong table entry would hide an option.
    if value.kind == "glob" or not value.single or dashed:
        raise Refused(f"the value {value.text} of option {name} is not plain")
    _add_value(name, value, table, found)
    return 1


def _add_value(name: str, value: Field, table: ProgramTable, found: Arguments) -> None:
    found.options.append((name, value))
    kind = table.valued[name]
    if kind != "text":
        found.typed.append((kind, value))


def _type_operands(found: Arguments, table: ProgramTable) -> None:
    kinds = list(table.operands)
    if kinds and table.pattern_from and found.has(*table.pattern_from):
        kinds = kinds[1:]
    if table.max_operands and len(found.operands) > table.max_operands:
        raise Refused(f"a second file operand ({found.operands[-1].text}) would be written")
    if found.operands and table.needs and not found.has(*table.needs):
        raise Refused(f"{found.operands[0].text} would be created, not listed")
    for index, field in enumerate(found.operands):
        if not kinds:
            raise Refused(f"the operand {field.text} is not expected")
        kind = kinds[min(index, len(kinds) - 1)]
        if index >= len(kinds) and not kinds[-1].endswith("*"):
            raise Refused(f"the operand {field.text} is not expected")
        found.typed.append((kind.rstrip("*"), field))
