"""Find what exceeds the limits of a tree, by number and size."""

from collections.abc import Callable

from handaxe.undo.snapshot.nodes import GIT, LINK, Node
from handaxe.undo.snapshot.tree import TOO_MUCH, Tree, join_path

Weight = Callable[[Node], int]


def exclude_excess(tree: Tree, *, max_files: int, max_bytes: int) -> None:
    """Leave out paths until the limits hold."""
    if tree.count > max_files:
        _reduce(tree, lambda _: 1, max_files)
    _reduce(tree, _measure_node, max_bytes)


def _measure_node(node: Node) -> int:
    """The cost of saving a node; objects of git are free."""
    return node.size_bytes if node.is_file and not node.pack.startswith((GIT, LINK)) else 0


def _reduce(tree: Tree, weight: Weight, most: int) -> None:
    weights = _sum_weights(tree, weight)
    excess = sum(weights.get(root, 0) for root in tree.roots) - most
    while excess > 0:
        path = _find_heaviest(tree, weights, weight, excess)
        if path is None:
            return
        removed = _measure_path(tree, path, weights, weight)
        excess -= removed
        tree.leave_out(path, TOO_MUCH)
        above = path.rpartition("/")[0]
        while above in weights:
            weights[above] -= removed
            above = above.rpartition("/")[0]


def _sum_weights(tree: Tree, weight: Weight) -> dict[str, int]:
    """The sum below each directory, added up from the deepest."""
    weights: dict[str, int] = {}
    for directory in sorted(tree.directories, key=lambda path: path.count("/"), reverse=True):
        total = 0
        for name, node in tree.directories[directory].items():
            total += weight(node)
            if node.is_directory:
                total += weights.get(join_path(directory, name), 0)
        weights[directory] = total
    return weights


def _find_heaviest(tree: Tree, weights: dict[str, int], weight: Weight, excess: int) -> str | None:
    """The deepest single path that is large enough; otherwise the largest one below a root."""
    roots = [root for root in tree.roots if root in tree.directories]
    if not roots:
        return None
    here = max(roots, key=lambda root: weights[root])
    while True:
        inside = tree.directories.get(here, {})
        if not inside:
            return here
        paths = [join_path(here, name) for name in inside]
        best = max(paths, key=lambda path: _measure_path(tree, path, weights, weight))
        found = _measure_path(tree, best, weights, weight)
        if found < excess:
            # No single one is enough any deeper; at the top a part of it is a beginning.
            return here if here not in tree.roots else best
        here = best
        if here not in tree.directories:
            return here


def _measure_path(tree: Tree, path: str, weights: dict[str, int], weight: Weight) -> int:
    directory, _, name = path.rpartition("/")
    node = tree.directories.get(directory or "/", {}).get(name)
    own = 0 if node is None else weight(node)
    return own + (weights.get(path, 0) if path in tree.directories else 0)
