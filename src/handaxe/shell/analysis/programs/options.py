"""Check an argument list against a table of allowed options.

An option that is not in the table, an abbreviation, or a value that could be an option is refused:
the table lists allowed options, never forbidden ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.program_tables import ProgramTable


class NotProven(Exception):
    """The arguments are not provably harmless; the text says why."""


def check_single(field: Field, what: str) -> Field:
    """The field if it certainly is one argument; raises `NotProven` otherwise."""
    if field.kind == "glob" or not field.single:
        raise NotProven(f"{what} {field.text} may become several arguments")
    return field


class ArgumentReader:
    """Returns the arguments of a command in order."""

    def __init__(self, fields: list[Field]) -> None:
        self._fields = fields
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._fields)

    @property
    def next_known(self) -> str | None:
        """The value of the next word if it is certain."""
        return self._fields[self._at].known if self else None

    def take_operand(self) -> Field:
        """The next word unchecked, for a caller that checks it."""
        self._at += 1
        return self._fields[self._at - 1]

    def take_rest(self) -> list[Field]:
        """All remaining words unchecked."""
        rest, self._at = self._fields[self._at :], len(self._fields)
        return rest

    def take_single(self, what: str) -> Field:
        """The next word, which must be one argument; `what` names it in the refusal."""
        if not self:
            raise NotProven(f"{what} is missing")
        return check_single(self.take_operand(), what)

    def take_literal(self, what: str) -> str:
        """The next word, which must be literal."""
        field = self.take_single(what)
        if field.known is None:
            raise NotProven(f"{what} {field.text} is unknown before the command runs")
        return field.value


__all__ = ["Arguments", "NotProven", "is_abbreviation", "read_arguments"]

_NUMBER = re.compile(r"[+-]?\d+[A-Za-z]*")


def is_abbreviation(word: str, options: Iterable[str]) -> bool:
    """Whether a word may stand for one of the long `options`; GNU programs accept any prefix."""
    name = word.partition("=")[0]
    if not name.startswith("--") or len(name) < 3:
        return False
    return any(option.startswith(name) for option in options)


class Arguments(Struct):
    """Options with their values, and operands with their types, in order."""

    options: list[tuple[str, Field | None]] = []
    operands: list[Field] = []
    typed: list[tuple[str, Field]] = []
    stray: list[Field] = []
    """Values of options after the first operand: files to a program that ends its options there."""
    subcommand: str = ""
    sweeps: bool = False
    """Whether a directory operand means the files below it, links followed."""
    takes_globs: bool = False
    """Whether the matches of a glob may occur anywhere among the operands."""

    def has(self, *names: str) -> bool:
        """Whether any of `names` was given."""
        return any(name in names for name, _ in self.options)


def read_arguments(fields: list[Field], table: ProgramTable) -> Arguments:
    """The arguments as options and operands; raises `NotProven` otherwise."""
    found = Arguments(sweeps=table.sweeps, takes_globs=table.globs == "any")
    words = ArgumentReader(fields)
    _read_subcommand(words, table, found)
    while words:
        field = words.take_operand()
        if table.at_files:
            _check_at_file(field)
        if field.kind != "known":
            if not _is_option_glob(field, table):
                _check_dynamic(field, table)
                found.operands.append(field)
        elif field.value == "--":
            found.operands.extend(words.take_rest())
        elif field.value.startswith("--"):
            _read_long(field, words, table, found)
        elif field.value.startswith("-") and field.value != "-":
            _read_short(field, words, table, found)
        else:
            found.operands.append(field)
            if table.posix:
                found.operands.extend(_check_late(words.take_rest(), table))
    if table.at_files:
        for field in found.operands:
            _check_at_file(field)
    if table.requires and not found.has(*table.requires):
        dashed = " or ".join(f"-{name}" for name in sorted(table.requires) if len(name) == 1)
        raise NotProven(f"it is read-only only with {dashed}")
    _check_pairs(found, table)
    _assign_operand_types(found, table)
    return found


def _read_subcommand(words: ArgumentReader, table: ProgramTable, found: Arguments) -> None:
    """The subcommand is the first word: after `--` or an option it would be an operand."""
    if not table.subcommands:
        return
    first = words.next_known
    if first in table.subcommands:
        found.subcommand = words.take_operand().value
    elif "-" not in table.subcommands or (words and first is None) or first == "--":
        told = " or ".join(sorted(table.subcommands - {"-"}))
        raise NotProven(f"it is read-only only with {told} as the first word")


def _check_late(fields: list[Field], table: ProgramTable) -> list[Field]:
    """Operands after the first: some versions of a program accept options there."""
    if table.operands == ("command*",):
        return fields
    for field in fields:
        if field.kind != "known":
            _check_dynamic(field, table)
        elif field.value.startswith("-") and not re.fullmatch(r"-|-[\d.]+", field.value):
            raise NotProven(f"{field.value} after an operand is an option to some versions")
    return fields


def _check_at_file(field: Field) -> None:
    head = field.value[:1]
    if head == "@" or (field.kind == "glob" and head in ("*", "?", "[")):
        raise NotProven(f"{field.text} may name a file with more arguments")
    if field.kind == "unknown" and not head:
        raise NotProven(f"{field.text} may become @FILE, a file with more arguments")


def _check_pairs(found: Arguments, table: ProgramTable) -> None:
    """Options that follow links out of the tree only in some combinations."""
    for first, second in table.apart:
        if found.has(first) and found.has(second):
            raise NotProven(
                f"the options {first} and {second} together follow links out of the tree"
            )
    for first, second in table.together:
        if found.has(first) and not found.has(*second.split("|")):
            raise NotProven(f"the option {first} is harmless only together with {second}")


def _is_option_glob(field: Field, table: ProgramTable) -> bool:
    """Whether an unquoted glob is in the value of a harmless option, as in --include=*.py."""
    if field.kind != "glob" or table.globs != "any" or not field.single:
        return False
    name, equals, _ = field.value.partition("=")
    option = name.removeprefix("--")
    plain = not any(char in name for char in "*?[")
    return bool(equals) and plain and name != option and table.valued.get(option) == "text"


def _check_dynamic(field: Field, table: ProgramTable) -> None:
    if field.kind == "glob":
        if field.value.startswith("-"):
            raise NotProven(f"the glob {field.text} is or becomes an option")
        if table.globs == "none":
            raise NotProven(f"the unquoted glob {field.text} may expand to options")
        if table.globs == "anchored" and field.may_be_option:
            raise NotProven(f"the glob {field.text} may expand to an option")
    elif field.may_be_option and table.globs != "loose":
        raise NotProven(f"{field.text} may expand to an option")


def _read_long(field: Field, words: ArgumentReader, table: ProgramTable, found: Arguments) -> None:
    name, equals, value = field.value[2:].partition("=")
    if len(name) < 2:
        raise NotProven(f"the option {field.value} is abbreviated")
    if equals:
        if name not in table.valued:
            raise NotProven(f"the option --{name} is not known to be harmless")
        _add_value(name, Field("known", value, field.text), table, found)
    elif name in table.flags or name in table.optional:
        found.options.append((name, None))
    elif name in table.valued:
        _read_separate(name, words, table, found)
    else:
        raise NotProven(f"the option --{name} is not known to be harmless")


def _read_short(field: Field, words: ArgumentReader, table: ProgramTable, found: Arguments) -> None:
    bundle = field.value[1:]
    if table.number_option and bundle.isdigit():
        return
    if not table.bundles and len(bundle) > 1 and (bundle in table.valued or bundle in table.flags):
        _read_long(Field("known", f"-{field.value}", field.text), words, table, found)
        return
    for index, letter in enumerate(bundle):
        rest = bundle[index + 1 :]
        if letter in table.valued and (rest or letter not in table.optional):
            if rest:
                _add_value(letter, Field("known", rest, field.text), table, found)
            else:
                _read_separate(letter, words, table, found)
            return
        if letter in table.flags or letter in table.optional:
            found.options.append((letter, None))
        elif not (table.number_option and letter.isdigit()):
            raise NotProven(f"the option -{letter} is not known to be harmless")
        if rest and not table.bundles:
            raise NotProven(f"{field.value}: letters after one dash may be read as one option")


def _read_separate(name: str, words: ArgumentReader, table: ProgramTable, found: Arguments) -> None:
    value = words.take_single(f"the value of option {name}")
    if table.at_files:
        _check_at_file(value)
    # A value that starts with a dash is where a wrong table entry would hide an option.
    is_key = table.valued[name] == "key" and re.fullmatch(r"-[a-z:]+", value.value)
    if value.may_be_option and not is_key and not _NUMBER.fullmatch(value.value):
        raise NotProven(f"the value {value.text} of option {name} is not plain")
    _add_value(name, value, table, found)
    if found.operands:
        found.stray.append(value)


def _add_value(name: str, value: Field, table: ProgramTable, found: Arguments) -> None:
    found.options.append((name, value))
    kind = table.valued[name]
    if kind != "text":
        found.typed.append((kind, value))


def _assign_operand_types(found: Arguments, table: ProgramTable) -> None:
    kinds = list(table.operands)
    if kinds and table.pattern_from and found.has(*table.pattern_from):
        kinds = kinds[1:]
    if found.operands and table.alone and found.has(*table.alone):
        raise NotProven(f"{found.operands[0].text} is not expected with that option")
    if len(found.operands) < table.min_operands and not found.has("help", "version", "h"):
        raise NotProven("without a file it reads one of the system's")
    if table.max_operands and len(found.operands) > table.max_operands:
        raise NotProven(f"a second file operand ({found.operands[-1].text}) would be written")
    if found.operands and table.subcommands and not found.subcommand:
        raise NotProven(f"{found.operands[0].text} is not a read-only subcommand")
    if found.operands and table.needs and not found.has(*table.needs):
        raise NotProven(f"{found.operands[0].text} would be created, not listed")
    for index, field in enumerate(found.operands):
        if table.refused_words and (field.known is None or field.value in table.refused_words):
            raise NotProven(f"{field.text} may be another subcommand")
        if not kinds:
            raise NotProven(f"the operand {field.text} is not expected")
        kind = kinds[min(index, len(kinds) - 1)]
        if index >= len(kinds) and not kinds[-1].endswith("*"):
            raise NotProven(f"the operand {field.text} is not expected")
        found.typed.append((kind.rstrip("*"), field))
