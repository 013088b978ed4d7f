"""Rules that the user saved beyond a session: written, dated, listed, revoked.

Whether a rule covers a call is decided elsewhere.
"""

from collections.abc import Iterable

import msgspec

from handaxe.config.project import Configuration
from handaxe.config.settings_paths import SCOPES
from handaxe.contract.decision import Remember, ToolDefinition
from handaxe.contract.ports.settings_store import Scope, SettingsStore
from handaxe.session.permission_state import RuleBehaviour

_SCOPES: dict[Remember, Scope] = {"project": "local", "always": "user"}
_BEHAVIOURS: tuple[RuleBehaviour, ...] = ("deny", "ask", "allow")


class SavedRule(msgspec.Struct, frozen=True):
    """An active rule of the settings."""

    rule: str
    behaviour: RuleBehaviour
    source: str
    file: str | None = None
    line: int | None = None
    at: float | None = None
    """When the user gave it as an approval; None for a rule written by hand."""


class SavedRules:
    """The rules of a project's settings, and the user's record of approvals."""

    def __init__(
        self,
        configuration: Configuration,
        store: SettingsStore,
        definitions: Iterable[ToolDefinition] = (),
    ) -> None:
        """`definitions` are the servers' tools at the time of the approval."""
        self._configuration = configuration
        self._store = store
        self._definitions = tuple(definitions)

    def listed(self) -> list[SavedRule]:
        """All active rules: deny, then ask, then allow."""
        given = self._configuration.trust.rules()
        found: list[SavedRule] = []
        for behaviour in _BEHAVIOURS:
            setting = self._store.find(f"permissions.{behaviour}")
            for rule, origin in zip(setting.value or (), setting.origins, strict=False):
                dates = given.get(origin.file or "", {}) if behaviour == "allow" else {}
                at = dates.get(rule)
                found.append(
                    SavedRule(rule, behaviour, origin.source, origin.file, origin.line, at)
                )
        return found

    async def keep(self, rules: tuple[str, ...], how: Remember) -> None:
        """Save allow rules for this project or for all projects; other durations save nothing."""
        scope = _SCOPES.get(how)
        if scope is not None:
            await self.add(rules, "allow", scope)

    async def add(self, rules: tuple[str, ...], behaviour: RuleBehaviour, scope: Scope) -> None:
        """Add rules to a file."""
        rules = self._meant(rules, scope)
        await self._write((*self._read_rules(behaviour, scope), *rules), rules, behaviour, scope)

    async def put(self, rules: tuple[str, ...], behaviour: RuleBehaviour, scope: Scope) -> None:
        """Replace the rules in a file."""
        rules = self._meant(rules, scope)
        gone = set(self._read_rules(behaviour, scope)) - set(rules)
        await self._write(rules, rules, behaviour, scope)
        self._forget(behaviour, scope, gone)

    async def remove(
        self, rules: tuple[str, ...], behaviour: RuleBehaviour, scope: Scope
    ) -> list[str]:
        """Remove rules from a file; return those it does not contain."""
        rules, standing = self._meant(rules, scope), self._read_rules(behaviour, scope)
        if gone := set(rules) & set(standing):
            left = tuple(rule for rule in standing if rule not in gone)
            await self._write(left, (), behaviour, scope)
            self._forget(behaviour, scope, gone)
        return [rule for rule in rules if rule not in standing]

    async def revoke(self, rule: str) -> list[str]:
        """Remove an allow rule from all files that handaxe writes; return those files."""
        changed: list[str] = []
        for scope in SCOPES:
            standing = self._read_rules("allow", scope)
            if rule in standing:
                left = tuple(one for one in standing if one != rule)
                await self._write(left, (), "allow", scope)
                self._forget("allow", scope, {rule})
                changed.append(self._store.find_file(scope))
        return changed

    async def _write(
        self,
        rules: tuple[str, ...],
        given_now: tuple[str, ...],
        behaviour: RuleBehaviour,
        scope: Scope,
    ) -> None:
        if behaviour == "allow" and given_now:
            # Noted first: in a folder that is not trusted, the note is what makes them count.
            file = self._store.find_file(scope)
            self._configuration.trust.note_rules(file, given_now, self._definitions)
        listed_once = list(dict.fromkeys(rules))
        await self._store.change(f"permissions.{behaviour}", listed_once or None, scope)

    def _meant(self, rules: tuple[str, ...], scope: Scope) -> tuple[str, ...]:
        """The rules in the form that the file needs."""
        if scope != "user":
            return rules
        return tuple(_make_rule_absolute(rule, self._configuration.root) for rule in rules)

    def _read_rules(self, behaviour: RuleBehaviour, scope: Scope) -> list[str]:
        file = self._store.find_file(scope)
        return self._configuration.read_list(file, ("permissions", behaviour))

    def _forget(self, behaviour: RuleBehaviour, scope: Scope, rules: set[str]) -> None:
        for rule in rules if behaviour == "allow" else ():
            self._configuration.trust.forget_rule(self._store.find_file(scope), rule)


def _make_rule_absolute(rule: str, root: str) -> str:
    """A project rule in the form with the same meaning outside the project."""
    tool, parenthesis, scope = rule.partition("(")
    if parenthesis and scope.startswith("/") and not scope.startswith("//"):
        return f"{tool}(/{root}{scope}"
    return rule
