"""Parse compound commands: conditionals, loops, tests, arithmetic, functions, groups."""

from __future__ import annotations

import re
from collections.abc import Callable

from handaxe.shell.analysis.parser.syntax import (
    Compound,
    CompoundKind,
    Node,
    Sequence,
    Word,
    is_conditional,
)
from handaxe.shell.analysis.parser.words import WordReader

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n;&|()<>]|$)")
_COPROC_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ \t]+(?=\(|(?:\{|\[\[)\s)")
_FUNCTION_NAME = re.compile(r"[^\s|&;()<>'\"\\$`*?\[~{}]+(?=[ \t\n(]|$)")
_TEST_SIGNS = ("&&", "||", "(", ")", "<", ">")
_REGEX = re.compile(r"[^\s'\"\\$`;&<>]+")


class CompoundReader(WordReader):
    """The part of the grammar that starts with a keyword or a bracket."""

    def skip_space(self) -> None:
        """Skip blanks; implemented by the grammar."""
        raise NotImplementedError

    def skip_lines(self) -> None:
        """Skip blanks and line ends; implemented by the grammar."""
        raise NotImplementedError

    def peek_reserved(self) -> str:
        """The reserved word at the cursor; implemented by the grammar."""
        raise NotImplementedError

    def take_reserved(self, name: str) -> None:
        """Skip a reserved word; implemented by the grammar."""
        raise NotImplementedError

    def expect(self, token: str) -> None:
        """Skip a token; implemented by the grammar."""
        raise NotImplementedError

    def read_block(self, *ends: str) -> Sequence:
        """At least one statement; implemented by the grammar."""
        raise NotImplementedError

    def read_list(self, ends: tuple[str, ...], keep: list[Node] | None = None) -> Sequence:
        """Any number of statements; implemented by the grammar."""
        raise NotImplementedError

    def read_command(self) -> Node:
        """One command; implemented by the grammar."""
        raise NotImplementedError

    def read_function_body(self, name: str, start: int) -> Compound:
        """A function's body; implemented by the grammar."""
        raise NotImplementedError

    def read_compound_body(self, keyword: str) -> Compound:
        """The rest of a compound command after `keyword`."""
        readers: dict[str, Callable[[], Compound]] = {
            "(": lambda: self._read_bracketed("subshell", ")"),
            "{": lambda: self._read_bracketed("group", "}"),
            "((": lambda: self._read_arithmetic_command("arithmetic"),
            "[[": self._read_test,
            "if": self._read_if,
            "while": lambda: self._read_while("while"),
            "until": lambda: self._read_while("until"),
            "for": lambda: self._read_for("for"),
            "select": lambda: self._read_for("select"),
            "case": self._read_case,
            "coproc": self._read_coproc,
            "function": self._read_named_function,
        }
        return readers[keyword]()

    def _compound(self, kind: CompoundKind) -> Compound:
        return Compound(kind, "", self.pos, self.pos)

    def _read_bracketed(self, kind: CompoundKind, close: str) -> Compound:
        node = self._compound(kind)
        node.bodies = [self.read_block(close)]
        if close == ")":
            self.expect(")")
        else:
            self.take_reserved("}")
        return node

    def _read_arithmetic_command(self, kind: CompoundKind) -> Compound:
        node = self._compound(kind)
        node.words = [self.read_arithmetic()]
        return node

    def _read_if(self) -> Compound:
        node = self._compound("if")
        while True:
            node.conditions.append(self.read_block("then"))
            self.take_reserved("then")
            node.bodies.append(self.read_block("elif", "else", "fi"))
            word = self.peek_reserved()
            if word == "elif":
                self.pos += 4
                continue
            if word == "else":
                self.pos += 4
                node.otherwise = self.read_block("fi")
            self.take_reserved("fi")
            return node

    def _read_while(self, kind: CompoundKind) -> Compound:
        node = self._compound(kind)
        node.conditions = [self.read_block("do")]
        node.bodies = [self._read_do()]
        return node

    def _read_do(self) -> Sequence:
        self.take_reserved("do")
        body = self.read_block("done")
        self.take_reserved("done")
        return body

    def _read_for(self, kind: CompoundKind) -> Compound:
        self.skip_space()
        if self.text.startswith("((", self.pos):
            return self._read_for_arithmetic()
        node = self._compound(kind)
        found = _NAME.match(self.text, self.pos)
        if found is None:
            raise self.fail("a loop needs a variable name")
        node.name, self.pos = found.group(), found.end()
        self.skip_lines()
        if re.compile(r"in(?=[ \t\n;])").match(self.text, self.pos):
            self.pos += 2
            self._read_items(node.words)
        else:
            node.words = []
            node.name += "@"
        self._skip_separator()
        node.bodies = [self._read_do()]
        return node

    def _read_for_arithmetic(self) -> Compound:
        self.pos += 2
        node = self._read_arithmetic_command("for-arithmetic")
        self._skip_separator()
        node.bodies = [self._read_do()]
        return node

    def _read_items(self, into: list[Word]) -> None:
        while True:
            self.skip_space()
            word = self.read_word()
            if not word.text:
                return
            into.append(word)

    def _skip_separator(self) -> None:
        self.skip_space()
        if self.text.startswith(";", self.pos) and not self.text.startswith(";;", self.pos):
            self.pos += 1
        self.skip_lines()

    def _read_case(self) -> Compound:
        node = self._compound("case")
        self.skip_space()
        node.words = [self.read_word()]
        self.skip_lines()
        if not re.compile(r"in(?=[ \t\n(])").match(self.text, self.pos):
            raise self.fail("'in' is missing")
        self.pos += 2
        while True:
            self.skip_lines()
            if self.peek_reserved() == "esac":
                self.pos += 4
                return node
            self._read_patterns(node.words)
            node.bodies.append(self.read_list(("esac",)))
            self.skip_space()
            for end in (";;&", ";;", ";&"):
                if self.text.startswith(end, self.pos):
                    self.pos += len(end)
                    break
            else:
                self.take_reserved("esac")
                return node

    def _read_patterns(self, into: list[Word]) -> None:
        if self.text.startswith("(", self.pos):
            self.pos += 1
        while True:
            self.skip_space()
            word = self.read_word()
            if not word.text:
                raise self.fail("a case pattern is missing")
            into.append(word)
            self.skip_space()
            char = self.text[self.pos : self.pos + 1]
            self.pos += 1
            if char == ")":
                return
            if char != "|":
                raise self.fail("a case pattern is not closed")

    def _read_test(self) -> Compound:
        """`[[ ... ]]`: operands and signs in order, as words."""
        node = self._compound("test")
        while True:
            self.skip_lines()
            if re.compile(r"\]\](?=[ \t\n;&|()<>]|$)").match(self.text, self.pos):
                self.pos += 2
                if not is_conditional(node.words):
                    raise self.fail("a test that bash would not accept")
                return node
            node.words.append(self._read_test_word(node.words))

    def _read_test_word(self, before: list[Word]) -> Word:
        start = self.pos
        for sign in _TEST_SIGNS:
            if self.text.startswith(sign, start) and not self.text.startswith("(", start + 1):
                self.pos += len(sign)
                return Word(sign, start, [], is_sign=True)
        if before and before[-1].text == "=~":
            return self._read_regex()
        word = self.read_word()
        if not word.text:
            raise self.fail("a test is not closed")
        return word

    def _read_regex(self) -> Word:
        """The right side of `=~`; only plain regular expressions and quoted words."""
        found = _REGEX.match(self.text, self.pos)
        follower = self.text[found.end() : found.end() + 1] if found else ""
        if found and (not follower or follower in " \t\n"):
            self.pos = found.end()
            return Word(found.group(), found.start(), [], quoted=True)
        word = self.read_word()
        if not word.text:
            raise self.fail("a regular expression that cannot be read", ambiguous=True)
        return word

    def _read_coproc(self) -> Compound:
        node = self._compound("coproc")
        self.skip_space()
        # Only before a whole command is a word the name of it: `rm {a,b}` runs `rm`.
        named = _COPROC_NAME.match(self.text, self.pos)
        if named:
            self.pos = named.end()
            node.name = named.group().strip()
        node.bodies = [Sequence([self.read_command()], [False])]
        return node

    def _read_named_function(self) -> Compound:
        start = self.pos - len("function")
        self.skip_space()
        found = _FUNCTION_NAME.match(self.text, self.pos)
        if found is None:
            raise self.fail("a function needs a plain name")
        self.pos = found.end()
        self.skip_space()
        if self.text.startswith("(", self.pos):
            self.expect("(")
            self.expect(")")
        return self.read_function_body(found.group(), start)
