"""What a call looks at and what it changes: the one safety fact of a tool.

Whether a call is read-only, may run beside another, or destroys something is derived from this
value and never stated separately, so the three cannot contradict each other. What a tool does
not say is assumed at its worst: it changes everything, for good.
"""

from typing import Literal

import msgspec


class Resource(msgspec.Struct, frozen=True):
    """One thing a call can touch: a file tree below a path, or a named piece of state."""

    kind: Literal["path", "state"]
    name: str

    def overlaps(self, other: "Resource") -> bool:
        """Whether the two are the same thing or one holds the other."""
        if self.kind != other.kind:
            return False
        if self.name == other.name:
            return True
        return self.kind == "path" and (
            _is_below(self.name, other.name) or _is_below(other.name, self.name)
        )


SESSION_STATE = frozenset(
    {
        "agent messages",
        "brevity",
        "cwd",
        "final output",
        "jobs",
        "loaded tools",
        "mode",
        "own state",
        "skills",
        "tasks",
        "todos",
        "user",
    }
)
"""State that ends with the session. State of any other name is part of the outside world."""

Kind = Literal["fills", "removes", "moves"]
"""What a place may be after an act.

`fills`: files and directories are made and written into, nothing else becomes of what is there.
`removes`: it may be gone, or a plain file. `moves`: it may be anything, such as a link or another
directory.
"""


class Act(msgspec.Struct, frozen=True):
    """The writes of one program, or of one redirection."""

    kind: Kind
    places: tuple[str, ...] = ()
    """These, and what a link of that name leads to."""
    trees: tuple[str, ...] = ()
    """The same with everything below."""
    into: tuple[tuple[str, str], ...] = ()
    """Trees that are put at a target, or in it under a name, if one is given, where it is a
    directory."""
    makes_parents: bool = False
    """Directories that are missing on the way are made."""
    files_only: bool = False
    """A directory among them would be closed to its owner."""
    scratch: tuple[str, ...] = ()
    """Names, as patterns, of what the program leaves beside its files when it is killed."""


class Extent(msgspec.Struct, frozen=True):
    """What a command was proved to write at most, act after act: an upper bound, for undo.

    Paths are absolute as the text has them, and no link in them was followed: where links lead
    counts at the moment the command runs.
    """

    cwd: str
    """Where it runs, which has to be a real path."""
    acts: tuple[Act, ...]
    programs: frozenset[str]
    """Names of programs of which it was assumed that they are the well-known ones."""
    is_confined: bool = False
    """Outside the working directories it may see other files than are there."""


class Effects(msgspec.Struct, frozen=True):
    """What one call reads and writes."""

    reads: tuple[Resource, ...] = ()
    writes: tuple[Resource, ...] = ()
    reads_everything: bool = False
    writes_everything: bool = False
    irreversible: bool = False
    extent: Extent | None = None
    """What a call that `writes_everything` was proved to write at most. Order and permission go by
    the former; whoever keeps files for undo need not keep more than this."""

    def __post_init__(self) -> None:
        """Count a write of state that is not the session's as a write of the outside world."""
        for what in self.writes:
            if what.kind == "state" and what.name not in SESSION_STATE:
                for field in ("writes_everything", "irreversible"):
                    msgspec.structs.force_setattr(self, field, True)  # noqa: FBT003 - its API

    @classmethod
    def none(cls) -> "Effects":
        """Looks anywhere and changes nothing."""
        return _NONE

    @classmethod
    def pure(cls) -> "Effects":
        """Depends on nothing that another call could change."""
        return _PURE

    @classmethod
    def reading(cls, *paths: str) -> "Effects":
        """Looks at these file trees only and changes nothing."""
        return cls(reads=_build_resources("path", paths))

    @classmethod
    def on(cls, *paths: str, irreversible: bool = False) -> "Effects":
        """Reads and changes these paths and nothing else."""
        places = _build_resources("path", paths)
        return cls(reads=places, writes=places, irreversible=irreversible)

    @classmethod
    def on_state(cls, *names: str) -> "Effects":
        """Reads and changes state of the session, by its names in `SESSION_STATE`, and no file.

        Any other name stands for something outside, such as a database: anything may change.
        """
        places = _build_resources("state", names)
        return cls(reads=places, writes=places)

    @classmethod
    def unknown(cls) -> "Effects":
        """Anything may change, for good: what is assumed of a tool that says nothing."""
        return _UNKNOWN

    @property
    def is_read_only(self) -> bool:
        """Whether the call changes nothing."""
        return not self.writes and not self.writes_everything

    @property
    def is_internal(self) -> bool:
        """Whether the call changes nothing but the session's own state, if anything."""
        if self.writes_everything:
            return False
        for what in self.writes:  # noqa: SIM110 - asked several times of every call
            if what.kind != "state":
                return False
        return True

    @property
    def is_destructive(self) -> bool:
        """Whether the call may change something that cannot be put back."""
        return self.irreversible and not self.is_read_only

    def collides(self, other: "Effects") -> bool:
        """Whether one of the two writes what the other reads or writes."""
        return self._is_disturbing(other) or other._is_disturbing(self)

    def _is_disturbing(self, other: "Effects") -> bool:
        if self.is_read_only:
            return False
        touched = (*other.reads, *other.writes)
        sees_all = other.reads_everything or other.writes_everything
        if self.writes_everything:
            return sees_all or bool(touched)
        if sees_all:
            return True
        return any(mine.overlaps(theirs) for mine in self.writes for theirs in touched)


def _build_resources(
    kind: Literal["path", "state"], names: tuple[str, ...]
) -> tuple[Resource, ...]:
    return tuple([Resource(kind, name) for name in names])


def _is_below(path: str, ancestor: str) -> bool:
    return path.startswith(ancestor if ancestor.endswith("/") else ancestor + "/")


_NONE = Effects(reads_everything=True)
_PURE = Effects()
_UNKNOWN = Effects(reads_everything=True, writes_everything=True, irreversible=True)
