"""The files that a command reads and writes, judged by its text.

Used for Read and Edit rules and acceptEdits mode. Over-approximates: any word that may be a path
counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from handaxe.shell.analysis.effects.recursive_reads import find_recursive_reads
from handaxe.shell.analysis.effects.write_targets import load_writers
from handaxe.shell.analysis.facts import FileUses, RecursiveRead, RedirectUse
from handaxe.shell.analysis.parser.expansion import PROCESS, Field, expand_word
from handaxe.shell.analysis.parser.syntax import Redirect
from handaxe.shell.analysis.paths import Access, PathUse, is_dynamic_device, make_path_uses, resolve
from handaxe.shell.analysis.program_tables import (
    load_read_only_programs,
    load_toml,
    split_names,
    strip_digits,
    strip_version,
)
from handaxe.shell.analysis.programs.options import is_abbreviation
from handaxe.shell.analysis.programs.subcommands import skip_git_globals
from handaxe.shell.analysis.programs.wrappers import get_program_name, read_find
from handaxe.shell.analysis.walker import Part, ShellState

_AWKS = split_names("awk gawk mawk nawk")
_SCRIPTED = _AWKS | split_names(
    "vi vim nvim ex ed emacs perl python ruby node deno bun php lua tclsh sqlite psql osascript"
)
"""Programs that may have a script among their words."""
_SCRIPT = re.compile(r"[\s\"'(]")
_TOKEN = re.compile(r"[\w.~][\w./~+@%-]*|/[\w./~+@%-]+")
_TOKENS = 100
_DUPLICATION = re.compile(r"\d+-?|-")
_INPUTS = frozenset({"<", "<&"})
_GOES = split_names("-C --directory --chdir --cwd --work-tree --prefix --git-dir --manifest-path")
"""Options that make a program resolve its operands in another directory."""
_TARGET = ("--target-directory",)
_GIT_READS = split_names(
    "add annotate blame cat-file check-ignore commit describe diff diff-tree diff-index grep log "
    "ls-files ls-tree push rev-list rev-parse shortlog show status whatchanged"
)
"""Subcommands that change no file of the working tree."""
_GIT_WRITES = split_names(
    "am apply bisect checkout checkout-index cherry-pick clean merge pull read-tree rebase reset "
    "restore revert rm mv sparse-checkout stash submodule switch worktree"
)
"""Subcommands that change files of the working tree."""
_TREE_WRITERS = split_names("patch gpatch cpio 7z 7za 7zr 7zz unar bsdcpio pax ar hg svn jj sl bzr")
_PRINTS = split_names("echo printf true false : exit return seq sleep basename dirname type which")


class _Table(Struct, frozen=True):
    reads: frozenset[str]
    writes: frozenset[str]
    copies: frozenset[str]
    moves: frozenset[str]
    unsure: frozenset[str]
    known: frozenset[str]
    skip: dict[str, int]
    skip_unless: dict[str, frozenset[str]]
    skip_access: dict[str, str]
    written: dict[str, frozenset[str]]
    lists: dict[str, frozenset[str]]
    viewers: frozenset[str]


@cache
def _load_table() -> _Table:
    raw = load_toml("effects.toml")
    lists = " ".join(raw[key] for key in ("reads", "writes", "copies", "moves"))
    return _Table(
        reads=frozenset(raw["reads"].split()),
        writes=frozenset(raw["writes"].split()),
        copies=frozenset(raw["copies"].split()),
        moves=frozenset(raw["moves"].split()),
        unsure=frozenset(raw["unsure"].split()),
        known=frozenset(lists.split()) | raw["skip"].keys(),
        skip=raw["skip"],
        skip_unless={name: frozenset(text.split()) for name, text in raw["skip_unless"].items()},
        skip_access=raw["skip_access"],
        written={name: frozenset(text.split()) for name, text in raw["written_options"].items()},
        lists={name: frozenset(text.split()) for name, text in raw["lists"].items()},
        viewers=frozenset(raw["viewers"].split()),
    )


def find_redirect_use(redirect: Redirect, state: ShellState) -> RedirectUse:
    """The effect of one redirection."""
    operator, target = redirect.operator, redirect.target
    if redirect.heredoc is not None or operator == "<<<":
        return RedirectUse(redirect.text)
    literal = target.literal
    if operator in (">&", "<&") and literal is not None and _DUPLICATION.fullmatch(literal):
        return RedirectUse(redirect.text)
    access: Access = "read" if operator in _INPUTS else "write"
    fields = expand_word(target, state.variables)
    uses = tuple(use for field in fields for use in make_path_uses(field, access, state.cwds))
    if len(fields) != 1 or fields[0].kind != "known" or target.has_tilde:
        problem = f"the target of {redirect.text} is unknown before the command runs"
    elif fields[0].value == "/dev/null" or (fields[0].value == PROCESS and access == "read"):
        return RedirectUse(redirect.text)
    elif any(use.path is None for use in uses):
        problem = f"the target of {redirect.text} depends on where the command runs"
    else:
        uses = uses or (PathUse(fields[0].value, access, target.text, fields[0].value),)
        opens = any(is_dynamic_device(use.path or "") for use in uses)
        problem = f"{redirect.text} opens a connection" if opens else ""
    is_write = access == "write"
    return RedirectUse(
        redirect.text, uses, problem, is_write, is_write and not operator.endswith(">>")
    )


def find_file_uses(fields: list[Field], state: ShellState, *, is_fed: bool = False) -> FileUses:
    """The paths in a command's words, and the trees it reads."""
    program = get_program_name(fields[0]) or ""
    table = _load_table()
    if program in _PRINTS:
        return FileUses(may_write=False)
    if program == "dd":
        return FileUses(tuple(_find_dd_uses(fields[1:], state)), holds_files=True)
    known = program in table.known
    found: list[PathUse] = []
    sweeps: list[RecursiveRead] = []
    for place in _list_states(fields[1:], state):
        uses = _find_option_uses(fields[1:], program, place)
        operands = _find_operands(fields[1:], program)
        for index, field in enumerate(operands):
            last = index == len(operands) - 1
            for access in _list_accesses(program, fields, last=last, known=known):
                uses.extend(make_path_uses(field, access, place.cwds))
        if program == "git":
            uses.extend(_find_revision_uses(fields[1:], place))
        found.extend(use if known else replace(use, is_sure=False) for use in uses)
        if strip_digits(strip_version(program)) in _SCRIPTED:
            found.extend(_find_script_uses(fields[1:], place))
        sweeps.extend(find_recursive_reads(program, fields[1:], operands, place, is_fed=is_fed))
    reads = tuple(use for use in found if use.access == "read")
    return FileUses(
        tuple(dict.fromkeys(found)),
        tuple(dict.fromkeys(sweeps)),
        holds_files=known and program not in table.unsure,
        opaque=tuple(_find_opaque_uses(fields[1:], program)),
        moved=reads if _is_tree_move(program, fields) else (),
        may_write=not _is_read_only(program, fields),
        changes_tree=_is_tree_change(program, fields),
    )


