"""The rules, mode and places of a session, made ready for `decide`: built once, then only read."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from handaxe.contract.decision import Decision, ToolDefinition
from handaxe.contract.permission_subjects import Access
from handaxe.permission.protected_paths import NO_PLACES, OwnPaths
from handaxe.rules.grammar import PermissionRule, parse_rule
from handaxe.rules.path_scopes import Anchors
from handaxe.rules.rule_index import RuleIndex
from handaxe.rules.tool_families import Behaviour
from handaxe.session.permission_state import Mode, PermissionState, SourcedRule
from handaxe.session.workdir import Workdir
from handaxe.text.paths import is_inside, normalize

MatchesCommand = Callable[[str, str, Behaviour], bool]
"""Whether a command specifier, read for that behaviour, covers a command."""


class Policy:
    """Everything a decision depends on besides the call itself."""

    __slots__ = (
        "_free_prefixes",
        "_own_in_roots",
        "_prefixes",
        "book",
        "cwd",
        "free_to_read",
        "free_to_write",
        "home",
        "is_closed",
        "matches_command",
        "mode",
        "own_places",
        "project_root",
        "recent",
        "roots",
        "walled_off",
    )

    def __init__(  # noqa: PLR0913 - all that a decision rests on, keyword-only
        self,
        book: RuleIndex,
        *,
        mode: Mode = "default",
        roots: Sequence[str],
        free_to_read: Sequence[str] = (),
        free_to_write: Sequence[str] = (),
        own_places: OwnPaths = NO_PLACES,
        walled_off: str | None = None,
        is_closed: bool = False,
        matches_command: MatchesCommand | None = None,
    ) -> None:
        self.book = book
        self.mode: Mode = mode
        self.roots = tuple(normalize(root) for root in roots)
        """The working directories after links."""
        self.free_to_read = tuple(normalize(place) for place in free_to_read)
        """Places outside that may be read without asking: this session's stored results."""
        self.free_to_write = tuple(normalize(place).rstrip("/") + "/" for place in free_to_write)
        """Places that files may be changed in without asking: an agent's own memory."""
        self.own_places = own_places
        """Where data and settings of handaxe and its ecosystem lie: no part of any root."""
        self.walled_off = walled_off
        """A checkout that may not be changed from here, except for the working directories."""
        self.is_closed = is_closed
        """Whether nobody is asked about files outside the working directories: they are refused."""
        self.cwd = book.anchors.cwd
        self.home = book.anchors.home
        self.project_root = book.anchors.project_root
        self.matches_command = matches_command
        self.recent: dict[object, Decision] = {}
        """Decisions on single paths, so that asking twice costs once."""
        self._prefixes = tuple(root.rstrip("/") + "/" for root in self.roots)
        self._free_prefixes = tuple(place.rstrip("/") + "/" for place in self.free_to_read)
        self._own_in_roots = own_places.below(self.roots)

    def change_mode(self, mode: Mode, *, is_confined: bool = False) -> "Policy":
        """The same in another mode; a sandbox keeps what lies above our own data in its place."""
        if mode == self.mode and not is_confined:
            return self
        own = self.own_places.restrict_to(self.roots) if is_confined else self.own_places
        return self._copy(self.book, mode, own, is_closed=self.is_closed and not is_confined)

    def change_rules(self, book: RuleIndex) -> "Policy":
        """The same with other rules."""
        return self._copy(book, self.mode, self.own_places, is_closed=self.is_closed)

    def _copy(
        self, book: RuleIndex, mode: Mode, own_places: OwnPaths, *, is_closed: bool
    ) -> "Policy":
        return Policy(
            book,
            mode=mode,
            roots=self.roots,
            free_to_read=self.free_to_read,
            free_to_write=self.free_to_write,
            own_places=own_places,
            walled_off=self.walled_off,
            is_closed=is_closed,
            matches_command=self.matches_command,
        )

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        """Every rule in force."""
        return self.book.rules

    def is_inside(self, path: str) -> bool:
        """Whether a normalized path is a working directory or lies below one.

        Our own data does not, unless a working directory was named inside it.
        """
        if not path.startswith(self._prefixes) and path not in self.roots:
            return False
        return not self._own_in_roots or not self._is_own(path)

    def is_below_a_root(self, path: str) -> bool:
        """Whether a normalized path lies in a working directory, whoever's data it is."""
        return path.startswith(self._prefixes)

    def _is_own(self, path: str) -> bool:
        place = self._own_in_roots.around(path)
        return place is not None and not any(
            len(root) > len(place) and is_inside(path, root) and is_inside(root, place)
            for root in self.roots
        )

    @property
    def own_in_roots(self) -> tuple[str, ...]:
        """The places of our own data that lie below a working directory."""
        return self._own_in_roots.paths

    def find_own_place(self, path: str) -> str | None:
        """The place of our own data that a change of a normalized path would change."""
        if not self.own_places or path.startswith(self.free_to_write):
            return None
        return self.own_places.find_changed(path)

    def is_walled_off(self, path: str) -> bool:
        """Whether a normalized path lies in the checkout that is not this agent's own."""
        wall = self.walled_off
        if wall is None or not is_inside(path, wall):
            return False
        return not (self.is_inside(path) or path.startswith(self.free_to_write))

    def is_free_to_read(self, path: str) -> bool:
        """Whether a normalized path belongs to what the session itself stored."""
        return path.startswith(self._free_prefixes) or path in self.free_to_read


