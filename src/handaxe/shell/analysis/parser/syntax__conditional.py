"""The grammar of `[[ ... ]]` over words that were already read."""

from __future__ import annotations

import re

from handaxe.shell.analysis.parser.syntax import Word
from handaxe.shell.analysis.program_tables import split_names

_UNARY = r"-[abcdefghknoprstuvwxzGLNORS]"
_BINARY = split_names("= == != =~ < > -nt -ot -ef -eq -ne -lt -le -gt -ge")


def is_conditional(words: list[Word]) -> bool:
    """Whether `words` form one conditional expression."""
    end = _skip_expression(words, 0)
    return end == len(words) and end > 0


def _get_text(words: list[Word], at: int) -> str:
    return words[at].text if 0 <= at < len(words) else ""


def _skip_expression(words: list[Word], at: int) -> int:
    """Where the expression starting at `at` ends, or -1."""
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
