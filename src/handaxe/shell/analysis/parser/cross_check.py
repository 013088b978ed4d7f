"""Second readers of the same text: tree-sitter-bash here, shfmt through its JSON.

They only count commands. If a reader disagrees with ours, nothing is allowed for its content. This
is the one module that touches tree-sitter.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, cast

_QUERY = "(command) @c (declaration_command) @c (unset_command) @c (test_command) @t"
_PLAIN = re.compile(r"[A-Za-z0-9_./=:,@%+ -]*")
_SHFMT_COMMANDS = frozenset({"DeclClause", "LetClause"})


def is_plain(text: str) -> bool:
    """Whether a text has nothing that two readers could read differently."""
    return bool(_PLAIN.fullmatch(text)) and not text.lstrip().startswith(("time ", "coproc "))


@cache
def _load_tree_sitter() -> tuple[Any, Any, Any] | None:
    """Parser, query and cursor class of tree-sitter, loaded on first use."""
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError:
        return None
    language = tree_sitter.Language(tree_sitter_bash.language())
    query = tree_sitter.Query(language, _QUERY)
    return tree_sitter.Parser(language), query, tree_sitter.QueryCursor


def count_by_tree_sitter(text: str) -> int | None:
    """How many commands tree-sitter sees; None when it sees an error or is not there."""
    reader = _load_tree_sitter()
    if reader is None:
        return None
    parser, query, cursor = reader
    data = text.encode("utf-8", "surrogatepass")
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
    """How many commands `shfmt --to-json` reports; None when the output is not its JSON."""
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
