"""Analyze a command text: parse it, walk it, and collect everything it does.

The only module that reads command texts. It is pure and never raises; the facts say what it did not
understand.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

from msgspec.structs import replace

from handaxe.contract.effects import Effects, Resource
from handaxe.shell.analysis.effects.destructive_commands import (
    find_losses,
    find_removals,
    is_irreversible,
)
from handaxe.shell.analysis.effects.exit_status import explain_exit_one
from handaxe.shell.analysis.effects.file_effects import find_file_uses, find_redirect_uses
from handaxe.shell.analysis.effects.possible_commands import (
    CommandCandidate,
    CommandFinder,
    PartCandidates,
)
from handaxe.shell.analysis.effects.rule_texts import join_words, read_rule_texts
from handaxe.shell.analysis.effects.write_extent import bound_writes, read_edit
from handaxe.shell.analysis.effects.write_targets import find_writes, load_writers
from handaxe.shell.analysis.facts import (
    CommandFacts,
    CommandPart,
    FileUses,
    GitHistoryRead,
    ListedOperands,
    PossibleCommand,
    Writes,
)
from handaxe.shell.analysis.parser.cross_check import count_by_tree_sitter, is_plain, scan
from handaxe.shell.analysis.parser.expansion import Field, expand_word
from handaxe.shell.analysis.parser.parse import parse, parse_expansions
from handaxe.shell.analysis.parser.syntax import ParsedScript, Simple
from handaxe.shell.analysis.paths import PathUse, make_path_uses, resolve
from handaxe.shell.analysis.program_tables import (
    ProgramTable,
    is_harmless_prefix,
    load_read_only_programs,
    split_names,
)
from handaxe.shell.analysis.programs.listed_operands import prove_listed_operands
from handaxe.shell.analysis.programs.operands import ProofContext
from handaxe.shell.analysis.programs.options import NotProven
from handaxe.shell.analysis.programs.read_only import prove
from handaxe.shell.analysis.programs.subcommands import skip_git_globals
from handaxe.shell.analysis.programs.wrappers import (
    FED,
    find_inner_commands,
    get_program_name,
    is_wrapper,
)
from handaxe.shell.analysis.walker import Part, ShellState, walk

_PART_LIMIT = 120
_NO_TABLE = ProgramTable()
_SCAN_LIMIT = 3_000
_LOOK_LIMIT = 300
_MOVERS = split_names("cd pushd popd")
_PRINTERS = split_names("cat /bin/cat /usr/bin/cat")
_OPERAND_WRITERS = split_names("every put in_place rest pack")


@lru_cache(maxsize=256)
def analyze(
    command: str, cwd: str = "/project", home: str = "/home/user", roots: tuple[str, ...] = ()
) -> CommandFacts:
    """The effects of `command` in `cwd`, without reading the disk.

    The top of the repository around `cwd` may be any directory up to one of `roots`.
    """
    cwd = resolve(cwd, "/")
    script = parse(command)
    hidden = next((item.message for item in script.problems if item.code == "characters"), "")
    problems = tuple(item.message for item in script.problems if item.code != "characters")
    walked = walk(script, cwd, home)
    reader = _Reader(
        ProofContext(cwd, home, working_dirs=roots or (cwd,)), _collect_assigned_values(walked)
    )
    parts = [reader.read_part(part) for part in walked[:_PART_LIMIT]]
    later = reader.read_later(walked[_PART_LIMIT:])
    if script.problems:
        parts.append(reader.read_unparsed(script))
    disagreement = "" if script.problems else _compare_readers(command, script)
    programs = _list_programs(walked)
    is_read = not script.problems
    return CommandFacts(
        text=command,
        cwd=cwd,
        home=home,
        parts=tuple(parts),
        later_parts=later,
        problems=problems,
        hidden_character=hidden,
        commands=script.commands,
        disagreement=disagreement,
        programs=programs,
        changes_directory=not programs.isdisjoint(_MOVERS) or not is_read,
        only_reads=is_read and not disagreement and not later and all(map(_is_read_only, parts)),
        extent=None if disagreement or not is_read else bound_writes(script, walked, parts, cwd),
        meaning_of_one=explain_exit_one(script.body, cd_failed=False) if is_read else None,
        meaning_after_cd=explain_exit_one(script.body, cd_failed=True) if is_read else None,
        printed_file=_find_printed_file(script) if is_read else None,
    )


def _is_read_only(part: CommandPart) -> bool:
    if part.refusal or part.unknown or part.evaluates or part.rebinds:
        return False
    return not any(use.problem or (use.writes and use.uses) for use in part.redirects)


def _compare_readers(command: str, script: ParsedScript) -> str:
    """How tree-sitter's reading differs; empty if both count the same commands."""
    if is_plain(command):
        return ""
    count = count_by_tree_sitter(command)
    if count == script.commands:
        return ""
    seen = "cannot read it" if count is None else f"sees {count} commands"
    return f"tree-sitter {seen}, but handaxe sees {script.commands}"


