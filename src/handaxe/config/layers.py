"""The layers of settings, joined: user < project < local < flags < policy.

Of single values the highest wins; lists are put together; hooks and variables are joined by name.
Every value keeps its origin.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from handaxe.config.keys import KeyPath
from handaxe.config.settings import Settings
from handaxe.config.source import Origin, SettingEntry, SettingsFragment
from handaxe.config.trust import ALLOW, Refusal, Trust, can_weaken_sandbox, find_refusal

_UNASKED: KeyPath = ("sandbox", "autoAllowBashIfSandboxed")


class IgnoredSetting(msgspec.Struct, frozen=True):
    """A value that does not count, and why."""

    entry: SettingEntry
    why: Refusal


class HookGroup(msgspec.Struct, frozen=True):
    """One matcher with its handlers, as it was written, and where."""

    event: str
    group: dict[str, Any]
    origin: Origin


class MergedSettings(msgspec.Struct, frozen=True):
    """The settings in force, and where each comes from."""

    settings: Settings
    entries: dict[KeyPath, tuple[SettingEntry, ...]]
    """By key: the one value that won, or all items of a list, lowest layer first."""
    ignored: tuple[IgnoredSetting, ...] = ()

    @property
    def hooks(self) -> tuple[HookGroup, ...]:
        """The hooks that may run, lowest layer first."""
        return tuple(
            HookGroup(path[1], entry.value, entry.origin)
            for path, entries in self.entries.items()
            if path[0] == "hooks"
            for entry in entries
            if entry.kind == "item" and self._can_run(entry)
        )

    def _can_run(self, hook: SettingEntry) -> bool:
        options = self.settings
        if hook.origin.source == "policy":
            disabling = self.entries.get(("disableAllHooks",))
            is_own = disabling is not None and disabling[0].origin.source == "policy"
            return not (options.disable_all_hooks and is_own)
        return not (options.disable_all_hooks or options.allow_managed_hooks_only)


def merge(
    fragments: Iterable[SettingsFragment], trust: Trust, *, files_may_allow: bool = True
) -> MergedSettings:
    """Join fragments, lowest layer first.

    Where files may not allow, rules of the session's arguments still do.
    """
    values: dict[KeyPath, SettingEntry] = {}
    items: dict[KeyPath, list[SettingEntry]] = {}
    ignored: list[IgnoredSetting] = []
    for fragment in fragments:
        for entry in fragment.entries:
            why = find_refusal(entry, values, trust)
            if why is not None:
                ignored.append(IgnoredSetting(entry, why))
            elif entry.kind in {"item", "empty"}:
                items.setdefault(entry.path, []).append(entry)
            else:
                values[entry.path] = entry
    only_managed = values.get(("allowManagedPermissionRulesOnly",))
    if only_managed is not None and only_managed.value:
        _drop_unmanaged(items, ignored)
    _drop_weakening(values, items, ignored)
    if not files_may_allow:
        items[ALLOW] = [entry for entry in items.get(ALLOW, ()) if entry.origin.source == "flags"]
        never = SettingEntry(_UNASKED, value=False, origin=Origin("flags"))
        values[_UNASKED] = never
    entries = {path: (entry,) for path, entry in values.items()}
    entries |= {path: tuple(found) for path, found in items.items()}
    return MergedSettings(_build_settings(values, items), entries, tuple(ignored))


def _drop_unmanaged(
    items: dict[KeyPath, list[SettingEntry]], ignored: list[IgnoredSetting]
) -> None:
    found = items.pop(ALLOW, [])
    managed = [entry for entry in found if entry.origin.source == "policy"]
    ignored.extend(IgnoredSetting(entry, "never") for entry in found if entry not in managed)
    if managed:
        items[ALLOW] = managed


def _drop_weakening(
    values: dict[KeyPath, SettingEntry],
    items: dict[KeyPath, list[SettingEntry]],
    ignored: list[IgnoredSetting],
) -> None:
    """A sandbox that managed settings turn on keeps their options."""
    switch = values.get(("sandbox", "enabled"))
    if switch is None or switch.origin.source != "policy" or not switch.value:
        return
    weakening = [entry for entry in values.values() if can_weaken_sandbox(entry)]
    for entry in weakening:
        del values[entry.path]
    for path, entries in items.items():
        weakening += [entry for entry in entries if can_weaken_sandbox(entry)]
        items[path] = [entry for entry in entries if not can_weaken_sandbox(entry)]
    ignored += [IgnoredSetting(entry, "managed") for entry in weakening]


def _build_settings(
    values: dict[KeyPath, SettingEntry], items: dict[KeyPath, list[SettingEntry]]
) -> Settings:
    plain: dict[str, Any] = {}
    for path, entry in values.items():
        if entry.kind != "unused":
            _put(plain, path, entry.value)
    for path, entries in items.items():
        found = [entry.value for entry in entries if entry.kind == "item"]
        # Two layers often say the same; objects are compared by what they hold.
        distinct = {value if isinstance(value, str) else repr(value): value for value in found}
        _put(plain, path, list(distinct.values()))
    if "cleanupPeriodDays" in plain:
        plain.setdefault("retention_days", plain["cleanupPeriodDays"])
    if "respectGitignore" in plain:
        plain.setdefault("search", {}).setdefault("respect_ignore", plain["respectGitignore"])
    # Reading even nothing takes msgspec a look at every type there is.
    return msgspec.convert(plain, Settings) if plain else Settings()


def _put(plain: dict[str, Any], path: KeyPath, value: object) -> None:
    for name in path[:-1]:
        plain = plain.setdefault(name, {})
    plain[path[-1]] = value
