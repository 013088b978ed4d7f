"""Prove that a command writes only what its words name, for acceptEdits and undo.

Everything is an allow-list: programs of `writers.toml` with words that the text fully determines.
Anything else has no bound; this says nothing about permission.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from msgspec.structs import replace

from handaxe.contract.effects import Act, Extent, Kind
from handaxe.shell.analysis.effects.file_effects import find_redirect_uses
from handaxe.shell.analysis.facts import CommandPart
from handaxe.shell.analysis.parser.expansion import Field, expand_word
from handaxe.shell.analysis.parser.syntax import (
    CommandChain,
    CommandPipeline,
    Compound,
    Node,
    ParsedScript,
    Sequence,
    Simple,
    Word,
)
from handaxe.shell.analysis.program_tables import ProgramTable, load_toml, make_tables, split_names
from handaxe.shell.analysis.programs.embedded_languages import is_printing_sed
from handaxe.shell.analysis.programs.operands import OperandPaths, ProofContext
from handaxe.shell.analysis.programs.options import Arguments, NotProven, read_arguments
from handaxe.shell.analysis.programs.read_only import (
    check_assignments,
    get_program,
    prove,
    unwrap_proven,
)
from handaxe.shell.analysis.walker import Part, ShellState

_OPEN_MODE = re.compile(r"0?[57][0-7]{2}|[ugoa]*(\+[rwxXst]+|-w)(,[ugoa]*(\+[rwxXst]+|-w))*")
"""Modes after which the owner can still read files and enter directories."""
_READABLE_MODE = re.compile(r"0?[46][0-7]{2}")
"""Modes after which the owner can still read files."""
_SUFFIX = re.compile(r"[\w.~-]+", re.ASCII)
_COPIED_LINKS = split_names("r R recursive P no-dereference a d archive")
_REPLACING = split_names("f force remove-destination")
_BOUND_PARTS = 40
_IN_ORDER = split_names("subshell group if test")


def bound_writes(
    script: ParsedScript, walked: list[Part], parts: list[CommandPart], cwd: str
) -> Extent | None:
    """Everything the command can write, or None if uncertain."""
    if len(walked) > _BOUND_PARTS:
        return None
    acts: list[Act] = []
    programs: set[str] = set()
    try:
        for part, facts in zip(walked, parts, strict=False):
            _check_moves(part, after=acts)
            acts.extend(_bound_part(part, facts, ProofContext(cwd, "")))
            programs.update(item.program or "" for item in facts.commands)
    except (NotProven, RecursionError):
        return None
    # What changes the meaning of names is followed step by step, which needs an order of the steps.
    if any(act.kind != "fills" for act in acts) and not _is_sequential(script.body):
        return None
    return Extent(cwd, tuple(acts), frozenset(programs)) if acts else None


def _bound_part(part: Part, facts: CommandPart, setting: ProofContext) -> Iterator[Act]:
    """The writes of one part in every possible state; raises `NotProven` otherwise."""
    if part.background:
        raise NotProven("it continues in the background")
    if doubt := facts.unknown or facts.evaluates or facts.rebinds:
        raise NotProven(doubt)
    # The directory a user is at home in may be another one for the command.
    states = [ShellState(state.cwds, {**state.variables, "HOME": None}) for state in part.states]
    part = replace(part, states=states)
    for use in find_redirect_uses(part):
        if use.problem:
            raise NotProven(use.problem)
        places = tuple(item.joined or "" for item in use.uses)
        if use.writes and not all(place.startswith("/") for place in places):
            raise NotProven(f"where {use.text} writes is unknown before it runs")
        if use.writes:
            yield Act("fills", places=places)
    if not facts.refusal and not _has_home_reference(part):
        return
    try:
        prove(part, setting)
    except NotProven:
        if not isinstance(part.node, Simple):
            raise
        for state in part.states:
            yield _bound_act(part.node, state)


def _has_home_reference(part: Part) -> bool:
    is_cd = any(word.literal == "cd" for word in part.words)
    return is_cd or "~" in part.text or "HOME" in part.text


def _check_moves(part: Part, *, after: list[Act]) -> None:
    """`cd` goes by the names in the text; with `..` only while all of them exist."""
    for state in part.states:
        fields = [field for word in part.words for field in expand_word(word, state.variables)]
        values = [field.value for field in unwrap_proven(fields)]
        if values[:1] != ["cd"]:
            continue
        goes_back = any(".." in value for value in values)
        if goes_back and any(act.kind != "fills" for act in after):
            raise NotProven("the directory that cd would leave again may be missing")
        if not {"-P", "-e"}.isdisjoint(values):
            raise NotProven("where cd goes is unknown before it runs")


def _is_sequential(node: Node) -> bool:
    """Whether the parts run at most once each, in their written order."""
    match node:
        case Simple():
            words = [*node.words, *(item.target for item in node.redirects)]
            words += [item.value for item in node.assignments if item.value is not None]
            bodies = [item.heredoc.body for item in node.redirects if item.heredoc is not None]
            return not any(word is not None and word.scripts for word in [*words, *bodies])
        case CommandPipeline():
            return len(node.commands) == 1 and _is_sequential(node.commands[0])
        case CommandChain() | Sequence():
            return all(map(_is_sequential, node.items))
        case Compound():
            words = [*node.words, *(item.target for item in node.redirects)]
            is_plain_kind = node.kind in _IN_ORDER and not any(word.scripts for word in words)
            inner = [*node.conditions, *node.bodies, *filter(None, [node.otherwise])]
            return is_plain_kind and all(map(_is_sequential, inner))


@cache
def _load_tables() -> tuple[dict[str, ProgramTable], dict[str, dict[str, Any]]]:
    raw = {name: entry for name, entry in load_toml("writers.toml").items() if "check" in entry}
    return make_tables(raw), raw


def read_edit(node: Simple, state: ShellState) -> str:
    """Why a command is not a plain file command that acceptEdits allows; empty if it is."""
    try:
        program, arguments, _ = _read(node, state)
        _check_form(program, arguments, state)
    except NotProven as refused:
        return str(refused)
    entry = _load_tables()[1][program]
    if not entry.get("edit"):
        return f"{program} is not a file command that the mode allows"
    if arguments.has(*entry.get("asks", "").split()):
        return f"{program} removes more than files here"
    return ""


def _bound_act(node: Simple, state: ShellState) -> Act:
    """Everything a command writes, for undo; raises `NotProven` otherwise."""
    check_assignments(node, state)
    program, arguments, fields = _read(node, state)
    if arguments.has(*_load_tables()[1][program].get("unbounded", "").split()):
        raise NotProven(f"the words of {program} do not name its writes")
    _check_order(fields, arguments)
    return _check_form(program, arguments, state)


def _check_form(program: str, arguments: Arguments, state: ShellState) -> Act:
    return _CHECKS[_load_tables()[0][program].check](program, arguments, OperandPaths(state))


def _read(node: Simple, state: ShellState) -> tuple[str, Arguments, list[Field]]:
    check_assignments(node, state)
    for word in node.words:
        _check_literal(word)
    fields = [field for word in node.words for field in expand_word(word, state.variables)]
    if any(field.kind != "known" for field in fields):
        raise NotProven("a word is unknown before it runs")
    fields = unwrap_proven(fields)
    program = get_program(fields[0]) if fields else ""
    table = _load_tables()[0].get(program)
    if table is None:
        raise NotProven(f"the words of {program} do not name its writes")
    return program, read_arguments(fields[1:], table), fields


def _check_order(fields: list[Field], arguments: Arguments) -> None:
    """Some programs do not treat a word after an operand as an option."""
    operands = arguments.operands
    behind = fields[fields.index(operands[0]) :] if operands else []
    if any(field.value.startswith("-") and field not in operands for field in behind):
        raise NotProven("an option follows an operand")


def _check_literal(word: Word) -> None:
    is_made = any(piece.kind == "process" for piece in word.pieces)
    if is_made or word.has_tilde:
        raise NotProven(f"{word.text} is not literal")
    is_locale = '$"' in word.text or ("$'" in word.text and "\\" in word.text)
    if is_locale and not all(piece.text.isascii() for piece in word.pieces):
        raise NotProven(f"the meaning of {word.text} depends on the locale")


def _bound_fill(_program: str, arguments: Arguments, seen: OperandPaths) -> Act:
    return Act("fills", places=seen.all(arguments.operands))


def _bound_make(_program: str, arguments: Arguments, seen: OperandPaths) -> Act:
    parents = arguments.has("p", "parents")
    return Act("fills", places=seen.all(arguments.operands), makes_parents=parents)


def _bound_chmod(_program: str, arguments: Arguments, seen: OperandPaths) -> Act:
    mode = arguments.operands[0].value if arguments.operands else ""
    recursive = arguments.has("R", "recursive")
    is_open = _OPEN_MODE.fullmatch(mode) is not None
    if not is_open and (recursive or not _READABLE_MODE.fullmatch(mode)):
        raise NotProven(f"files with the mode {mode} may become unreadable")
    paths = seen.all(arguments.operands[1:])
    if recursive:
        return Act("fills", trees=paths)
    return Act("fills", places=paths, files_only=not is_open)


def _bound_remove(program: str, arguments: Arguments, seen: OperandPaths) -> Act:
    paths = seen.all(arguments.operands)
    # A directory that may go is one with everything below, even if it has to be empty by then.
    if program == "rmdir" or arguments.has("r", "R", "recursive", "d", "dir"):
        return Act("removes", trees=paths)
    return Act("removes", places=paths)


def _bound_sed(_program: str, arguments: Arguments, seen: OperandPaths) -> Act:
    scripts = [field.value for kind, field in arguments.typed if kind == "sed"]
    if not scripts or not all(map(is_printing_sed, scripts)):
        raise NotProven("a sed script that does more than edit")
    paths = seen.all([field for kind, field in arguments.typed if kind == "place"])
    given = [value for name, value in arguments.options if name in ("i", "in-place")]
    suffixes = [value.value for value in given if value is not None]
    if not all(map(_SUFFIX.fullmatch, suffixes)):
        raise NotProven("the suffix of a backup is not plain")
    backups = tuple(path + suffix for path in paths for suffix in suffixes)
    return Act("moves" if backups else "removes", places=(*paths, *backups), scratch=("sed??????",))


def _bound_put(program: str, arguments: Arguments, seen: OperandPaths) -> Act:
    """cp, mv and ln: the target may be a directory that receives the sources' names."""
    sources, last = arguments.operands[:-1], arguments.operands[-1:]
    named = [value for name, value in arguments.options if name in ("t", "target-directory")]
    if named:
        sources, last = arguments.operands, [value for value in named if value is not None]
    elif program == "ln" and not sources:
        sources, last = last, [Field("known", ".", ".")]
    if not sources or len(last) != 1:
        raise NotProven(f"{program} without a source or a target")
    targets = seen(last[0].value)
    kind = _select_kind(program, arguments)
    moved = seen.all(sources) if program == "mv" else ()
    is_target = arguments.has("T", "no-target-directory")
    names_in_it = {"" if is_target else _get_last_name(source) for source in sources}
    into = tuple((target, name) for target in targets for name in sorted(names_in_it))
    return Act(kind, trees=moved, into=into, scratch=("Cu??????",))


def _select_kind(program: str, arguments: Arguments) -> Kind:
    if program != "cp" or arguments.has(*_COPIED_LINKS):
        return "moves"
    return "removes" if arguments.has(*_REPLACING) else "fills"


def _get_last_name(source: Field) -> str:
    # A slash at the end makes some programs copy what is in it.
    name = source.value.rpartition("/")[2]
    if name in ("", ".", ".."):
        raise NotProven(f"the new name of {source.text} is not in the text")
    return name


_CHECKS: dict[str, Callable[[str, Arguments, OperandPaths], Act]] = {
    "fill": _bound_fill,
    "make": _bound_make,
    "chmod": _bound_chmod,
    "remove": _bound_remove,
    "sed": _bound_sed,
    "put": _bound_put,
}
