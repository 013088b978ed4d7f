"""Names that one command lists and `xargs` passes to another that only reads them.

The text proves the listing and the reader; the names are known at run time.
`find_listed_name_problem` detects names that xargs would read differently.
"""

from __future__ import annotations

from collections.abc import Iterable

from handaxe.shell.analysis.facts import ListedOperands
from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.program_tables import (
    ProgramTable,
    load_git_forms,
    load_read_only_programs,
    split_names,
)
from handaxe.shell.analysis.programs.operands import ProofContext
from handaxe.shell.analysis.programs.options import Arguments, NotProven, read_arguments
from handaxe.shell.analysis.walker import ShellState

_XARGS = ProgramTable(
    flags=split_names("0 r null no-run-if-empty"),
    valued={
        **dict.fromkeys(("n", "P", "max-args", "max-procs"), "number"),
        **dict.fromkeys(("d", "delimiter"), "text"),
    },
    operands=("command*",),
    posix=True,
)
_NEWLINES = frozenset({"\\n", "\n"})
_SEPARATORS = frozenset(" \t\n\r\v\f'\"\\")
_PLACES = [Field("known", "./first", "./first"), Field("known", "./second", "./second")]
"""Placeholders for the names of xargs: two, so that a program that writes its second file fails."""
_FIND_PRINTS = split_names("-ls -printf -print -print0 -quit")
_RG_LISTS = split_names("l files-with-matches files files-without-match")
_RG_PLAIN = _RG_LISTS | split_names(
    "i w x F P S s v U u . 0 e g t T d ignore-case smart-case case-sensitive word-regexp "
    "line-regexp fixed-strings pcre2 multiline hidden no-hidden no-ignore no-ignore-vcs glob iglob "
    "no-ignore-dot no-ignore-parent no-ignore-global type type-not max-depth regexp sort null "
    "unrestricted one-file-system no-messages no-config invert-match"
)
_FD_PLAIN = split_names(
    "H I u s i F p g a 0 d t e E S j hidden no-ignore unrestricted case-sensitive ignore-case "
    "glob regex fixed-strings absolute-path full-path print0 no-ignore-vcs no-ignore-parent "
    "one-file-system strip-cwd-prefix prune max-depth min-depth exact-depth type extension exclude "
    "size changed-within changed-before owner threads max-results"
)
_LS_FILES_PLAIN = split_names(
    "c m o i z x cached modified others ignored exclude-standard deduplicate exclude"
)


def prove_listed_operands(
    producer: list[Field], xargs: list[Field], state: ShellState, setting: ProofContext
) -> ListedOperands:
    """The files that `producer | xargs consumer` reads. Raises `NotProven` if unknown."""
    if state.cwds != frozenset({setting.cwd}):
        raise NotProven("the directory of the listing is unknown")
    argv = tuple(_require_literal(field) for field in producer)
    options = read_arguments(xargs[1:], _XARGS)
    null = options.has("0", "null")
    delimiters = [value for name, value in options.options if name in ("d", "delimiter")]
    if any(value is None or value.known not in _NEWLINES for value in delimiters):
        raise NotProven("xargs splits the names at another character than a line end")
    if null != _is_null_separated(argv, producer):
        raise NotProven("the listing and xargs end a name with different characters")
    if null and delimiters:
        raise NotProven("xargs is given two separators")
    if not options.operands:
        raise NotProven("xargs is given no program")
    consumer = tuple(_require_literal(field) for field in options.operands)
    _check_consumer(options.operands, state, setting)
    return ListedOperands(argv, consumer, null, bool(delimiters), setting.cwd)


def _require_literal(field: Field) -> str:
    if field.known is None:
        raise NotProven(f"{field.text} is unknown before the command runs")
    return field.value


def _is_null_separated(argv: tuple[str, ...], fields: list[Field]) -> bool:
    """Whether the names end with a NUL; raises `NotProven` otherwise."""
    program = argv[0]
    if program == "find":
        return _is_find_null_separated(argv)
    if program == "git" and argv[1:2] == ("ls-files",):
        found = read_arguments(fields[2:], load_git_forms()["ls-files"])
        return _check_plain(found, _LS_FILES_PLAIN, split_names("z"), "git ls-files")
    if program == "rg":
        found = read_arguments(fields[1:], load_read_only_programs()["rg"])
        if not found.has(*_RG_LISTS):
            raise NotProven("rg lists names only with -l or --files")
        return _check_plain(found, _RG_PLAIN, split_names("0 null"), program)
    if program in ("fd", "fdfind"):
        found = read_arguments(fields[1:], load_read_only_programs()["fd"])
        return _check_plain(found, _FD_PLAIN, split_names("0 print0"), program)
    raise NotProven(f"{program} is not known to list only names")


def _is_find_null_separated(argv: tuple[str, ...]) -> bool:
    printing = {word for word in argv[1:] if word in _FIND_PRINTS} - {"-quit"}
    if not printing <= {"-print", "-print0"} or len(printing) > 1:
        raise NotProven("find prints more than names")
    return printing == {"-print0"}


def _check_plain(
    found: Arguments, plain: frozenset[str], null: frozenset[str], program: str
) -> bool:
    for name, _ in found.options:
        if name not in plain:
            raise NotProven(f"with the option {name} {program} may print more than names")
    return found.has(*null)


def _check_consumer(consumer: list[Field], state: ShellState, setting: ProofContext) -> None:
    """Prove that the program only reads the names as files, or prints them."""
    if consumer[0].known == "echo":
        return
    # Loaded late: the proofs of programs are many, and few commands have xargs.
    from handaxe.shell.analysis.programs.operands import collect_path_uses
    from handaxe.shell.analysis.programs.program_checks import CHECKS

    program = _require_literal(consumer[0])
    table = load_read_only_programs().get(program)
    if table is None or table.check not in ("", "jq"):
        raise NotProven(f"{program} is not known to only read the names from xargs")
    if table.at_files:
        raise NotProven(f"{program} treats a name that starts with @ as a file of arguments")
    fields = [*consumer[1:], *_PLACES]
    if table.check:
        CHECKS[table.check](fields, table, state, setting)
    arguments = read_arguments(fields, table)
    collect_path_uses(arguments, program, state, setting)
    if [kind for kind, field in arguments.typed if field in _PLACES] not in (
        ["path", "path"],
        ["names", "names"],
    ):
        raise NotProven(f"{program} does not treat the names from xargs as files to read")


def find_listed_name_problem(listed: Iterable[str], operands: ListedOperands) -> str | None:
    """Why a listed name must not be passed to the reader; None if all may.

    Links, roots and rules are checked separately.
    """
    for name in listed:
        if name.startswith("-"):
            return f"the listed name {name!r} would be an option"
        if operands.null_separated:
            continue
        if any(ord(char) < 32 or ord(char) == 127 for char in name):
            return f"the listed name {name!r} contains a control character"
        if not operands.line_separated and _SEPARATORS.intersection(name):
            return f"xargs would split or unquote the listed name {name!r}"
    return None
