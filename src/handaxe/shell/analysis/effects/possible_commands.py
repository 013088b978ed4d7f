"""Every command that a part could run, over-approximated for deny and ask rules.

Arguments count as commands if the program runs them (wrappers, shells, `find -exec`). For programs
that may execute their arguments, the words are kept as mentions: any of them may name a program.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from msgspec import Struct

from handaxe.shell.analysis.effects.file_effects import change_state_directory, find_redirect_use
from handaxe.shell.analysis.effects.rebinding import find_command_rebinding, find_part_rebinding
from handaxe.shell.analysis.parser.expansion import Field, expand_value, expand_word
from handaxe.shell.analysis.parser.syntax import Assignment, ParsedScript, Sequence, Simple
from handaxe.shell.analysis.paths import PathUse
from handaxe.shell.analysis.program_tables import find_program, load_toml, split_names
from handaxe.shell.analysis.programs.exec_options import (
    find_exec_option,
    find_option_commands,
    is_process_executed,
    is_stdin_executed,
)
from handaxe.shell.analysis.programs.reevaluation import (
    find_builtin_reevaluation,
    find_reevaluation,
)
from handaxe.shell.analysis.programs.subcommands import (
    make_unknown_subcommand,
    strip_global_options,
)
from handaxe.shell.analysis.programs.wrappers import (
    REMOVERS,
    SHELLS,
    find_inner_commands,
    get_program_name,
    is_wrapper,
)
from handaxe.shell.analysis.walker import Part, ShellState, walk

_COMMAND_VARIABLE = re.compile(
    r"PS[0-4]|PROMPT_COMMAND|BASH_ENV|ENV|.*PAGER|.*EDITOR|VISUAL|BROWSER|.*_COMMAND|GIT_SSH|.*ASKPASS"
    r"|GIT_EXTERNAL_DIFF|LESSOPEN|LESSCLOSE|SHELL|MANPAGER|.*_PROXY_COMMAND|.*_CMD|GIT_CONFIG_.*"
)
_TOKEN = re.compile(r"[\w./+-]+")
_TOKENS = 20_000
_QUOTING = re.compile(r"['\"\\]")
_ESCAPES = re.compile(r"\\(?:x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|[0-7]{1,3}|[A-Za-z_])")
_READING_SHELLS = SHELLS | {"source", "."}
_READ_INSIDE = SHELLS | split_names("eval trap alias coproc source . find")
"""Programs whose arguments have their own rules."""
_DEPTH = 4
_LAYERS = 12
_COMMANDS = 4000
_HEAD = 8
_STARTS = 3
_STATES = 40
_INNER_STATES = 8

ReadScript = Callable[[str], ParsedScript]
ReadExpansions = Callable[[str], list[Sequence]]


class CommandCandidate(Struct, frozen=True):
    """A command that could run; `certain` if the text has no other reading."""

    fields: tuple[Field, ...]
    certain: bool
    cwds: frozenset[str] = frozenset()
    program: str | None = None
    """The program's name without its directory, or None if unknown."""


class PartCandidates(Struct):
    """The commands that a part could run, and its unknowns."""

    candidates: list[CommandCandidate] = []
    mentions: list[tuple[str, ...]] = []
    unknown: str = ""
    evaluates: str = ""
    rebinds: str = ""
    redirects: list[PathUse] = []
    unread: list[str] = []


@cache
def _load_inert() -> dict[str, str]:
    """Programs, and forms of programs, that never execute their arguments, with the reason."""
    found: dict[str, str] = {}
    for entry in load_toml("inert.toml")["inert"]:
        found.update(dict.fromkeys(entry["programs"].split(), entry["reason"]))
        found.update(dict.fromkeys(entry.get("forms", []), entry["reason"]))
    return found