def _collect_assigned_values(parts: list[Part]) -> dict[str, set[str]]:
    """Literal values that any part assigns to a variable, for programs named by a variable."""
    values: dict[str, set[str]] = {}
    for part in parts:
        if isinstance(part.node, Simple):
            for item in part.node.assignments:
                literal = item.value.literal if item.value is not None else None
                if literal is not None:
                    values.setdefault(item.name, set()).add(literal)
        elif part.kind == "header":
            for word in part.words:
                if word.literal is not None:
                    values.setdefault(part.node.name, set()).add(word.literal)
    return values


def _list_programs(parts: list[Part]) -> frozenset[str]:
    first = (
        part.node.words[0] for part in parts if isinstance(part.node, Simple) if part.node.words
    )
    return frozenset((word.literal or "").rpartition("/")[2] for word in first)


class _Reader:
    """Builds the facts of the parts of one command."""

    def __init__(self, setting: ProofContext, assigned: dict[str, set[str]]) -> None:
        self._cwd = setting.cwd
        self._home = setting.home
        self._assigned = assigned
        self._setting = setting
        self._known: dict[tuple[object, ...], CommandPart] = {}

    def read_part(self, part: Part) -> CommandPart:
        """All facts of one part; cached by text and state."""
        if part.redirects:
            return self._read(part)
        fed = id(part.producer) if part.producer is not None else 0
        key = (part.kind, part.text, part.reads_pipe, fed, *(id(state) for state in part.states))
        if key not in self._known:
            self._known[key] = self._read(part)
        return self._known[key]

    def _read(self, part: Part) -> CommandPart:
        possible = self._find_commands(part)
        basic = self._read_basic(part, possible)
        refusal, reads = self._prove(part, possible)
        listed = self._prove_listing(part) if refusal and part.producer is not None else None
        refusal = "" if listed is not None else refusal
        node = part.node
        edit = "it is not a file command"
        if isinstance(node, Simple) and node.words:
            edit = next((why for s in part.states if (why := read_edit(node, s))), "")
        return replace(
            basic,
            rule_texts=read_rule_texts(part),
            refusal=refusal,
            reads=reads,
            listed=listed,
            edit_refusal=edit,
            # A proof accounts for every word.
            mentions=basic.mentions if refusal else (),
        )

    def _read_basic(self, part: Part, possible: PartCandidates) -> CommandPart:
        """The facts that deny rules need."""
        node = part.node
        redirects = find_redirect_uses(part)
        is_fed = part.reads_pipe or any(item.operator.startswith("<") for item in part.redirects)
        words = node.words if isinstance(node, Simple) else []
        assignments = node.assignments if isinstance(node, Simple) else []
        cwds = frozenset(cwd for state in part.states for cwd in state.cwds)
        return CommandPart(
            text=part.text,
            kind=part.kind,
            squeezed=join_words(words) if isinstance(node, Simple) else None,
            words=tuple(word.literal for word in words),
            assignments=" ".join(item.text for item in assignments),
            is_prefix_harmless=all(
                item.value is not None and is_harmless_prefix(item.name, item.value.literal)
                for item in assignments
            ),
            redirect_text=" ".join(item.text for item in part.redirects),
            redirects=redirects,
            cwds=frozenset() if any(not state.cwds for state in part.states) else cwds,
            commands=tuple(
                _make_possible_command(item, is_fed=is_fed) for item in possible.candidates
            ),
            mentions=tuple(dict.fromkeys(possible.mentions)),
            unread=tuple(possible.unread),
            unknown=possible.unknown,
            evaluates=possible.evaluates,
            rebinds=possible.rebinds,
            inner_redirects=tuple(possible.redirects),
            runs_git=any(item.program == "git" for item in possible.candidates),
            losses=find_losses(possible.candidates, redirects),
            removals=find_removals(possible.candidates),
            history=_find_history(possible),
        )

    def _finder(self) -> CommandFinder:
        return CommandFinder(self._assigned, self._cwd, self._home, parse, parse_expansions)

    def _find_commands(self, part: Part) -> PartCandidates:
        try:
            possible = self._finder().look_at(part)
        except RecursionError:
            possible = PartCandidates(unknown="commands are nested too deeply", unread=[part.text])
        for text in possible.unread:
            possible.candidates.extend(self._scan(text))
        return possible

    def _scan(self, text: str) -> list[CommandCandidate]:
        """Possible program positions in a text that cannot be parsed."""
        here = frozenset({self._cwd})
        places = dict.fromkeys(map(tuple, itertools.islice(scan(text), _SCAN_LIMIT)))
        return [
            CommandCandidate(fields, certain=True, cwds=here, program=get_program_name(fields[0]))
            for fields in places
        ]

    def _prove(self, part: Part, possible: PartCandidates) -> tuple[str, tuple[PathUse, ...]]:
        try:
            proof = prove(part, self._setting)
        except NotProven as refused:
            return str(refused), ()
        doubt = possible.evaluates or possible.unknown
        return doubt, tuple(dict.fromkeys(proof.reads))

    def _prove_listing(self, part: Part) -> ListedOperands | None:
        """The listing that feeds names to a read-only program through `xargs`, if proved."""
        node, producer = part.node, part.producer
        if not isinstance(node, Simple) or producer is None or len(part.states) != 1:
            return None
        state = part.states[0]
        made, given = (
            [field for word in one.words for field in expand_word(word, state.variables)]
            for one in (producer, part)
        )
        is_plain_call = not (node.assignments or producer.redirects or part.redirects)
        if not is_plain_call or not made or given[0].known != "xargs":
            return None
        try:
            return prove_listed_operands(made, given, state, self._setting)
        except NotProven:
            return None

    def read_later(self, parts: list[Part]) -> tuple[CommandPart, ...]:
        """Parts beyond the limit: only possible programs and redirections."""
        found: dict[tuple[object, ...], CommandPart] = {}
        for number, part in enumerate(parts):
            key = (part.text, part.reads_pipe, number if part.redirects else 0)
            if key not in found:
                basic = self._read_basic(part, self._find_commands(part))
                found[key] = replace(basic, refusal="it is beyond the limit of parts")
        return tuple(found.values())

    def read_unparsed(self, script: ParsedScript) -> CommandPart:
        """A text that did not parse, from a generous scan of all of it."""
        problem = script.problems[0].message
        possible = PartCandidates(self._scan(script.text), unknown=problem, unread=[script.text])
        for candidate in possible.candidates[:_LOOK_LIMIT]:
            finder = self._finder()
            finder.cwds = candidate.cwds
            finder.command(list(candidate.fields), 0, certain=candidate.certain)
            possible.candidates.extend(finder.found.candidates[1:])
            possible.mentions.extend(finder.found.mentions)
        state = ShellState(frozenset({self._cwd}), {})
        part = Part(Simple(script.text, 0, len(script.text)), "simple", [state])
        return replace(self._read_basic(part, possible), refusal=problem, squeezed=None)


