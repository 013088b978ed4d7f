"""Expand words to arguments from the text alone.

A field is known, a glob below a known directory, or unknown; it is never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from handaxe.shell.analysis.parser.syntax import Param, Simple, Word, WordPiece

PROCESS = "/dev/fd/of-a-process"
"""A placeholder for the path that bash gives the output of `<( )`."""

_COUNTS = frozenset("#?$!")
_TILDE = re.compile(r"~([A-Za-z0-9_.+-]*)(?=/|$)")
_INTEGER = re.compile(r"-?\d+")
_SPLITS = frozenset(" \t\n*?[]\\")


class Field(Struct, frozen=True):
    """One argument: its value (the pattern for a glob, the known start for unknown)."""

    kind: Literal["known", "glob", "unknown"]
    value: str
    text: str
    single: bool = True
    """False if it may become several arguments or none."""
    is_number: bool = False
    """Whether an unknown value is certainly a number: `$#`, `${#x}`, `$((1 + 1))`."""

    @property
    def known(self) -> str | None:
        """The value if it is certain."""
        return self.value if self.kind == "known" else None

    @property
    def may_be_option(self) -> bool:
        """Whether the argument could start with a dash."""
        if self.kind == "glob":
            return self.value[:1] in ("*", "?", "[", "-") or not self.single
        if self.kind == "unknown":
            if self.is_number:
                return self.value.startswith("-") or not self.value
            return not self.value or self.value.startswith("-") or not self.single
        return self.value.startswith("-")


Variables = Mapping[str, Field | None]
"""Known shell variables: a field, or None if set to something unknown."""


def expand_word(word: Word, variables: Variables) -> list[Field]:
    """The arguments that `word` becomes."""
    if not (word.has_brace or word.has_expansion or word.has_glob or word.has_tilde):
        if word.made is None:
            value = "".join([piece.text for piece in word.pieces])
            word.made = [Field("known", value, word.text)]
        return word.made
    if not word.has_brace:
        return [_expand_pieces(word.pieces, word.text, variables)]
    expanded = expand_braces(word.pieces)
    if expanded is None:
        return [Field("unknown", "", word.text, single=False)]
    # An empty alternative is not a word, and the next one replaces it.
    return [
        _expand_pieces(_read_tilde(pieces), word.text, variables) for pieces in expanded if pieces
    ]


def _read_tilde(pieces: list[WordPiece]) -> list[WordPiece]:
    """An alternative of a brace expansion; bash also expands its leading tilde."""
    first = pieces[0]
    found = _TILDE.match(first.text) if first.kind == "text" and not first.quoted else None
    if found is None:
        return pieces
    return [WordPiece("tilde", found[1]), WordPiece("text", first.text[found.end() :]), *pieces[1:]]


def expand_value(word: Word, variables: Variables) -> Field:
    """The value of an assignment: no splitting, no globs, no braces."""
    pieces = [
        WordPiece("text", piece.text, quoted=True)
        if piece.kind == "glob"
        else WordPiece(piece.kind, piece.text, quoted=True, param=piece.param)
        for piece in word.pieces
    ]
    return _expand_pieces(pieces, word.text, variables)


def _expand_pieces(pieces: list[WordPiece], text: str, variables: Variables) -> Field:
    value, kind, single = "", "known", True
    for piece in pieces:
        if piece.kind == "text":
            value += piece.text
            continue
        if piece.kind == "glob":
            value += piece.text
            kind = "glob"
            continue
        part = _expand_piece(piece, variables)
        if part is None or part.kind == "unknown":
            return _make_unknown(pieces, value, text, variables)
        value += part.value
        single = single and part.single
        kind = "glob" if part.kind == "glob" else kind
    return Field("glob" if kind == "glob" else "known", value, text, single=single)


def _make_unknown(pieces: list[WordPiece], head: str, text: str, variables: Variables) -> Field:
    single = all(
        p.quoted or p.kind in ("text", "tilde", "arithmetic") or _is_number(p, variables)
        for p in pieces
    )
    # "$@" is many arguments even inside quotes.
    many = any(p.param is not None and p.param.name in ("@", "*") for p in pieces)
    many = many or any(p.param is not None and p.param.subscript in ("@", "*") for p in pieces)
    is_number = all(
        _is_number(p, variables) or (p.kind == "text" and p.text.isdigit()) for p in pieces
    )
    return Field("unknown", head, text, single=single and not many, is_number=is_number)


def _is_number(piece: WordPiece, variables: Variables) -> bool:
    """Whether bash can replace `piece` only by digits, after at most a minus."""
    if piece.kind == "arithmetic":
        return True
    param = piece.param
    if param is None or param.operator:
        return False
    if param.prefix == "#":
        return True
    if param.prefix or param.subscript is not None:
        return False
    value = variables.get(param.name)
    return param.name in _COUNTS or (value is not None and value.is_number)


def _expand_piece(piece: WordPiece, variables: Variables) -> Field | None:
    if piece.kind == "tilde":
        name = {"": "HOME", "+": "PWD"}.get(piece.text)
        return variables.get(name) if name else None
    if piece.kind == "process" and piece.text == "<":
        return Field("known", PROCESS, piece.text)
    if piece.kind != "param" or piece.param is None:
        return None
    return _expand_parameter(piece.param, variables, quoted=piece.quoted)


def _expand_parameter(param: Param, variables: Variables, *, quoted: bool) -> Field | None:
    found = variables.get(param.name)
    if found is None or param.operator or param.prefix:
        return None
    if quoted:
        return found if found.kind != "unknown" else None
    # The names a glob finds may hold blanks and dashes, so unquoted they become any words.
    if found.kind != "known" or not found.value or _SPLITS.intersection(found.value):
        return None
    return found


def is_sequence(word: Word) -> bool:
    """Whether a word is `$(seq ...)` with only literal numbers."""
    if len(word.pieces) != 1 or word.pieces[0].kind != "command" or len(word.scripts) != 1:
        return False
    items = word.scripts[0].items
    node = items[0] if len(items) == 1 else None
    if not isinstance(node, Simple) or node.assignments or node.redirects or not node.words:
        return False
    first, *rest = (part.literal or "" for part in node.words)
    return first == "seq" and bool(rest) and all(_INTEGER.fullmatch(text) for text in rest)


_Atom = str | WordPiece
_RANGE = r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?"
EXPANSION_LIMIT = 64
_GROUPS = 12


def expand_braces(pieces: list[WordPiece]) -> list[list[WordPiece]] | None:
    """The words that `pieces` becomes, or None if there are too many."""
    if sum(piece.text.count("{") for piece in pieces) > _GROUPS:
        return None
    expanded = _expand(_split_atoms(pieces))
    return None if expanded is None else [_join_atoms(atoms) for atoms in expanded]


def _split_atoms(pieces: list[WordPiece]) -> list[_Atom]:
    """Unquoted text as single characters, everything else unsplit."""
    atoms: list[_Atom] = []
    for piece in pieces:
        if piece.kind == "text" and not piece.quoted:
            atoms.extend(piece.text)
        else:
            atoms.append(piece)
    return atoms


def _join_atoms(atoms: list[_Atom]) -> list[WordPiece]:
    pieces: list[WordPiece] = []
    for atom in atoms:
        if isinstance(atom, WordPiece):
            pieces.append(atom)
        elif pieces and pieces[-1].kind == "text" and not pieces[-1].quoted:
            pieces[-1] = WordPiece("text", pieces[-1].text + atom)
        else:
            pieces.append(WordPiece("text", atom))
    return pieces


def _expand(atoms: list[_Atom]) -> list[list[_Atom]] | None:
    for start, atom in enumerate(atoms):
        if atom != "{":
            continue
        group = _read_group(atoms, start)
        if group is None:
            continue
        choices, end = group
        tails = _expand(atoms[end:])
        if tails is None:
            return None
        out: list[list[_Atom]] = []
        for choice in choices:
            inner = _expand(choice)
            if inner is None or len(out) + len(inner) * len(tails) > EXPANSION_LIMIT:
                return None
            out.extend([*atoms[:start], *middle, *tail] for middle in inner for tail in tails)
        return out
    return [atoms]


def _read_group(atoms: list[_Atom], start: int) -> tuple[list[list[_Atom]], int] | None:
    """The alternatives of the group that opens at `start` and its end, if it is one."""
    depth, part, parts = 0, list[_Atom](), list[list[_Atom]]()
    for at in range(start, len(atoms)):
        atom = atoms[at]
        depth += (atom == "{") - (atom == "}")
        if depth == 0:
            parts.append(part)
            if len(parts) > 1:
                return parts, at + 1
            ranged = _expand_range(part)
            return (ranged, at + 1) if ranged else None
        if atom == "," and depth == 1:
            parts.append(part)
            part = []
        elif at > start:
            part.append(atom)
    return None


def _expand_range(part: list[_Atom]) -> list[list[_Atom]] | None:
    if not all(isinstance(atom, str) for atom in part):
        return None
    found = re.fullmatch(_RANGE, "".join(atom for atom in part if isinstance(atom, str)))
    if found is None:
        return None
    first, last = found.group(1), found.group(2)
    if first.lstrip("-").isdigit() != last.lstrip("-").isdigit():
        return None
    if len(first) > 6 or len(last) > 6:
        return [[WordPiece("param", "many")]]
    step = max(1, abs(int(found.group(3) or 1)))
    if first.isalpha():
        low, high = ord(first), ord(last)
    else:
        low, high = int(first), int(last)
    span = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    if len(span) > EXPANSION_LIMIT:
        return [[WordPiece("param", "many")]]
    width = max(len(first), len(last)) if first.startswith("0") or last.startswith("0") else 0
    return [list(chr(n) if first.isalpha() else str(n).zfill(width)) for n in span]
