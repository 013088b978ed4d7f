"""Brace expansion, which bash does before anything else: `{a,b}` and `{1..9}` in unquoted text."""

from __future__ import annotations

import re

from handaxe.shell.analysis.parser.syntax import WordPiece

_Atom = str | WordPiece
_RANGE = r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?"
EXPANSION_LIMIT = 64
_GROUPS = 12


def expand_braces(pieces: list[WordPiece]) -> list[list[WordPiece]] | None:
    """The words that `pieces` becomes, or None when there are too many to look at."""
    if sum(piece.text.count("{") for piece in pieces) > _GROUPS:
        return None
    expanded = _expand(_split_atoms(pieces))
    return None if expanded is None else [_join_atoms(atoms) for atoms in expanded]


def _split_atoms(pieces: list[WordPiece]) -> list[_Atom]:
    """Unquoted text as single characters, everything else whole."""
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
    """The alternatives of the group opening at `start` and where it ends, if it is one."""
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
