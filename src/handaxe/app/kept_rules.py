"""Rules that a person allowed for longer than a session: written down, dated, listed, taken back.

Whether a rule covers a call is not decided here.
"""

import msgspec

from handaxe.app.configuration import Configuration
from handaxe.contract.decision import Remember
from handaxe.contract.ports.settings_store import Scope, SettingsStore
from handaxe.session.permission_state import RuleBehaviour
from handaxe.settings.places import SCOPES

_BEHAVIOURS: tuple[RuleBehaviour, ...] = ("deny", "ask", "allow")
_ALLOWED = "permissions.allow"


class KeptRule(msgspec.Struct, frozen=True):
    """A rule of the settings that is in force."""

    rule: str
    behaviour: RuleBehaviour
    source: str
    file: str | None = None
    line: int | None = None
    at: float | None = None
    """When a person gave it as an answer; None if it was written into the file by hand."""


class KeptRules:
    """The rules of a project's settings, and the user's record of when they were given."""

    def __init__(self, configuration: Configuration, store: SettingsStore) -> None:
        self._configuration = configuration
        self._store = store

    def listed(self) -> list[KeptRule]:
        """Every rule in force: what is denied first, then what asks, then what is allowed."""
        given = self._configuration.trust.rules()
        found: list[KeptRule] = []
        for behaviour in _BEHAVIOURS:
            setting = self._store.find(f"permissions.{behaviour}")
            for rule, origin in zip(setting.value or (), setting.origins, strict=False):
                dates = given.get(origin.file or "", {}) if behaviour == "allow" else {}
                at = dates.get(rule)
                found.append(KeptRule(rule, behaviour, origin.source, origin.file, origin.line, at))
        return found

    async def keep(self, rules: tuple[str, ...], how: Remember) -> None:
        """Allow something in this project, or everywhere."""
        scope: Scope = "local" if how == "project" else "user"
        if scope == "user":
            rules = tuple(_anchored(rule, self._configuration.root) for rule in rules)
        file = self._store.file_of(scope)
        # Noted first: in a folder that is not trusted, the note is what makes them count.
        self._configuration.trust.note_rules(file, rules)
        listed_once = list(dict.fromkeys((*self._configuration.allowed_in(file), *rules)))
        await self._store.change(_ALLOWED, listed_once, scope)

    async def revoke(self, rule: str) -> list[str]:
        """Allow something no longer; the files it stood in, of those that handaxe writes."""
        changed: list[str] = []
        for scope in SCOPES:
            file = self._store.file_of(scope)
            allowed = self._configuration.allowed_in(file)
            if rule not in allowed:
                continue
            left = [one for one in allowed if one != rule]
            await self._store.change(_ALLOWED, left or None, scope)
            self._configuration.trust.forget_rule(file, rule)
            changed.append(file)
        return changed


def _anchored(rule: str, root: str) -> str:
    """A project's rule in the form that means the same in a file that belongs to no project."""
    tool, parenthesis, scope = rule.partition("(")
    if parenthesis and scope.startswith("/") and not scope.startswith("//"):
        return f"{tool}(/{root}{scope}"
    return rule
