"""The syntax model of a bash command: words, simple commands, and their containers.

Only shapes and cheap queries; `parse` creates them.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct

from handaxe.shell.analysis.program_tables import split_names

PieceKind = Literal["text", "glob", "tilde", "param", "command", "process", "arithmetic"]
"""The kind of a piece: literal text, a glob character, or an expansion."""


class WordPiece(Struct):
    """One run inside a word; `text` is the value for text, the inner source for the rest."""

    kind: PieceKind
    text: str
    quoted: bool = False
    param: Param | None = None


class Param(Struct):
    """A `$name` or `${name...}`: the name, the operator after it, and the operand's source."""

    name: str
    operator: str = ""
    operand: str = ""
    prefix: str = ""
    """`#` for the length of `${#name}`, `!` for the indirect `${!name}`."""
    subscript: str | None = None
    """The source between the brackets of `${name[...]}`."""


class Word(Struct):
    """A shell word: its source, its pieces, and the contents of its expansions."""

    text: str
    start: int
    pieces: list[WordPiece]
    quoted: bool = False
    has_glob: bool = False
    has_brace: bool = False
    has_tilde: bool = False
    has_expansion: bool = False
    scripts: list[Sequence] = []
    """The scripts inside its expansions, at any depth."""
    nested: list[WordPiece] = []
    """The pieces inside its expansions, at any depth: `$B` of `${A:-$B}`."""
    is_sign: bool = False
    """An operator of `[[ ]]`, not an operand."""
    made: list[Any] | None = None
    """The arguments it becomes if the text determines them; cached by `expand_word`."""

    @property
    def literal(self) -> str | None:
        """The value bash would see, or None if it depends on anything but the text."""
        if self.has_expansion or self.has_glob or self.has_tilde or self.has_brace:
            return None
        return "".join([piece.text for piece in self.pieces])


class Assignment(Struct):
    """`name=value`, `name+=value`, `name[subscript]=value` or `name=(array)`."""

    name: str
    text: str
    value: Word | None
    append: bool = False
    subscript: str | None = None
    array: list[Word] | None = None


class Redirect(Struct):
    """One redirection: descriptor text (digits or `{name}`), operator, and target word."""

    operator: str
    target: Word
    text: str
    start: int
    end: int
    descriptor: str = ""
    heredoc: Heredoc | None = None


class Heredoc(Struct):
    """A here-document; `body` is a word whose expansions count when the delimiter is unquoted."""

    delimiter: str
    expands: bool
    strip_tabs: bool
    body: Word | None = None


class Simple(Struct):
    """A simple command: assignments, words and redirections."""

    text: str
    start: int
    end: int
    assignments: list[Assignment] = []
    words: list[Word] = []
    redirects: list[Redirect] = []


class CommandPipeline(Struct):
    """Commands joined by `|` or `|&`; more than one means each runs in its own subshell."""

    commands: list[Node]
    negated: bool = False


class CommandChain(Struct):
    """Pipelines joined by `&&` and `||`; `operators` has one entry fewer than `items`."""

    items: list[Node]
    operators: list[str]


class Sequence(Struct):
    """Statements one after another; `background` marks those ended by `&`."""

    items: list[Node]
    background: list[bool]


CompoundKind = Literal[
    "subshell", "group", "if", "for", "for-arithmetic", "while", "until", "case", "select",
    "function", "test", "arithmetic", "coproc",
]  # fmt: skip


class Compound(Struct):
    """Everything with keywords or brackets.

    `conditions` and `bodies` run in pairs for if and while; `words` are the header's words: the
    list of a for loop, the subject and patterns of a case, the operands of `[[ ]]`.
    """

    kind: CompoundKind
    text: str
    start: int
    end: int
    name: str = ""
    words: list[Word] = []
    conditions: list[Sequence] = []
    bodies: list[Sequence] = []
    otherwise: Sequence | None = None
    redirects: list[Redirect] = []


Node = Simple | CommandPipeline | CommandChain | Sequence | Compound


class ParseProblem(Struct, frozen=True):
    """Why and where a text was not understood."""

    code: Literal["characters", "syntax", "depth", "length", "ambiguous"]
    message: str
    at: int = 0


class ParsedScript(Struct):
    """A parsed text: its statements, its problems, and the number of its commands."""

    text: str
    body: Sequence
    problems: list[ParseProblem] = []
    commands: int = 0


_UNARY = r"-[abcdefghknoprstuvwxzGLNORS]"
_BINARY = split_names("= == != =~ < > -nt -ot -ef -eq -ne -lt -le -gt -ge")


def is_conditional(words: list[Word]) -> bool:
    """Whether `words` form one conditional expression."""
    end = _skip_expression(words, 0)
    return end == len(words) and end > 0


def _get_text(words: list[Word], at: int) -> str:
    return words[at].text if 0 <= at < len(words) else ""


def _skip_expression(words: list[Word], at: int) -> int:
    """The end of the expression that starts at `at`, or -1."""
    at = _skip_term(words, at)
    while at >= 0 and _get_text(words, at) in ("&&", "||"):
        at = _skip_term(words, at + 1)
    return at


def _skip_term(words: list[Word], at: int) -> int:
    while _get_text(words, at) == "!":
        at += 1
    if _get_text(words, at) == "(":
        at = _skip_expression(words, at + 1)
        return at + 1 if at >= 0 and _get_text(words, at) == ")" else -1
    if not _is_operand(words, at):
        return -1
    if re.fullmatch(_UNARY, _get_text(words, at)) and _is_operand(words, at + 1):
        if _get_text(words, at + 1) not in _BINARY or not _is_operand(words, at + 2):
            return at + 2
        return -1
    if _get_text(words, at + 1) in _BINARY:
        return at + 3 if _is_operand(words, at + 2) else -1
    return -1 if _get_text(words, at).startswith("-") else at + 1


def _is_operand(words: list[Word], at: int) -> bool:
    return at < len(words) and not words[at].is_sign
