"""Walk a script in the order of bash, with the known state at each command.

The state has the possible current directories (after `cd`) and variables with literal values. If
the text does not determine it, the state is unknown, never guessed.
"""

from __future__ import annotations

import re

from msgspec import Struct

from handaxe.shell.analysis.parser.expansion import Field, expand_value, expand_word, is_sequence
from handaxe.shell.analysis.parser.syntax import (
    Assignment,
    CommandChain,
    CommandPipeline,
    Compound,
    Node,
    ParsedScript,
    Redirect,
    Sequence,
    Simple,
    Word,
)
from handaxe.shell.analysis.paths import resolve
from handaxe.shell.analysis.program_tables import split_names

_STATEFUL = split_names(
    "eval source . mapfile readarray declare typeset local export readonly unset let getopts "
    "pushd popd shopt exec trap alias unalias enable builtin command set bind complete fc"
)
_NAMING = split_names("export readonly declare typeset local unset")
_NAMED = re.compile(r"([A-Za-z_]\w*)(?:=(.*))?", re.ASCII | re.DOTALL)
_KEEPS = re.compile(r"-[gprvx]+")
_VISITS = 40
_LOOP_VALUES = 12


class ShellState(Struct, frozen=True):
    """The state before a command: possible directories (empty: unknown) and variables."""

    cwds: frozenset[str]
    variables: dict[str, Field | None]

    def lost(self) -> ShellState:
        """The state with nothing known."""
        return ShellState(frozenset(), dict.fromkeys(self.variables))


class Part(Struct):
    """One command, or one piece of syntax with an effect, and its possible states."""

    node: Simple | Compound
    kind: str
    """simple, test, arithmetic, function, coproc, header (words and redirections of a compound)."""
    states: list[ShellState]
    background: bool = False
    reads_pipe: bool = False
    producer: Part | None = None
    """The simple command whose output it reads."""
    redirects: list[Redirect] = []
    words: list[Word] = []

    @property
    def text(self) -> str:
        """The source text of this part alone."""
        if self.kind != "header":
            return self.node.text
        pieces = [word.text for word in self.words] + [item.text for item in self.redirects]
        return " ".join(pieces)


_Pair = tuple[ShellState | None, ShellState | None]


def walk(script: ParsedScript, cwd: str, home: str) -> list[Part]:
    """Every part of `script`, in source order of the first visit."""
    known = {
        "HOME": Field("known", home, home),
        "PWD": Field("known", cwd, cwd),
    }
    walker = _Walker()
    walker.sequence(script.body, ShellState(frozenset({cwd}), dict(known)))
    return walker.parts


def merge(first: ShellState | None, second: ShellState | None) -> ShellState | None:
    """The state after either of two ways."""
    if first is None or second is None or first is second:
        return first or second
    cwds = first.cwds | second.cwds if first.cwds and second.cwds else frozenset[str]()
    names = first.variables.keys() | second.variables.keys()
    variables = {
        name: first.variables.get(name)
        if first.variables.get(name) == second.variables.get(name)
        else None
        for name in names
    }
    return ShellState(cwds, variables)