def _find_script_uses(fields: list[Field], state: ShellState) -> list[PathUse]:
    """Paths that may be inside a script among the words: `awk '{print > "out"}'`."""
    scripts = (field for field in fields if _SCRIPT.search(field.value))
    tokens = dict.fromkeys(token for field in scripts for token in _TOKEN.findall(field.value))
    return [
        PathUse(use.path, "write", use.text, is_sure=False)
        for token in list(tokens)[:_TOKENS]
        for use in make_path_uses(Field("known", token, token), "write", state.cwds)
        if use.path is not None
    ]


def _is_tree_move(program: str, fields: list[Field]) -> bool:
    """Whether files below its operands may change with them."""
    if program == "find":
        action = read_find(fields[1:])
        return action.deletes or not all(_is_reader(program) for program in action.programs)
    return program in _load_table().moves


def _is_tree_change(program: str, fields: list[Field]) -> bool:
    if program != "git":
        return program in _TREE_WRITERS
    rest = skip_git_globals(fields[1:])
    return bool(rest) and (rest[0].known is None or rest[0].value in _GIT_WRITES)


def _is_reader(program: str | None) -> bool:
    known = program in load_read_only_programs() or program in _PRINTS
    return known and program not in load_writers()


def _is_read_only(program: str, fields: list[Field]) -> bool:
    """Whether a program certainly only reads the files among its words."""
    if program == "git":
        rest = skip_git_globals(fields[1:])
        return bool(rest) and rest[0].value in _GIT_READS
    if program in _AWKS and any("inplace" in field.value for field in fields):
        return False
    # What the programs of `writers` write is known by their words.
    return (
        program in load_read_only_programs()
        or program in load_writers()
        or program in _load_table().viewers
    )


