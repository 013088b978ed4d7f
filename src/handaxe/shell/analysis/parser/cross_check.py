"""Second parsers for the same text: tree-sitter-bash here, shfmt through its JSON.

They only count commands. If one disagrees with our parser, nothing is allowed by its content. This
is the only module that uses tree-sitter.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from handaxe.shell.analysis.parser.expansion import Field

_QUERY = "(command) @c (declaration_command) @c (unset_command) @c (test_command) @t"
_PLAIN = re.compile(r"[A-Za-z0-9_./=:,@%+ -]*")
_SHFMT_COMMANDS = frozenset({"DeclClause", "LetClause"})
_WIDE = re.compile("[\u0100-\ud7ff\ue000-\U0010ffff]")
_WORD_CHARACTER = "\u00d7"


def is_plain(text: str) -> bool:
    """Whether parsers cannot disagree about a text."""
    return bool(_PLAIN.fullmatch(text)) and not text.lstrip().startswith(("time ", "coproc "))


@cache
def _load_tree_sitter() -> tuple[Any, Any, Any] | None:
    """The parser, the query and the cursor class of tree-sitter, loaded on first use."""
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError:
        return None
    language = tree_sitter.Language(tree_sitter_bash.language())
    query = tree_sitter.Query(language, _QUERY)
    return tree_sitter.Parser(language), query, tree_sitter.QueryCursor


def count_by_tree_sitter(text: str) -> int | None:
    """How many commands tree-sitter sees; None on an error or if it is not installed.

    Its scanner uses a table that ends at U+00FF: a higher character after a brace (`{` and U+4E2D)
    reads invalid memory and may crash. To bash all of them are parts of words, so they are replaced
    by another one.
    """
    reader = _load_tree_sitter()
    if reader is None:
        return None
    parser, query, cursor = reader
    data = _WIDE.sub(_WORD_CHARACTER, text).encode("utf-8", "surrogatepass")
    tree = parser.parse(data)
    if tree.root_node.has_error:
        return None
    captures: dict[str, list[Any]] = cursor(query).captures(tree.root_node)
    tests = [node for node in captures.get("t", []) if _is_bracket(data, node.start_byte)]
    return len(captures.get("c", [])) + len(tests)


def _is_bracket(data: bytes, at: int) -> bool:
    """Whether a test is `[ ... ]`; `[[ ]]` and `(( ))` run no program."""
    return data[at : at + 1] == b"[" and data[at : at + 2] != b"[["


def count_from_shfmt(output: bytes) -> int | None:
    """How many commands `shfmt --to-json` reports; None if the output is not its JSON."""
    try:
        tree: object = json.loads(output)
    except ValueError:
        return None
    return _count(tree)


def _count(root: object) -> int:
    total = 0
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(cast("list[object]", node))
        elif isinstance(node, dict):
            mapping = cast("dict[str, object]", node)
            kind = mapping.get("Type")
            called = kind == "CallExpr" and bool(mapping.get("Args"))
            total += 1 if called or kind in _SHFMT_COMMANDS else 0
            stack.extend(mapping.values())
    return total


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
    """Argument lists that may run, however the quotes are read."""
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
    # A quote may be the end of a string, and the text after it another command.
    for piece in re.split(r"['\"]", fragment)[1:]:
        inner = piece.split()
        if inner:
            yield [Field("known", word.replace("\\", ""), word) for word in inner]


def find_occurrences(text: str, programs: frozenset[str]) -> Iterator[list[Field]]:
    """Possible commands of a very long text: the words from each name of `programs` on."""
    plain = [re.escape(name) for name in programs if name and "*" not in name]
    if len(text) < _LONG or not plain:
        return
    bare = _QUOTING.sub("", _INVISIBLE.sub("", text))
    mention = re.compile(rf"(?<![\w.-])(?:{'|'.join(plain)})(?![\w.-])[^;&|\n]{{0,200}}")
    for found in itertools.islice(mention.finditer(bare), _MENTIONS):
        yield [Field("known", word, word) for word in found.group().split()]
