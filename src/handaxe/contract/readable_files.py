"""Which files a confined command can read, as plain data."""

import msgspec


class ReadableFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What the sandbox shows and hides; paths are absolute, before and after links."""

    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def can_read(self, path: str) -> bool:
        """Whether a path is readable: the more specific place wins, the hidden one in a draw."""
        hidden = max((depth(place) for place in self.hidden if is_below(path, place)), default=-1)
        if hidden < 0:
            return True
        return any(depth(place) > hidden for place in self.shown if is_below(path, place))


def depth(path: str) -> int:
    """How many components a normalized absolute path has."""
    return 0 if path == "/" else path.count("/")


def is_below(path: str, place: str) -> bool:
    """Whether a path is `place` or lies in it, by whole components."""
    return path == place or path.startswith(place.rstrip("/") + "/")