def read_rules(texts: Iterable[SourcedRule]) -> tuple[PermissionRule, ...]:
    """Rules as they are kept in a session's state, parsed."""
    return tuple(
        parse_rule(
            rule.text,
            rule.behaviour,
            source=rule.source,
            source_file=rule.file,
            source_line=rule.line,
            root=_find_rule_root(rule),
            approved=rule.approved,
        )
        for rule in texts
    )


def make_policy(
    rules: Iterable[PermissionRule] = (),
    *,
    mode: Mode = "default",
    roots: Sequence[str],
    home: str,
    cwd: str | None = None,
    project_root: str | None = None,
    free_to_read: Sequence[str] = (),
    matches_command: MatchesCommand | None = None,
) -> Policy:
    """A policy from parsed rules and plain places; the first root is the project's."""
    project_root = normalize(project_root or roots[0])
    anchors = Anchors(project_root, normalize(cwd or project_root), normalize(home))
    return Policy(
        RuleIndex(rules, anchors),
        mode=mode,
        roots=roots,
        free_to_read=free_to_read,
        matches_command=matches_command,
    )


class CurrentPolicy:
    """The policy in force now, read again only when state or working directories changed."""

    def __init__(
        self,
        state: PermissionState,
        workdir: Workdir,
        *,
        is_closed: bool = False,
        matches_command: MatchesCommand | None = None,
    ) -> None:
        self._state = state
        self._is_closed = is_closed
        self._workdir = workdir
        self._matches_command = matches_command
        self._key: object = None
        self._texts: tuple[SourcedRule, ...] = ()
        self._policy: Policy | None = None

    def __call__(self) -> Policy:
        """The policy; cheap where nothing changed."""
        state, place = self._state, self._workdir
        free = (place.free_to_read, place.free_to_write)
        key = (state.revision, place.roots, free, place.home)
        if self._policy is None or key != self._key:
            self._policy = self._build()
            self._key = key
        return self._policy

    def _build(self) -> Policy:
        state, place = self._state, self._workdir
        anchors = Anchors(normalize(place.root), normalize(place.root), normalize(place.home))
        last = self._policy.book if self._policy is not None else None
        texts = state.rules
        if last is None or last.anchors != anchors or texts != self._texts:
            last = RuleIndex(read_rules(texts), anchors)
            self._texts = texts
        return Policy(
            last,
            mode=state.mode,
            roots=place.roots,
            free_to_read=place.free_to_read,
            free_to_write=place.free_to_write,
            own_places=OwnPaths(place.own_places),
            is_closed=self._is_closed,
            matches_command=self._matches_command,
        )


def _find_rule_root(rule: SourcedRule) -> str | None:
    """Rules of a user's or an organisation's file start at that file, all others at the project."""
    if rule.root is not None:
        return normalize(rule.root)
    if rule.file is not None and rule.source in {"user", "policy"} and rule.file.startswith("/"):
        return normalize(rule.file.rpartition("/")[0] or "/")
    return None


class JudgedPath(msgspec.Struct, frozen=True):
    """A path of a call: where it stands and where it leads."""

    path: str
    """Absolute, with `.` and `..` resolved by name."""
    real: str
    """After links; the same as `path` where none was followed."""
    access: Access
    field: str | None = None
    hard_link_outside: bool = False
    """Whether the file has another name outside the working directories."""


class PermissionQuery(msgspec.Struct, frozen=True):
    """One call, as far as permission is concerned."""

    tool: str
    aliases: tuple[str, ...] = ()
    read_only: bool = False
    paths: tuple[JudgedPath, ...] = ()
    texts: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Hosts of the network that the call would reach."""
    input: dict[str, Any] = {}
    command: str | None = None
    """The shell command the call would run; read by `commands`."""
    asks_person: bool = False
    """Whether running the call is itself a question to a person."""
    confined: bool = True
    """Whether the call changes nothing but the paths it names; False for unknown effects."""
    external: tuple[str, ...] = ()
    """Things outside, such as a database, that the call changes, or looks at if `read_only`."""
    definition: ToolDefinition | None = None
    """What a server says about its tool, and how that server is reached."""