class CommandFinder:
    """Collects what one part could run in each of its states."""

    def __init__(
        self,
        assigned: dict[str, set[str]],
        cwd: str,
        home: str,
        read_script: ReadScript,
        read_expansions: ReadExpansions,
    ) -> None:
        """`assigned` are literal values that the text assigns to variables anywhere."""
        self.found = PartCandidates()
        self.cwds = frozenset({cwd})
        self._seen: set[tuple[str, ...]] = set()
        self._texts = 0
        self._assigned = assigned
        self._cwd = cwd
        self._home = home
        self._read_script = read_script
        self._read_expansions = read_expansions

    def look_at(self, part: Part) -> PartCandidates:
        """Everything `part` could run in any of its states."""
        for state in part.states[:_STATES]:
            self._part(part, state, 0)
        return self.found

    def _part(self, part: Part, state: ShellState, depth: int, *, certain: bool = True) -> None:
        before, self.cwds = self.cwds, state.cwds
        self._look(part, state, depth, certain=certain)
        self.cwds = before

    def _look(self, part: Part, state: ShellState, depth: int, *, certain: bool) -> None:
        node = part.node
        if depth:
            for redirect in part.redirects:
                self.found.redirects.extend(find_redirect_use(redirect, state).uses)
        if certain:
            self.found.evaluates = self.found.evaluates or find_reevaluation(part, state)
            self.found.rebinds = self.found.rebinds or find_part_rebinding(part)
        if not isinstance(node, Simple):
            if part.kind in ("test", "arithmetic", "for-arithmetic"):
                self._add_evaluated([word.literal or word.text for word in node.words], depth)
            return
        self._add_assignments(node.assignments, state, depth)
        fields = [field for word in node.words for field in expand_word(word, state.variables)]
        if fields:
            fed = self._read_stdin_texts(part, fields, depth)
            self.command(fields, depth, certain=certain, fed=fed)

    def _add_assignments(
        self, assignments: list[Assignment], state: ShellState, depth: int
    ) -> None:
        for item in assignments:
            if item.subscript is not None:
                self._add_evaluated([item.subscript], depth)
            if item.value is not None and _COMMAND_VARIABLE.fullmatch(item.name):
                named = expand_value(item.value, state.variables)
                self._text(named, depth, certain=False)
                self._add_mentions([named.value])
            # Arithmetic evaluates a variable's text again, subscripts and all.
            literal = item.value.literal if item.value is not None else None
            if literal is not None and "[" in literal:
                self._add_evaluated([literal], depth, is_sure=False)

    def command(
        self, fields: list[Field], depth: int, *, certain: bool, fed: list[str] | None = None
    ) -> None:
        """Record `fields` as a command and inspect what it runs; `fed` is its standard input."""
        key = (
            str(certain),
            *sorted(self.cwds),
            *[f"{field.kind[0]}{field.value}" for field in fields],
        )
        if not fields or key in self._seen:
            return
        self._seen.add(key)
        if len(self._seen) > _COMMANDS or depth > _LAYERS:
            self._add_every_word(fields)
            return
        self._add(fields, certain=certain)
        if fields[0].known is None or "{}" in fields[0].value:
            self._add_unknown_program(fields, depth, certain=certain)
            return
        if fields[0].value.startswith("-") and len(fields) > 1:
            self.command(fields[1:], depth + 1, certain=False)
        for shorter in strip_global_options(fields):
            self._add(shorter, certain=certain)
        aliased = make_unknown_subcommand(fields)
        if aliased is not None:
            self._add(aliased, certain=False)
        program = get_program_name(fields[0])
        if certain:
            self.found.rebinds = self.found.rebinds or find_command_rebinding(fields)
            doubt = find_builtin_reevaluation(program, fields[1:])
            self.found.evaluates = self.found.evaluates or doubt
            if doubt:
                self._add_evaluated([field.value for field in fields[1:]], depth)
        is_read = self._inner(fields, depth, certain=certain)
        self._options(fields, certain=certain)
        if not is_read and not _is_inert(program or "", fields):
            words = [field.value or field.text for field in fields[1:]]
            if program in ("sed", "gsed"):
                # The command e of sed runs the text directly after it.
                words += [word.replace("e", " ") for word in words] + [
                    re.sub(r"e(?=\S)", " ", word) for word in words
                ]
            self._add_mentions([*words, *(fed or ())])
            self._add_removals(fields, depth)

    def _add(self, fields: list[Field], *, certain: bool) -> None:
        program = get_program_name(fields[0])
        self.found.candidates.append(CommandCandidate(tuple(fields), certain, self.cwds, program))

    def _add_removals(self, fields: list[Field], depth: int) -> None:
        """A removal in the arguments of a program that may run it."""
        for index, field in enumerate(fields[1:], start=1):
            if field.known is not None and field.value.rpartition("/")[2] in REMOVERS:
                self.command(fields[index:], depth + 1, certain=False)

    def _inner(self, fields: list[Field], depth: int, *, certain: bool) -> bool:
        """Inspect the command inside a wrapper and return whether all its words were understood."""
        inner = find_inner_commands(fields)
        self.found.unknown = self.found.unknown or inner.unknown
        before = self.cwds
        for directory in inner.moved:
            self.cwds = change_state_directory(directory, ShellState(self.cwds, {})).cwds
        for command, sure in inner.commands:
            if command and (sure or command[0].kind == "known"):
                self.command(command, depth + 1, certain=certain and sure)
        for text, sure in inner.texts:
            self._text(text, depth, certain=certain and sure)
        self.cwds = before
        program = get_program_name(fields[0]) or ""
        is_script = program in _READING_SHELLS and not inner.texts and bool(inner.commands)
        is_sure = all(sure for _, sure in inner.commands) or bool(inner.texts)
        return (is_wrapper(program) or program in _READ_INSIDE) and is_sure and not is_script

    def _options(self, fields: list[Field], *, certain: bool) -> None:
        if certain and is_process_executed(fields):
            self.found.unknown = f"another command provides the input of {fields[0].text}"
        for value in find_option_commands(fields):
            if value.known is None and certain:
                reason = f"the program {value.text} that {fields[0].text} runs is unknown"
                self.found.unknown = self.found.unknown or reason

    def _add_every_word(self, fields: list[Field]) -> None:
        """Beyond the limits, every word counts as a program that certainly runs."""
        self.found.unknown = self.found.unknown or "commands are nested too deeply"
        heads = dict.fromkeys(tuple(fields[at : at + _HEAD]) for at in range(len(fields)))
        for head in heads:
            self._add(list(head), certain=True)

    def _add_unknown_program(self, fields: list[Field], depth: int, *, certain: bool) -> None:
        if certain:
            self.found.unknown = f"the program {fields[0].text} is unknown before it runs"
        for name in re.findall(r"[A-Za-z_]\w*", fields[0].text):
            for value in self._assigned.get(name, ()):
                head = [Field("known", word, word) for word in value.split()]
                if head:
                    self.command([*head, *fields[1:]], depth + 1, certain=certain)
        # Unquoted expansions may vanish, and then the next word is the program.
        if not fields[0].single and len(fields) > 1:
            self.command(fields[1:], depth + 1, certain=False)

    def _text(self, text: Field, depth: int, *, certain: bool) -> None:
        if text.known is None and not certain:
            return
        if text.known is None:
            self.found.unknown = f"{text.text} becomes shell code that is unknown before it runs"
            self.found.rebinds = self.found.rebinds or self.found.unknown
            return
        self._script(text.known, depth, certain=certain)

    def _script(self, text: str, depth: int, *, certain: bool) -> None:
        if self._texts >= _DEPTH:
            self.found.unknown = "shell texts are nested too deeply"
            self.found.unread.append(text)
            return
        script = self._read_script(text)
        if script.problems and not certain:
            self._add_mentions([text])
            return
        if script.problems:
            problem = script.problems[0].message
            self.found.unknown = f"the inner shell text cannot be read: {problem}"
            self.found.unread.append(text)
        self._texts += 1
        self._parts(script, depth, certain=certain)
        self._texts -= 1

    def _parts(self, script: ParsedScript, depth: int, *, certain: bool) -> None:
        starts = sorted(self.cwds)[:_STARTS]
        for start in starts or [self._cwd]:
            for part in walk(script, start, self._home):
                for state in part.states[:_INNER_STATES]:
                    known = state if starts else ShellState(frozenset(), state.variables)
                    self._part(part, known, depth + 1, certain=certain)

    def _add_evaluated(self, values: list[str], depth: int, *, is_sure: bool = True) -> None:
        """Inspect what runs when bash expands these values again."""
        for value in values:
            if "$(" in value or "`" in value:
                if is_sure:
                    self.found.evaluates = f"{value!r} is evaluated as code"
                for sequence in self._read_expansions(value) if depth < _LAYERS else ():
                    self._parts(ParsedScript("", sequence), depth, certain=True)

    def _read_stdin_texts(self, part: Part, fields: list[Field], depth: int) -> list[str]:
        """The texts on standard input; a shell without a script runs them."""
        is_shell = _has_shell(fields)
        runs_input = is_shell or is_stdin_executed(fields)
        texts: list[str] = []
        for redirect in part.redirects:
            if redirect.heredoc is not None and redirect.heredoc.body is not None:
                texts.append(redirect.heredoc.body.text)
            elif redirect.operator in ("<<<", "<"):
                fed = redirect.target.literal
                if redirect.operator == "<<<" and fed is not None:
                    texts.append(fed)
                elif runs_input:
                    self.found.unknown = f"{redirect.text} feeds {fields[0].text}"
        if part.reads_pipe and runs_input:
            self.found.unknown = f"a pipe provides the input of {fields[0].text}"
        for text in texts if is_shell else ():
            self._script(text, depth, certain=True)
        return texts

    def _add_mentions(self, texts: list[str]) -> None:
        joined = "\n".join(texts)
        # Quotes and escapes in a text apply to its next reader.
        readings = (joined, _QUOTING.sub("", joined), _ESCAPES.sub(" ", joined))
        for reading in dict.fromkeys(readings):
            tokens = tuple(_TOKEN.findall(reading))
            if len(tokens) > _TOKENS:
                self.found.unknown = "its arguments are too long to inspect"
            if tokens:
                self.found.mentions.append(tokens[:_TOKENS])


def _has_shell(fields: list[Field]) -> bool:
    """Whether a shell, or `source`, is among the words of a command."""
    builtins = [field for field in fields[:1] if field.known not in ("command", "builtin")]
    first = builtins or fields[1:2]
    named = any(get_program_name(field) in _READING_SHELLS for field in first)
    return named or any(get_program_name(field) in SHELLS for field in fields[1:])


def _is_inert(program: str, fields: list[Field]) -> bool:
    """Whether a program certainly never executes its arguments."""
    if find_exec_option(fields):
        return False
    table = _load_inert()
    if find_program(table, program) is not None:
        return True
    operands = [field.known or "" for field in fields[1:] if not field.value.startswith("-")]
    forms = (" ".join([program, *operands[:count]]) for count in (1, 2))
    return any(form in table for form in forms)
