"""Reading a jq filter as jq does, to prove that it reads nothing but its input."""

from __future__ import annotations

import re

from msgspec import Struct

_TOKEN = re.compile(
    r"""(?xa)(?P<space>[ \t\n]+)|(?P<comment>\#[^\n]*)|(?P<string>")
    |(?P<field>\.[A-Za-z_]\w*)|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)|(?P<format>@[A-Za-z0-9_]+)
    |(?P<sign>\?//=?|\.\.|//=|\|=|[-+*/%=!<>]=|//|[-.?=;,:|+*/%$<>(){}\[\]])"""
)
_STRING_TEXT = re.compile(r'[^"\\]+|\\[^(]')
_REFUSED_WORDS = frozenset({"env", "import", "include", "modulemeta", "get_search_list"})
_OPENERS = frozenset({"(", "[", "{", "if"})
_CLOSERS = {")": "(", "]": "[", "}": "{", "end": "if"}
_AFTER_KEY = frozenset({":", ",", "}"})


class _Token(Struct, frozen=True):
    kind: str
    text: str


def is_plain_jq(program: str) -> bool:
    """Whether a jq filter reads nothing but its input: no environment, no module, no file."""
    tokens = _read_tokens(program)
    return tokens is not None and _is_input_only(tokens)


def _read_tokens(program: str) -> list[_Token] | None:
    """The tokens without blanks and comments, or None where jq versions could read differently."""
    tokens: list[_Token] = []
    depths: list[int] = []
    at, depth = 0, 0
    while at < len(program):
        found = _TOKEN.match(program, at)
        if found is None:
            return None
        kind, text, at = found.lastgroup or "", found.group(), found.end()
        if kind == "comment" and text.endswith("\\"):
            return None
        if kind in ("space", "comment"):
            continue
        depth += (text == "(") - (text == ")")
        resumes = bool(depths) and text == ")" and depth == depths[-1]
        if kind == "string" or resumes:
            if resumes:
                depths.pop()
                tokens.append(_Token("sign", ")"))
            at, opens = _skip_string(program, at)
            if at < 0:
                return None
            tokens.append(_Token("string", '"'))
            if opens:
                # The expression of \( ) is read like any other; its end resumes the string.
                tokens.append(_Token("sign", "("))
                depths.append(depth)
                depth += 1
            continue
        tokens.append(_Token(kind, text))
    return tokens if not depths else None


def _skip_string(program: str, at: int) -> tuple[int, bool]:
    """Where the text of a string ends, and whether an interpolation begins there."""
    while at < len(program):
        if program[at] == '"':
            return at + 1, False
        if program.startswith("\\(", at):
            return at + 2, True
        found = _STRING_TEXT.match(program, at)
        if found is None:
            return -1, False
        at = found.end()
    return -1, False


def _is_input_only(tokens: list[_Token]) -> bool:
    brackets: list[str] = []
    for index, token in enumerate(tokens):
        before = tokens[index - 1].text if index else ""
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if token.kind == "word" and before != "$":
            # A comma inside `def f: a, b;` is none between keys.
            if brackets[-1:] == ["{"] and before in ("{", ",") and after in _AFTER_KEY:
                continue
            if token.text in _REFUSED_WORDS:
                return False
            if token.text == "def" and brackets[-1:] == ["{"]:
                return False
        elif token.kind == "word" and not _is_plain_variable(token.text):
            return False
        if token.text in _OPENERS:
            brackets.append(token.text)
        elif token.text in _CLOSERS and (not brackets or brackets.pop() != _CLOSERS[token.text]):
            return False
    return not brackets


def _is_plain_variable(name: str) -> bool:
    return name == "__loc__" or (name != "ENV" and not name.startswith("__"))
