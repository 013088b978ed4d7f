"""Proofs for programs whose arguments do not fit an option table."""

from __future__ import annotations

import re
from collections.abc import Callable

from handaxe.shell.archives import tar_uses
from handaxe.shell.fields import Field
from handaxe.shell.find_expression import find_uses
from handaxe.shell.flow import State
from handaxe.shell.git_forms import git_uses
from handaxe.shell.jq_filter import is_plain_jq
from handaxe.shell.operands import Setting, checked_path, listed_by, path_uses
from handaxe.shell.options import Refused, read_arguments
from handaxe.shell.places import PathUse
from handaxe.shell.secrets import is_own_variable
from handaxe.shell.tables import ProgramTable, names
from handaxe.shell.word_reader import WordReader, check_single

Check = Callable[[list[Field], ProgramTable, State, Setting], list[PathUse]]

_TEST_UNARY_PATH = frozenset("-" + letter for letter in "abcdefghkprsuwxGLNOS")
_TEST_BINARY = names("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRINTF_STORE = re.compile(r"%[-+ #0*.'0-9hlLqjzt]*n")
_PS_BSD = re.compile(r"[auxwfjlvTH]+")
_PS_UNIX = re.compile(r"-[AaefFlHjTdNwL]+")
_PS_LONG = re.compile(
    r"--(sort|ppid|pid|user|tty)=[\w,%+-]+|--format=[a-z,=%]+|--no-headers?|--headers|--forest|--version"
)
_PS_VALUED = names(
    "-o -p -u -U -C -g -G -t -q --sort --ppid --pid --user --tty --format -eo -axo -ao -fp -fu k"
)


def _echo(
    fields: list[Field], _table: ProgramTable, state: State, _setting: Setting
) -> list[PathUse]:
    """Anything may be printed; an unquoted glob lists its directory."""
    return [use for field in fields for use in listed_by(field, state)]


def _printf(
    fields: list[Field], table: ProgramTable, state: State, setting: Setting
) -> list[PathUse]:
    if fields and fields[0].known == "--":
        fields = fields[1:]
    if not fields or fields[0].may_be_option or fields[0].known is None:
        raise Refused("the format of printf is not plain")
    if _PRINTF_STORE.search(fields[0].value):
        raise Refused("%n of printf sets a variable")
    return _echo(fields[1:], table, state, setting)


def _test(
    fields: list[Field], _table: ProgramTable, state: State, _setting: Setting
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
            uses.extend(_test_clause(clause, state))
            clause = []
        elif field.known != "!" or clause:
            clause.append(field)
    if len(clause) > 2 or (clause and clause[-1].text):
        raise Refused("a test that is not one of the plain forms")
    if len(clause) == 2 and clause[0].known is None and clause[0].may_be_option:
        raise Refused(f"{clause[0].text} may become an operator of test")
    return uses


def _test_clause(clause: list[Field], state: State) -> list[PathUse]:
    if len(clause) == 3:
        if clause[1].known not in _TEST_BINARY:
            raise Refused(f"the test operator {clause[1].text} is not plain")
        pair = [clause[0], clause[2]] if clause[1].known in ("-nt", "-ot", "-ef") else []
        return [use for field in pair for use in checked_path(field, state)]
    operator = clause[0].known
    if operator in ("-n", "-z", "-t"):
        return []
    if operator not in _TEST_UNARY_PATH:
        raise Refused(f"the test operator {clause[0].text} is not plain")
    return checked_path(clause[1], state)


def _expr(
    fields: list[Field], _table: ProgramTable, _state: State, _setting: Setting
) -> list[PathUse]:
    """Whatever its words become, expr only computes and prints; a glob would list names."""
    if any(field.kind == "glob" for field in fields):
        raise Refused("an unquoted glob in expr")
    return []


def _cd(
    fields: list[Field], _table: ProgramTable, state: State, _setting: Setting
) -> list[PathUse]:
    while fields and fields[0].known in ("--", "-L", "-P", "-e"):
        fields = fields[1:]
    if not fields:
        home = state.variables.get("HOME")
        fields = [home] if home is not None else []
    if len(fields) != 1 or fields[0].known in (None, "", "-"):
        raise Refused("where cd goes is not known before it runs")
    if fields[0].may_be_option:
        raise Refused(f"the option {fields[0].text} of cd is not known to be harmless")
    return checked_path(fields[0], state)


def _command(
    fields: list[Field], _table: ProgramTable, _state: State, _setting: Setting
) -> list[PathUse]:
    if not fields or fields[0].known not in ("-v", "-V"):
        raise Refused("command runs its arguments")
    return []


def _set(
    fields: list[Field], _table: ProgramTable, _state: State, _setting: Setting
) -> list[PathUse]:
    values = [field.known or "?" for field in fields]
    plain = [value for value in values if value != "pipefail"]
    if not plain or not all(re.fullmatch(r"[-+][eufo]+", value) for value in plain):
        raise Refused("set changes the shell or prints variables")
    if any("o" in value for value in plain) and "pipefail" not in values:
        raise Refused("set changes the shell or prints variables")
    return []


def _read(
    fields: list[Field], _table: ProgramTable, _state: State, _setting: Setting
) -> list[PathUse]:
    """`read` into plain names of one's own; a subscript would be evaluated."""
    words = WordReader(fields)
    while words.next_known in ("-r", "-d", "-n", "-N", "-t", "-rd", "-s", "-a", "-ra"):
        if words.take_literal("the option") in ("-d", "-n", "-N", "-t", "-rd"):
            words.take_literal("the value of an option of read")
    while words:
        name = words.take_literal("the variable")
        if not _NAME.fullmatch(name) or not is_own_variable(name):
            raise Refused("read sets a variable that is not plainly its own")
    return []


def _ps(
    fields: list[Field], _table: ProgramTable, _state: State, _setting: Setting
) -> list[PathUse]:
    """`ps` without the BSD letter `e`, which prints environments."""
    words = WordReader(fields)
    is_first = True
    while words:
        word = words.take_literal("the option")
        if word in _PS_VALUED:
            value = words.take_single(f"the value of {word}")
            if word.endswith(("o", "--format")) and (
                value.known is None or "env" in value.value.lower()
            ):
                raise Refused("ps would print environments")
        elif not (
            _PS_UNIX.fullmatch(word)
            or (is_first and _PS_BSD.fullmatch(word))
            or _PS_LONG.fullmatch(word)
        ):
            raise Refused(f"the option {word} of ps is not known to be harmless")
        is_first = False
    return []


def _jq(fields: list[Field], table: ProgramTable, state: State, setting: Setting) -> list[PathUse]:
    """Named arguments take two words; the filter may read nothing but its input."""
    rest: list[Field] = []
    words = WordReader(fields)
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
            raise Refused("a jq filter that may read more than its input")
    return path_uses(arguments, "jq", state, setting)


def _find(
    fields: list[Field], _table: ProgramTable, state: State, _setting: Setting
) -> list[PathUse]:
    return find_uses(fields, state)


def _git(
    fields: list[Field], _table: ProgramTable, state: State, setting: Setting
) -> list[PathUse]:
    return git_uses(fields, state, setting)


def _single_words(check: Check) -> Check:
    """The check, told only of words that are one argument each."""

    def checked(
        fields: list[Field], table: ProgramTable, state: State, setting: Setting
    ) -> list[PathUse]:
        for field in fields:
            check_single(field, "the argument")
        return check(fields, table, state, setting)

    return checked


_ANY_WORDS: dict[str, Check] = {
    "echo": _echo,
    "printf": _printf,
    "expr": _expr,
    "jq": _jq,
    "git": _git,
}
"""Checks that say themselves what becomes of a word that may be several."""
_SINGLE_WORDS: dict[str, Check] = {
    "test": _test,
    "cd": _cd,
    "command": _command,
    "set": _set,
    "read": _read,
    "ps": _ps,
    "find": _find,
    "tar": tar_uses,
}
CHECKS: dict[str, Check] = {
    **_ANY_WORDS,
    **{name: _single_words(check) for name, check in _SINGLE_WORDS.items()},
}
"""Proofs by the name an option table gives in `check`."""
