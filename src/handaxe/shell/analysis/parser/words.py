"""Parse one bash word: quotes, escapes and every kind of expansion.

Strict on purpose: parsing fails where bash versions or contexts read a text differently.
"""

from __future__ import annotations

import re

from handaxe.shell.analysis.parser.quotes import decode_ansi, unescape_backticks
from handaxe.shell.analysis.parser.syntax import Param, ParseProblem, Sequence, Word, WordPiece

_PLAIN = re.compile(r"[^\s|&;()<>'\"\\$`*?\[~]+")
_QUOTED_PLAIN = re.compile(r"[^\"\\$`]+")
_BODY_PLAIN = re.compile(r"[^\\$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = re.compile(r"[0-9@*#?$!-]")
_PARAM_HEAD = re.compile(r"([#!]?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])")
_PARAM_OPERATOR = re.compile(r":[-=+?]|[-=+?]|##?|%%?|//?|\^\^?|,,?|@[A-Za-z]|:")
_TILDE = re.compile(r"~([A-Za-z0-9_.+-]*)(?=[/\s:;|&()<>]|$)")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=(?:[^'\"\\$`]*:)?")
_BRACED = re.compile(r"\{[^{}]*(?:,|\.\.)|\{.*,.*\}")
_WORD_END = frozenset(" \t\n|&;()<>")
DEPTH_LIMIT = 40


class UnparsableCommand(Exception):
    """The text is not bash, or is ambiguous."""

    def __init__(self, problem: ParseProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class WordReader:
    """A cursor that reads words; the grammar above reads the rest."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text: str = text
        self.size: int = len(text)
        self.pos: int = 0
        self.depth: int = depth
        self.commands: int = 0

    def read_nested(self) -> Sequence:
        """The statements including a closing `)`; implemented by the grammar."""
        raise NotImplementedError

    def read_inner(self, text: str) -> Sequence:
        """The statements of an unescaped text (backticks); implemented by the grammar."""
        raise NotImplementedError

    def fail(self, message: str, *, ambiguous: bool = False) -> UnparsableCommand:
        """The error that ends parsing here."""
        code = "ambiguous" if ambiguous else "syntax"
        return UnparsableCommand(ParseProblem(code, message, self.pos))

    def read_word(self, *, assigned: bool = False) -> Word:
        """The word at the cursor, empty at a separator."""
        start = self.pos
        word = Word("", start, [])
        text, size = self.text, self.size
        while self.pos < size:
            plain = _PLAIN.match(text, self.pos)
            if plain:
                self.pos = plain.end()
                word.pieces.append(WordPiece("text", plain.group()))
            elif not self._read_special(word, start, assigned=assigned):
                break
        word.text = text[start : self.pos]
        _set_flags(word)
        return word

    def _read_special(self, word: Word, start: int, *, assigned: bool) -> bool:
        char = self.text[self.pos]
        if char in "<>":
            return self._read_process(word)
        if char in _WORD_END:
            return False
        if char in "*?[":
            word.pieces.append(WordPiece("glob", char))
            self.pos += 1
        elif char == "~":
            self._read_tilde(word, start, assigned=assigned)
        elif char == "'":
            self._read_single(word)
        elif char == '"':
            self._read_double(word)
        elif char == "\\":
            self._read_escape(word)
        elif char == "$":
            self._read_dollar(word, quoted=False)
        elif char == "`":
            self._read_backtick(word, quoted=False)
        else:
            raise self.fail(f"unexpected character {char!r}")
        return True

    def _read_tilde(self, word: Word, start: int, *, assigned: bool) -> None:
        before = self.text[start : self.pos]
        opens = not before or (assigned and before.endswith(":")) or _ASSIGNED.fullmatch(before)
        found = _TILDE.match(self.text, self.pos) if opens else None
        if found:
            word.pieces.append(WordPiece("tilde", found.group(1)))
            self.pos = found.end()
        else:
            word.pieces.append(WordPiece("text", "~"))
            self.pos += 1

    def _read_single(self, word: Word) -> None:
        end = self.text.find("'", self.pos + 1)
        if end < 0:
            raise self.fail("a single quote is never closed")
        word.pieces.append(WordPiece("text", self.text[self.pos + 1 : end], quoted=True))
        self.pos = end + 1

    def _read_escape(self, word: Word) -> None:
        if self.pos + 1 >= self.size:
            raise self.fail("the text ends in a backslash")
        char = self.text[self.pos + 1]
        self.pos += 2
        if char != "\n":
            word.pieces.append(WordPiece("text", char, quoted=True))

    def _read_double(self, word: Word) -> None:
        self.pos += 1
        # An empty pair of quotes still makes a word.
        word.pieces.append(WordPiece("text", "", quoted=True))
        while True:
            plain = _QUOTED_PLAIN.match(self.text, self.pos)
            if plain:
                word.pieces.append(WordPiece("text", plain.group(), quoted=True))
                self.pos = plain.end()
            if self.pos >= self.size:
                raise self.fail("a double quote is never closed")
            if self.text[self.pos] == '"':
                self.pos += 1
                return
            self._read_inside_quotes(word, escapes='$`"\\')

    def _read_inside_quotes(self, word: Word, *, escapes: str) -> None:
        char = self.text[self.pos]
        if char == "$":
            self._read_dollar(word, quoted=True)
        elif char == "`":
            self._read_backtick(word, quoted=True)
        elif char == "\\":
            follower = self.text[self.pos + 1 : self.pos + 2]
            self.pos += 2
            if follower != "\n":
                kept = follower if follower and follower in escapes else "\\" + follower
                word.pieces.append(WordPiece("text", kept, quoted=True))

    def read_body(self) -> Word:
        """The whole text as the body of a here-document with an unquoted delimiter."""
        word = Word(self.text, 0, [])
        while self.pos < self.size:
            plain = _BODY_PLAIN.match(self.text, self.pos)
            if plain:
                word.pieces.append(WordPiece("text", plain.group(), quoted=True))
                self.pos = plain.end()
            else:
                self._read_inside_quotes(word, escapes="$`\\")
        _set_flags(word)
        return word

    def _read_dollar(self, word: Word, *, quoted: bool) -> None:
        text, after = self.text, self.pos + 1
        follower = text[after : after + 1]
        name = _NAME.match(text, after) or _SPECIAL.match(text, after)
        if name:
            self.pos = name.end()
            word.pieces.append(WordPiece("param", name.group(), quoted, Param(name.group())))
        elif follower == "{":
            self._read_param(word, quoted=quoted)
        elif text.startswith("((", after):
            self.pos += 3
            self._add_arithmetic(word, quoted=quoted)
        elif follower == "(":
            self.pos += 2
            word.scripts.append(self._read_nested_script())
            word.pieces.append(WordPiece("command", "", quoted))
        elif follower == "'" and not quoted:
            self._read_ansi(word)
        elif follower == "[" or (follower == '"' and not quoted):
            raise self.fail(f"shells read ${follower} differently", ambiguous=True)
        elif follower == "\\" and text.startswith("\\\n", after):
            raise self.fail("a line continuation splits an expansion", ambiguous=True)
        else:
            word.pieces.append(WordPiece("text", "$", quoted))
            self.pos = after

    def _read_ansi(self, word: Word) -> None:
        decoded, end = decode_ansi(self.text, self.pos + 2)
        if decoded is None:
            raise self.fail("$'...' is not closed or contains a NUL", ambiguous=True)
        word.pieces.append(WordPiece("text", decoded, quoted=True))
        self.pos = end

    def _read_nested_script(self) -> Sequence:
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise UnparsableCommand(
                ParseProblem("depth", "expansions are nested too deeply", self.pos)
            )
        found = self.read_nested()
        self.depth -= 1
        return found

    def _read_process(self, word: Word) -> bool:
        if not self.text.startswith("(", self.pos + 1):
            return False
        direction = self.text[self.pos]
        before = "".join(piece.text for piece in word.pieces)
        if before:
            raise self.fail("a process substitution inside a word", ambiguous=True)
        self.pos += 2
        word.scripts.append(self._read_nested_script())
        word.pieces.append(WordPiece("process", direction))
        return True

    def _read_backtick(self, word: Word, *, quoted: bool) -> None:
        inner, end = unescape_backticks(self.text, self.pos + 1)
        if inner is None:
            raise self.fail("a backtick is never closed")
        if quoted and '\\"' in self.text[self.pos : end]:
            raise self.fail("escaped quotes inside quoted backticks", ambiguous=True)
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise UnparsableCommand(
                ParseProblem("depth", "backticks are nested too deeply", self.pos)
            )
        word.scripts.append(self.read_inner(inner))
        self.depth -= 1
        word.pieces.append(WordPiece("command", "`", quoted))
        self.pos = end

    def _add_arithmetic(self, word: Word, *, quoted: bool) -> None:
        inner = self.read_arithmetic()
        word.pieces.append(WordPiece("arithmetic", inner.text, quoted))
        word.scripts.extend(inner.scripts)
        word.nested.extend([*inner.pieces, *inner.nested])

    def read_arithmetic(self) -> Word:
        """The arithmetic including `))`, with its expansions."""
        word = Word("", self.pos, [])
        start, nesting = self.pos, 0
        while self.pos < self.size:
            char = self.text[self.pos]
            if char == ")" and nesting == 0:
                if not self.text.startswith("))", self.pos):
                    break
                word.text = self.text[start : self.pos]
                if word.scripts and not _is_balanced(word.text):
                    break
                self.pos += 2
                return word
            if char == "(":
                nesting += 1
            elif char == ")":
                nesting -= 1
            if char in "'\"\\#":
                break
            if char in "$`":
                self._read_inside_quotes(word, escapes="$`\\")
            else:
                self.pos += 1
        raise self.fail("arithmetic that may also be a command", ambiguous=True)

    def _read_param(self, word: Word, *, quoted: bool) -> None:
        self.pos += 2
        head = _PARAM_HEAD.match(self.text, self.pos)
        if head is None and not self.text.startswith("#}", self.pos):
            raise self.fail("an expansion that not every bash supports", ambiguous=True)
        prefix, name = ("", "#") if head is None else (head.group(1), head.group(2))
        self.pos = self.pos + 1 if head is None else head.end()
        start = self.pos - len(prefix) - len(name)
        param = Param(name, prefix=prefix)
        if self.text.startswith("[", self.pos):
            self._read_subscript(word, param)
        if not self.text.startswith("}", self.pos):
            self._read_operand(word, param, quoted=quoted)
        self.pos += 1
        word.pieces.append(WordPiece("param", self.text[start : self.pos - 1], quoted, param))

    def _read_subscript(self, word: Word, param: Param) -> None:
        start = self.pos + 1
        self.read_region(word, "]", quoted=False)
        param.subscript = self.text[start : self.pos - 1]
        param.name += "[]"

    def _read_operand(self, word: Word, param: Param, *, quoted: bool) -> None:
        found = _PARAM_OPERATOR.match(self.text, self.pos)
        if found is None:
            raise self.fail("an unknown parameter expansion")
        param.operator += found.group()
        self.pos = found.end() - 1
        start = found.end()
        self.read_region(word, "}", quoted=quoted)
        self.pos -= 1
        param.operand = self.text[start : self.pos]

    def read_region(self, word: Word, close: str, *, quoted: bool) -> None:
        """Skip the text including `close`; its expansions are added to `word`."""
        self.pos += 1
        while self.pos < self.size:
            char = self.text[self.pos]
            if char == close:
                self.pos += 1
                return
            self._read_region_character(word, char, quoted=quoted)
        raise self.fail(f"{close!r} is missing")

    def _read_region_character(self, word: Word, char: str, *, quoted: bool) -> None:
        inner = Word("", self.pos, [])
        if char == "'":
            if quoted:
                raise self.fail("a single quote inside a quoted expansion", ambiguous=True)
            self._read_single(inner)
        elif char == '"':
            self._read_double(inner)
        elif char == "$" and self.text[self.pos + 1 : self.pos + 2] in ("'", '"'):
            raise self.fail("a quoted string inside an expansion", ambiguous=True)
        elif char in "$`":
            self._read_inside_quotes(inner, escapes="")
        elif char in "<>" and self.text.startswith("(", self.pos + 1):
            raise self.fail("a process substitution inside an expansion", ambiguous=True)
        else:
            self.pos += 2 if char == "\\" else 1
        word.scripts.extend(inner.scripts)
        word.nested.extend([*inner.pieces, *inner.nested])


def _is_balanced(text: str) -> bool:
    """Whether counting parentheses finds the same end of an arithmetic text.

    Bash counts: with `case x in a)` inside, it takes `$((` for a subshell in a substitution.
    """
    return text.count("(") == text.count(")") and not any(char in text for char in "'\"\\#")


def _set_flags(word: Word) -> None:
    """Set the flags from the pieces; a `[` without a later `]` is plain text."""
    pieces = word.pieces
    closing = max((at for at, piece in enumerate(pieces) if "]" in piece.text), default=-1)
    for at, piece in enumerate(pieces):
        kind = piece.kind
        if kind == "text":
            if piece.quoted:
                word.quoted = True
        elif kind == "glob":
            if piece.text == "[" and closing <= at:
                piece.kind = "text"
            else:
                word.has_glob = True
        elif kind == "tilde":
            word.has_tilde = True
        else:
            word.has_expansion = True
            word.quoted = word.quoted or piece.quoted
    word.has_brace = "{" in word.text and _can_expand_braces(word)


def _can_expand_braces(word: Word) -> bool:
    """Whether unquoted text could be a brace expansion."""
    bare = "".join(
        piece.text if piece.kind in ("text", "glob") and not piece.quoted else "x"
        for piece in word.pieces
    )
    return bool(_BRACED.search(bare))
