"""Every command a part could run, over-approximated for deny and ask rules."""

from __future__ import annotations

import re

from msgspec import Struct

from handaxe.shell.effects import moved_state, redirect_use
from handaxe.shell.fields import Field, fields_of, value_field
from handaxe.shell.flow import Part, State, walk
from handaxe.shell.little_languages import is_printing_sed
from handaxe.shell.parse import parse, parse_expansions
from handaxe.shell.places import PathUse
from handaxe.shell.rebinding import rebinding_command, rebinding_part
from handaxe.shell.runners import SHELLS, inner_of, loose_words, program_name, runners
from handaxe.shell.running_options import (
    commands_in_options,
    runs_a_process,
    runs_what_it_is_fed,
)
from handaxe.shell.subcommands import unknown_subcommand, without_global_options
from handaxe.shell.syntax import Assignment, Script, Sequence, Simple
from handaxe.shell.tables import names

_EVALUATING = names(
    "test [ printf read let declare typeset local export readonly unset mapfile readarray "
    "compgen complete wait exec"
)
_RUNS_TEXT = frozenset({"compgen", "complete", "mapfile", "readarray"})
_COMMAND_VARIABLE = (
    r"PS[0-4]|PROMPT_COMMAND|BASH_ENV|ENV|.*PAGER|.*EDITOR|VISUAL|BROWSER|.*_COMMAND|GIT_SSH|.*ASKPASS"
    r"|GIT_EXTERNAL_DIFF|LESSOPEN|LESSCLOSE|SHELL|MANPAGER|.*_PROXY_COMMAND|.*_CMD|GIT_CONFIG_.*"
)
_CODE_TOKEN = re.compile(r"[\w./-]+")
_CODE_LIMIT = 150
_READING_SHELLS = SHELLS | {"source", "."}
_DEPTH = 4
_LAYERS = 12
_CANDIDATES = 4000
_HEAD = 8
_STARTS = 3


class Candidate(Struct, frozen=True):
    """A command that could run; `certain` when the text leaves no other reading."""

    fields: tuple[Field, ...]
    certain: bool
    cwds: frozenset[str] = frozenset()
    """Where it may run; none when that is not known."""

    @property
    def program(self) -> str | None:
        """The program's name without its directory, or None when the text does not say."""
        return program_name(self.fields[0])


class Danger(Struct):
    """What a part could run, and what cannot be known about it."""

    candidates: list[Candidate] = []
    unknown: str = ""
    """Why some program is not known before it runs; empty when every program is."""
    evaluates: str = ""
    """Which builtin would run code hidden in data, if one does."""
    rebinds: str = ""
    """What leaves the meaning of words open: it changes later ones, or is code nobody knows yet."""
    redirects: list[PathUse] = []
    """Files that redirections inside inner shell texts open."""
    unread: list[str] = []
    """Inner shell texts that could not be parsed; the caller scans them as raw text."""


def find_danger(part: Part, assigned: dict[str, set[str]], cwd: str, home: str) -> Danger:
    """Every command `part` could run in any of its states."""
    finder = _Finder(assigned, cwd, home)
    for state in part.states[:40]:
        finder.part(part, state, 0)
    return finder.danger


def look_inside(candidate: Candidate, cwd: str, home: str) -> list[Candidate]:
    """What a command found without its part would run in turn."""
    finder = _Finder({}, cwd, home)
    finder.cwds = candidate.cwds
    finder.command(list(candidate.fields), 0, certain=candidate.certain)
    return finder.danger.candidates[1:]


