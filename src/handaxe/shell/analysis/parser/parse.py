"""Parse bash text into the syntax model: the grammar around words.

Not a shell: nothing is expanded, no file is read. An ambiguous text is a problem.
"""

from __future__ import annotations

import re
from functools import lru_cache

from handaxe.shell.analysis.parser.quotes import read_heredoc
from handaxe.shell.analysis.parser.simple_commands import SimpleReader
from handaxe.shell.analysis.parser.syntax import (
    CommandChain,
    CommandPipeline,
    Compound,
    Node,
    ParsedScript,
    ParseProblem,
    Sequence,
    Word,
)
from handaxe.shell.analysis.parser.words import DEPTH_LIMIT, UnparsableCommand
from handaxe.shell.analysis.program_tables import split_names

_SPACE = re.compile(r"(?:[ \t]|\\\n)*")
_RESERVED = re.compile(
    r"(if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|time|coproc|\[\[|\{|\}|!)"
    r"(?=[ \t\n;&|()<>]|$)"
)
_TIME_FLAGS = re.compile(r"(?:-p|--)[ \t]+(?:--[ \t]+)?")
_CLOSERS = split_names("then elif else fi do done esac }")
TEXT_LIMIT = 100_000


# For one command the same text is asked for several times: by rules, by danger, by its reach.
@lru_cache(maxsize=64)
def parse(text: str) -> ParsedScript:
    """Parse `text`; never raises: `problems` lists unreadable parts.

    Do not modify the result; it is cached.
    """
    problems: list[ParseProblem] = []
    hidden = find_hidden_character(text)
    if hidden is not None:
        message = f"the command contains the invisible or control character {hidden[1]}"
        problems.append(ParseProblem("characters", message, hidden[0]))
    if len(text) > TEXT_LIMIT:
        problems.append(ParseProblem("length", f"the command has {len(text)} characters"))
        return ParsedScript(text, Sequence([], []), problems)
    reader = _Grammar(text)
    try:
        body = reader.read_all()
    except UnparsableCommand as stop:
        problems.append(stop.problem)
        body = Sequence(reader.finished, [False] * len(reader.finished))
    except RecursionError:
        problems.append(ParseProblem("depth", "the command is nested too deeply"))
        body = Sequence([], [])
    return ParsedScript(text, body, problems, reader.commands)


def parse_expansions(text: str) -> list[Sequence]:
    """The scripts that `text` would run if bash expanded it again, as a subscript does."""
    reader = _Grammar(text)
    try:
        return reader.read_body().scripts
    except (UnparsableCommand, RecursionError):
        return []


