"""Prove that a sed, awk or jq program only prints.

Each is parsed with a small grammar of allowed forms; anything else is refused.
"""

from __future__ import annotations

import re

from msgspec import Struct

from handaxe.shell.analysis.program_tables import split_names

# A bracket without a slash, a newline or another bracket inside has only one possible end.
_BRACKET = r"\[\^?(?:\]?(?:[^\]\[/\n\\]|\\[^\]\[/\n])*|\[:[a-z]+:\])\]"
_SED_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n\[]|\\[^\n]|{_BRACKET})+/[IM]*)"
_SED_RANGE = rf"(?:{_SED_ADDRESS}(?:\s*,\s*(?:{_SED_ADDRESS}|[+~]\d+))?)?\s*!?\s*"
_SED_SIMPLE = r"[pPdDnNhHgGxlz=]|[qQ]\s*\d*|:[ \t]*\w+|[btT][ \t]*\w*"
# The text of a, i and c is the rest of the line; continued lines are not supported here.
_SED_TEXT = r"[aic](?:\\?[^\n\\]*|\\)(?=\n|$)"
_SED_SEPARATOR = r"[ \t]*(?:[;\n}]|$)"


def is_printing_sed(script: str) -> bool:
    """Whether a sed script neither writes, reads other files, nor runs anything."""
    at, size = 0, len(script)
    while at < size:
        if script[at] in " \t\n;}":
            at += 1
            continue
        found = re.compile(_SED_RANGE).match(script, at)
        at = found.end() if found else at
        if script.startswith("{", at):
            at += 1
            continue
        end = _skip_sed_command(script, at)
        if end < 0 or not re.compile(_SED_SEPARATOR).match(script, end):
            return False
        at = end
    return True


def _skip_sed_command(script: str, at: int) -> int:
    """The end of the command at `at`, or -1."""
    text = re.compile(_SED_TEXT).match(script, at)
    # A backslash at the end of a line would take the next line as text.
    if text and (text.end() == len(script) or not text[0].endswith("\\")):
        return text.end()
    simple = re.compile(_SED_SIMPLE).match(script, at)
    if simple:
        return simple.end()
    letter, delimiter = script[at : at + 1], script[at + 1 : at + 2]
    if letter not in ("s", "y") or not delimiter or delimiter in "\\\n \t":
        return -1
    return -1 if delimiter.isalnum() else _skip_sed_substitution(script, at + 2, letter, delimiter)


def _skip_sed_substitution(script: str, at: int, letter: str, delimiter: str) -> int:
    for _ in range(2):
        at = _skip_sed_part(script, at, delimiter)
        if at < 0:
            return -1
    if letter == "y":
        return at
    flags = re.compile(r"[gpiImM0-9]*").match(script, at)
    return flags.end() if flags else at


def _skip_sed_part(script: str, at: int, delimiter: str) -> int:
    """The end of one part of `s` or `y`; a delimiter inside brackets is ambiguous."""
    while at < len(script):
        char = script[at]
        if char == "\\":
            at += 2
        elif char == delimiter:
            return at + 1
        elif char == "[":
            bracket = re.compile(_BRACKET).match(script, at)
            if bracket is None or delimiter in bracket.group():
                return -1
            at = bracket.end()
        elif char == "\n":
            return -1
        else:
            at += 1
    return -1


_AWK_CALLS = split_names(
    "length substr split index tolower toupper sprintf gsub sub match int sqrt exp log sin "
    "cos atan2 rand srand gensub strftime systime asort asorti strtonum"
)
_AWK_BRANCH = r"\b(?:if|while|for)\b"
_AWK_PIECE = r"""(?xa)(?P<space>[ \t]+|\n|\\\n|\#[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<number>\d+\.?\d*|\.\d+)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<op>&&|\|\||[<>=!]=|!~|[+\-*/%^]=|\+\+|--|[-+*%^<>=!~?:,;{}()\[\]$/])"""
_AWK_REGEX = rf"/(?:[^/\\\n\[]|\\.|{_BRACKET})+/"
_AWK_OPERAND = frozenset({"string", "number", "word", "regex"})
_AWK_BANNED = r"system|getline|ENVIRON|PROCINFO|@|close|fflush|ARGV|ARGC|SYMTAB|FUNCTAB"
_AWK_REFUSED = split_names("function func nextfile")


def is_printing_awk(program: str) -> bool:
    """Whether an awk program only computes and prints to standard output."""
    if re.search(_AWK_BANNED, program):
        return False
    at, before, printing, depth = 0, "", False, 0
    while at < len(program):
        kind, text, at = _read_awk_token(program, at, before)
        if kind == "space":
            # A line end finishes a statement, so a slash after it opens a regular expression.
            before = "" if "\n" in text and not text.startswith("\\") else before
            continue
        if not kind or (kind == "word" and text in _AWK_REFUSED):
            return False
        if text in ("print", "printf"):
            printing, depth = True, 0
        depth += (text == "(") - (text == ")")
        # After print, a bare > would be a redirection; a line end alone may not finish the print.
        if printing and text == ">" and depth <= 0:
            return False
        printing = printing and text not in (";", "}", "{")
        before = _get_slash_context(kind, text)
    return True


def _get_slash_context(kind: str, text: str) -> str:
    """The meaning of a slash after this token."""
    if text in ("print", "printf", "in", "else", "do", "exit"):
        return ""
    if kind == "word" and text in _AWK_CALLS:
        return "call"
    return text if kind == "op" else kind


def _read_awk_token(program: str, at: int, before: str) -> tuple[str, str, int]:
    if program[at] == "/":
        if before in ("call", "$", "++", "--") or (
            before == ")" and re.search(_AWK_BRANCH, program)
        ):
            return "", "", at
        if before not in _AWK_OPERAND and before not in (")", "]"):
            found = re.compile(_AWK_REGEX).match(program, at)
            return ("regex", found.group(), found.end()) if found else ("", "", at)
    found = re.compile(_AWK_PIECE).match(program, at)
    if found is None or found.lastgroup is None:
        return "", "", at
    return found.lastgroup, found.group(), found.end()


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
    """Whether a jq filter reads only its input: no environment, no module, no file."""
    tokens = _read_tokens(program)
    return tokens is not None and _is_input_only(tokens)


def _read_tokens(program: str) -> list[_Token] | None:
    """The tokens without blanks and comments, or None if jq versions could disagree."""
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
    """The end of a string's text, and whether an interpolation starts there."""
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
            # A comma inside `def f: a, b;` does not separate keys.
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
