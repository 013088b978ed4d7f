"""Which files a confined command can read, as plain data."""

from functools import lru_cache

import msgspec


class ReadableFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The paths that the sandbox shows and hides, before and after links are resolved."""

    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def can_read(self, path: str) -> bool:
        """Whether a path is readable: the more specific place wins, the hidden one in a draw."""
        hidden = _find_innermost_depth(path, self.hidden)
        return hidden < 0 or _find_innermost_depth(path, self.shown) > hidden


def _find_innermost_depth(path: str, places: tuple[str, ...]) -> int:
    """How deep the innermost of these places around a path is; -1 if none is."""
    known = _make_set(places)
    while path not in known:
        if path in {"", "/"}:
            return -1
        path = path.rpartition("/")[0] or "/"
    return count_components(path)


@lru_cache(maxsize=32)
def _make_set(places: tuple[str, ...]) -> frozenset[str]:
    return frozenset(place.rstrip("/") or "/" for place in places)


def count_components(path: str) -> int:
    """How many components a normalized absolute path has."""
    return 0 if path == "/" else path.count("/")


def is_below(path: str, place: str) -> bool:
    """Whether a path is `place` or lies in it, by whole components."""
    return path == place or path.startswith(place.rstrip("/") + "/")
