"""Handing out the words of a command so that none is passed over unseen.

A word that may become several arguments shifts the meaning of all that follow it, so the reader
refuses such a word wherever one argument is expected.
"""

from __future__ import annotations

from handaxe.shell.analysis.parser.expansion import Field


class NotProven(Exception):
    """The arguments are not provably harmless; the text says why."""


def check_single(field: Field, what: str) -> Field:
    """The field if it certainly is one argument; raises `Refused`."""
    if field.kind == "glob" or not field.single:
        raise NotProven(f"{what} {field.text} may become several arguments")
    return field


class ArgumentReader:
    """Hands out the arguments of a command in order."""

    def __init__(self, fields: list[Field]) -> None:
        self._fields = fields
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._fields)

    @property
    def next_known(self) -> str | None:
        """The value of the next word if it is certain."""
        return self._fields[self._at].known if self else None

    def take_operand(self) -> Field:
        """The next word as it is, for a caller that checks what it may become."""
        self._at += 1
        return self._fields[self._at - 1]

    def take_rest(self) -> list[Field]:
        """All remaining words as they are."""
        rest, self._at = self._fields[self._at :], len(self._fields)
        return rest

    def take_single(self, what: str) -> Field:
        """The next word, which must be one argument; `what` names it in the refusal."""
        if not self:
            raise NotProven(f"{what} is missing")
        return check_single(self.take_operand(), what)

    def take_literal(self, what: str) -> str:
        """The next word, which must be known from the text."""
        field = self.take_single(what)
        if field.known is None:
            raise NotProven(f"{what} {field.text} is not known before the command runs")
        return field.value
