"""Replacements made one after the other, kept as splices over the content they began with.

A later replacement may reach into what an earlier one put in; in the end there is one plan, so
that one write makes all of them and one difference shows them.
"""

from typing import get_args

import msgspec

from handaxe.text.replace.plan import ByteSplice, MatchedWith, Plan, SameText

_FROM_EXACT: tuple[MatchedWith, ...] = get_args(MatchedWith)


class _Piece(msgspec.Struct, frozen=True):
    """A run of the first content, or bytes that were put in."""

    begin: int
    end: int
    data: bytes | None = None

    @property
    def size(self) -> int:
        return len(self.data) if self.data is not None else self.end - self.begin

    def cut(self, begin: int, end: int) -> "_Piece":
        """A part of the piece, counted from its beginning."""
        if self.data is not None:
            return _Piece(0, 0, self.data[begin:end])
        return _Piece(self.begin + begin, self.begin + end)


class SpliceChain:
    """One content and all that happens to it."""

    def __init__(self, content: bytes) -> None:
        self._first = content
        self._pieces = [_Piece(0, len(content))]
        self.content = content
        """The content after all that was added so far."""

    def add(self, splices: tuple[ByteSplice, ...]) -> None:
        """Make splices over the content as it is now."""
        pieces: list[_Piece] = []
        position = 0
        for splice in splices:
            pieces += self._find_pieces(position, splice.start)
            pieces.append(_Piece(0, 0, splice.data))
            position = splice.end
        pieces += self._find_pieces(position, len(self.content))
        self._pieces = [piece for piece in pieces if piece.size]
        first = memoryview(self._first)
        self.content = b"".join(
            first[piece.begin : piece.end] if piece.data is None else piece.data
            for piece in self._pieces
        )

    def splices(self) -> tuple[ByteSplice, ...]:
        """Everything that was added, as splices over the first content.

        Raises:
            SameText: All of it together changes nothing.
        """
        splices: list[ByteSplice] = []
        position, come = 0, b""
        for piece in (*self._pieces, _Piece(len(self._first), len(self._first))):
            if piece.data is not None:
                come += piece.data
                continue
            if self._first[position : piece.begin] != come:
                splices.append(ByteSplice(position, piece.begin, come))
            position, come = piece.end, b""
        if not splices:
            raise SameText
        return tuple(splices)

    def _find_pieces(self, begin: int, end: int) -> list[_Piece]:
        """The pieces of the content as it is now, between two positions of it."""
        found: list[_Piece] = []
        position = 0
        for piece in self._pieces:
            first, last = max(begin - position, 0), min(end - position, piece.size)
            if first < last:
                found.append(piece.cut(first, last))
            position += piece.size
        return found


def join_plans(content: bytes, plans: list[Plan]) -> Plan:
    """Plans that were each made for what the one before them left, as one plan for `content`.

    Raises:
        SameText: Together they change nothing.
    """
    chain = SpliceChain(content)
    for plan in plans:
        chain.add(plan.splices)
    return Plan(
        splices=chain.splices(),
        matched_with=pick_least_exact([plan.matched_with for plan in plans]),
        encoding=plans[0].encoding,
        places=sum(plan.places for plan in plans),
    )


def pick_least_exact(classes: list[MatchedWith]) -> MatchedWith:
    """The class that forgave the most."""
    return max(classes, key=_FROM_EXACT.index)