def _make_possible_command(candidate: CommandCandidate, *, is_fed: bool) -> PossibleCommand:
    fields, program = list(candidate.fields), candidate.program
    wraps = is_wrapper(program)
    state = ShellState(candidate.cwds, {})
    return PossibleCommand(
        candidate.fields,
        candidate.certain,
        candidate.cwds,
        program,
        consists_of=load_read_only_programs().get(program or "", _NO_TABLE).uses,
        opened=tuple(_find_opened_files(fields, state)) if wraps else (),
        files=FileUses() if wraps else find_file_uses(fields, state, is_fed=is_fed),
        writes=_find_fed_writes(fields)
        if program in FED
        else find_writes(program, candidate.fields, candidate.cwds),
    )


def _find_history(possible: PartCandidates) -> GitHistoryRead | None:
    found = (find_history(item.fields) for item in possible.candidates if item.program == "git")
    return next(filter(None, found), None)


def _find_fed_writes(fields: list[Field]) -> Writes:
    """The writes of a program that gets its operands from standard input: unknown."""
    inner = [
        get_program_name(command[0])
        for command, _ in find_inner_commands(fields).commands
        if command
    ]
    if not any(
        name in load_writers() and load_writers()[name].shape in _OPERAND_WRITERS for name in inner
    ):
        return Writes()
    return Writes((PathUse(None, "write", f"the standard input of {fields[0].text}"),))


