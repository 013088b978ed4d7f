"""Commands whose standard input may be their program or name their operands.

A rule for such a command would allow any piped input, so none is offered. Unknown commands count as
such. Never use it to prove that something is safe.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from handaxe.shell.analysis.program_tables import (
    get_base_name,
    load_read_only_programs,
    load_toml,
    split_names,
)
from handaxe.shell.analysis.programs.exec_options import can_run_programs
from handaxe.shell.analysis.programs.subcommands import WITH_SUBCOMMANDS
from handaxe.shell.analysis.programs.wrappers import load_wrappers

_STDIN_FILE = re.compile(
    r"(?:.*[/=:@])?stdin|.*/dev/fd/.*|.*/proc/[^/]+/(?:task/[^/]+/)?fd/.*", re.DOTALL
)
_STDIN_DASH = re.compile(r"@?-|-[A-Za-z]@?-|-{0,2}[\w.-]+[=:]@?-")
_STDIN_OPTION = re.compile(r"-{1,2}[\w-]*stdin[\w-]*(?:=.*)?", re.DOTALL)
_VERSION = re.compile(r"[-._]?\d.*$", re.DOTALL)
_NUMBER_OR_ASSIGNMENT = re.compile(r"[\d.]+[smhd]?|\w+=.*", re.DOTALL)
_READS_IN_CODE = re.compile(
    r"stdin|input|read|gets|ARGF|fd/|<>|system|exec|open|spawn|process|eval|qx|%x|`|php://",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[\w./+][\w./+-]*")
_EARLIER_BRANCH = split_names("checkout switch merge rebase cherry-pick")
"""Subcommands of git for which `-` is the previous branch."""
CONSOLES = split_names(
    "exec shell sh bash zsh eval runner console repl enter ssh attach debug run-script python node "
    "ruby script cmd execute dbshell tinker interactive"
)
"""Arguments that often open an interpreter."""
_RUN_WORDS = split_names("run exec x dlx tool --")
_BUILTINS = split_names("eval exec . source read trap alias hash let")
"""Builtins cannot be run by another program."""


class StdinForm(Struct, frozen=True):
    """How one program takes its program or operands from standard input."""

    exact: str
    required_words: frozenset[str]
    """One of these words must be among the arguments; empty: always."""
    needs: str
    refuses: str
    flags: str
    valued: str
    code: str
    module: str
    stdin_modules: frozenset[str]
    operands: int
    runs: bool
    has_prefix: bool


class _Table(Struct, frozen=True):
    forms: dict[str, list[StdinForm]]
    prefixed: frozenset[str]


@cache
def _load_table() -> _Table:
    raw = load_toml("stdin_programs.toml")
    forms: dict[str, list[StdinForm]] = {}
    for entry in raw["program"]:
        form = _make_form(entry)
        for name in entry["names"].split():
            forms.setdefault(name, []).append(form)
    prefixed = frozenset(name for entry in raw["prefix"] for name in entry["names"].split())
    return _Table(forms, prefixed)


def _make_form(entry: dict[str, Any]) -> StdinForm:
    return StdinForm(
        exact=entry["exact"],
        required_words=split_names(entry.get("with", "")),
        needs=entry.get("needs", ""),
        refuses=entry.get("refuses", ""),
        flags=entry.get("flags", ""),
        valued=entry.get("valued", ""),
        code=entry.get("code", ""),
        module=entry.get("module", ""),
        stdin_modules=split_names(entry.get("stdin_modules", "")),
        operands=entry.get("operands", 1 if entry.get("operand_is_script", True) else 0),
        runs=entry.get("runs", False),
        has_prefix=entry.get("prefix", False),
    )


def list_program_names(word: str) -> tuple[str, ...]:
    """The possible names of a program: without directory, `.exe`, extension and version."""
    name = get_base_name(word)
    return tuple(dict.fromkeys((name, name.partition(".")[0], _VERSION.sub("", name))))


def is_stdin_argument(word: str) -> bool:
    """Whether an argument means standard input."""
    return any(p.fullmatch(word) for p in (_STDIN_FILE, _STDIN_DASH, _STDIN_OPTION))


def can_have_prefix(words: Sequence[str | None]) -> bool:
    """Whether a prefix rule may end after the subcommand of this command."""
    return all(form.has_prefix for form in _find_forms(words))


def is_stdin_data_only(program: str) -> bool:
    """Whether this program takes only data from standard input, with all options and operands."""
    return _is_known(program, _load_table().prefixed)


def can_run_stdin(words: Sequence[str | None]) -> bool:
    """Whether standard input may be the program of this command, or name its operands.

    Words that are not literal are ignored, because no rule is offered for them.
    """
    program = words[0] or ""
    args = [word for word in words[1:] if word is not None]
    forms = _find_forms(words)
    if _has_stdin_argument(program, args) or any(
        _is_decided_by_stdin(form, args) for form in forms
    ):
        return True
    if is_stdin_data_only(program):
        return False
    is_runner = _is_known(program, load_wrappers().keys())
    if is_runner or any(map(can_run_programs, list_program_names(program))):
        is_wrapper = is_runner and not forms and not _has_commands(program)
        must_be_known = is_wrapper or any(form.runs for form in forms)
        return _has_stdin_program(args, must_be_known=must_be_known)
    if forms or _is_known(program, load_read_only_programs().keys()):
        return False
    if _has_commands(program):
        return not _list_operands(args)
    return _is_unknown_interpreter(program, args)


def _has_stdin_argument(program: str, args: list[str]) -> bool:
    if _is_known(program, {"git"}) and not _EARLIER_BRANCH.isdisjoint(args):
        args = [word for word in args if word != "-"]
    return any(map(is_stdin_argument, args))


def _find_forms(words: Sequence[str | None]) -> list[StdinForm]:
    """The table entries for this command."""
    table = _load_table().forms
    found = [form for name in list_program_names(words[0] or "") for form in table.get(name, ())]
    return [
        form
        for form in found
        if not form.required_words or not form.required_words.isdisjoint(words[1:])
    ]


def _is_decided_by_stdin(form: StdinForm, args: list[str]) -> bool:
    """Whether standard input determines what this form of the program does."""
    if any(_is_match(form.refuses, word) for word in args):
        return True
    if form.needs and not any(_is_match(form.needs, word) for word in args):
        return True
    if form.exact == "operand":
        return not [word for word in _list_operands(args) if word not in form.required_words]
    if form.exact == "script":
        return not _has_script(form, args)
    return form.exact == "never"


def _has_script(form: StdinForm, args: list[str]) -> bool:
    """Whether a script or its text is given, with only known options before it."""
    at = 0
    while at < len(args):
        word, following = args[at], args[at + 1 : at + 2]
        if _is_match(form.code, word):
            has_text = bool(following) or "=" in word
            return has_text and not _READS_IN_CODE.search(" ".join([*following, word]))
        if form.module and word == form.module:
            return bool(following) and following[0].partition(".")[0] not in form.stdin_modules
        if not word.startswith(("-", "+")):
            if form.operands:
                is_given = len(_list_operands(args[at:])) >= form.operands
                return is_given and CONSOLES.isdisjoint(args[at:])
            at += 1
        elif _is_match(form.valued, word):
            at += 2
        elif _is_match(form.flags, word):
            at += 1
        else:
            return False
    return False


def _has_stdin_program(args: list[str], *, must_be_known: bool) -> bool:
    """Whether a program among the arguments takes standard input, or none is known."""
    is_known = False
    for at, word in enumerate(args):
        if _has_interpreter(word):
            return True
        is_no_program = word in _RUN_WORDS | _BUILTINS or _NUMBER_OR_ASSIGNMENT.fullmatch(word)
        if word.startswith("-") or is_no_program:
            continue
        has_forms = bool(_find_forms(args[at:]))
        if has_forms and can_run_stdin(args[at:]):
            return True
        is_first = _RUN_WORDS.issuperset(args[:at]) and at + 1 < len(args)
        is_known = is_known or has_forms or is_first or _can_be_left_alone(word)
    return must_be_known and not is_known


def _has_interpreter(word: str) -> bool:
    """Whether an option's value or a quoted text names a program that takes standard input."""
    is_option = word.startswith("-")
    pieces = _WORDS.findall(word.partition("=")[2] if is_option else word)
    if is_option and not word.startswith("--"):
        # A value may stand right behind the letter of its option.
        pieces.append(word[2:])
    elif len(pieces) < 2 and not is_option:
        return False
    forms = [form for piece in pieces if piece not in _BUILTINS for form in _find_forms([piece])]
    return any(form.exact in {"never", "script"} for form in forms)


