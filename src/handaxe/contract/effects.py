"""The effects of a call: its reads and writes, the one safety fact of a tool.

Whether a call is read-only, may run beside another, or destroys something is derived from this
value and never stated separately, so the three cannot contradict each other. What a tool does
not say is assumed at its worst: it changes everything, for good.
"""

from typing import Any, Literal, Protocol, cast

import msgspec


class PathObject(Protocol):
    """A path as an object, such as `pathlib.Path`."""

    def __fspath__(self) -> str: ...


class Resource(msgspec.Struct, frozen=True):
    """One thing a call can touch: a file tree, state of the session, or something outside."""

    kind: Literal["path", "state", "external"]
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


OWN_STATE = "own state"
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
"""State that ends with the session. There is no other: the rest of the world is external."""

Kind = Literal["fills", "removes", "moves"]
"""The possible states of a path after an act.

`fills`: files and directories are made and written into, existing ones keep their kind.
`removes`: it may be gone, or a plain file. `moves`: it may be anything, such as a link or another
directory.
"""


class Act(msgspec.Struct, frozen=True):
    """The writes of one program, or of one redirection."""

    kind: Kind
    places: tuple[str, ...] = ()
    """These, and what a link of that name leads to."""
    trees: tuple[str, ...] = ()
    """These places and everything below them."""
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
    """An upper bound of a command's writes, step by step, for undo.

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
    """The reads and writes of one call."""

    reads: tuple[Resource, ...] = ()
    writes: tuple[Resource, ...] = ()
    reads_everything: bool = False
    writes_everything: bool = False
    irreversible: bool = False
    extent: Extent | None = None
    """An upper bound of the writes of a call that `writes_everything`. Order and permission
    ignore it; undo need not save other paths."""
    spared: frozenset[str] = frozenset()
    """Session state that `writes_everything` does not include, because the tool cannot reach it."""

    def __post_init__(self) -> None:
        """Refuse state that is not the session's, and take external changes as final.

        Raises:
            ValueError: a name of state is unknown, or the name of something external is empty.
        """
        for what in self.reads:
            if what.kind != "path":
                _check_name(what)
        for what in self.writes:
            if what.kind == "path":
                continue
            _check_name(what)
            if what.kind == "external":
                msgspec.structs.force_setattr(self, "irreversible", True)  # noqa: FBT003 - its API

    def __or__(self, other: "Effects") -> "Effects":
        """Combine both effects."""
        return Effects(
            reads=tuple(dict.fromkeys((*self.reads, *other.reads))),
            writes=tuple(dict.fromkeys((*self.writes, *other.writes))),
            reads_everything=self.reads_everything or other.reads_everything,
            writes_everything=self.writes_everything or other.writes_everything,
            irreversible=self.irreversible or other.irreversible,
        )

    @classmethod
    def none(cls) -> "Effects":
        """Looks anywhere and changes nothing."""
        return _NONE

    @classmethod
    def pure(cls) -> "Effects":
        """Depends on nothing that another call could change."""
        return _PURE

    @classmethod
    def reading(cls, *paths: str | PathObject) -> "Effects":
        """Looks at these file trees only and changes nothing."""
        return cls(reads=_build_paths(paths))

    @classmethod
    def on(cls, *paths: str | PathObject, irreversible: bool = False) -> "Effects":
        """Reads and changes these paths and nothing else."""
        places = _build_paths(paths)
        return cls(reads=places, writes=places, irreversible=irreversible)

    @classmethod
    def on_state(cls, *names: str | type[Any]) -> "Effects":
        """Reads and changes state of the session, and no file.

        State is named as in `SESSION_STATE`, or is a subclass of `handaxe.State`. Use `external`
        for a database, a ticket or a service; any other name is a `ValueError`.
        """
        if not names:
            raise ValueError("Effects.on_state needs a name. A tool without effects is pure().")
        places = tuple([Resource("state", _get_state_name(name)) for name in names])
        return cls(reads=places, writes=places)

    @classmethod
    def external(cls, name: str, *more: str, writes: bool) -> "Effects":
        """Reads, or reads and changes, things outside by their names: a database, a ticket.

        Calls that name the same thing are ordered, those that name others run beside them. Undo
        cannot revert writes, so a call that writes asks unless an allow rule names the tool, and
        plan mode refuses it. A call that reads asks too, and runs in plan mode once allowed.
        """
        if not isinstance(writes, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"`writes` is True or False, not {writes!r:.100}.")
        places = tuple([Resource("external", one) for one in (name, *more)])
        return cls(reads=places, writes=places if writes else ())

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
    def is_confined(self) -> bool:
        """Whether the call changes at most the paths it names and state of the session."""
        if self.writes_everything:
            return False
        for what in self.writes:  # noqa: SIM110 - asked in every call
            if what.kind == "external":
                return False
        return True

    @property
    def external_names(self) -> tuple[str, ...]:
        """The things outside that it changes; if it changes none, those that it looks at."""
        changed = tuple([what.name for what in self.writes if what.kind == "external"])
        return changed or tuple([what.name for what in self.reads if what.kind == "external"])

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
        if self.writes_everything and (sees_all or self._is_any_touched(touched)):
            return True
        if sees_all and other._is_any_touched(self.writes):
            return True
        return any(mine.overlaps(theirs) for mine in self.writes for theirs in touched)

    def _is_any_touched(self, resources: tuple[Resource, ...]) -> bool:
        """Whether one of these is a part of everything."""
        if not self.spared:
            return bool(resources)
        return any(what.kind != "state" or what.name not in self.spared for what in resources)


def _build_paths(paths: tuple[str | PathObject, ...]) -> tuple[Resource, ...]:
    return tuple(
        [Resource("path", one if isinstance(one, str) else _spell_path(one)) for one in paths]
    )


def _spell_path(path: object) -> str:
    """A path as text; a tool's input may hold it as an object."""
    spell = getattr(type(path), "__fspath__", None)
    spelled: object = path if spell is None else spell(path)
    if not isinstance(spelled, str):
        raise TypeError(f"Effects name paths as text, not as {path!r:.100}.")
    return spelled


def _get_state_name(state: object) -> str:
    """The name of a piece of state as it is declared."""
    if isinstance(state, str):
        return state
    name: object = getattr(state, "state_name", None) if isinstance(state, type) else None
    if isinstance(name, str):
        return name
    raise TypeError(
        f"{state!r} is not a state of the session. Give a name as text, or a subclass of "
        "handaxe.State."
    )


def _check_name(resource: Resource) -> None:
    """Refuse what would be ordered and judged as something else than was meant."""
    # What the types promise an own tool may not keep.
    name = cast("object", resource.name)
    if resource.kind == "external":
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"Something external needs a name as text, not {name!r}.")
    elif name not in SESSION_STATE:
        known = ", ".join(sorted(SESSION_STATE))
        raise ValueError(
            f"{name!r} is not a state of the session. For a database, a ticket or a service use "
            f"Effects.external({name!r}, writes=True). State of the session: {known}; a subclass "
            "of handaxe.State counts as well."
        )


def _is_below(path: str, ancestor: str) -> bool:
    return path.startswith(ancestor if ancestor.endswith("/") else ancestor + "/")


_NONE = Effects(reads_everything=True)
_PURE = Effects()
_UNKNOWN = Effects(reads_everything=True, writes_everything=True, irreversible=True)