class _Walker:
    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._by_node: dict[tuple[int, str], Part] = {}
        self._visits = 0
        self._background = False
        self._escaped: ShellState | None = None
        self._has_functions = False

    def sequence(self, node: Sequence, state: ShellState | None) -> ShellState | None:
        for item, background in zip(node.items, node.background, strict=False):
            if state is None:
                # Nothing is reached after exit, but it is still looked at, with nothing known.
                state = ShellState(frozenset(), {})
            if background:
                before, self._background = self._background, True
                self.node(item, state)
                self._background = before
            else:
                state = merge(*self.node(item, state))
        return state

    def node(self, node: Node, state: ShellState) -> _Pair:
        if isinstance(node, Simple):
            return self._walk_simple(node, state)
        if isinstance(node, CommandPipeline):
            return self._pipeline(node, state)
        if isinstance(node, CommandChain):
            return self._walk_chain(node, state)
        if isinstance(node, Sequence):
            after = self.sequence(node, state)
            return after, after
        return self._compound(node, state)

    def _walk_chain(self, node: CommandChain, state: ShellState) -> _Pair:
        good, bad = self.node(node.items[0], state)
        for operator, item in zip(node.operators, node.items[1:], strict=True):
            start = good if operator == "&&" else bad
            # An unreachable branch is analysed with nothing known.
            inner = self.node(item, start if start is not None else ShellState(frozenset(), {}))
            if start is None:
                continue
            if operator == "&&":
                good, bad = inner[0], merge(bad, inner[1])
            else:
                good, bad = merge(good, inner[0]), inner[1]
        return good, bad

    def _pipeline(self, node: CommandPipeline, state: ShellState) -> _Pair:
        if len(node.commands) == 1:
            good, bad = self.node(node.commands[0], state)
            return (bad, good) if node.negated else (good, bad)
        before: Part | None = None
        for index, command in enumerate(node.commands):
            first = len(self.parts)
            self.node(command, state)
            part = self._by_node.get((id(command), "simple"))
            if index and len(self.parts) > first:
                self.parts[first].reads_pipe = True
            if part is not None:
                part.producer = before
            before = part
        return state, state

    def _record(
        self,
        node: Simple | Compound,
        kind: str,
        state: ShellState,
        words: list[Word],
        redirects: list[Redirect],
    ) -> None:
        key = (id(node), kind)
        part = self._by_node.get(key)
        if part is None:
            part = Part(node, kind, [], self._background)
            part.words, part.redirects = words, redirects
            self._by_node[key] = part
            self.parts.append(part)
        if state not in part.states:
            part.states.append(state)
        self._visits += 1
        inner = [word for word in words if word.scripts]
        targets = [item.heredoc.body if item.heredoc else item.target for item in redirects]
        inner += [word for word in targets if word is not None and word.scripts]
        for word in inner:
            is_fed = any(piece.kind == "process" and piece.text == ">" for piece in word.pieces)
            for script in word.scripts:
                first = len(self.parts)
                self.sequence(script, state)
                if is_fed and len(self.parts) > first:
                    self.parts[first].reads_pipe = True

    def _walk_simple(self, node: Simple, state: ShellState) -> _Pair:
        values = _list_assigned_words(node.assignments)
        self._record(node, "simple", state, [*values, *node.words], node.redirects)
        if not node.words:
            after = _assign(node.assignments, state)
            return after, after
        if node.words[0].literal in ("break", "continue"):
            self._escaped = merge(self._escaped, state)
            return None, None
        return _run_simple(node, state)

    def _compound(self, node: Compound, state: ShellState) -> _Pair:
        kind = node.kind
        if kind in ("test", "arithmetic", "coproc", "function", "select", "for-arithmetic"):
            self._record(node, kind, state, node.words, node.redirects)
        elif node.words or node.redirects:
            self._record(node, "header", state, node.words, node.redirects)
        if kind in ("test", "arithmetic"):
            after = state if kind == "test" else state.lost()
            return after, after
        return self._walk_body(node, state)

    def _walk_body(self, node: Compound, state: ShellState) -> _Pair:
        if node.kind == "if":
            return self._walk_if(node, state)
        if node.kind == "case":
            return self._walk_case(node, state)
        if node.kind in ("function", "coproc"):
            return self._function(node, state)
        if node.kind not in ("subshell", "group"):
            return self._loop(node, state)
        after = self.sequence(node.bodies[0], state)
        return (state, state) if node.kind == "subshell" else (after, after)

    def _walk_if(self, node: Compound, state: ShellState) -> _Pair:
        result: ShellState | None = None
        current: ShellState | None = state
        for condition, body in zip(node.conditions, node.bodies, strict=True):
            entry = current or ShellState(frozenset(), {})
            good, bad = self._walk_condition(condition, entry)
            result = merge(result, self.sequence(body, good))
            current = bad
        if node.otherwise is not None:
            result = merge(result, self.sequence(node.otherwise, current))
        else:
            result = merge(result, current)
        return result, result

    def _walk_condition(self, node: Sequence, state: ShellState) -> _Pair:
        if len(node.items) == 1 and not node.background[0]:
            return self.node(node.items[0], state)
        after = self.sequence(node, state)
        return after, after

    def _walk_case(self, node: Compound, state: ShellState) -> _Pair:
        result: ShellState | None = state
        for body in node.bodies:
            # `;&` falls through, so a body may start in the state another one left.
            result = merge(result, self.sequence(body, result))
        return result, result

    def _function(self, node: Compound, state: ShellState) -> _Pair:
        self._has_functions = True
        self.sequence(node.bodies[0], state.lost())
        lost = state.lost()
        return lost, lost

    def _loop(self, node: Compound, state: ShellState) -> _Pair:
        values = self._find_loop_values(node, state)
        if values is not None:
            current: ShellState | None = state
            for value in values:
                entry = _set_variable(current or state.lost(), node.name, value)
                current = merge(self._once(node, entry), entry)
            after = merge(current, state)
            return after, after
        counted = self._find_loop_number(node, state)
        entry = _set_variable(state, node.name.rstrip("@"), counted) if node.name else state
        after = merge(entry, self._once(node, entry))
        if after is not None and after != entry:
            again = merge(after, self._once(node, after))
            if again != after:
                lost = entry.lost()
                self._once(node, lost)
                return lost, lost
        return after, after

    def _once(self, node: Compound, state: ShellState) -> ShellState | None:
        current: ShellState | None = state
        if node.conditions:
            current = merge(*self._walk_condition(node.conditions[0], state))
        # States that left by break or continue are included; `break 2` also reaches the outer loop.
        return merge(self.sequence(node.bodies[0], current), self._escaped)

    def _find_loop_number(self, node: Compound, state: ShellState) -> Field | None:
        """The loop variable if every value is a number: literals, and the output of `seq`."""
        if node.kind != "for" or node.name.endswith("@") or not node.words:
            return None
        for word in node.words:
            fields = expand_word(word, state.variables)
            counts = all((field.known or "").isdigit() or field.is_number for field in fields)
            if not counts and (self._has_functions or not is_sequence(word)):
                return None
        return Field("unknown", "", f"${node.name}", is_number=True)

    def _find_loop_values(self, node: Compound, state: ShellState) -> list[Field] | None:
        """The values of a `for` loop, if the text determines them and they are few."""
        if node.kind != "for" or node.name.endswith("@") or self._visits > _VISITS:
            return None
        values: list[Field] = []
        for word in node.words:
            values.extend(expand_word(word, state.variables))
        if len(values) > _LOOP_VALUES or any(value.kind == "unknown" for value in values):
            return None
        if any(value.kind == "glob" and not value.single for value in values):
            return None
        return values


