"""Rank tools by a query."""

import re
from collections.abc import Sequence

import msgspec

SELECT = "select:"
MAX_SELECTED = 50

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_WEIGHTS = {"name": 12.0, "hint": 5.0, "description": 2.0, "parameters": 1.5}
_EXACT = 1000.0
_HALF = 0.5
"""The weight of a word that matches only a prefix."""
_SHORTEST_STEM = 3


class ToolEntry(msgspec.Struct, frozen=True):
    """A tool with its searchable fields."""

    name: str
    hint: str
    description: str
    parameters: tuple[str, ...]

    def words(self) -> dict[str, frozenset[str]]:
        """The words of each field."""
        return {
            "name": _split_words(self.name),
            "hint": _split_words(self.hint),
            "description": _split_words(self.description),
            "parameters": _split_words(" ".join(self.parameters)),
        }


def rank_tools(query: str, entries: Sequence[ToolEntry], max_results: int) -> list[str]:
    """The names of matching tools, best first.

    `select:A,B` names tools; `+word` is required; several queries are separated by lines or
    semicolons and take turns.
    """
    named = {entry.name for entry in entries}
    if query.strip() in named:
        # A whole name means that tool and no other.
        return [query.strip()]
    queries = [part.strip() for part in re.split(r"[;\n]", query) if part.strip()]
    rankings = [_rank_entries(part, entries) for part in queries]
    if all(part.casefold().startswith(SELECT) for part in queries):
        # A query that names tools needs all of them.
        max_results = max(max_results, MAX_SELECTED)
    found: dict[str, None] = {}
    for place in range(max((len(ranking) for ranking in rankings), default=0)):
        for ranking in rankings:
            if place < len(ranking):
                found.setdefault(ranking[place])
    return list(found)[:max_results]


def parse_selected(query: str) -> list[str]:
    """The names in `select:` parts of a query."""
    parts = [part.strip() for part in re.split(r"[;\n]", query)]
    listed = [part[len(SELECT) :] for part in parts if part.casefold().startswith(SELECT)]
    return [name.strip() for text in listed for name in text.split(",") if name.strip()]


def _rank_entries(query: str, entries: Sequence[ToolEntry]) -> list[str]:
    if query.casefold().startswith(SELECT):
        by_name = {entry.name.casefold(): entry.name for entry in entries}
        wanted = (by_name.get(name.casefold()) for name in parse_selected(query))
        return [name for name in wanted if name is not None]
    terms = query.split()
    must = [word for term in terms if term.startswith("+") for word in _split_words(term[1:])]
    wanted_words = [word for term in terms for word in sorted(_split_words(term.removeprefix("+")))]
    scored = [(_score(query, wanted_words, must, entry), entry.name) for entry in entries]
    fitting = [(score, name) for score, name in scored if score > 0]
    return [name for _, name in sorted(fitting, key=lambda pair: (-pair[0], pair[1]))]


def _score(query: str, wanted: list[str], must: list[str], entry: ToolEntry) -> float:
    fields = entry.words()
    everything = frozenset[str]().union(*fields.values())
    if any(not _score_word(word, everything) for word in must):
        return 0.0
    # A name pasted from somewhere, alone or among other words, is meant before anything else.
    names = {entry.name.casefold(), entry.name.rpartition("__")[2].casefold()}
    pasted = {term.removeprefix("+").casefold() for term in query.split()}
    score = _EXACT if entry.name.casefold() in pasted else _EXACT / 2 if names & pasted else 0.0
    for word in wanted:
        score += max(_WEIGHTS[field] * _score_word(word, words) for field, words in fields.items())
    return score


def _score_word(word: str, words: frozenset[str]) -> float:
    if word in words:
        return 1.0
    if len(word) < _SHORTEST_STEM:
        return 0.0
    return _HALF if any(_has_same_stem(word, other) for other in words) else 0.0


def _has_same_stem(word: str, other: str) -> bool:
    shorter, longer = sorted((word, other), key=len)
    return len(shorter) >= _SHORTEST_STEM and longer.startswith(shorter)


def _split_words(text: str) -> frozenset[str]:
    return frozenset(match.casefold() for match in _WORD.findall(text))
