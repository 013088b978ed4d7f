"""A session's rules, mode and paths, prepared once for `decide`."""

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
"""Whether a rule's command specifier covers a command, for allow, ask or deny."""


class Policy:
    """Everything a decision depends on besides the call."""

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
        """The working directories with symlinks resolved."""
        self.free_to_read = tuple(normalize(place) for place in free_to_read)
        """Paths outside that need no approval for reading: this session's stored results."""
        self.free_to_write = tuple(normalize(place).rstrip("/") + "/" for place in free_to_write)
        """Paths outside that need no approval for changes: an agent's own memory."""
        self.own_places = own_places
        """Data and settings of handaxe and its ecosystem; they are not part of any root."""
        self.walled_off = walled_off
        """A checkout that is read-only here, except for the working directories."""
        self.is_closed = is_closed
        """Whether files outside the working directories are refused without asking."""
        self.cwd = book.anchors.cwd
        self.home = book.anchors.home
        self.project_root = book.anchors.project_root
        self.matches_command = matches_command
        self.recent: dict[object, Decision] = {}
        """Cached decisions on single paths."""
        self._prefixes = tuple(root.rstrip("/") + "/" for root in self.roots)
        self._free_prefixes = tuple(place.rstrip("/") + "/" for place in self.free_to_read)
        self._own_in_roots = own_places.below(self.roots)

    def change_mode(self, mode: Mode, *, is_confined: bool = False) -> "Policy":
        """The policy in another mode; a sandbox protects directories above handaxe's own data."""
        if mode == self.mode and not is_confined:
            return self
        own = self.own_places.restrict_to(self.roots) if is_confined else self.own_places
        return self._copy(self.book, mode, own, is_closed=self.is_closed and not is_confined)

    def change_rules(self, book: RuleIndex) -> "Policy":
        """The policy with other rules."""
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
        """All active rules."""
        return self.book.rules

    def is_inside(self, path: str) -> bool:
        """Whether a normalized path is in a working directory.

        handaxe's own data is not, unless a working directory was named inside it.
        """
        if not path.startswith(self._prefixes) and path not in self.roots:
            return False
        return not self._own_in_roots or not self._is_own(path)

    def is_below_a_root(self, path: str) -> bool:
        """Whether a normalized path is below a working directory, handaxe's own data included."""
        return path.startswith(self._prefixes)

    def _is_own(self, path: str) -> bool:
        place = self._own_in_roots.around(path)
        return place is not None and not any(
            len(root) > len(place) and is_inside(path, root) and is_inside(root, place)
            for root in self.roots
        )

    @property
    def own_in_roots(self) -> tuple[str, ...]:
        """Handaxe's own data inside the working directories."""
        return self._own_in_roots.paths

    def find_own_place(self, path: str) -> str | None:
        """The part of handaxe's own data that changing a normalized path would change."""
        if not self.own_places or path.startswith(self.free_to_write):
            return None
        return self.own_places.find_changed(path)

    def is_walled_off(self, path: str) -> bool:
        """Whether a normalized path is in a checkout that belongs to another agent."""
        wall = self.walled_off
        if wall is None or not is_inside(path, wall):
            return False
        return not (self.is_inside(path) or path.startswith(self.free_to_write))

    def is_free_to_read(self, path: str) -> bool:
        """Whether a normalized path is a stored result of the session."""
        return path.startswith(self._free_prefixes) or path in self.free_to_read


def read_rules(texts: Iterable[SourcedRule]) -> tuple[PermissionRule, ...]:
    """Parse the rules stored in a session's state."""
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
    """Build a policy from parsed rules and plain paths; the first root is the project's."""
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
    """The current policy, rebuilt only when the state or the working directories change."""

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
        """The policy; cheap if nothing changed."""
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
    """Rules of user or managed settings are relative to their file, all others to the project."""
    if rule.root is not None:
        return normalize(rule.root)
    if rule.file is not None and rule.source in {"user", "policy"} and rule.file.startswith("/"):
        return normalize(rule.file.rpartition("/")[0] or "/")
    return None


class JudgedPath(msgspec.Struct, frozen=True):
    """A path of a call, with its symlink target."""

    path: str
    """Absolute, with `.` and `..` resolved by name."""
    real: str
    """With symlinks resolved; equals `path` if there were none."""
    access: Access
    field: str | None = None
    hard_link_outside: bool = False
    """Whether the file has a hard link outside the working directories."""


class PermissionQuery(msgspec.Struct, frozen=True):
    """The parts of a call that permission depends on."""

    tool: str
    aliases: tuple[str, ...] = ()
    read_only: bool = False
    paths: tuple[JudgedPath, ...] = ()
    texts: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Network hosts that the call would reach."""
    names: tuple[str, ...] = ()
    """Names that lead to these hosts: rules that forbid them count, rules that allow do not."""
    input: dict[str, Any] = {}
    command: str | None = None
    """The shell command of the call; parsed by `commands`."""
    asks_person: bool = False
    """Whether the call itself asks the user a question."""
    confined: bool = True
    """Whether the call changes only the paths it names; False for unknown effects."""
    external: tuple[str, ...] = ()
    """External things, such as a database, that the call changes, or reads if `read_only`."""
    definition: ToolDefinition | None = None
    """A server's definition of the tool, and how the server is reached."""