def _list_assigned_words(assignments: list[Assignment]) -> list[Word]:
    words: list[Word] = []
    for item in assignments:
        words.extend([item.value] if item.value is not None else [])
        words.extend(item.array or [])
    return words


def _set_variable(state: ShellState, name: str, value: Field | None) -> ShellState:
    return ShellState(state.cwds, {**state.variables, name: value})


def _assign(assignments: list[Assignment], state: ShellState) -> ShellState:
    variables = dict(state.variables)
    for item in assignments:
        plain = item.value is not None and not item.append and item.subscript is None
        value = expand_value(item.value, variables) if plain and item.value else None
        is_told = value is not None and (value.kind == "known" or value.is_number)
        variables[item.name] = value if is_told else None
    return ShellState(state.cwds, variables)


def _run_simple(node: Simple, state: ShellState) -> _Pair:
    """The states after a simple command succeeded and failed."""
    fields = [field for word in node.words for field in expand_word(word, state.variables)]
    while len(fields) > 1 and fields[0].known in ("builtin", "command"):
        fields = fields[1:]
    program = fields[0].known if fields else None
    if program == "cd":
        return _change_directory(fields[1:], state), state
    if program in ("exit", "return"):
        return None, None
    if program == "read":
        unset = {field.value: None for field in fields[1:]} | {"REPLY": None}
        after = ShellState(state.cwds, {**state.variables, **unset})
        return after, after
    if program in _NAMING:
        after = _declare_variables(fields[1:], state)
        return after, after
    if program is None or _can_change_shell(program, fields[1:]):
        return state.lost(), state.lost()
    return state, state


def _declare_variables(operands: list[Field], state: ShellState) -> ShellState:
    """The state after variables were declared or unset; unknown if the text is unclear."""
    variables = dict(state.variables)
    for field in operands:
        name = _NAMED.fullmatch(field.value) if field.single else None
        if name is not None and (field.kind == "known" or "=" in field.value):
            value = name[2] if field.kind == "known" and "~" not in field.value else None
            variables[name[1]] = None if value is None else Field("known", value, value)
        elif field.known is None or not _KEEPS.fullmatch(field.known):
            return state.lost()
    return ShellState(state.cwds, variables)


def _can_change_shell(program: str, operands: list[Field]) -> bool:
    if program == "trap":
        # An empty action ignores signals, and - undoes that; neither runs anything.
        return not operands or operands[0].known not in ("", "-")
    if program == "set":
        return not all((field.known or "").startswith(("-", "pipefail")) for field in operands)
    if program == "printf":
        return bool(operands) and "-v" in operands[0].value
    return program in _STATEFUL


def _change_directory(operands: list[Field], state: ShellState) -> ShellState:
    while operands and operands[0].known in ("--", "-L", "-P", "-e"):
        operands = operands[1:]
    target = operands[0].known if len(operands) == 1 else None
    if not operands:
        home = state.variables.get("HOME")
        target = home.known if home else None
    if target is None or target == "-" or target.startswith("-") or not target:
        return ShellState(frozenset(), {**state.variables, "PWD": None})
    may_search = "CDPATH" in state.variables and not target.startswith(("/", "./", "../"))
    if (may_search or not state.cwds) and not target.startswith("/"):
        return ShellState(frozenset(), {**state.variables, "PWD": None})
    cwds = frozenset(resolve(target, base) for base in (state.cwds or {"/"}))
    only = next(iter(cwds))
    here = Field("known", only, only) if len(cwds) == 1 else None
    return ShellState(cwds, {**state.variables, "PWD": here})
