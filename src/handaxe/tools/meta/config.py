"""Config: read and change settings."""

from typing import Annotated, Any, Literal, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Ask, Decision
from handaxe.contract.effects import Effects
from handaxe.contract.faults.configuration import BadSetting
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.settings_store import SettingOrigin, SettingsStore, SettingValue
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs

HIDDEN = "(hidden)"
"""Shown instead of values that may be secret."""


class ConfigArgs(ToolArgs, kw_only=True):
    key: Annotated[
        str | None, "The setting, such as `read.line_format`; leave it out to list all set values."
    ] = None
    value: Annotated[
        bool | int | float | str | list[str] | None, "The new value; leave it out to read."
    ] = None
    remove: Annotated[bool, "Remove the setting from the file."] = False
    scope: Annotated[
        Literal["local", "project", "user"],
        "The file to change; reading shows the effective value.",
    ] = "local"


class SettingOriginData(TypedDict):
    """The source of a value."""

    source: str
    file: str | None
    line: int | None


class SettingData(TypedDict):
    """A setting with its effective value."""

    key: str
    value: Annotated[Any, "Any value that JSON has."]
    origins: Annotated[list[SettingOriginData], "Empty for a default."]
    meaning: str
    isUsed: Annotated[bool, "Whether handaxe uses it."]


class SettingsData(TypedDict):
    """Without a key: all settings that have a value."""

    settings: list[SettingData]


class Config(Tool[ConfigArgs]):
    """The settings that a model may read and change."""

    search_hint = "show or change settings, options, permission rules"
    output_type = SettingData | SettingsData
    uses = (SettingsStore,)
    defer = True
    input_examples = (
        {"key": "permissions"},
        {"key": "read.line_format", "value": "tab", "scope": "user"},
    )

    def effects_of(self, args: ConfigArgs) -> Effects:
        return Effects.unknown() if _is_change(args) else Effects.none()

    def subjects(self, args: ConfigArgs) -> tuple[Subject, ...]:
        return ()

    async def situate(
        self, args: ConfigArgs, ctx: ToolContext
    ) -> tuple[Effects, tuple[Subject, ...]] | None:
        if not _is_change(args):
            return None
        path = ctx[SettingsStore].find_file(args.scope)
        return Effects.on(path), (PathSubject(path, "write"),)

    async def validate(self, args: ConfigArgs, ctx: ToolContext) -> None:
        if not _is_change(args):
            if args.key is not None:
                ctx[SettingsStore].find(args.key)
            return
        if args.key is None:
            raise BadSetting("Name the setting to change in `key`.")
        if args.remove and args.value is not None:
            raise BadSetting("Give either `value` or `remove`, not both.")
        ctx[SettingsStore].check(args.key, args.value)

    async def decide(self, args: ConfigArgs, ctx: ToolContext) -> Decision | None:
        if not _is_change(args):
            return None
        file = ctx[SettingsStore].find_file(args.scope)
        what = "be removed" if args.remove else f"become {_format_value(args.value)}"
        return Ask(f"`{args.key}` would {what} in {file}; every change of settings needs approval.")

    async def call(self, args: ConfigArgs, ctx: ToolContext) -> ToolResult:
        store = ctx[SettingsStore]
        if args.key is None:
            found = [_mask_setting(setting) for setting in store.listed()]
            text = "\n".join(_format_line(setting) for setting in found)
            text = text or "No settings; everything has its default."
            data: SettingsData = {"settings": [_to_data(setting) for setting in found]}
            return ToolResult(text, data=data)
        if not _is_change(args):
            setting = _mask_setting(store.find(args.key))
            meaning = f"\n{setting.meaning}" if setting.meaning else ""
            return ToolResult(_format_line(setting) + meaning, data=_to_data(setting))
        setting = _mask_setting(await store.change(args.key, args.value, args.scope))
        verb = "removed from" if args.remove else "set in"
        file = store.find_file(args.scope)
        text = f"`{args.key}` was {verb} {file}. Effective value: {_format_line(setting)}"
        counts = args.remove or any(origin.file == file for origin in setting.origins)
        notes = () if counts else (_explain_unused(setting, args.scope),)
        return ToolResult(text, data=_to_data(setting), notes=notes)

    def title(self, partial_input: dict[str, Any]) -> str:
        key = partial_input.get("key") or "all"
        value = partial_input.get("value")
        return f"Config({key})" if value is None else f"Config({key} = {_format_value(value)})"


def _to_data(setting: SettingValue) -> SettingData:
    return msgspec.to_builtins(setting)


def _is_change(args: ConfigArgs) -> bool:
    return args.remove or args.value is not None


def _explain_unused(setting: SettingValue, scope: str) -> str:
    if not setting.is_used:
        return "handaxe knows this setting but does not use it."
    if setting.origins:
        return f"It has no effect, because {_format_origin(setting.origins[-1])} overrides it."
    if scope == "user":
        return "It has no effect."
    return (
        "It has no effect: project files can only restrict permissions until the user runs "
        "`handaxe trust`."
    )


def _mask_setting(setting: SettingValue) -> SettingValue:
    """The setting without values of environment variables, which are often secrets."""
    group, _, name = setting.key.partition(".")
    if group != "env":
        return setting
    value: Any = HIDDEN
    if not name:
        value = dict.fromkeys(setting.value or {}, HIDDEN)
    return msgspec.structs.replace(setting, value=value)


def _format_line(setting: SettingValue) -> str:
    places = (
        ", ".join(dict.fromkeys(_format_origin(origin) for origin in setting.origins)) or "default"
    )
    note = "" if setting.is_used else ", not used by handaxe"
    return f"{setting.key} = {_format_value(setting.value)} ({places}{note})"


def _format_origin(origin: SettingOrigin) -> str:
    if origin.file is None:
        return origin.source
    return origin.file if origin.line is None else f"{origin.file}:{origin.line}"


def _format_value(value: object) -> str:
    return msgspec.json.encode(value).decode()
