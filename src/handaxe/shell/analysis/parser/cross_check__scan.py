"""A generous scan of text that could not be parsed: every place where a program might stand.

Quotes are ignored, so it sees too much; that is the point. Only for deny and ask rules.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from handaxe.shell.analysis.parser.expansion import Field

_SEPARATORS = re.compile(r"[;&|\n(){}`]|\$\(|\r|\0|<\(|>\(")
_LONG = 8_000
_MENTIONS = 2_000
_QUOTING = re.compile(r"\\\n|['\"\\]|\$(?=['\"])")
_LEAD = re.compile(
    r"(?:[A-Za-z_][A-Za-z0-9_]*\+?=\S*|[!{}]|if|then|elif|else|do|while|until|time|coproc)"
)
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


def scan(text: str) -> Iterator[list[Field]]:
    """Argument lists that may run, in every reading of the quotes."""
    seen: set[str] = set()
    for version in _list_versions(text):
        for piece in _SEPARATORS.split(version):
            fragment = piece.strip()
            if fragment and fragment not in seen:
                seen.add(fragment)
                yield from _split_arguments(fragment)


def _list_versions(text: str) -> Iterator[str]:
    yield text
    bare = _INVISIBLE.sub("", text)
    if bare != text:
        yield bare
        yield _INVISIBLE.sub(" ", text)


def _split_arguments(fragment: str) -> Iterator[list[Field]]:
    words = [word for word in _QUOTING.sub("", fragment).split() if word]
    while words and _LEAD.fullmatch(words[0]):
        words = words[1:]
    if words:
        yield [Field("known", word, word) for word in words]
    # A quote may have been the end of a string, and what follows a command of its own.
    for piece in re.split(r"['\"]", fragment)[1:]:
        inner = piece.split()
        if inner:
            yield [Field("known", word.replace("\\", ""), word) for word in inner]


def find_occurrences(text: str, programs: frozenset[str]) -> Iterator[list[Field]]:
    """Argument lists that start at any mention of one of `programs`; only for very long texts."""
    plain = [re.escape(name) for name in programs if name and "*" not in name]
    if len(text) < _LONG or not plain:
        return
    bare = _QUOTING.sub("", _INVISIBLE.sub("", text))
    mention = re.compile(rf"(?<![\w.-])(?:{'|'.join(plain)})(?![\w.-])[^;&|\n]{{0,200}}")
    for found in itertools.islice(mention.finditer(bare), _MENTIONS):
        yield [Field("known", word, word) for word in found.group().split()]
