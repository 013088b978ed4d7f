"""Permission changes that come with an approval from a hook, a callback or a tool.

Deny rules, trust and managed settings take precedence. The approval itself is checked elsewhere.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from handaxe.app.services.service import SessionContext
from handaxe.config.reload import SettingsReloader, validate_mode
from handaxe.contract.decision import DecidedBy, ToolDefinition, find_bound_definitions
from handaxe.contract.events import PermissionsChanged
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.permission_updates import Destination, PermissionChange
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.contract.ports.permission import PermissionChanges
from handaxe.contract.ports.settings_store import Scope, SettingsStore
from handaxe.permission.saved_rules import SavedRules
from handaxe.rules.grammar import parse_rule
from handaxe.session.permission_state import Mode, RuleBehaviour, SourcedRule

_SCOPES: dict[Destination, Scope] = {
    "localSettings": "local",
    "projectSettings": "project",
    "userSettings": "user",
}
_WIDEST: frozenset[Mode] = frozenset({"auto", "bypassPermissions"})
_DIRECTORIES = ("permissions", "additionalDirectories")


class _ChangeRejected(Exception):
    """Why a change is refused."""


class SessionPermissionChanges(PermissionChanges):
    """Changes the permissions of one session, and the settings files of its project and user."""

    def __init__(self, session_context: SessionContext, live: SettingsReloader) -> None:
        self._session_context = session_context
        self._live = live
        self._configuration = session_context.configuration
        self._state = session_context.permissions
        # Several calls may ask at once; change one file at a time.
        self._turn = asyncio.Lock()
        self._definitions: Sequence[ToolDefinition] | None = None

    async def make(
        self,
        changes: Sequence[PermissionChange],
        *,
        by: DecidedBy,
        call_id: str,
        from_project: bool = False,
        definitions: Sequence[ToolDefinition] | None = None,
    ) -> tuple[str, ...]:
        """Apply changes in order; sentences on those that failed."""
        made: list[PermissionChange] = []
        problems: list[str] = []
        async with self._turn:
            self._definitions = definitions
            await self._make_all(changes, made, problems, from_project=from_project)
        event = PermissionsChanged(
            call_id=call_id, by=by, changes=tuple(made), not_made=tuple(problems)
        )
        self._session_context.emit(event)
        return tuple(problems)

    async def _make_all(
        self,
        changes: Sequence[PermissionChange],
        made: list[PermissionChange],
        problems: list[str],
        *,
        from_project: bool,
    ) -> None:
        for change in changes:
            try:
                if from_project:
                    _refuse_projects(change)
                await self._make(change)
            except (_ChangeRejected, SetupError) as refused:
                problems.append(f"`{change.type}` was not applied: {refused}")
            except ToolFault as fault:
                problems.append(f"`{change.type}` was not applied: {fault.sentence}")
            else:
                made.append(change)

    async def _make(self, change: PermissionChange) -> None:
        scope = _SCOPES.get(change.destination)
        if scope is not None and scope not in self._configuration.sources:
            raise _ChangeRejected(f"this session does not read the {scope} settings.")
        if change.type == "setMode":
            await self._set_mode(str(change.mode), scope)
        elif change.type.endswith("Directories"):
            await self._change_directories(change, scope)
        else:
            await self._change_rules(change, scope)

    async def _set_mode(self, name: str, scope: Scope | None) -> None:
        mode = validate_mode(self._configuration, name)
        if scope not in (None, "user") and mode in _WIDEST:
            raise _ChangeRejected(f"a project's settings cannot choose the mode {mode!r}.")
        if scope is not None:
            await self._store.change("permissions.defaultMode", mode, scope)
        self._state.set_mode(mode)

    async def _change_rules(self, change: PermissionChange, scope: Scope | None) -> None:
        behaviour = change.behavior
        assert behaviour is not None
        rules = tuple(rule.text for rule in change.rules)
        adds = change.type != "removeRules"
        if adds:
            wrong = [parse_rule(rule, behaviour).problem for rule in rules]
            if problem := next(filter(None, wrong), None):
                raise _ChangeRejected(problem)
            if behaviour == "allow" and not self._state.may_grant():
                raise _ChangeRejected("only managed settings may add allow rules.")
        if scope is None:
            self._change_session_rules(change, behaviour, rules)
            return
        kept = SavedRules(self._configuration, self._store, self._seen())
        if change.type == "addRules":
            await kept.add(rules, behaviour, scope)
        elif change.type == "replaceRules":
            await kept.put(rules, behaviour, scope)
        elif missing := await kept.remove(rules, behaviour, scope):
            file = self._store.find_file(scope)
            raise _ChangeRejected(f"{', '.join(missing)} is not in {file}.")

    def _seen(self) -> Sequence[ToolDefinition]:
        """The known MCP tools."""
        if self._definitions is not None:
            return self._definitions
        servers = self._session_context.pipeline_context().ports.get(McpServers)
        return () if servers is None else servers.definitions()

    def _change_session_rules(
        self, change: PermissionChange, behaviour: RuleBehaviour, texts: tuple[str, ...]
    ) -> None:
        state, seen = self._state, self._seen()
        if change.type == "removeRules":
            known = set(texts)
            same = [r for r in state.list_rules("session") if r.behaviour == behaviour]
            state.remove_rules(rule for rule in same if rule.text in known)
            return
        rules = [
            SourcedRule(
                text,
                behaviour,
                approved=find_bound_definitions(text, seen) if behaviour == "allow" else None,
            )
            for text in texts
        ]
        if change.type == "replaceRules":
            same = [r for r in state.list_rules("session") if r.behaviour == change.behavior]
            state.remove_rules(same)
        state.add_rules(rules)

    async def _change_directories(self, change: PermissionChange, scope: Scope | None) -> None:
        root = self._session_context.workdir.root
        adds = change.type == "addDirectories"
        named = _resolve_directories(change.directories, root, must_exist=adds)
        if scope is None:
            kept = _exclude_directories(self._live.added, named, root)
            self._live.set_added([*kept, *named] if adds else kept)
            return
        if adds and scope != "user" and not self._configuration.is_trusted:
            raise _ChangeRejected(f"{root} is not trusted, so its settings cannot add directories.")
        listed = self._configuration.read_list(self._store.find_file(scope), _DIRECTORIES)
        left = _exclude_directories(listed, named, root)
        wanted = [*left, *named] if adds else left
        await self._store.change(".".join(_DIRECTORIES), wanted or None, scope)

    @property
    def _store(self) -> SettingsStore:
        return self._session_context.pipeline_context().ports[SettingsStore]


def _refuse_projects(change: PermissionChange) -> None:
    """Refuse changes by a project's hooks beyond their project."""
    if change.destination == "userSettings":
        raise _ChangeRejected("a project's hook cannot change the user's settings.")
    if change.type == "setMode" and change.mode in _WIDEST:
        raise _ChangeRejected(f"a project's hook cannot choose the mode {change.mode!r}.")


def _resolve_directories(names: Sequence[str], root: str, *, must_exist: bool) -> list[str]:
    """The directories as absolute paths, relative to the project."""
    found = [os.path.normpath(Path(root) / Path(name).expanduser()) for name in names]
    for path in found:
        if must_exist and not Path(path).is_dir():
            raise _ChangeRejected(f"{path} is not a directory.")
    return found


def _exclude_directories(listed: Sequence[str], gone: Sequence[str], root: str) -> list[str]:
    """The paths that are in none of these directories."""
    real = {os.path.realpath(path) for path in gone}
    places = _resolve_directories(listed, root, must_exist=False)
    return [
        name
        for name, path in zip(listed, places, strict=True)
        if os.path.realpath(path) not in real
    ]
