"""What a confined command may reach, as one value."""

from functools import lru_cache
from typing import Literal

import msgspec

from handaxe.contract.readable_files import ReadableFiles
from handaxe.disk.places import end_of_links

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
    """Places it may not read; `/`: everything that no other list names."""
    allow_read: tuple[str, ...] = ()
    """Inside what is denied: the more specific of two paths wins."""
    home_directory: str | None = None
    """Exists inside, if only as an empty directory."""
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


def is_readable(policy: SandboxPolicy, path: str) -> bool:
    """Whether the policy lets a path be read; the most specific word wins, a deny in a draw."""
    files = readable_files(policy)
    return files is None or files.can_read(path)


def is_closed(policy: SandboxPolicy) -> bool:
    """Whether only listed places can be read, and everything else is hidden."""
    return policy.confines_files and "/" in policy.deny_read


@lru_cache(maxsize=16)
def readable_files(policy: SandboxPolicy) -> ReadableFiles | None:
    """What commands can read, by every name it has; None where reading is not limited."""
    if not policy.confines_files:
        return None
    shown = (*policy.allow_read, *policy.roots, policy.temp_directory)
    return ReadableFiles(shown=_with_ends(shown), hidden=_with_ends(policy.deny_read))


def _with_ends(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths, and where their links lead."""
    return tuple(dict.fromkeys((*paths, *map(end_of_links, paths))))