class _Grammar(SimpleReader):
    """Recursive descent over statements; one instance per text."""

    def __init__(self, text: str, depth: int = 0) -> None:
        super().__init__(text, depth)
        self.finished: list[Node] = []

    def read_all(self) -> Sequence:
        """The whole text as statements."""
        body = self.read_list((), keep=self.finished if self.depth == 0 else None)
        if self.pos < self.size:
            raise self.fail(f"unexpected {self.text[self.pos]!r}")
        if self.pending:
            raise self.fail("a here-document has no body")
        return body

    def read_inner(self, text: str) -> Sequence:
        """The statements inside backticks."""
        inner = _Grammar(text, self.depth)
        body = inner.read_all()
        self.commands += inner.commands
        return body

    def read_nested(self) -> Sequence:
        """The statements of `$(...)` or `<(...)` including the final `)`."""
        outer, self.pending = self.pending, []
        start = self.pos
        body = self.read_list((")",))
        self.expect(")")
        if self.pending or (outer and "\n" in self.text[start : self.pos]):
            raise self.fail("a here-document crosses a substitution", ambiguous=True)
        self.pending = outer
        return body

    def expect(self, token: str) -> None:
        """Skip `token` or fail."""
        self.skip_space()
        if not self.text.startswith(token, self.pos):
            raise self.fail(f"{token!r} is missing")
        self.pos += len(token)

    def skip_space(self) -> None:
        """Skip blanks, continued lines and a comment."""
        found = _SPACE.match(self.text, self.pos)
        self.pos = found.end() if found else self.pos
        if self.text.startswith("#", self.pos):
            end = self.text.find("\n", self.pos)
            self.pos = self.size if end < 0 else end

    def skip_lines(self) -> None:
        """Skip blanks, comments and line ends; reads here-document bodies on the way."""
        self.skip_space()
        while self.text.startswith("\n", self.pos):
            self.pos += 1
            if self.pending:
                self._read_bodies()
            self.skip_space()

    def _read_bodies(self) -> None:
        for document in self.pending:
            body, end = read_heredoc(
                self.text,
                self.pos,
                document.delimiter,
                joins=document.expands,
                strip_tabs=document.strip_tabs,
            )
            if body is None:
                raise self.fail(f"the here-document never reaches {document.delimiter!r}")
            document.body = self._read_body_word(body, expands=document.expands)
            self.pos = end
        self.pending = []

    def _read_body_word(self, body: str, *, expands: bool) -> Word:
        if not expands:
            return Word(body, 0, [], quoted=True)
        inner = _Grammar(body, self.depth)
        word = inner.read_body()
        self.commands += inner.commands
        return word

    def peek_reserved(self) -> str:
        """The reserved word at the cursor, or nothing."""
        found = _RESERVED.match(self.text, self.pos)
        return found.group(1) if found else ""

    def take_reserved(self, name: str) -> None:
        """Skip the reserved word `name` or fail."""
        self.skip_lines()
        if self.peek_reserved() != name:
            raise self.fail(f"{name!r} is missing")
        self.pos += len(name)

    def read_list(self, ends: tuple[str, ...], keep: list[Node] | None = None) -> Sequence:
        """Statements until one of `ends` (a reserved word, `)` or `;;`) or the end of the text."""
        items: list[Node] = [] if keep is None else keep
        background: list[bool] = []
        while True:
            self.skip_lines()
            if self.pos >= self.size or self._at_end(ends):
                break
            items.append(self.read_chain())
            background.append(False)
            self.skip_space()
            char = self.text[self.pos : self.pos + 1]
            if char == "&":
                background[-1] = True
                self.pos += 1
            elif char == ";" and self.text[self.pos : self.pos + 2] not in (";;", ";&"):
                self.pos += 1
            elif char != "\n":
                break
        return Sequence(items, background)

    def _at_end(self, ends: tuple[str, ...]) -> bool:
        if not ends:
            return False
        if self.text.startswith((")", ";;", ";&"), self.pos):
            return True
        return self.peek_reserved() in ends

    def read_block(self, *ends: str) -> Sequence:
        """Statements, at least one."""
        body = self.read_list(ends)
        if not body.items:
            raise self.fail("a command is missing")
        return body

    def read_chain(self) -> Node:
        """Pipelines joined by `&&` and `||`."""
        items = [self.read_pipeline()]
        operators: list[str] = []
        while True:
            self.skip_space()
            operator = self.text[self.pos : self.pos + 2]
            if operator not in ("&&", "||"):
                break
            self.pos += 2
            self.skip_lines()
            operators.append(operator)
            items.append(self.read_pipeline())
        return CommandChain(items, operators) if operators else items[0]

    def read_pipeline(self) -> Node:
        """Commands joined by pipes, after `!` and `time`."""
        negated = False
        while self.peek_reserved() in ("!", "time") and not self._is_time_program():
            negated = negated or self.peek_reserved() == "!"
            self.pos += len(self.peek_reserved())
            self.skip_space()
            flags = _TIME_FLAGS.match(self.text, self.pos)
            if flags:
                self.pos = flags.end()
                self.skip_space()
        commands = [self.read_command()]
        while True:
            self.skip_space()
            if not self.text.startswith("|", self.pos) or self.text.startswith("||", self.pos):
                break
            self.pos += 2 if self.text.startswith("|&", self.pos) else 1
            self.skip_lines()
            commands.append(self.read_command())
        return CommandPipeline(commands, negated) if negated or len(commands) > 1 else commands[0]

    def _is_time_program(self) -> bool:
        """Whether `time` here is the program: an option other than `-p` follows."""
        if self.peek_reserved() != "time":
            return False
        rest = self.text[self.pos + 4 : self.pos + 200].lstrip(" \t")
        return rest.startswith("-") and not _TIME_FLAGS.match(rest)

    def read_command(self) -> Node:
        """One simple or compound command."""
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise UnparsableCommand(
                ParseProblem("depth", "the command is nested too deeply", self.pos)
            )
        node = self._read_command()
        self.depth -= 1
        return node

    def _read_command(self) -> Node:
        keyword = self.peek_reserved()
        if keyword in _CLOSERS or keyword == "!":
            raise self.fail(f"unexpected {keyword!r}")
        if keyword and keyword != "time":
            return self._read_compound(keyword)
        if self.text.startswith("(", self.pos):
            return self._read_compound("((" if self.text.startswith("((", self.pos) else "(")
        return self.read_simple()

    def _read_compound(self, keyword: str) -> Compound:
        start = self.pos
        self.pos += len(keyword)
        node = self.read_compound_body(keyword)
        node.start = start
        if node.kind != "function":
            while self.read_redirect(node.redirects):
                pass
        node.end = self.pos
        node.text = self.text[start : self.pos]
        return node


_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    # Blanks that look like a space but do not separate words in bash.
    "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    # Zero width and fillers.
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u3164\ufeff\uffa0"
    # Direction controls.
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"
    # Variation selectors but the emoji one, tags, interlinear marks, lone surrogates.
    "\ufe00-\ufe0e\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff"
    "]"
)


def find_hidden_character(text: str) -> tuple[int, str] | None:
    """The position and the name of the first hidden or control character."""
    if text.isascii() and text.isprintable():
        return None
    found = _HIDDEN.search(text)
    if found is None:
        return None
    return found.start(), f"U+{ord(found.group()):04X}"
