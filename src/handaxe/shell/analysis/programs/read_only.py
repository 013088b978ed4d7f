"""Prove that a command only reads.

Everything is an allow-list: node kinds, programs, options, operands. Anything else is refused with
the reason. Do not use this module to find danger.
"""

from __future__ import annotations

import re

from msgspec import Struct

from handaxe.shell.analysis.parser.expansion import Field, Variables, expand_value, expand_word
from handaxe.shell.analysis.parser.syntax import Compound, Simple, Word, WordPiece
from handaxe.shell.analysis.paths import PathUse, make_path_uses
from handaxe.shell.analysis.program_tables import (
    is_harmless_prefix,
    is_own_variable,
    is_secret_name,
    load_read_only_programs,
    load_version_calls,
    split_names,
)
from handaxe.shell.analysis.programs.operands import ProofContext, collect_path_uses
from handaxe.shell.analysis.programs.options import NotProven, read_arguments
from handaxe.shell.analysis.programs.program_checks import CHECKS
from handaxe.shell.analysis.programs.reevaluation import find_reevaluation
from handaxe.shell.analysis.walker import Part, ShellState

_ARITHMETIC_CHANGE = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")
_EXPANDING = frozenset(
    {
        "",
        "#",
        "##",
        "%",
        "%%",
        "-",
        ":-",
        "+",
        ":+",
        "/",
        "//",
        "^",
        "^^",
        ",",
        ",,",
        ":",
        "?",
        ":?",
    }
)
_SYSTEM_DIRS = ("/bin/", "/usr/bin/")
_NUMERIC_TESTS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_STRING_TESTS = split_names("= == != =~ < > -nt -ot -ef")
_UNARY_TESTS = frozenset("-" + letter for letter in "abcdefghknprstuwxzGLNOS")
_SIGNS = frozenset({"&&", "||", "(", ")", "!"})


class Proof(Struct):
    """A proof that a command only reads: the reads it makes."""

    reads: list[PathUse] = []


def prove(part: Part, setting: ProofContext) -> Proof:
    """The proof for `part` in every possible state; raises `NotProven` otherwise."""
    proof = Proof()
    for state in part.states:
        proof.reads.extend(_prove_in(part, state, setting))
    return proof


def _prove_in(part: Part, state: ShellState, setting: ProofContext) -> list[PathUse]:
    _check_expansions(part, state)
    node = part.node
    if isinstance(node, Simple):
        return _prove_simple(node, state, setting)
    if part.kind == "header":
        return _prove_header(node, state)
    if part.kind == "test":
        return _prove_test(node, state)
    if part.kind == "arithmetic":
        _check_arithmetic(node.words[0].text)
        return []
    raise NotProven(f"{part.kind} is not part of the provable syntax")


def _check_expansions(part: Part, state: ShellState) -> None:
    doubt = find_reevaluation(part, state)
    if doubt:
        raise NotProven(doubt)
    words = list(part.words)
    for redirect in part.redirects:
        words.append(redirect.target)
        if redirect.heredoc is not None and redirect.heredoc.body is not None:
            words.append(redirect.heredoc.body)
    for word in words:
        if word.has_expansion:
            for piece in (*word.pieces, *word.nested):
                _check_piece(piece, state.variables)


def _check_piece(piece: WordPiece, variables: Variables) -> None:
    if piece.kind == "arithmetic":
        _check_arithmetic(piece.text)
    elif piece.kind == "process" and piece.text == ">":
        raise NotProven(">( ) feeds another command")
    elif piece.param is not None:
        param = piece.param
        name = param.name.removesuffix("[]")
        if param.operator not in _EXPANDING or param.prefix == "!":
            raise NotProven(f"${{{piece.text}}} does more than read a variable")
        if variables.get(name) is None and is_secret_name(name):
            raise NotProven(f"${name} looks like a secret")


def _check_arithmetic(text: str) -> None:
    if _ARITHMETIC_CHANGE.search(text):
        raise NotProven("arithmetic that does more than compute")


def _prove_header(node: Compound, state: ShellState) -> list[PathUse]:
    """The list of a loop or the subject of a case: globs read their directory."""
    uses: list[PathUse] = []
    if node.kind == "for":
        if not is_own_variable(node.name.rstrip("@")):
            raise NotProven(f"the loop variable {node.name} may change how programs run")
        for word in node.words:
            uses.extend(find_glob_reads(word, state))
    return uses


def find_glob_reads(word: Word, state: ShellState) -> list[PathUse]:
    """The directories that an unquoted glob in `word` lists."""
    uses: list[PathUse] = []
    for field in expand_word(word, state.variables):
        if field.kind == "glob":
            uses.extend(make_path_uses(field, "read", state.cwds))
    return uses