def change_state_directory(directory: Field, state: ShellState) -> ShellState:
    """The state after a wrapper changed to `directory`."""
    target = directory.known
    if target is None or not (state.cwds or target.startswith("/")):
        return ShellState(frozenset(), state.variables)
    return ShellState(
        frozenset(resolve(target, base) for base in state.cwds or {"/"}), state.variables
    )


def _list_states(fields: list[Field], state: ShellState) -> list[ShellState]:
    """Directories in which operands may be resolved: here, and where `-C` and the like lead."""
    found = [state]
    for index, field in enumerate(fields):
        value = field.value
        name, equals, attached = value.partition("=")
        if value in _GOES and index + 1 < len(fields):
            found.append(change_state_directory(fields[index + 1], state))
        elif equals and name in _GOES:
            found.append(change_state_directory(Field("known", attached, field.text), state))
        elif value.startswith("-C") and len(value) > 2:
            found.append(change_state_directory(Field("known", value[2:], field.text), state))
    return found


def _find_opaque_uses(fields: list[Field], program: str) -> list[PathUse]:
    """Files named in a list at run time, and `REV:$path` of git."""
    if program == "git":
        shown = [field for field in fields if field.kind == "unknown" and ":" in field.value]
        return [PathUse(None, "read", field.text) for field in shown]
    options = _load_table().lists.get(program)
    if options is None:
        return []
    for field in fields:
        letters = field.value[1:] if re.match(r"-[^-]", field.value) else ""
        if _is_one(field.value, options) or any(f"-{letter}" in options for letter in letters):
            return [PathUse(None, "read", field.text)]
    return []


def _find_revision_uses(fields: list[Field], state: ShellState) -> list[PathUse]:
    """`REV:PATH` and `:PATH` of git read that path as it was; options may contain them too."""
    uses: list[PathUse] = []
    for field in fields:
        _, colon, path = field.value.partition(":")
        if not colon or field.kind == "unknown" or path.startswith("//"):
            continue
        # `:2:path` is the path in one stage of a merge.
        path = path.partition(":")[2] if path[1:2] == ":" else path
        if path:
            # Seen from the top of the repository, which may be any directory above.
            tops = frozenset(top for cwd in state.cwds for top in _list_ancestors(cwd))
            uses.extend(make_path_uses(Field(field.kind, path, field.text), "read", tops))
    return uses