def _find_opened_files(fields: list[Field], state: ShellState) -> Iterator[PathUse]:
    """Files that a wrapper opens, and input files of `xargs`."""
    inner = find_inner_commands(fields)
    for field, access in inner.opened:
        yield from make_path_uses(field, access, state.cwds)
    if get_program_name(fields[0]) in FED:
        for command, sure in inner.commands:
            if sure and command and find_file_uses(command, state).holds_files:
                yield PathUse(None, "read", f"the standard input of {fields[0].text}")


def _find_printed_file(script: ParsedScript) -> str | None:
    """The file that the command prints, if it does nothing else."""
    if len(script.body.items) != 1 or script.body.background[0]:
        return None
    node = script.body.items[0]
    if not isinstance(node, Simple) or node.assignments or node.redirects or len(node.words) != 2:
        return None
    program, file = (word.literal for word in node.words)
    if program not in _PRINTERS or not file or file.startswith("-"):
        return None
    return file


_PATCHES = split_names(
    "-p -u --patch --patch-with-stat --patch-with-raw -c --cc --dd --remerge-diff -m --binary "
    "--full-index --word-diff --color-words --function-context -W"
)
_NAMES_ONLY = split_names(
    "--stat --numstat --shortstat --name-only --name-status --no-patch -s --summary --raw --quiet "
    "--dirstat --compact-summary"
)
_PAST = split_names("show whatchanged format-patch cat-file diff-tree diff-index")
_LOGS = split_names("log reflog shortlog rev-list")
_NOW = split_names("diff diff-files")


def find_history(fields: tuple[Field, ...]) -> GitHistoryRead | None:
    """The repository content that a git command prints, if any."""
    rest = skip_git_globals(list(fields[1:]))
    if not rest:
        return None
    name, args = rest[0].value, rest[1:]
    words = [field.value for field in args]
    text = " ".join(field.text for field in fields)
    paths = tuple(words[words.index("--") + 1 :]) if "--" in words else ()
    has_patch = any(
        word in _PATCHES or word.startswith(("-L", "-U", "--unified")) for word in words
    )
    if name == "stash" and (has_patch or words[:1] == ["show"]):
        return GitHistoryRead(text, is_past=True)
    if name in _LOGS and has_patch:
        return GitHistoryRead(text, is_past=True, paths=paths)
    if not has_patch and any(word.partition("=")[0] in _NAMES_ONLY for word in words):
        return None
    if name in _PAST:
        # `rev:path` prints one file, which is judged as a read.
        named = [word for word in words if not word.startswith(("-", ":/"))]
        is_file = bool(named) and all(":" in word for word in named)
        return None if is_file else GitHistoryRead(text, is_past=True, paths=paths)
    # A revision may be any commit, of other branches as well.
    given = words[: words.index("--")] if "--" in words else words
    is_past = any(not word.startswith("-") for word in given)
    return GitHistoryRead(text, is_past=is_past, paths=paths) if name in _NOW else None


_MOVES = Effects(reads_everything=True, writes=(Resource("state", "cwd"),))


def read_effects(
    command: str,
    cwd: str = "/project",
    home: str = "/home/user",
    roots: tuple[str, ...] = (),
    *,
    bounded: bool = False,
) -> Effects:
    """The reads and writes of a command. `bounded` adds an upper bound of its writes, for undo."""
    facts = analyze(command, cwd, home, roots)
    if facts.only_reads:
        return _MOVES if facts.changes_directory else Effects.none()
    return Effects(
        reads_everything=True,
        writes_everything=True,
        irreversible=is_irreversible(facts, roots),
        extent=facts.extent if bounded else None,
    )