def _prove_test(node: Compound, state: ShellState) -> list[PathUse]:
    """`[[ ]]`: evaluation of its operands was checked before; file tests read."""
    uses: list[PathUse] = []
    words = node.words
    for index, word in enumerate(words):
        is_operator = word.is_sign or word.text in _SIGNS
        if is_operator or word.text in _STRING_TESTS or word.text in _NUMERIC_TESTS:
            continue
        if word.text.startswith("-") and not word.quoted and index + 1 < len(words):
            if word.text not in _UNARY_TESTS:
                raise NotProven(f"the test {word.text} is not known to be harmless")
            if word.text not in ("-n", "-z", "-t"):
                field = expand_value(words[index + 1], state.variables)
                uses.extend(make_path_uses(field, "read", state.cwds))
    return uses


def _prove_simple(node: Simple, state: ShellState, setting: ProofContext) -> list[PathUse]:
    check_assignments(node, state)
    if not node.words:
        return []
    uses: list[PathUse] = []
    fields = [field for word in node.words for field in expand_word(word, state.variables)]
    fields = unwrap_proven(fields)
    if not fields:
        raise NotProven("nothing is run")
    program = get_program(fields[0])
    words = load_version_calls().get(program)
    if words and len(fields) == 2 and fields[1].known in words:
        return []
    table = load_read_only_programs().get(program)
    if table is None:
        raise NotProven(f"{program} is not in the read-only set")
    check = CHECKS.get(table.check)
    if check is not None:
        uses.extend(check(fields[1:], table, state, setting))
    else:
        uses.extend(collect_path_uses(read_arguments(fields[1:], table), program, state, setting))
    return uses


def get_program(first: Field) -> str:
    """The program named by a command's first word; raises `NotProven` otherwise."""
    program = first.known
    if program is None:
        raise NotProven(f"the program {first.text} is unknown before it runs")
    for directory in _SYSTEM_DIRS:
        program = program.removeprefix(directory)
    return program


def check_assignments(node: Simple, state: ShellState) -> None:
    """Check that assignments do not change what a command runs; raises `NotProven` otherwise."""
    for item in node.assignments:
        is_open = item.array is not None and not all(w.literal is not None for w in item.array)
        if item.subscript is not None or item.append or is_open:
            raise NotProven(f"the assignment {item.text} is more than a plain value")
        if node.words:
            value = expand_value(item.value, state.variables).known if item.value else ""
            if item.name == "IFS" and node.words[0].literal == "read" and value is not None:
                continue
            if not is_harmless_prefix(item.name, value):
                raise NotProven(f"{item.name}= may change what runs")
        elif not is_own_variable(item.name):
            raise NotProven(f"setting {item.name} may change how programs run")


def unwrap_proven(fields: list[Field], layers: int = 4) -> list[Field]:
    """The command inside timeout, time, nice, stdbuf or command, in the plain form."""
    for _ in range(layers):
        program = fields[0].known if fields else None
        inner = _UNWRAP[program](fields[1:]) if program in _UNWRAP else None
        if inner is None:
            return fields
        fields = inner
    return fields


def _skip_duration(fields: list[Field]) -> list[Field] | None:
    while fields and fields[0].known in ("--foreground", "--preserve-status", "-v"):
        fields = fields[1:]
    while len(fields) > 2 and fields[0].known in ("-k", "-s") and fields[1].known is not None:
        fields = fields[2:]
    if len(fields) < 2 or not re.fullmatch(r"[\d.]+[smhd]?", fields[0].known or ""):
        return None
    return fields[1:]


def _skip_niceness(fields: list[Field]) -> list[Field] | None:
    if (
        len(fields) > 2
        and fields[0].known == "-n"
        and re.fullmatch(r"-?\d+", fields[1].known or "")
    ):
        return fields[2:]
    if fields and re.fullmatch(r"-n?-?\d+", fields[0].known or ""):
        fields = fields[1:]
    return fields if fields and not fields[0].may_be_option else None


def _skip_buffers(fields: list[Field]) -> list[Field] | None:
    while fields and re.fullmatch(r"-[ioe][0L]", fields[0].known or ""):
        fields = fields[1:]
    return fields if fields and not fields[0].may_be_option else None


def _skip_nothing(fields: list[Field]) -> list[Field] | None:
    return fields if fields and not fields[0].may_be_option else None


_UNWRAP = {
    "timeout": _skip_duration,
    "nice": _skip_niceness,
    "stdbuf": _skip_buffers,
    "time": _skip_nothing,
    "command": _skip_nothing,
    "builtin": _skip_nothing,
}
WRAPPERS = _UNWRAP.keys() | {"env"}
"""Programs that return the exit code of their command."""
