"""Parse simple commands: assignments, words, redirections, and functions named by a word."""

from __future__ import annotations

import re

from handaxe.shell.analysis.parser.compound_commands import CompoundReader
from handaxe.shell.analysis.parser.syntax import (
    Assignment,
    Compound,
    Heredoc,
    Node,
    Redirect,
    Sequence,
    Simple,
    Word,
)
from handaxe.shell.analysis.program_tables import split_names

_KEYWORDS = split_names(
    "if then elif else fi for while until do done case esac select function time coproc [[ { } !"
)
_REDIRECT = re.compile(
    r"(\d+|\{[A-Za-z_][A-Za-z0-9_]*\})?(&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||<(?!\()|>(?!\())"
)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
_SUBSCRIPTED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[")
_OPERATOR = re.compile(r"\+?=")
_PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
_DECLARING = split_names("declare typeset local export readonly alias eval")


class SimpleReader(CompoundReader):
    """The part of the grammar without keywords."""

    def __init__(self, text: str, depth: int = 0) -> None:
        super().__init__(text, depth)
        self.pending: list[Heredoc] = []

    def read_simple(self) -> Node:
        """Assignments, words and redirections up to an operator."""
        start = self.pos
        simple = Simple("", start, start)
        while True:
            self.skip_space()
            if self.pos >= self.size:
                break
            if self.read_redirect(simple.redirects) or self._read_assignment(simple):
                simple.end = self.pos
                continue
            word = self.read_word()
            if not word.text:
                break
            if not simple.words:
                self._check_keyword(word)
            simple.words.append(word)
            simple.end = self.pos
            if self._is_function(simple):
                return self._read_function(simple, start)
        if not (simple.words or simple.assignments or simple.redirects):
            found = self.text[self.pos : self.pos + 1] or "the end"
            raise self.fail(f"a command is missing before {found!r}")
        self.commands += 1 if simple.words else 0
        simple.text = self.text[start : simple.end]
        return simple

    def _check_keyword(self, word: Word) -> None:
        """Fail at a keyword or assignment split over two lines; bash joins them first."""
        if "\\\n" not in word.text:
            return
        joined = word.text.replace("\\\n", "")
        if joined in _KEYWORDS or "=" in joined:
            raise self.fail("a keyword or assignment is split over two lines", ambiguous=True)

    def _is_function(self, simple: Simple) -> bool:
        if len(simple.words) != 1 or simple.assignments or simple.redirects:
            return False
        return bool(_PARENTHESES.match(self.text, self.pos))

    def _read_function(self, simple: Simple, start: int) -> Compound:
        self.expect("(")
        self.expect(")")
        return self.read_function_body(simple.words[0].text, start)

    def read_function_body(self, name: str, start: int) -> Compound:
        """The compound command that is a function's body."""
        self.skip_lines()
        body = self.read_command()
        if not isinstance(body, Compound):
            raise self.fail("a function needs a compound command as its body")
        text = self.text[start : self.pos]
        inner = Sequence([body], [False])
        return Compound("function", text, start, self.pos, name=name, bodies=[inner])

    def _read_assignment(self, simple: Simple) -> bool:
        if simple.words and simple.words[0].literal not in _DECLARING:
            return False
        found = _ASSIGNMENT.match(self.text, self.pos)
        if found is None:
            return False if simple.words else self._read_subscripted(simple)
        if simple.words and not self.text.startswith("(", found.end()):
            return False
        start, self.pos = self.pos, found.end()
        simple.assignments.append(self._read_value(found.group(1), found.group(2), start))
        return True

    def _read_subscripted(self, simple: Simple) -> bool:
        found = _SUBSCRIPTED.match(self.text, self.pos)
        if found is None:
            return False
        start = self.pos
        self.pos = found.end() - 1
        holder = Word("", start, [])
        self.read_region(holder, "]", quoted=False)
        subscript = self.text[found.end() : self.pos - 1]
        operator = _OPERATOR.match(self.text, self.pos)
        if operator is None:
            self.pos = start
            if holder.scripts:
                raise self.fail("a bracketed command name", ambiguous=True)
            return False
        self.pos = operator.end()
        assignment = self._read_value(found.group(1), operator.group(), start)
        assignment.subscript = subscript
        if assignment.value is not None:
            assignment.value.scripts.extend(holder.scripts)
            assignment.value.nested.extend([*holder.pieces, *holder.nested])
        simple.assignments.append(assignment)
        return True

    def _read_value(self, name: str, operator: str, start: int) -> Assignment:
        assignment = Assignment(name, "", None, append=operator == "+=")
        if self.text.startswith("(", self.pos):
            self.pos += 1
            assignment.array = self._read_array()
        else:
            assignment.value = self.read_word(assigned=True)
        assignment.text = self.text[start : self.pos]
        return assignment

    def _read_array(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self.skip_lines()
            if self.text.startswith(")", self.pos):
                self.pos += 1
                return words
            word = self.read_word()
            if not word.text:
                raise self.fail("an array is never closed")
            words.append(word)

    def read_redirect(self, into: list[Redirect]) -> bool:
        """Parse a redirection at the cursor into `into`, if there is one."""
        self.skip_space()
        found = _REDIRECT.match(self.text, self.pos)
        if found is None or (found.group(1) and found.group(2).startswith("&")):
            return False
        start, operator = self.pos, found.group(2)
        self.pos = found.end()
        self.skip_space()
        target = self.read_word()
        if not target.text:
            raise self.fail(f"{operator!r} has no target")
        text = self.text[start : self.pos]
        redirect = Redirect(operator, target, text, start, self.pos, found.group(1) or "")
        if operator in ("<<", "<<-"):
            self._open_heredoc(redirect)
        into.append(redirect)
        return True

    def _open_heredoc(self, redirect: Redirect) -> None:
        target = redirect.target
        if target.has_expansion or "\n" in target.text:
            raise self.fail("the delimiter of a here-document is not plain", ambiguous=True)
        value = "".join(("~" if p.kind == "tilde" else "") + p.text for p in target.pieces)
        strip = redirect.operator == "<<-"
        redirect.heredoc = Heredoc(value, expands=not target.quoted, strip_tabs=strip)
        self.pending.append(redirect.heredoc)
