"""Where data and settings of handaxe and its ecosystem lie, ready to be compared with paths.

Whoever changes them changes what is trusted, what is undone and which programs run. Names are
compared without regard to case, as those of protected paths are.
"""

from collections.abc import Sequence

from handaxe.runtime.permission.protected import UNPROTECTED_INSIDE
from handaxe.session.workdir import is_inside, normalize
from handaxe.text.env_files import fold_name


class OwnPlaces:
    """Some of those places; false where there are none."""

    __slots__ = ("_folded", "_prefixes", "above", "paths")

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(dict.fromkeys(normalize(path) for path in paths))
        self._folded = {fold_path(path): path for path in self.paths}
        self._prefixes = tuple(f"{path}/" for path in self._folded)
        self.above = frozenset(above for path in self._folded for above in _parents(path))
        """Every directory above one of them, folded: whoever moves it moves them."""

    def seen_from(self, roots: Sequence[str]) -> "OwnPlaces":
        """The same where only what lies below some directories can be moved."""
        folded = tuple(f"{fold_path(root).rstrip('/')}/" for root in roots)
        seen = OwnPlaces(self.paths)
        seen.above = frozenset(place for place in self.above if place.startswith(folded))
        return seen

    def __bool__(self) -> bool:
        return bool(self.paths)

    def below(self, roots: Sequence[str]) -> "OwnPlaces":
        """Those that lie in one of some directories."""
        found = [path for path in self.paths if any(is_inside(path, root) for root in roots)]
        return OwnPlaces(found) if found else NO_PLACES

    def around(self, path: str) -> str | None:
        """The place that a path is or lies in."""
        folded = fold_path(path)
        if not folded.startswith(self._prefixes) and folded not in self._folded:
            return None
        return next(own for name, own in self._folded.items() if is_inside(folded, name))

    def changed_at(self, path: str) -> str | None:
        """The place that a change of a path would change: one it is, lies in, or lies above."""
        folded = fold_path(path)
        own = self.around(path)
        if own is not None:
            inside = folded[len(fold_path(own)) + 1 :].partition("/")
            return None if inside[0] in UNPROTECTED_INSIDE and inside[2] else own
        if folded not in self.above:
            return None
        return next(own for name, own in self._folded.items() if is_inside(name, folded))


def fold_path(path: str) -> str:
    """A path as it is compared."""
    if path.isascii():
        return path.lower()
    return "/".join(fold_name(part) for part in path.split("/"))


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) or "/" for end in range(1, len(parts))]


NO_PLACES = OwnPlaces(())