class _Finder:
    def __init__(self, assigned: dict[str, set[str]], cwd: str, home: str) -> None:
        self.danger = Danger()
        self._seen: set[tuple[str, ...]] = set()
        self._texts = 0
        self._assigned = assigned
        self._cwd = cwd
        self._home = home
        self.cwds = frozenset({cwd})

    def part(self, part: Part, state: State, depth: int, *, certain: bool = True) -> None:
        before, self.cwds = self.cwds, state.cwds
        self._look_at(part, state, depth, certain=certain)
        self.cwds = before

    def _look_at(self, part: Part, state: State, depth: int, *, certain: bool) -> None:
        node = part.node
        if depth:
            for redirect in part.redirects:
                self.danger.redirects.extend(redirect_use(redirect, state).uses)
        for word in part.words:
            if certain and word.hazards and word.hazards != ["sign"]:
                self.danger.evaluates = word.hazards[0]
        if certain:
            self.danger.rebinds = self.danger.rebinds or rebinding_part(part)
        if not isinstance(node, Simple):
            if part.kind in ("test", "arithmetic", "for-arithmetic"):
                self._evaluated([w.literal or w.text for w in node.words], depth)
            return
        self._assignments(node.assignments, state, depth)
        fields = [field for word in node.words for field in fields_of(word, state.variables)]
        if fields:
            self._stdin_script(part, fields, depth)
            self.command(fields, depth, certain=certain)

    def _assignments(self, assignments: list[Assignment], state: State, depth: int) -> None:
        for item in assignments:
            if item.subscript is not None:
                self._evaluated([item.subscript], depth)
            if item.value is not None and re.fullmatch(_COMMAND_VARIABLE, item.name):
                named = value_field(item.value, state.variables)
                self._text(named, depth, certain=False)
                self._tokens(named.value)
            # Arithmetic evaluates a variable's text again, subscripts and all.
            literal = item.value.literal if item.value is not None else None
            if literal is not None and "[" in literal:
                self._evaluated([literal], depth)

    def command(self, fields: list[Field], depth: int, *, certain: bool) -> None:
        """Record `fields` as a command and look at what it runs."""
        key = (
            str(certain),
            *sorted(self.cwds),
            *[f"{field.kind[0]}{field.value}" for field in fields],
        )
        if not fields or key in self._seen:
            return
        self._seen.add(key)
        if len(self._seen) > _CANDIDATES or depth > _LAYERS:
            self._too_deep(fields)
            return
        self.danger.candidates.append(Candidate(tuple(fields), certain, self.cwds))
        if fields[0].known is None or "{}" in fields[0].value:
            self._unknown_program(fields, depth, certain=certain)
            return
        if fields[0].value.startswith("-") and len(fields) > 1:
            self.command(fields[1:], depth + 1, certain=False)
        for shorter in without_global_options(fields):
            self.danger.candidates.append(Candidate(tuple(shorter), certain, self.cwds))
        aliased = unknown_subcommand(fields)
        if aliased is not None:
            self.danger.candidates.append(Candidate(tuple(aliased), certain=False, cwds=self.cwds))
        if certain:
            self.danger.rebinds = self.danger.rebinds or rebinding_command(fields)
        self._builtin(fields, depth)
        self._inner(fields, depth, certain=certain)
        self._named_by_options(fields, certain=certain)
        self._code(fields)

    def _inner(self, fields: list[Field], depth: int, *, certain: bool) -> None:
        """What a wrapper runs, where the wrapper goes."""
        inner = inner_of(fields)
        self.danger.unknown = self.danger.unknown or inner.unknown
        before = self.cwds
        for directory in inner.moved:
            self.cwds = moved_state(directory, State(self.cwds, {})).cwds
        for command, sure in inner.commands:
            if command and (sure or command[0].kind == "known"):
                self.command(command, depth + 1, certain=certain and sure)
        for text, sure in inner.texts:
            self._text(text, depth, certain=certain and sure)
        self.cwds = before

    def _named_by_options(self, fields: list[Field], *, certain: bool) -> None:
        if certain and runs_a_process(fields):
            self.danger.unknown = f"another command feeds {fields[0].text}"
        for value in commands_in_options(fields):
            if value.known is None and certain:
                reason = f"the program {value.text} that {fields[0].text} runs is not known"
                self.danger.unknown = self.danger.unknown or reason
            self._tokens(value.value)

    def _too_deep(self, fields: list[Field]) -> None:
        """Beyond the limits every word counts as a program that certainly runs."""
        self.danger.unknown = self.danger.unknown or "commands are nested too deeply"
        heads = dict.fromkeys(tuple(fields[at : at + _HEAD]) for at in range(len(fields)))
        self.danger.candidates.extend(
            Candidate(head, certain=True, cwds=self.cwds) for head in heads
        )

    def _unknown_program(self, fields: list[Field], depth: int, *, certain: bool) -> None:
        if certain:
            self.danger.unknown = f"the program {fields[0].text} is not known before it runs"
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
            self.danger.unknown = f"{text.text} becomes shell code that is not known before it runs"
            self.danger.rebinds = self.danger.rebinds or self.danger.unknown
            return
        self._script(text.known, depth, certain=certain)

    def _script(self, text: str, depth: int, *, certain: bool) -> None:
        if self._texts >= _DEPTH:
            self.danger.unknown = "shell texts are nested too deeply"
            self.danger.unread.append(text)
            return
        script = parse(text)
        if script.problems and not certain:
            return
        if script.problems:
            problem = script.problems[0].message
            self.danger.unknown = f"the inner shell text cannot be read: {problem}"
            self.danger.unread.append(text)
        self._texts += 1
        self._parts(script, depth, certain=certain)
        self._texts -= 1

    def _parts(self, script: Script, depth: int, *, certain: bool) -> None:
        starts = sorted(self.cwds)[:_STARTS]
        for start in starts or [self._cwd]:
            for part in walk(script, start, self._home):
                for state in part.states[:8]:
                    known = state if starts else State(frozenset(), state.variables)
                    self.part(part, known, depth + 1, certain=certain)

    def _evaluated(self, values: list[str], depth: int) -> None:
        for value in values:
            if "$(" in value or "`" in value:
                self.danger.evaluates = f"{value!r} is evaluated as code"
                for sequence in parse_expansions(value):
                    self._sequence(sequence, depth)

    def _sequence(self, sequence: Sequence, depth: int) -> None:
        if depth < _LAYERS:
            self._parts(Script("", sequence), depth, certain=True)

    def _builtin(self, fields: list[Field], depth: int) -> None:
        program = program_name(fields[0])
        if program not in _EVALUATING:
            return
        values = [field.value for field in fields[1:]]
        self._evaluated(values, depth)
        named = program not in ("test", "[", "printf", "exec") or {"-v", "-R"} & set(values)
        named = named and program not in ("export", "local", "readonly")
        if named and any(field.kind == "unknown" for field in fields[1:]):
            self.danger.evaluates = f"{program} evaluates an argument that is not known"
        if program in _RUNS_TEXT and "-C" in values:
            at = values.index("-C") + 2
            if at < len(fields):
                self._text(fields[at], depth, certain=True)

    def _stdin_script(self, part: Part, fields: list[Field], depth: int) -> None:
        """A shell without a script runs what it is fed, and so do some other programs."""
        if any(program_name(field) in _READING_SHELLS for field in fields):
            for text in self._fed(part, "a shell"):
                self._script(text, depth, certain=True)
        elif runs_what_it_is_fed(fields):
            for text in self._fed(part, fields[0].text):
                self._tokens(text)

    def _fed(self, part: Part, reader: str) -> list[str]:
        """Texts on standard input; where they are not known, so is what runs."""
        texts: list[str] = []
        for redirect in part.redirects:
            if redirect.heredoc is not None and redirect.heredoc.body is not None:
                texts.append(redirect.heredoc.body.text)
            elif redirect.operator in ("<<<", "<"):
                fed = redirect.target.literal
                if redirect.operator == "<<<" and fed is not None:
                    texts.append(fed)
                else:
                    self.danger.unknown = f"{redirect.text} feeds {reader}"
        if part.reads_pipe:
            self.danger.unknown = f"a pipe feeds {reader}"
        return texts

    def _code(self, fields: list[Field]) -> None:
        """Names inside the inline code of an interpreter, as possible programs."""
        program = program_name(fields[0]) or ""
        runner = runners().get(program)
        if program == "sed":
            words = [field for field in fields[1:] if not is_printing_sed(field.value)]
        elif runner is not None and runner.loose:
            words = loose_words(runner, fields[1:])
        else:
            return
        for field in words:
            text = field.value
            if not re.search(r"[^\w./=:@%+,-]", text):
                continue
            self._tokens(text)

    def _tokens(self, text: str) -> None:
        """Every word of a text as a program that may run."""
        tokens = _CODE_TOKEN.findall(text)[:_CODE_LIMIT]
        for index in range(len(tokens)):
            names = [Field("known", token, token) for token in tokens[index : index + 6]]
            key = ("code", *sorted(self.cwds), *[name.value for name in names])
            if key not in self._seen:
                self._seen.add(key)
                candidate = Candidate(tuple(names), certain=False, cwds=self.cwds)
                self.danger.candidates.append(candidate)