def _list_ancestors(path: str) -> list[str]:
    """A directory and its parents, nearest first."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts), 1, -1)]


def _find_operands(fields: list[Field], program: str) -> list[Field]:
    """The words that are not options; a word after an option stays: it may be an operand."""
    table = _load_table()
    words: list[Field] = []
    ended = False
    texts = _list_text_options(program)
    for index, field in enumerate(fields):
        if field.known == "--" and not ended:
            ended = True
        elif field.kind == "unknown" and index and fields[index - 1].known in texts:
            continue
        elif ended or not (field.known or "").startswith("-"):
            words.append(field)
    unless = table.skip_unless.get(program, frozenset[str]())
    given = any(_is_one(field.known or "", unless) for field in fields)
    skip = 0 if given else table.skip.get(program, 0)
    if program in ("[", "test"):
        words = [word for word in words if word.known != "]"]
    return words[skip:]


@cache
def _list_text_options(program: str) -> frozenset[str]:
    """Short and long options whose value is a text or number, never a file."""
    table = load_read_only_programs().get(program)
    if table is None:
        return frozenset()
    plain = [name for name, kind in table.valued.items() if kind in ("text", "number", "pattern")]
    return frozenset(f"-{name}" if len(name) == 1 else f"--{name}" for name in plain)


def _is_one(word: str, options: frozenset[str]) -> bool:
    return word.partition("=")[0] in options or is_abbreviation(word, options)


def _list_accesses(program: str, fields: list[Field], *, last: bool, known: bool) -> list[Access]:
    table = _load_table()
    if program in table.copies:
        targeted = any(
            (f.known or "").startswith("-t") or is_abbreviation(f.known or "", _TARGET)
            for f in fields
        )
        return ["write"] if last and not targeted else ["read"]
    if program in table.moves:
        return ["write", "read"]
    special = table.skip_access.get(program, "")
    if special == "sed":
        edits = any(re.match(r"-[A-Za-z]*i|--i", f.known or "") for f in fields[1:])
        return ["read", "write"] if edits else ["read"]
    if special == "write":
        return ["write"]
    accesses: list[Access] = []
    if program in table.reads or program in table.skip or not known:
        accesses.append("read")
    if program in table.writes or not known:
        accesses.append("write")
    return accesses


def _find_option_uses(fields: list[Field], program: str, state: ShellState) -> list[PathUse]:
    """Paths in option values: `--file=x`, `-fx`, and values that are certainly written."""
    uses: list[PathUse] = []
    written = _load_table().written.get(program, frozenset[str]())
    texts = _list_text_options(program) - written
    for index, field in enumerate(fields):
        value = field.known or ""
        if not value.startswith("-"):
            for path in _find_embedded_paths(value):
                uses.extend(make_path_uses(Field("known", path, field.text), "read", state.cwds))
            continue
        name, _, attached = value.partition("=")
        if not value.startswith("--") and len(value) > 2 and not attached:
            name, attached = value[:2], value[2:]
        is_written = _is_one(name, written)
        access: Access = "write" if is_written else "read"
        if name in texts:
            continue
        if attached:
            uses.extend(make_path_uses(Field("known", attached, field.text), access, state.cwds))
        elif is_written and index + 1 < len(fields):
            uses.extend(make_path_uses(fields[index + 1], "write", state.cwds))
    return uses


def _find_embedded_paths(operand: str) -> Iterator[str]:
    """Paths in `file:` addresses and after `=` and `@`: `file=@x`, `of=x`."""
    if operand.startswith("file:"):
        yield "/" + operand.removeprefix("file:").lstrip("/")
    if "=" in operand or operand.startswith("@"):
        inner = operand.rpartition("@")[2] if "@" in operand else operand.partition("=")[2]
        yield inner.removeprefix("<")


def _find_dd_uses(fields: list[Field], state: ShellState) -> list[PathUse]:
    uses: list[PathUse] = []
    for field in fields:
        name, _, path = field.value.partition("=")
        if name in ("if", "of"):
            inner = Field(field.kind, path, field.text, single=field.single)
            uses.extend(make_path_uses(inner, "read" if name == "if" else "write", state.cwds))
    return uses


def find_redirect_uses(part: Part) -> tuple[RedirectUse, ...]:
    """The redirections of a part in every possible state."""
    found = [find_redirect_use(item, state) for state in part.states for item in part.redirects]
    return tuple(dict.fromkeys(found))