def _can_be_left_alone(word: str) -> bool:
    known = _load_table().prefixed | WITH_SUBCOMMANDS | load_read_only_programs().keys()
    return _is_known(word, known) or _is_file(word)


def _is_unknown_interpreter(program: str, args: list[str]) -> bool:
    """Whether an unknown program may be an interpreter: it has no arguments, or a console word."""
    if not CONSOLES.isdisjoint(args) or _has_stdin_program(args, must_be_known=False):
        return True
    return not _list_operands(args) and not _is_file(program)


def _is_file(program: str) -> bool:
    """Whether a program is a path in the project, or a script's name."""
    is_relative = "/" in program and not program.startswith(("/", "~"))
    return is_relative or re.fullmatch(r"[\w.-]+\.(?:sh|py|js|ts|rb|pl|php)", program) is not None


def _has_commands(program: str) -> bool:
    return _is_known(program, WITH_SUBCOMMANDS)


def _list_operands(args: list[str]) -> list[str]:
    return [word for word in args if not word.startswith(("-", "+"))]


def _is_known(program: str, known: Any) -> bool:  # noqa: ANN401 - a set or the keys of a mapping
    return any(name in known for name in list_program_names(program))


def _is_match(pattern: str, word: str) -> bool:
    return bool(pattern) and re.fullmatch(pattern, word) is not None
