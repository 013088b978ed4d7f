"""The settings of a session, and the files of this machine that they are written to."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import msgspec

from handaxe.config.files import MAX_BYTES
from handaxe.config.keys import (
    BadSettingsJson,
    KeyPath,
    SettingKey,
    find_key,
    find_nearest_key,
    is_unused,
    list_groups,
    list_keys,
    split_key,
)
from handaxe.config.layers import MergedSettings
from handaxe.config.source import SettingEntry, read_text
from handaxe.contract.faults import ToolFault
from handaxe.contract.faults.configuration import (
    BadSetting,
    SettingNotWritten,
    UnknownSetting,
)
from handaxe.contract.faults.file import NotFound
from handaxe.contract.permission_subjects import Access
from handaxe.contract.ports.files import Files, Judge
from handaxe.contract.ports.settings_store import Scope, SettingOrigin, SettingsStore, SettingValue
from handaxe.contract.trust_gate import TrustRequest

Complaints = Callable[[KeyPath, object], list[str]]
"""Other problems of a value. It does not check whether a rule is valid."""


class SettingFiles(SettingsStore):
    """Settings in files."""

    def __init__(
        self,
        files: Files,
        own_files: Mapping[Scope, str],
        *,
        view: Callable[[], MergedSettings],
        changed: Callable[[KeyPath, Collection[str], Scope], object],
        complaints: Complaints = lambda _path, _value: [],
    ) -> None:
        """`view` gives what is in force.

        `changed` is called when a file was written, with the notes of what is new in it.
        """
        self._files = files
        self._own_files = own_files
        self._view = view
        self._changed = changed
        self._complaints = complaints

    def listed(self) -> list[SettingValue]:
        """Every setting that is set, by key."""
        found = self._view().entries
        return [_build_setting(path, found[path]) for path in sorted(found)]

    def find(self, key: str) -> SettingValue:
        """One setting, or a group of them as one object."""
        path = split_key(key)
        merged = self._view()
        if path in merged.entries:
            return _build_setting(path, merged.entries[path])
        option = find_key(path)
        inside = {
            found: entries
            for found, entries in merged.entries.items()
            if _is_below_path(path, found)
        }
        if option is None and path not in list_groups() and not is_unused(path):
            raise _build_unknown_setting(path)
        if inside or path in list_groups():
            plain = _to_json(merged.settings)
            for name in path:
                plain = plain.get(name, {})
            origins = tuple(
                _convert_origin(entry) for entries in inside.values() for entry in entries
            )
            return SettingValue(key, plain, origins, option[0].doc if option else "")
        if option is None:
            return SettingValue(key, None, is_used=False)
        return SettingValue(key, _get_default(*option), meaning=option[0].doc)

    def find_file(self, scope: Scope) -> str:
        """The real path of the file that a change of this scope is written to."""
        return self._own_files[scope]

    def check(self, key: str, value: object) -> None:
        """Raise unless the setting may have this value; None removes it."""
        from handaxe.config.file_edit import find_problems

        path = split_key(key)
        if path in list_groups():
            inside = ", ".join(
                sorted(found.name for found in list_keys().values() if path == found.path[:-1])
            )
            raise BadSetting(f"`{key}` is a group; set one of its settings: {inside}.")
        if find_key(path) is None and not is_unused(path):
            raise _build_unknown_setting(path)
        problems = [found.text for found in find_problems(path, value)] if value is not None else []
        problems += self._complaints(path, value)
        if problems:
            raise BadSetting(" ".join(_end_sentence(problem) for problem in problems))

    async def change(self, key: str, value: object, scope: Scope) -> SettingValue:
        """Write a value, or remove it with None. Return the setting that is then in force."""
        from handaxe.config.file_edit import set_key

        self.check(key, value)
        path, file = split_key(key), self._own_files[scope]
        files = self._files.restrict_with(_allow_only(file))
        try:
            try:
                loaded = await files.load(file, max_bytes=MAX_BYTES)
            except NotFound:
                loaded = None
            text = loaded.data.decode("utf-8") if loaded is not None else None
            new = set_key(text, path, value)
            if new != text and not (text is None and value is None):
                version = loaded.version if loaded is not None else None
                await files.replace(file, [new.encode()], expect=version)
        except (BadSettingsJson, UnicodeDecodeError) as error:
            raise SettingNotWritten(
                f"{file} is not JSON ({error}), so it was left alone. Mend it first."
            ) from None
        except SettingNotWritten:
            raise
        except ToolFault as fault:
            raise SettingNotWritten(f"{file} was not changed: {fault.sentence}") from fault
        self._changed(
            path, _collect_notes(value) - _collect_notes(_read_list_items(text, path)), scope
        )
        return self.find(key)


def _read_list_items(text: str | None, path: KeyPath) -> object:
    """The previous list in a file."""
    if text is None:
        return None
    found = read_text(text, source="user").entries
    return [entry.value for entry in found if entry.path == path and entry.kind == "item"]


def _collect_notes(value: object) -> set[str]:
    """The items that a user approves with a value: each item of a list, or the value."""
    if value is None:
        return set()
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    return {TrustRequest(item, None, key="").note for item in items}


def _allow_only(file: str) -> Judge:
    """Make sure that the approved file is the written one: no link leads elsewhere."""

    def judge(real: str, _access: Access) -> None:
        if real != file:
            raise SettingNotWritten(f"{file} leads through a link to {real}, so it was left alone.")

    return judge


def _end_sentence(problem: str) -> str:
    return problem if problem.endswith(("?", ".")) else f"{problem}."


def _build_setting(path: KeyPath, entries: tuple[SettingEntry, ...]) -> SettingValue:
    is_list = entries[0].kind in {"item", "empty"}
    value: Any = entries[0].value
    if is_list:
        value = [entry.value for entry in entries if entry.kind == "item"]
    option = find_key(path)
    return SettingValue(
        ".".join(path),
        value,
        tuple(_convert_origin(entry) for entry in entries),
        option[0].doc if option else "",
        is_used=option is not None,
    )


def _get_default(key: SettingKey, name: str | None) -> object:
    return None if name is not None else _to_json(key.default)


def _to_json(value: object) -> Any:  # noqa: ANN401 - any JSON value
    return msgspec.json.decode(msgspec.json.encode(value))


def _convert_origin(entry: SettingEntry) -> SettingOrigin:
    origin = entry.origin
    return SettingOrigin(origin.source, origin.file, origin.line)


def _is_below_path(path: KeyPath, found: KeyPath) -> bool:
    return len(found) > len(path) and found[: len(path)] == path


def _build_unknown_setting(path: KeyPath) -> UnknownSetting:
    near = find_nearest_key(path)
    hint = f" Did you mean `{near}`?" if near else ""
    return UnknownSetting(f"There is no setting `{'.'.join(path)[:120]}`.{hint}")
