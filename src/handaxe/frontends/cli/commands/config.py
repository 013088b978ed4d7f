"""`handaxe config`: show settings with their files, and change them."""

import argparse
import asyncio
from typing import Any, cast

import msgspec

from handaxe.app.services.configuration import open_configuration
from handaxe.config.file_edit import parse_value
from handaxe.config.keys import split_key
from handaxe.config.project import Configuration
from handaxe.config.working_directories import resolve_project
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.ports.settings_store import Scope, SettingOrigin, SettingsStore, SettingValue
from handaxe.disk.local_files import LocalFiles
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import print_error, print_out
from handaxe.frontends.cli.session_options import read_settings_option, warn
from handaxe.storage.home import find_data_home
from handaxe.text.escape import to_visible_text


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    root = resolve_project(arguments.root)
    configuration = open_configuration(
        root,
        home=find_data_home(),
        given=read_settings_option(arguments.settings),
        sources=arguments.setting_sources,
    )
    store = configuration.store(LocalFiles())
    try:
        return _ACTIONS[arguments.action](arguments, configuration, store)
    except ToolFault as fault:
        raise SetupError(fault.sentence) from None


def _list(arguments: argparse.Namespace, configuration: Configuration, store: SettingsStore) -> int:
    found = store.listed()
    if arguments.json:
        write_json(
            {
                "settings": [_to_json(setting) for setting in found],
                "warnings": list(configuration.warnings),
                "trusted": configuration.is_trusted,
            }
        )
        return DONE
    for setting in found:
        for line in _format_lines(setting):
            print_out(to_visible_text(line))
    if not found:
        print_error("No settings are set; all have their defaults.")
    warn((*configuration.warnings, *configuration.directories()[1]))
    return DONE


def _get(arguments: argparse.Namespace, configuration: Configuration, store: SettingsStore) -> int:
    setting = store.find(arguments.key)
    if arguments.json:
        write_json(_to_json(setting))
    else:
        print_out(to_visible_text(_encode_value(setting.value), lines=True))
        for origin in dict.fromkeys(setting.origins) or (SettingOrigin("default"),):
            print_error(f"  {to_visible_text(_format_origin(origin))}")
    warn(configuration.warnings)
    return DONE


def _change(
    arguments: argparse.Namespace, configuration: Configuration, store: SettingsStore
) -> int:
    key: str = arguments.key
    is_set = arguments.action == "set"
    value: object = parse_value(split_key(key), arguments.value) if is_set else None
    scope = cast("Scope", arguments.scope or "user")
    known = set(configuration.warnings)
    setting = asyncio.run(store.change(key, value, scope))
    file = store.find_file(scope)
    if arguments.json:
        write_json({**_to_json(setting), "written": file})
    else:
        verb = "Set" if value is not None else "Removed"
        print_error(f"{verb} `{to_visible_text(key)}` in {to_visible_text(file)}.")
        _warn_if_overridden(setting, value, file)
    warn(warning for warning in configuration.warnings if warning not in known)
    return DONE


def _warn_if_overridden(setting: SettingValue, value: object, file: str) -> None:
    if not setting.is_used:
        print_error("handaxe does not use this setting; other programs may.")
    elif value is not None and all(origin.file != file for origin in setting.origins):
        stronger = ", ".join(_format_origin(origin) for origin in dict.fromkeys(setting.origins))
        print_error(
            f"It has no effect here: {to_visible_text(stronger)} overrides it."
            if stronger
            else "It has no effect here; see the warning."
        )


def _print_paths(
    arguments: argparse.Namespace, configuration: Configuration, store: SettingsStore
) -> int:
    if arguments.scope is not None:
        print_out(store.find_file(arguments.scope))
        return DONE
    rows: list[dict[str, Any]] = [
        {"path": file.path, "source": file.source, "exists": file.exists, "broken": file.is_broken}
        for file in configuration.files
    ]
    if arguments.json:
        write_json(rows)
        return DONE
    for row in rows:
        state = "broken" if row["broken"] else "read" if row["exists"] else "missing"
        print_out(f"{row['source']:8} {state:8} {to_visible_text(row['path'])}")
    return DONE


_ACTIONS = {"list": _list, "get": _get, "set": _change, "unset": _change, "path": _print_paths}


def _format_lines(setting: SettingValue) -> list[str]:
    note = "" if setting.is_used else "  (not used by handaxe)"
    items = _get_items(setting.value)
    if not items or len(items) != len(setting.origins):
        value, origin = _encode_value(setting.value), _format_origin(setting.origins[0])
        return [f"{setting.key} = {value}  ({origin}){note}"]
    return [
        f"{setting.key} += {_encode_value(item)}  ({_format_origin(origin)}){note}"
        for item, origin in zip(items, setting.origins, strict=True)
    ]


def _get_items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _format_origin(origin: SettingOrigin) -> str:
    if origin.file is None:
        return origin.source
    return origin.file if origin.line is None else f"{origin.file}:{origin.line}"


def _to_json(setting: SettingValue) -> dict[str, Any]:
    return msgspec.to_builtins(setting)


def _encode_value(value: object) -> str:
    return msgspec.json.encode(value).decode()
