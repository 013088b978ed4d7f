"""What a confined command may reach, as one value; nothing here looks at the machine."""

from typing import Literal

import msgspec

NetworkState = Literal["off", "listed", "open"]

GIT_DIRECTORY_INSIDE = ("config", "hooks")
"""What makes git run programs: read-only inside every repository, which else stays writable."""
GIT_ABSENT_INSIDE = ("commondir", "config.worktree")
"""What could redirect git to another configuration; such files must not appear."""


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command may write and read, and whom it may talk to. Paths are absolute."""

    roots: tuple[str, ...]
    """Directories and files it may write to."""
    temp_directory: str
    """Its own place for temporary files, also seen as `/tmp`."""
    aside_directory: str
    """Where files go that a command should not have made; out of its reach."""
    deny_write: tuple[str, ...] = ()
    deny_read: tuple[str, ...] = ()
    allow_read: tuple[str, ...] = ()
    """Inside what is denied: the more specific of two paths wins."""
    protected_names: frozenset[str] = frozenset()
    """Names that are read-only wherever they stand in a root; in small letters."""
    masked_names: tuple[str, ...] = ()
    """Names at the top of a root that cannot be made where nothing exists yet."""
    confines_files: bool = True
    network: NetworkState = "off"
    allowed_domains: tuple[str, ...] = ()
    denied_domains: tuple[str, ...] = ()
    unix_sockets: tuple[str, ...] = ()
    """Sockets it may connect to."""
    all_unix_sockets: bool = False
    local_binding: bool = False

    @property
    def has_unix_sockets(self) -> bool:
        """Whether a command may open a Unix socket at all."""
        return self.all_unix_sockets or bool(self.unix_sockets)


def depth(path: str) -> int:
    """How many components a normalized absolute path has."""
    return 0 if path == "/" else path.count("/")


def is_below(path: str, place: str) -> bool:
    """Whether a path is `place` or lies in it, by whole components."""
    return path == place or path.startswith(place.rstrip("/") + "/")


def is_readable(policy: SandboxPolicy, path: str) -> bool:
    """Whether the policy lets a path be read; the most specific word wins, a deny in a draw."""
    denied = [depth(place) for place in policy.deny_read if is_below(path, place)]
    if not denied or not policy.confines_files:
        return True
    given = (*policy.allow_read, *policy.roots, policy.temp_directory)
    allowed = [depth(place) for place in given if is_below(path, place)]
    return max(allowed, default=-1) > max(denied)
