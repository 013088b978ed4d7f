"""Proofs for programs whose arguments do not fit an option table."""

from __future__ import annotations

import re
from collections.abc import Callable

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse
from handaxe.shell.analysis.program_tables import ProgramTable, is_own_variable, split_names
from handaxe.shell.analysis.programs.embedded_languages import is_plain_jq
from handaxe.shell.analysis.programs.operands import (
    ProofContext,
    check_listing,
    check_path,
    collect_path_uses,
)
from handaxe.shell.analysis.programs.options import (
    ArgumentReader,
    NotProven,
    check_single,
    read_arguments,
)
from handaxe.shell.analysis.programs.read_only_forms import check_find, check_git, check_tar
from handaxe.shell.analysis.walker import ShellState

Check = Callable[[list[Field], ProgramTable, ShellState, ProofContext], list[PathUse]]

_TEST_UNARY_PATH = frozenset("-" + letter for letter in "abcdefghkprsuwxGLNOS")
_TEST_BINARY = split_names("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRINTF_STORE = re.compile(r"%[-+ #0*.'0-9hlLqjzt]*n")
_PS_BSD = re.compile(r"[auxwfjlvTH]+")
_PS_UNIX = re.compile(r"-[AaefFlHjTdNwL]+")
_PS_LONG = re.compile(
    r"--(sort|ppid|pid|user|tty)=[\w,%+-]+|--format=[a-z,=%]+|--no-headers?|--headers|--forest|--version"
)
_PS_VALUED = split_names(
    "-o -p -u -U -C -g -G -t -q --sort --ppid --pid --user --tty --format -eo -axo -ao -fp -fu k"
)


def _check_echo(
    fields: list[Field], _table: ProgramTable, state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    """Anything may be printed; an unquoted glob lists its directory."""
    return [use for field in fields for use in check_listing(field, state)]


def _check_printf(
    fields: list[Field], table: ProgramTable, state: ShellState, setting: ProofContext
) -> list[PathUse]:
    if fields and fields[0].known == "--":
        fields = fields[1:]
    if not fields or fields[0].may_be_option or fields[0].known is None:
        raise NotProven("the format of printf is not plain")
    if _PRINTF_STORE.search(fields[0].value):
        raise NotProven("%n of printf sets a variable")
    return _check_echo(fields[1:], table, state, setting)


def _check_test(
    fields: list[Field], _table: ProgramTable, state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    """`test` and `[` in their plain forms, each operand one argument; `-v` evaluates code."""
    if fields and fields[-1].known == "]":
        fields = fields[:-1]
    if len(fields) == 1:
        return []
    uses: list[PathUse] = []
    clause: list[Field] = []
    for field in [*fields, Field("known", "-a", "")]:
        if field.known in ("-a", "-o") and len(clause) in (2, 3):
            uses.extend(_check_test_clause(clause, state))
            clause = []
        elif field.known != "!" or clause:
            clause.append(field)
    if len(clause) > 2 or (clause and clause[-1].text):
        raise NotProven("a test that is not one of the plain forms")
    if len(clause) == 2 and clause[0].known is None and clause[0].may_be_option:
        raise NotProven(f"{clause[0].text} may become an operator of test")
    return uses


def _check_test_clause(clause: list[Field], state: ShellState) -> list[PathUse]:
    if len(clause) == 3:
        if clause[1].known not in _TEST_BINARY:
            raise NotProven(f"the test operator {clause[1].text} is not plain")
        pair = [clause[0], clause[2]] if clause[1].known in ("-nt", "-ot", "-ef") else []
        return [use for field in pair for use in check_path(field, state)]
    operator = clause[0].known
    if operator in ("-n", "-z", "-t"):
        return []
    if operator not in _TEST_UNARY_PATH:
        raise NotProven(f"the test operator {clause[0].text} is not plain")
    return check_path(clause[1], state)


def _check_expr(
    fields: list[Field], _table: ProgramTable, _state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    """Expr only computes and prints, whatever its words are; a glob would list names."""
    if any(field.kind == "glob" for field in fields):
        raise NotProven("an unquoted glob in expr")
    return []


def _check_cd(
    fields: list[Field], _table: ProgramTable, state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    while fields and fields[0].known in ("--", "-L", "-P", "-e"):
        fields = fields[1:]
    if not fields:
        home = state.variables.get("HOME")
        fields = [home] if home is not None else []
    if len(fields) != 1 or fields[0].known in (None, "", "-"):
        raise NotProven("where cd goes is unknown before it runs")
    if fields[0].may_be_option:
        raise NotProven(f"the option {fields[0].text} of cd is not known to be harmless")
    return check_path(fields[0], state)


def _check_command(
    fields: list[Field], _table: ProgramTable, _state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    if not fields or fields[0].known not in ("-v", "-V"):
        raise NotProven("command runs its arguments")
    return []


def _check_set(
    fields: list[Field], _table: ProgramTable, _state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    values = [field.known or "?" for field in fields]
    plain = [value for value in values if value != "pipefail"]
    if not plain or not all(re.fullmatch(r"[-+][eufo]+", value) for value in plain):
        raise NotProven("set changes the shell or prints variables")
    if any("o" in value for value in plain) and "pipefail" not in values:
        raise NotProven("set changes the shell or prints variables")
    return []


def _check_read(
    fields: list[Field], _table: ProgramTable, _state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    """`read` into plain variables of the script; a subscript would be evaluated."""
    words = ArgumentReader(fields)
    while words.next_known in ("-r", "-d", "-n", "-N", "-t", "-rd", "-s", "-a", "-ra"):
        if words.take_literal("the option") in ("-d", "-n", "-N", "-t", "-rd"):
            words.take_literal("the value of an option of read")
    while words:
        name = words.take_literal("the variable")
        if not _NAME.fullmatch(name) or not is_own_variable(name):
            raise NotProven("read sets a variable that is not a plain one of the script")
    return []


def _check_ps(
    fields: list[Field], _table: ProgramTable, _state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    """`ps` without the BSD letter `e`, which prints environments."""
    words = ArgumentReader(fields)
    is_first = True
    while words:
        word = words.take_literal("the option")
        if word in _PS_VALUED:
            value = words.take_single(f"the value of {word}")
            if word.endswith(("o", "--format")) and (
                value.known is None or "env" in value.value.lower()
            ):
                raise NotProven("ps would print environments")
        elif not (
            _PS_UNIX.fullmatch(word)
            or (is_first and _PS_BSD.fullmatch(word))
            or _PS_LONG.fullmatch(word)
        ):
            raise NotProven(f"the option {word} of ps is not known to be harmless")
        is_first = False
    return []


def _check_jq(
    fields: list[Field], table: ProgramTable, state: ShellState, setting: ProofContext
) -> list[PathUse]:
    """Named arguments take two words; the filter may read only its input."""
    rest: list[Field] = []
    words = ArgumentReader(fields)
    while words:
        if words.next_known in ("--arg", "--argjson"):
            words.take_operand()
            words.take_literal("the name of a jq variable")
            words.take_single("the value of a jq variable")
        else:
            rest.append(words.take_operand())
    arguments = read_arguments(rest, table)
    for kind, field in arguments.typed:
        if kind == "pattern" and (field.known is None or not is_plain_jq(field.known)):
            raise NotProven("a jq filter that may read more than its input")
    return collect_path_uses(arguments, "jq", state, setting)


def _check_find(
    fields: list[Field], _table: ProgramTable, state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    return check_find(fields, state)


def _check_git(
    fields: list[Field], _table: ProgramTable, state: ShellState, setting: ProofContext
) -> list[PathUse]:
    return check_git(fields, state, setting)


def _require_single_words(check: Check) -> Check:
    """Wrap a check so that it only gets words that are one argument each."""

    def checked(
        fields: list[Field], table: ProgramTable, state: ShellState, setting: ProofContext
    ) -> list[PathUse]:
        for field in fields:
            check_single(field, "the argument")
        return check(fields, table, state, setting)

    return checked


_ANY_WORDS: dict[str, Check] = {
    "echo": _check_echo,
    "printf": _check_printf,
    "expr": _check_expr,
    "jq": _check_jq,
    "git": _check_git,
}
"""Checks that handle words that may be several arguments."""
_SINGLE_WORDS: dict[str, Check] = {
    "test": _check_test,
    "cd": _check_cd,
    "command": _check_command,
    "set": _check_set,
    "read": _check_read,
    "ps": _check_ps,
    "find": _check_find,
    "tar": check_tar,
}
CHECKS: dict[str, Check] = {
    **_ANY_WORDS,
    **{name: _require_single_words(check) for name, check in _SINGLE_WORDS.items()},
}
"""Proofs by the name in the `check` field of an option table."""
