"""Where the session works: its directory, and the roots it may work in.

Paths are resolved by name only; following links needs a look at the disk and is the business
of the `Files` port.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import msgspec

from handaxe.contract.faults import BadPath
from handaxe.text.paths import is_inside, normalize

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255


class Workdir:
    """The current directory and the working directories of one session or agent."""

    def __init__(
        self,
        roots: Sequence[str],
        *,
        home: str,
        spellings: Mapping[str, str] | None = None,
        free_to_read: Sequence[str] = (),
        own_places: Sequence[str] = (),
        announce: Callable[[str, str], object] = lambda _old, _new: None,
    ) -> None:
        self.roots = tuple(roots)
        """The working directories after links."""
        self.home = home
        self.spellings = dict(spellings or {})
        """Names that lead to a root through a link, each with the root."""
        self.free_to_read = tuple(free_to_read)
        """Places outside the roots that hold the session's own output."""
        self.free_to_write: tuple[str, ...] = ()
        """Places that files may be changed in without asking: an agent's own memory."""
        self.own_places = tuple(own_places)
        """Data and settings of handaxe and its ecosystem, which do not belong to any root."""
        self.current = self.roots[0]
        """The directory that relative paths start from now."""
        self._announce = announce

    @property
    def root(self) -> str:
        """The directory the session was opened for."""
        return self.roots[0]

    def place(self, roots: Sequence[str], spellings: Mapping[str, str]) -> None:
        """Exchange the working directories; the current one stays."""
        self.roots = tuple(roots)
        self.spellings = dict(spellings)

    def move(self, path: str) -> None:
        """Make `path` the current directory."""
        if path != self.current:
            old, self.current = self.current, path
            self._announce(old, path)

    def resolve(self, path: str) -> str:
        """The absolute form of a path: `~`, `.` and `..` resolved by name.

        A path may be in the quoted form that results use for names with unusual characters.
        """
        path = _make_absolute(path, self.current, self.home)
        # A working directory that was named through a link is known by that name as well.
        for spelled, real in self.spellings.items():
            if is_inside(path, spelled):
                return real + path[len(spelled) :]
        return path


@lru_cache(maxsize=64)
def _make_absolute(path: str, current: str, home: str) -> str:
    """By name; kept, since a call asks for its path again and again."""
    if path.startswith("$'"):
        path = _unquote(path)
    _refuse_malformed(path)
    if path[:6].lower() == "file:/":
        _refuse_address(path)
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    elif path.startswith("~"):
        raise BadPath(f"{path!r} names another user's home. Give the absolute path instead.")
    return normalize(path if path.startswith("/") else f"{current}/{path}")


def _unquote(path: str) -> str:
    """The path as it is on disk, if it was spelled the way searches show odd names."""
    from handaxe.text.paths import unquote_path

    found = unquote_path(path)
    return path if found is None else found


def _refuse_address(address: str) -> None:
    """Paths are literal; as a relative one an address would only make odd directories."""
    from handaxe.text.urls import parse_file_uri

    meant = parse_file_uri(address)
    hint = f" Give the path itself: {meant[:200]!r}." if meant else " Give an absolute path."
    raise BadPath(f"{address[:200]!r} is an address and no path.{hint}")


def _refuse_malformed(path: str) -> None:
    if not path:
        raise BadPath("The path is empty. Give the absolute path of a file.")
    if "\0" in path:
        raise BadPath(f"{path[:200]!r} contains a NUL byte, which no path can hold.")
    try:
        encoded = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise BadPath(f"{path[:200]!r} contains a lone surrogate, no path can hold it.") from None
    if len(encoded) >= MAX_PATH_BYTES:
        raise BadPath(f"The path has {len(encoded):,} bytes; no path can be that long.")
    if len(encoded) > MAX_NAME_BYTES and any(
        len(part) > MAX_NAME_BYTES for part in encoded.split(b"/")
    ):
        raise BadPath(f"{path[:80]!r}... has a name of more than {MAX_NAME_BYTES} bytes.")


class SessionIdentity(msgspec.Struct, frozen=True):
    """The session's id and the directory it was opened for."""

    session_id: str
    root: str
